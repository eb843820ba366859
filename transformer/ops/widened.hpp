#pragma once
/// bf16 on the host: computed as f32. Nothing is computed where computations are emulated.

#include <tuple>
#include <type_traits>

#include "../emulated.hpp"
#include "../tensor.hpp"

namespace baton::transformer::ops {

/// Stands for a view of elements that are computed on as they are: the view itself.
template <class T>
class Widened {
 public:
  explicit Widened(const View<T>& view) : view_(view) {}
  View<T> view() { return view_; }
  void round() const {}

 private:
  View<T> view_;
};

/// Of bf16, a copy in f32; round() puts it back, where it may be written.
template <class T>
requires std::is_same_v<std::remove_const_t<T>, bf16>
class Widened<T> {
 public:
  explicit Widened(const View<T>& view) : narrow_(view) {
    if (view.empty()) return;
    wide_ = Array<float>::uninitialized(view.shape());
    convert<bf16>(view, wide_.view());
  }
  auto view() {
    return View<std::conditional_t<std::is_const_v<T>, const float, float>>(
        wide_.data(), wide_.empty() ? Shape() : narrow_.shape());
  }
  void round() const {
    if constexpr (!std::is_const_v<T>)
      if (!narrow_.empty()) convert<float>(wide_.view(), narrow_);
  }

 private:
  View<T> narrow_;
  Array<float> wide_;
};

/// Calls `compute` with what stands for these views, and rounds what it wrote; not where the thread
/// emulates computations.
template <class Compute, class... T>
void widened(const Compute& compute, const View<T>&... views) {
  if (emulates()) return;
  std::tuple<Widened<T>...> all{Widened<T>(views)...};
  std::apply(
      [&](auto&... each) {
        compute(each.view()...);
        (each.round(), ...);
      },
      all);
}

}  // namespace baton::transformer::ops
