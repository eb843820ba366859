#include "accelerator.hpp"

#include "instantiation.hpp"

namespace baton::transformer {
namespace {

thread_local Accelerator* current = nullptr;

}  // namespace

Markers::Markers(Device& device, std::size_t count) : device_(device) {
  for (std::size_t i = 0; i < count; ++i) spare_.push_back(device.make_marker());
}

std::unique_ptr<Marker> Markers::take() {
  if (spare_.empty()) return device_.make_marker();
  std::unique_ptr<Marker> marker = std::move(spare_.back());
  spare_.pop_back();
  return marker;
}

Accelerator* accelerator() { return current; }

AcceleratorScope::AcceleratorScope(Accelerator* accelerator) : before_(current) {
  current = accelerator;
}
AcceleratorScope::~AcceleratorScope() { current = before_; }

template <class T>
Array<T> from_host(View<const std::type_identity_t<T>> x) {
  Accelerator* const device = accelerator();
  Array<T> packed;
  if (!device || !x.contiguous()) {
    const AcceleratorScope host(nullptr);
    packed = Array<T>::copy_of(x);
    x = packed;
  }
  if (!device) return packed;
  auto there = Array<T>::uninitialized(x.shape());
  device->upload(x.data(), there.data(), there.bytes());
  return there;
}

template <class T>
Array<T> to_host(View<const std::type_identity_t<T>> x) {
  Accelerator* const device = accelerator();
  if (!device) return Array<T>::copy_of(x);
  Array<T> packed;
  if (!x.contiguous()) {
    packed = Array<T>::copy_of(x);
    x = packed;
  }
  const AcceleratorScope host(nullptr);
  auto here = Array<T>::uninitialized(x.shape());
  device->download(x.data(), here.data(), here.bytes());
  return here;
}

#define BATON_INSTANTIATE(T)                                      \
  template BATON_INSTANTIATION Array<T> from_host(View<const T>); \
  template BATON_INSTANTIATION Array<T> to_host(View<const T>);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
BATON_INSTANTIATE(std::int32_t)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
