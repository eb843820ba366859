#pragma once
/// Layers in a row.

#include <memory>
#include <string>
#include <vector>

#include "../module.hpp"
#include "../ops/ops.hpp"
#include "baton/export.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// An activation function as a layer.
template <class T>
class Activate : public Module<T> {
 public:
  /// y = function(x).
  explicit Activate(Activation function) : function_(function) {}
  Array<T> forward(const Array<T>& x, Context& context) override;
  Array<T> backward(const Array<T>& dy, Context& context) override;
  Params<T> params() override { return {}; }

 private:
  struct BATON_HIDDEN Saved {
    Array<T> x;
  };
  Activation function_;
};

/// A row of layers: each takes the result of the one before.
template <class T>
class Sequential : public Module<T> {
 public:
  /// A module and its name.
  struct Layer {
    std::string name;
    std::shared_ptr<Module<T>> module;
  };

  /// Appends a layer. Names should differ.
  void add(std::string name, std::shared_ptr<Module<T>> module) {
    layers_.push_back({std::move(name), std::move(module)});
  }
  /// All layers, to read and to replace.
  std::vector<Layer>& layers() { return layers_; }
  /// The same, to read.
  const std::vector<Layer>& layers() const { return layers_; }

  Array<T> forward(const Array<T>& x, Context& context) override;
  Array<T> backward(const Array<T>& dy, Context& context) override;
  Params<T> params() override;
  /// A unit for each layer that has parameters.
  std::vector<Unit<T>> units() override;

 private:
  std::vector<Layer> layers_;
};

/// fc1 [hidden, in], gelu, fc2 [out, hidden], without biases: x [.., in] -> [.., out].
template <class T>
class SimpleMLP : public Sequential<T> {
 public:
  /// Draws the weights as Linear does.
  SimpleMLP(std::int64_t in, std::int64_t hidden, std::int64_t out, const Random& random);
};

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
