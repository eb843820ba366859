#pragma once
/// Modules whose forward keeps its input only.

#include "baton/export.hpp"
#include "module.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// A module as one whose forward keeps only its input, and whose backward begins with the module's
/// forward once more, messages and dropout included. Chen, Xu, Zhang, Guestrin: Training deep nets
/// with sublinear memory cost (2016).
template <class T>
class Recomputed final : public Module<T> {
 public:
  /// The module must outlive it.
  explicit Recomputed(Module<T>& module) : module_(module) {}
  Array<T> forward(const Array<T>& x, Context& context) override;
  Array<T> backward(const Array<T>& dy, Context& context) override;
  Params<T> params() override { return module_.params(); }

 private:
  struct BATON_HIDDEN Saved {
    Array<T> x;
  };
  Module<T>& module_;
};

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
