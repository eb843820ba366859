/// Pipeline.

#include "runner.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <set>
#include <tuple>

#include "../accelerator.hpp"
#include "../exchange.hpp"
#include "../ops/ops.hpp"
#include "../recorded.hpp"
#include "baton/error.hpp"
#include "failure.hpp"
#include "together.hpp"
#include "verify.hpp"

namespace baton::transformer {
namespace {

/// An activation or a gradient: what stage made it, for which micro-batch.
using ResultKey = std::tuple<bool, int, int>;
/// Messages of one kind from one rank.
using Channel = std::pair<int, bool>;

ResultKey key_of(const PipelineAction& action) {
  return {action.work == PipelineWork::forward, action.stage, action.micro_batch};
}
constexpr Axes axes_of_mesh = Axis::dp | Axis::tp | Axis::sp | Axis::pp;
int tag_of(bool activation) { return activation ? 0 : 1; }

/// All micro-batches of a rank's first stage forward, then those of the next one.
PipelineSchedule forward_only(const PipelineSchedule& schedule, const std::vector<int>& places,
                              int micro_batches) {
  PipelineSchedule forward{schedule.name, schedule.stages, micro_batches, {}};
  forward.ranks.resize(schedule.ranks.size());
  for (int stage = 0; stage < schedule.stages; ++stage) {
    auto& actions =
        forward.ranks[static_cast<std::size_t>(places[static_cast<std::size_t>(stage)])];
    for (int i = 0; i < micro_batches; ++i) actions.push_back({PipelineWork::forward, stage, i});
  }
  return forward;
}

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

template <class T>
struct Pipeline<T>::State {
  State(PipelineSchedule its_schedule, const std::map<int, PipelineStage<T>*>& its_stages,
        const Mesh& its_mesh)
      : schedule(std::move(its_schedule)),
        stages(its_stages),
        mesh(its_mesh),
        ranks(mesh.along(Axis::pp)),
        rank(mesh.rank(Axis::pp)) {
    expect_right(schedule);
    places = ranks_of_stages(schedule);
    if (schedule.size() != mesh.size(Axis::pp)) {
      refuse(fmt::format("pipeline {}: expected {} ranks along pp, found {}", schedule.name,
                         schedule.size(), mesh.size(Axis::pp)));
    }
    expect_equal();
    if (accelerator()) {
      throw Error(ErrorCode::unsupported,
                  "pipeline: expected stages in the host's memory, found an accelerator");
    }
    std::size_t first = 0;
    for (int stage = 0; stage < schedule.stages; ++stage) {
      const bool own = places[static_cast<std::size_t>(stage)] == rank;
      if (own != stages.contains(stage)) {
        refuse(fmt::format("pipeline {}: expected stage {} {} rank {}, found it {}", schedule.name,
                           stage, own ? "on" : "not on", rank, own ? "missing" : "there"));
      }
      if (!own) continue;
      first_unit[stage] = first;
      first += stages.at(stage)->units().size();
    }
    if (places.front() != places.back() || schedule.stages > 1) {
      for (const auto& [number, stage] : stages) {
        for (Param<T>* param : stage->shared()) {
          param->shared = true;
          param->copy = number > 0;
        }
      }
    }
    together = Together::of(mesh);
    steps = steps_of(schedule, rank);
    postpones = std::any_of(steps.begin(), steps.end(), [](const PipelineStep& step) {
      return step.action.work == PipelineWork::backward_weight;
    });
  }

  /// Throws on all ranks unless all have the same schedule.
  void expect_equal() const {
    if (!ranks) return;
    const std::string text = print(schedule);
    const bool equal = broadcast_text(*ranks, text, 0) == text;
    std::int64_t first = equal ? ranks->size() : rank;
    ranks->all_reduce(std::span(&first, 1), min);
    if (first == ranks->size()) return;
    const std::string its = broadcast_text(*ranks, schedule.name, 0);
    const std::string other = broadcast_text(*ranks, schedule.name, static_cast<int>(first));
    refuse(
        fmt::format("pipeline: expected the same schedule on all ranks, found \"{}\" on rank 0 "
                    "and another one, \"{}\", on rank {}",
                    its, other, first));
  }

  [[noreturn]] static void refuse(const std::string& sentence) {
    throw Error(ErrorCode::invalid_argument, sentence);
  }

  const PipelineSchedule schedule;
  const std::map<int, PipelineStage<T>*> stages;
  const Mesh& mesh;
  Communicator* const ranks;  // null: one rank
  const int rank;
  std::vector<int> places;  // of stages
  std::map<int, std::size_t> first_unit;
  std::vector<PipelineStep> steps;
  bool postpones = false;
  Together* together = nullptr;  // of the ranks that have the same stages; null: there is no other
  Seconds seconds;
  std::function<void(const PipelineAction&, bool)> observer;
};

namespace {

/// One pass through the steps of a rank.
template <class T, class State>
class Pass {
 public:
  Pass(State& state, DataParallel<T>& replicas, const std::vector<PipelineStep>& steps, bool trains,
       const Random& random)
      : state_(state), replicas_(replicas), steps_(steps), trains_(trains), random_(random) {
    for (const PipelineStep& step : steps) {
      if (step.kind == PipelineStepKind::recv) expected_[channel_of(step)].push_back(step.action);
      if (step.kind != PipelineStepKind::compute) continue;
      auto& last = last_[step.action.stage];  // the action that completes its gradients
      last[step.action.work == PipelineWork::backward_weight] = step.action.micro_batch;
    }
    if (together()) together()->begin();
  }

  ~Pass() {
    if (together()) together()->give_up();
  }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  /// Computes all, and returns when what the others have started has ended, too.
  void run(const typename Pipeline<T>::Output& output) {
    output_ = &output;
    for (auto& [channel, list] : expected_) receive_next(channel);
    for (const PipelineStep& step : steps_) {
      if (step.kind == PipelineStepKind::recv) {
        receive(step);
      } else if (step.kind == PipelineStepKind::send) {
        send(step);
      } else {
        compute(step.action);
      }
    }
    const ExchangeTimer timer;
    for (Sent& message : sent_) wait(message.request);
    if (together()) together()->finish();
  }
  /// This rank's part of the loss. Collective over the mesh: throws on all ranks the exception of
  /// the first rank that has failed.
  double result() {
    const bool failed = any_failed(state_.mesh, failure_);
    if (together()) together()->end();
    if (!failed) return loss_;
    const WatchScope none(nullptr);
    replicas_.forget_step();
    raise_first(state_.mesh, failure_);
  }
  /// Seconds of actions, without those of their exchanges.
  double computing() const { return computing_; }

 private:
  struct Sent {
    Array<T> data;
    Request request;
  };
  struct Coming {
    PipelineAction of;
    Array<T> data;
    Request request;
  };

  static Channel channel_of(const PipelineStep& step) {
    return {step.peer, step.action.work == PipelineWork::forward};
  }
  PipelineStage<T>& stage(int number) const { return *state_.stages.at(number); }
  Together* together() const { return state_.together; }
  void wait(Request& request) const {
    if (!together()) return request.wait();
    together()->wait(request);
  }

  /// Starts to receive the next message of a channel, if there is one.
  void receive_next(const Channel& channel) {
    auto& list = expected_.at(channel);
    if (list.empty()) return;
    const PipelineAction action = list.front();
    list.pop_front();
    const int i = action.micro_batch;
    const auto [peer, activation] = channel;
    const Shape shape =
        activation ? stage(action.stage + 1).input(i) : stage(action.stage - 1).output(i);
    Coming& coming = coming_[channel];
    coming.of = action;
    coming.data = Array<T>::uninitialized(shape);
    coming.request = state_.ranks->start_recv(Data(coming.data.span()), peer, tag_of(activation));
  }
  void receive(const PipelineStep& step) {
    const ExchangeTimer timer;
    const Channel channel = channel_of(step);
    Coming& coming = coming_.at(channel);
    wait(coming.request);
    here_.emplace(key_of(coming.of), std::move(coming.data));
    receive_next(channel);
  }
  void send(const PipelineStep& step) {
    const ExchangeTimer timer;
    const auto result = here_.find(key_of(step.action));
    Sent& message = sent_.emplace_back();
    message.data = std::move(result->second);
    here_.erase(result);
    const bool activation = step.action.work == PipelineWork::forward;
    message.request = state_.ranks->start_send(ConstData(std::as_const(message.data).span()),
                                               step.peer, tag_of(activation));
    while (!sent_.empty() && sent_.front().request.test()) sent_.pop_front();
  }
  /// An activation or gradient that came, or that this rank has made.
  Array<T> take(bool activation, int of_stage, int micro_batch) {
    if (of_stage < 0 || of_stage >= state_.schedule.stages) return {};
    const auto found = here_.find({activation, of_stage, micro_batch});
    Array<T> array = std::move(found->second);
    here_.erase(found);
    return array;
  }

  Context& context_of(const PipelineAction& action) {
    const auto [found, is_new] = contexts_.try_emplace({action.stage, action.micro_batch});
    Context& context = found->second;
    if (!is_new) return context;
    context.keeps = context.training = trains_;
    context.random = random_;
    const auto& last = last_.at(action.stage);
    const bool completes = trains_ && std::all_of(last.begin(), last.end(), [&](const auto& one) {
                             return one.second == action.micro_batch;
                           });
    replicas_.attach_beside(context, completes);
    const std::size_t first = state_.first_unit.at(action.stage);
    for (auto* const use : {&context.before, &context.after}) {
      if (first > 0 && *use)
        *use = [first, its = *use](std::size_t unit, bool back) { its(first + unit, back); };
    }
    if (Communicator* const ranks = state_.ranks) {
      context.meanwhile = [ranks, others = context.meanwhile] {
        if (others) others();
        advance(*ranks);
      };
    }
    return context;
  }

  /// Computes an action, or, after a failure, makes a result of its shape.
  void compute(const PipelineAction& action) {
    const int i = action.micro_batch, number = action.stage;
    const bool forward = action.work == PipelineWork::forward;
    Array<T> argument;
    if (action.work != PipelineWork::backward_weight)
      argument = take(forward, number + (forward ? -1 : 1), i);
    Array<T> result;
    attempt(action, [&] { observe(action, false); });
    const auto begin = Clock::now();
    const double exchanged = seconds_in_exchanges();
    if (!failure_) {
      const RecordedWork recorded(computation_kind_named(name(action.work)),
                                  [&] { return print(action); });
      attempt(action, [&] { result = computed(action, std::move(argument)); });
    }
    computing_ += seconds_since(begin) - (seconds_in_exchanges() - exchanged);
    attempt(action, [&] { observe(action, true); });
    if (action.work == PipelineWork::backward_weight) return;
    const int next = number + (forward ? 1 : -1);
    if (next < 0 || next >= state_.schedule.stages) return;
    if (failure_) result = Array<T>(forward ? stage(number).output(i) : stage(number).input(i));
    here_.emplace(key_of(action), std::move(result));
  }
  void observe(const PipelineAction& action, bool ends) const {
    if (state_.observer) state_.observer(action, ends);
  }
  /// Calls `part`. The first exception is this rank's failure, which the others are told.
  template <class Part>
  void attempt(const PipelineAction& action, const Part& part) {
    try {
      part();
    } catch (const std::exception& error) {
      if (failure_) return;
      const Communicator* const all = state_.mesh.along(axes_of_mesh);
      failure_ = Failure::of(
          error, fmt::format("rank {}: stage {}, micro-batch {}, {}", all ? all->rank() : 0,
                             action.stage, action.micro_batch, name(action.work)));
      if (!together()) return;
      if (together()->broken()) failure_->raise();
      together()->fail();
    }
  }
  Array<T> computed(const PipelineAction& action, Array<T> argument) {
    PipelineStage<T>& its = stage(action.stage);
    Context& context = context_of(action);
    const auto ends = [&] {
      if (trains_) context.expect_finished();
      contexts_.erase({action.stage, action.micro_batch});
    };
    Array<T> result;
    switch (action.work) {
      case PipelineWork::forward: {
        StageOutput<T> output = its.forward(action.micro_batch, std::move(argument), context);
        loss_ += output.loss;
        if (*output_ && action.stage + 1 == state_.schedule.stages)
          (*output_)(action.micro_batch, output.activation);
        result = std::move(output.activation);
        if (!trains_) ends();
        break;
      }
      case PipelineWork::backward:
        result = its.backward(std::move(argument), context);
        ends();
        break;
      case PipelineWork::backward_input:
        result = its.backward_input(std::move(argument), context);
        break;
      case PipelineWork::backward_weight:
        its.backward_weight(context);
        ends();
        break;
    }
    return result;
  }

  State& state_;
  DataParallel<T>& replicas_;
  const std::vector<PipelineStep>& steps_;
  const bool trains_;
  const Random random_;
  const typename Pipeline<T>::Output* output_ = nullptr;
  std::map<Channel, std::deque<PipelineAction>> expected_;
  std::map<Channel, Coming> coming_;
  std::map<ResultKey, Array<T>> here_;
  std::map<std::pair<int, int>, Context> contexts_;  // by stage and micro-batch
  std::map<int, std::map<bool, int>> last_;  // of a stage: micro-batches of its last actions
  std::deque<Sent> sent_;
  double loss_ = 0, computing_ = 0;
  std::optional<Failure> failure_;
  const WatchScope watch_{together()};
};

/// Throws on all ranks unless each stage takes what the one before it gives.
template <class State>
void expect_equal_shapes(const State& state, int micro_batches) {
  if (!state.ranks) return;
  // Of each boundary: the elements that go into it, and those that come out, of all micro-batches.
  const auto n = static_cast<std::size_t>(state.schedule.stages);
  std::vector<std::uint64_t> sums(2 * n, 0);
  const auto sum_of = [&](const auto& shape_of) {
    std::uint64_t all = 14695981039346656037u;
    for (int i = 0; i < micro_batches; ++i) {
      const Shape shape = shape_of(i);
      for (int d = 0; d < shape.rank(); ++d)
        all = (all ^ static_cast<std::uint64_t>(shape[d])) * 1099511628211u;
      all = (all ^ 0xff) * 1099511628211u;
    }
    return all;
  };
  for (const auto& [number, stage] : state.stages) {
    const auto s = static_cast<std::size_t>(number);
    sums[2 * s] = sum_of([its = stage](int i) { return its->input(i); });
    sums[2 * s + 1] = sum_of([its = stage](int i) { return its->output(i); });
  }
  state.ranks->all_reduce(std::span(sums), sum);
  for (std::size_t s = 0; s + 1 < n; ++s) {
    if (sums[2 * s + 1] == sums[2 * s + 2]) continue;
    const int giver = state.places[s], taker = state.places[s + 1];
    const auto text_of = [&](int number, bool output) {
      std::string text;
      const auto found = state.stages.find(number);
      if (found == state.stages.end()) return text;
      for (int i = 0; i < micro_batches; ++i) {
        const Shape shape = output ? found->second->output(i) : found->second->input(i);
        text += fmt::format("{}{}", i == 0 ? "" : ", ", shape.text());
      }
      return text;
    };
    const int number = static_cast<int>(s);
    const std::string given = broadcast_text(*state.ranks, text_of(number, true), giver);
    const std::string taken = broadcast_text(*state.ranks, text_of(number + 1, false), taker);
    State::refuse(
        fmt::format("pipeline {}: stage {} on rank {} expects activations of {}, stage {} "
                    "on rank {} gives {} (by micro-batch)",
                    state.schedule.name, number + 1, taker, taken, number, giver, given));
  }
}

}  // namespace

template <class T>
Pipeline<T>::Pipeline(PipelineSchedule schedule, const std::map<int, PipelineStage<T>*>& stages,
                      const Mesh& mesh)
    : state_(std::make_unique<State>(std::move(schedule), stages, mesh)) {}

template <class T>
Pipeline<T>::~Pipeline() = default;

template <class T>
Params<T> Pipeline<T>::params() {
  Params<T> all;
  for (auto stage = state_->stages.rbegin(); stage != state_->stages.rend(); ++stage) {
    const Params<T> its = stage->second->params();
    all.insert(all.end(), its.begin(), its.end());
  }
  return all;
}

template <class T>
std::vector<Unit<T>> Pipeline<T>::units() {
  std::vector<Unit<T>> all;
  for (const auto& [number, stage] : state_->stages)
    for (Unit<T>& unit : stage->units()) all.push_back(std::move(unit));
  return all;
}

template <class T>
double Pipeline<T>::run(DataParallel<T>& replicas, const Random& random, const Output& output) {
  const auto begin = Clock::now();
  if (state_->postpones && !replicas.may_postpone()) {
    State::refuse(fmt::format(
        "pipeline {}: expected gradients that are divided after backward (stage 1), since it "
        "postpones those by weights, found gradients that are divided at once",
        state_->schedule.name));
  }
  expect_equal_shapes(*state_, state_->schedule.micro_batches);
  Pass<T, State> pass(*state_, replicas, state_->steps, true, random);
  pass.run(output);
  state_->seconds.all += seconds_since(begin);
  state_->seconds.computing += pass.computing();
  return pass.result();
}

template <class T>
double Pipeline<T>::forward(DataParallel<T>& replicas, int micro_batches, const Output& output) {
  expect_equal_shapes(*state_, micro_batches);
  const auto steps =
      steps_of(forward_only(state_->schedule, state_->places, micro_batches), state_->rank);
  Pass<T, State> pass(*state_, replicas, steps, false, {});
  pass.run(output);
  return pass.result();
}

template <class T>
void Pipeline<T>::add_shared_gradients(const Params<T>& params) {
  const int first = state_->places.front(), last = state_->places.back();
  const ExchangeTimer timer;
  const auto find = [&](const Param<T>& shared, bool copy) -> Param<T>* {
    for (Param<T>* param : params)
      if (param->name == shared.name && param->copy == copy) return param;
    return nullptr;
  };
  const int stages = state_->schedule.stages;
  for (const int end : {0, stages - 1}) {
    const auto own = state_->stages.find(end);
    if (own == state_->stages.end() || (end > 0 && first == last)) continue;
    for (const Param<T>* shared : own->second->shared()) {
      Param<T>* const here = find(*shared, end > 0);
      if (!here) continue;  // no element of it is this rank's
      if (first == last) {
        Param<T>* const there = find(*shared, true);
        add<T>(there->grad, here->grad.view());
        assign<T>(here->grad, there->grad.view());
        continue;
      }
      const int peer = end == 0 ? last : first;
      const Array<T> mine = here->grad.copy();
      auto its = Array<T>::uninitialized(mine.shape());
      Request sends = state_->ranks->start_send(ConstData(mine.span()), peer, 2);
      Request receives = state_->ranks->start_recv(Data(its.span()), peer, 2);
      sends.wait();
      receives.wait();
      add<T>(its, here->grad.view());  // of two numbers, so in either order
    }
  }
}

template <class T>
const PipelineSchedule& Pipeline<T>::schedule() const {
  return state_->schedule;
}

template <class T>
int Pipeline<T>::rank_of(int stage) const {
  return state_->places.at(static_cast<std::size_t>(stage));
}

template <class T>
typename Pipeline<T>::Seconds Pipeline<T>::seconds() const {
  return state_->seconds;
}

template <class T>
void Pipeline<T>::observe(std::function<void(const PipelineAction&, bool)> observer) {
  state_->observer = std::move(observer);
}

template class Pipeline<float>;
template class Pipeline<double>;
template class Pipeline<bf16>;

}  // namespace baton::transformer
