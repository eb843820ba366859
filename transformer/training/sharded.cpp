/// FullyShardedDataParallel.

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <map>

#include "../exchange.hpp"
#include "../ops/ops.hpp"
#include "baton/error.hpp"
#include "data_parallel.hpp"

namespace baton::transformer {
namespace {

/// The use of a unit's parameters.
struct Use {
  std::size_t unit = 0;
  bool backward = false;
  bool operator==(const Use&) const = default;
};

/// Parameters of one unit that the same ranks have, end to end.
template <class T>
struct Flat {
  Params<T> params;
  std::vector<std::int64_t> first;   // element of each
  std::int64_t size = 0;             // elements in all
  Axes axes;                         // along which they are divided
  bool shared = false;               // with another stage
  Group group;                       // the ranks along these
  std::vector<std::int64_t> counts;  // elements of each rank
  std::int64_t begin = 0, own = 0;   // this rank's
  Array<T> values, grads;            // of all elements; may be released
  Array<T> shard, shard_grad;        // of this rank's
  Array<T> received;                 // gradients of a later micro-batch
  std::vector<std::unique_ptr<Param<T>>> slices;
  Started gathering, reducing;
  bool gathers = false, reduces = false;  // is under way
  bool reduced = false;                   // shard_grad has gradients of this step
  std::size_t complete = 0;               // gradients that backward has completed
  Traffic gather_traffic, reduce_traffic;

  bool divided() const { return group.size() > 1; }
  Call gather_call() { return calls::all_gather_v(shard.span(), values.span(), counts); }
  Call reduce_call(Array<T>& to) {
    return calls::reduce_scatter_v(grads.span(), to.span(), counts, sum);
  }
};

}  // namespace

Range shard_of(std::int64_t n, int ranks, int rank) {
  const auto begin = [&](std::int64_t r) {  // r n / P, without a product that overflows
    return n / ranks * r + n % ranks * r / ranks;
  };
  return {begin(rank), begin(rank + std::int64_t{1})};
}

template <class T>
struct FullyShardedDataParallel<T>::State {
  State(Model<T>& model, const Mesh& mesh, ShardingStage stage) : stage(stage) {
    const std::vector<Unit<T>> its_units = model.units();
    units.resize(its_units.size());
    for (std::size_t u = 0; u < its_units.size(); ++u) {
      for (Param<T>* param : its_units[u].params) {
        if (param->value.size() > 0) flat_for(*param, mesh, u).params.push_back(param);
      }
    }
    for (Flat<T>& flat : flats) divide(flat);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  bool divides_gradients() const { return stage >= ShardingStage::gradients; }
  bool divides_parameters() const { return stage >= ShardingStage::parameters; }

  /// The flat of a unit's parameters that are divided among the same ranks, or a new one.
  Flat<T>& flat_for(const Param<T>& param, const Mesh& mesh, std::size_t unit) {
    const Group group = mesh.group(param.partial);
    for (Flat<T>* flat : units[unit])
      if (flat->group.host == group.host && flat->shared == param.shared) return *flat;
    Flat<T>& flat = flats.emplace_back();
    flat.group = group;
    flat.axes = param.partial;
    flat.shared = param.shared;
    units[unit].push_back(&flat);
    return flat;
  }

  void divide(Flat<T>& flat) {
    for (const Param<T>* param : flat.params) {
      flat.first.push_back(flat.size);
      flat.size += param->value.size();
    }
    const int ranks = flat.group.size();
    for (int r = 0; r < ranks; ++r) flat.counts.push_back(shard_of(flat.size, ranks, r).size());
    const Range own = shard_of(flat.size, ranks, flat.group.rank());
    flat.begin = own.begin, flat.own = own.size();

    flat.values = Array<T>::uninitialized({flat.size});
    count_as(Purpose::parameters, flat.values);
    for (std::size_t p = 0; p < flat.params.size(); ++p) {
      Param<T>& param = *flat.params[p];
      Array<T> place = flat.values.part(flat.first[p], param.value.shape());
      assign<T>(param.value, place.view());
      param.value = place;
      param.grad.release();
      flat_of[&param] = &flat;
    }
    flat.shard = flat.values.part(flat.begin, {flat.own});
    if (flat.divided()) {
      flat.gather_traffic = flat.group.host->traffic(flat.gather_call());
      flat.grads = flat.values;  // any of this size
      flat.reduce_traffic = flat.group.host->traffic(flat.reduce_call(flat.shard));
      flat.grads = {};
    }
    if (flat.divided() && divides_gradients()) {
      flat.shard_grad = Array<T>({flat.own});
      count_as(Purpose::gradients, flat.shard_grad);
    } else {
      make_gradients(flat);
      flat.shard_grad = flat.grads.part(flat.begin, {flat.own});
    }
    if (flat.divided() && divides_parameters()) {
      flat.shard = flat.shard.copy();
      count_as(Purpose::parameters, flat.shard);
      release_values(flat);
    }
    for (std::size_t p = 0; p < flat.params.size(); ++p) {
      const Param<T>& param = *flat.params[p];
      const std::int64_t from = std::max(flat.first[p], flat.begin);
      const std::int64_t to = std::min(flat.first[p] + param.value.size(), flat.begin + flat.own);
      if (from >= to) continue;
      auto slice = std::make_unique<Param<T>>();
      static_cast<ParamInfo&>(*slice) = param;
      slice->partial = {};
      if (flat.divided()) slice->sharded = flat.axes;
      slice->value = flat.shard.part(from - flat.begin, {to - from});
      slice->grad = flat.shard_grad.part(from - flat.begin, {to - from});
      flat.slices.push_back(std::move(slice));
    }
  }

  // --- values
  // --------------------------------------------------------------------------------------

  void release_values(Flat<T>& flat) {
    for (Param<T>* param : flat.params) param->value.release();
    flat.values = {};
  }
  void start_gather(Flat<T>& flat) {
    if (!flat.values.empty()) return;
    const ExchangeTimer timer;
    const PurposeScope purpose(Purpose::gathered);
    flat.values = Array<T>::uninitialized({flat.size});
    flat.gathering = flat.group.start(flat.gather_call(), true);
    flat.gathers = true;
    sent += flat.gather_traffic;
  }
  void finish_gather(Flat<T>& flat) {
    if (!flat.gathers) return;
    const ExchangeTimer timer;
    flat.gathering.wait();
    flat.gathers = false;
    for (std::size_t p = 0; p < flat.params.size(); ++p)
      flat.params[p]->value = flat.values.part(flat.first[p], flat.params[p]->value.shape());
  }
  void start_gathers(std::size_t unit) {
    for (Flat<T>* flat : units[unit]) start_gather(*flat);
  }

  // --- gradients
  // -----------------------------------------------------------------------------------

  void make_gradients(Flat<T>& flat) {
    if (!flat.grads.empty()) return;
    const PurposeScope purpose(Purpose::gradients);
    flat.grads = Array<T>({flat.size});
    for (std::size_t p = 0; p < flat.params.size(); ++p)
      flat.params[p]->grad = flat.grads.part(flat.first[p], flat.params[p]->value.shape());
  }
  void start_reduce(Flat<T>& flat) {
    if (!flat.divided()) {
      flat.reduced = true;
      return;
    }
    const ExchangeTimer timer;
    make_gradients(flat);
    const bool adds = divides_gradients() && flat.reduced;
    const PurposeScope purpose(Purpose::gradients);
    if (adds) flat.received = Array<T>::uninitialized({flat.own});
    flat.reducing =
        flat.group.start(flat.reduce_call(adds ? flat.received : flat.shard_grad), true);
    flat.reduces = true;
    sent += flat.reduce_traffic;
    reducing.push_back(&flat);
  }
  void finish_reduce(Flat<T>& flat) {
    {
      const ExchangeTimer timer;
      flat.reducing.wait();
    }
    flat.reduces = false;
    flat.reduced = true;
    if (!divides_gradients()) return;
    if (!flat.received.empty()) add<T>(flat.received, flat.shard_grad.view());
    release_gradients(flat);
  }
  void release_gradients(Flat<T>& flat) {
    flat.received = {};
    for (Param<T>* param : flat.params) param->grad.release();
    flat.grads = {};
  }
  /// Leaves at most so many reductions under way.
  void finish_reductions(std::size_t most) {
    for (; reducing.size() > most; reducing.pop_front()) finish_reduce(*reducing.front());
  }

  // --- what a context calls
  // ------------------------------------------------------------------------

  void forget_uses() {
    if (uses.size() > expected.size()) expected = uses;
    uses.clear();
    for (Flat<T>& flat : flats) flat.complete = 0;
  }
  void before(const Use& use) {
    uses.push_back(use);
    start_gathers(use.unit);
    for (Flat<T>* flat : units[use.unit]) {
      finish_gather(*flat);
      if (!use.backward) continue;
      if (flat->reduces) finish_reductions(0);  // of the micro-batch before
      make_gradients(*flat);
    }
    if (const Use* const next = next_use()) start_gathers(next->unit);
  }
  void after(const Use& use) {
    if (!divides_parameters()) return;
    const Use* const next = next_use();
    if (next && next->unit == use.unit) return;
    for (Flat<T>* flat : units[use.unit])
      if (flat->divided()) release_values(*flat);
  }
  /// The use that followed the present one in the longest micro-batch so far.
  const Use* next_use() const {
    const std::size_t n = uses.size();
    if (n == 0 || n >= expected.size() || expected[n - 1] != uses.back()) return nullptr;
    if (expected[n].backward && !trains) return nullptr;
    return &expected[n];
  }
  void completed(const ParamInfo& param) {
    const auto found = flat_of.find(&param);
    if (found == flat_of.end()) return;
    Flat<T>& flat = *found->second;
    if (++flat.complete < flat.params.size()) return;
    flat.complete = 0;
    start_reduce(flat);
    constexpr std::size_t under_way = 1;  // the memory of gradients stays small
    if (divides_gradients()) finish_reductions(under_way);
  }
  void progress() {
    // Communicators of one mesh advance each other.
    for (const Flat<T>& flat : flats)
      if (flat.gathers || flat.reduces) return advance(*flat.group.host);
  }

  const ShardingStage stage;
  std::deque<Flat<T>> flats;
  std::vector<std::vector<Flat<T>*>> units;
  std::map<const ParamInfo*, Flat<T>*> flat_of;
  std::deque<Flat<T>*> reducing;
  std::vector<Use> uses, expected;
  bool trains = true;  // whether backward follows forward
  Traffic sent;
};

template <class T>
FullyShardedDataParallel<T>::FullyShardedDataParallel(Model<T>& model, const Mesh& mesh,
                                                      ShardingStage stage)
    : state_(std::make_unique<State>(model, mesh, stage)) {}

template <class T>
FullyShardedDataParallel<T>::~FullyShardedDataParallel() = default;

template <class T>
Params<T> FullyShardedDataParallel<T>::params() {
  Params<T> all;
  for (auto flat = state_->flats.rbegin(); flat != state_->flats.rend(); ++flat)
    for (const auto& slice : flat->slices) all.push_back(slice.get());
  return all;
}

template <class T>
void FullyShardedDataParallel<T>::start_step() {
  state_->sent = {};
  state_->forget_uses();
  for (Flat<T>& flat : state_->flats) {
    Array<T>& grads = flat.grads.empty() ? flat.shard_grad : flat.grads;
    detail::zero(grads.data(), grads.bytes());
    flat.reduced = false;
  }
}

template <class T>
void FullyShardedDataParallel<T>::attach(Context& context, bool last) {
  state_->forget_uses();
  attach_beside(context, last);
  if (state_->units.size() > 1) return;
  context.before = context.after = nullptr;
  state_->before({0, context.keeps});
}

template <class T>
void FullyShardedDataParallel<T>::attach_beside(Context& context, bool last) {
  State& state = *state_;
  state.trains = context.keeps;
  context.meanwhile = [&state] { state.progress(); };
  if (last || state.divides_gradients())
    context.completed = [&state](const ParamInfo& param) { state.completed(param); };
  context.before = [&state](std::size_t unit, bool backward) { state.before({unit, backward}); };
  context.after = [&state](std::size_t unit, bool backward) { state.after({unit, backward}); };
}

template <class T>
bool FullyShardedDataParallel<T>::may_postpone() const {
  return !state_->divides_gradients();
}

template <class T>
void FullyShardedDataParallel<T>::finish_gradients() {
  for (auto flat = state_->flats.rbegin(); flat != state_->flats.rend(); ++flat)
    if (!flat->reduced && !flat->reduces) state_->start_reduce(*flat);
  state_->finish_reductions(0);
}

template <class T>
void FullyShardedDataParallel<T>::forget_step() {
  State& state = *state_;
  state.finish_reductions(0);
  state.forget_uses();
  state.expected.clear();  // a rank that has failed has seen fewer uses
  for (Flat<T>& flat : state.flats) {
    state.finish_gather(flat);
    if (!flat.divided()) continue;
    if (state.divides_gradients()) state.release_gradients(flat);
    if (state.divides_parameters()) state.release_values(flat);
  }
}

template <class T>
void FullyShardedDataParallel<T>::finish_step() {
  State& state = *state_;
  for (Flat<T>& flat : state.flats) {
    if (!flat.divided()) continue;
    if (state.divides_parameters()) {
      state.finish_gather(flat);  // of the values before the step
      state.release_values(flat);
      continue;
    }
    const ExchangeTimer timer;
    flat.gathering = flat.group.start(flat.gather_call(), true);
    flat.gathers = true;
    state.sent += flat.gather_traffic;
  }
  for (Flat<T>& flat : state.flats) state.finish_gather(flat);
}

template <class T>
void FullyShardedDataParallel<T>::with_values(const std::function<void()>& use) {
  State& state = *state_;
  for (Flat<T>& flat : state.flats) state.start_gather(flat);
  for (Flat<T>& flat : state.flats) state.finish_gather(flat);
  use();
  if (!state.divides_parameters()) return;
  for (Flat<T>& flat : state.flats)
    if (flat.divided()) state.release_values(flat);
}

template <class T>
Traffic FullyShardedDataParallel<T>::traffic() const {
  return state_->sent;
}

template class FullyShardedDataParallel<float>;
template class FullyShardedDataParallel<double>;
template class FullyShardedDataParallel<bf16>;

}  // namespace baton::transformer
