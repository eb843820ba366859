/// The reference beside the vector kernels: one plain loop per op and datatype.

#include "element.hpp"
#include "with_element.hpp"

namespace baton::host {
namespace {

template <OpKind op, class T>
struct Loop {
  static void fold(void* into, const void* left, const void* right, std::size_t count) {
    fold_elements<op, T>(into, left, right, count);
  }
};

}  // namespace

FoldFunction reference_fold(OpKind op, Datatype type) {
  return with_element(type, [&]<class T>() { return select<Loop, T>(op); });
}

DivideFunction reference_divide(Datatype type) {
  return with_element(type, []<class T>() -> DivideFunction { return &divide_elements<T>; });
}

}  // namespace baton::host
