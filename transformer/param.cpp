#include "param.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "accelerator.hpp"
#include "baton/error.hpp"
#include "emulated.hpp"
#include "exchange.hpp"
#include "instantiation.hpp"

namespace baton::transformer {

std::string whole_name(const ParamInfo& param) {
  constexpr std::string_view part = "_shard";  // TransformerBlock::parallelize()
  std::string name = param.name;
  if (name.ends_with(part)) name.resize(name.size() - part.size());
  return name;
}

template <class T>
void Param<T>::zero_grad() {
  detail::zero(grad.data(), grad.bytes());
}

template <class T>
void move_to(Accelerator& accelerator, const Params<T>& params) {
  const AcceleratorScope scope(&accelerator);
  for (Param<T>* param : params) {
    param->value = from_host<T>(param->value);
    param->grad = from_host<T>(param->grad);
    count_as(Purpose::parameters, param->value);
    count_as(Purpose::gradients, param->grad);
  }
}

template <class T>
GradientBuckets<T>::GradientBuckets(const Params<T>& params, const Mesh& mesh,
                                    std::int64_t bucket_bytes) {
  std::vector<std::size_t> open;  // a bucket per communicator
  for (Param<T>* param : params) {
    const Group group = mesh.group(param->partial & (Axis::dp | Axis::tp | Axis::sp));
    if (!group.host || param->grad.size() == 0) continue;
    const auto bytes = static_cast<std::int64_t>(param->grad.bytes());
    const auto fits = [&](std::size_t b) {
      std::int64_t held = 0;
      for (const Data& d : buckets_[b].data) held += d.count * static_cast<std::int64_t>(sizeof(T));
      return buckets_[b].group.host == group.host && held + bytes <= bucket_bytes;
    };
    std::erase_if(open, [&](std::size_t b) {  // full: later ones go to the next
      return buckets_[b].group.host == group.host && !fits(b);
    });
    const auto found = std::find_if(open.begin(), open.end(), fits);
    const std::size_t b = found == open.end() ? buckets_.size() : *found;
    if (b == buckets_.size()) {
      buckets_.push_back({group, {}, {}, {}, {}, false});
      open.push_back(b);
    }
    buckets_[b].params.push_back(param);
    buckets_[b].data.push_back(param->grad.span());
    buckets_[b].complete.push_back(false);
  }
}

template <class T>
Call GradientBuckets<T>::reduction(const Bucket& bucket) const {
  return calls::all_reduce(std::span<const Data>(bucket.data), sum);
}

template <class T>
void GradientBuckets<T>::start(Bucket& bucket) {
  const ExchangeTimer timer;
  bucket.request = bucket.group.start(reduction(bucket), true);
  bucket.started = true;
}

template <class T>
void GradientBuckets<T>::ready(const ParamInfo& param) {
  for (Bucket& bucket : buckets_) {
    const auto is = [&](const Param<T>* p) { return static_cast<const ParamInfo*>(p) == &param; };
    const auto found = std::find_if(bucket.params.begin(), bucket.params.end(), is);
    if (found == bucket.params.end()) continue;
    const auto at = static_cast<std::size_t>(found - bucket.params.begin());
    if (bucket.complete[at]) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: expected each gradient to be reported once, found it again",
                              param.name));
    }
    bucket.complete[at] = true;
    const auto& complete = bucket.complete;
    if (std::find(complete.begin(), complete.end(), false) == complete.end()) start(bucket);
    return;
  }
}

template <class T>
void GradientBuckets<T>::progress() {
  // Communicators of one mesh advance each other.
  const auto started = [](const Bucket& bucket) { return bucket.started; };
  const auto found = std::find_if(buckets_.begin(), buckets_.end(), started);
  if (found != buckets_.end()) advance(*found->group.host);
}

template <class T>
Traffic GradientBuckets<T>::traffic() const {
  Traffic traffic;
  for (const Bucket& bucket : buckets_) traffic += bucket.group.host->traffic(reduction(bucket));
  return traffic;
}

template <class T>
void GradientBuckets<T>::finish() {
  for (Bucket& bucket : buckets_)
    if (!bucket.started) start(bucket);
  forget();
}

template <class T>
void GradientBuckets<T>::forget() {
  for (Bucket& bucket : buckets_) {
    {
      const ExchangeTimer timer;
      bucket.request.wait();
    }
    bucket.started = false;
    bucket.complete.assign(bucket.params.size(), false);
  }
}

template <class T>
void sync_grads(const Params<T>& params, const Mesh& mesh, std::int64_t bucket_bytes) {
  GradientBuckets<T>(params, mesh, bucket_bytes).finish();
}

template <class T>
void broadcast_params(const Params<T>& params, const Mesh& mesh) {
  for (Param<T>* param : params) {
    const Group group = mesh.group(param->partial);
    if (group.size() == 1 || param->value.size() == 0) continue;
    const ExchangeTimer timer;
    group.start(calls::broadcast(Data(param->value.span()), 0)).wait();
  }
}

namespace {

/// grad *= factor.
template <class T>
void scale(Array<T>& grad, double factor) {
  Accelerator* const device = accelerator();
  Array<T> host = device ? to_host<T>(grad) : grad;
  for (T& g : host.span()) g = narrow<T>(static_cast<Wide<T>>(widen(g) * factor));
  if (device) device->upload(host.data(), grad.data(), grad.bytes());
}

}  // namespace

template <class T>
void average_sums(const Params<T>& params, const Mesh& mesh) {
  const int ranks = mesh.size(Axis::dp);
  if (ranks == 1) return;
  for (Param<T>* param : params)
    if (param->partial.has(Axis::dp)) scale(param->grad, 1.0 / ranks);
}

template <class T>
double clip_gradients(const Params<T>& params, const Mesh& mesh, double most) {
  if (!(most > 0)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("clip_gradients: expected a norm above 0, found {}", most));
  }
  // Squares by the axes along which ranks have other elements; every rank adds the same sets.
  std::array<double, 1u << axis_count> squares{};
  for (const Param<T>* param : params) {
    if (param->copy) continue;
    Axes parts = param->sharded;
    if (param->placement.dim >= 0) parts = parts | param->placement.axis;
    const Array<T> grad = accelerator() ? to_host<T>(param->grad) : param->grad;
    double& square = squares[parts.bits()];
    for (const T g : grad.span()) {
      const double wide = widen(g);
      square += wide * wide;
    }
  }
  double all = 0;
  for (unsigned bits = 0; bits < squares.size(); ++bits) {
    Axes parts;
    for (int a = 0; a < axis_count; ++a)
      if ((bits >> a & 1u) != 0) parts = parts | static_cast<Axis>(a);
    if (parts.has(Axis::pp)) continue;
    if (Communicator* const others = mesh.along(parts)) {
      const ExchangeTimer timer;
      others->all_reduce(std::span(&squares[bits], 1), sum);
    }
    all += squares[bits];
  }
  if (Communicator* const stages = mesh.along(Axis::pp)) {
    const ExchangeTimer timer;
    stages->all_reduce(std::span(&all, 1), sum);
  }
  const double norm = std::sqrt(all);
  if (!(norm > most)) return norm;
  for (Param<T>* param : params) scale(param->grad, most / norm);
  return norm;
}

namespace {

template <class T>
bool finite(const Params<T>& params, Array<T> Param<T>::*member) {
  if (accelerator() || emulates()) return true;
  int others = 0;  // no early end, so that vectors are compared
  for (const Param<T>* param : params)
    for (const T x : (param->*member).span()) others |= std::isfinite(widen(x)) ? 0 : 1;
  return others == 0;
}

}  // namespace

template <class T>
bool finite_gradients(const Params<T>& params) {
  return finite(params, &Param<T>::grad);
}
template <class T>
bool finite_values(const Params<T>& params) {
  return finite(params, &Param<T>::value);
}

namespace {

template <class T>
Array<T> whole(const Array<T>& part, const Placement& placement, const Mesh& mesh) {
  const Group group = mesh.group(placement.axis);
  if (placement.dim < 0 || group.size() == 1) return part.copy();
  return Exchange::gather_parallel(group, placement.dim).forward(part);
}

}  // namespace

template <class T>
Array<T> whole_value(const Param<T>& param, const Mesh& mesh) {
  return whole(param.value, param.placement, mesh);
}
template <class T>
Array<T> whole_grad(const Param<T>& param, const Mesh& mesh) {
  return whole(param.grad, param.placement, mesh);
}

template <class T>
Array<T> part_of(View<const std::type_identity_t<T>> whole, const Placement& placement,
                 const Mesh& mesh) {
  if (placement.dim < 0) return Array<T>::copy_of(whole);
  return part_along<T>(whole, placement.dim, mesh.rank(placement.axis), mesh.size(placement.axis),
                       name(placement.axis));
}

#define BATON_INSTANTIATE(T)                                                                 \
  template struct Param<T>;                                                                  \
  template BATON_INSTANTIATION void move_to(Accelerator&, const Params<T>&);                 \
  template class GradientBuckets<T>;                                                         \
  template BATON_INSTANTIATION void sync_grads(const Params<T>&, const Mesh&, std::int64_t); \
  template BATON_INSTANTIATION void average_sums(const Params<T>&, const Mesh&);             \
  template BATON_INSTANTIATION void broadcast_params(const Params<T>&, const Mesh&);         \
  template BATON_INSTANTIATION double clip_gradients(const Params<T>&, const Mesh&, double); \
  template BATON_INSTANTIATION bool finite_gradients(const Params<T>&);                      \
  template BATON_INSTANTIATION bool finite_values(const Params<T>&);                         \
  template BATON_INSTANTIATION Array<T> whole_value(const Param<T>&, const Mesh&);           \
  template BATON_INSTANTIATION Array<T> whole_grad(const Param<T>&, const Mesh&);            \
  template BATON_INSTANTIATION Array<T> part_of<T>(View<const T>, const Placement&, const Mesh&);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
