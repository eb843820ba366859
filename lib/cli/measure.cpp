#include "measure.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

#include "reference.hpp"
#include "values.hpp"

namespace baton::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::byte stale{0xa5};  // what no run has written

double now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

std::uint64_t hash_of(const std::byte* data, std::size_t bytes) {
  std::uint64_t hash = bytes;
  const auto mix = [&](std::uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  };
  std::size_t i = 0;
  for (std::uint64_t word = 0; i + 8 <= bytes; i += 8) {
    std::memcpy(&word, data + i, 8);
    mix(word);
  }
  for (; i < bytes; ++i) mix(static_cast<std::uint64_t>(data[i]));
  return hash;
}

/// This rank's buffers of one exercise, and how one algorithm runs on them.
class Bench {
 public:
  Bench(Communicator& communicator, const Exercise& exercise, const MeasureOptions& options)
      : communicator_(communicator),
        exercise_(exercise),
        rank_(communicator.rank()),
        bytes_(size_of(exercise.type)),
        aliased_(is_aliased(options)),
        input_(bytes_of(exercise.input_count(rank_)), stale),
        output_(bytes_of(output_room()), stale) {
    place();
  }

  std::byte* input() { return input_.data(); }
  std::byte* result() { return result_; }
  std::byte* output() { return output_.data(); }  ///< room for a result out of place
  std::size_t result_bytes() const { return bytes_of(exercise_.output_count(rank_)); }
  bool aliased() const { return aliased_; }

  void fill(const Values& values) {
    const bool root = rank_ == exercise_.problem.root;
    if (exercise_.collective() == Collective::broadcast) {
      // Its data is output everywhere: root's is laid there before each run.
      if (root) input_.resize(result_bytes());
      if (root) values.write(rank_, 0, exercise_.output_count(rank_), input_.data());
    } else {
      values.write(rank_, 0, exercise_.input_count(rank_), input_.data());
    }
  }
  /// Buffers as before a first run: inputs in place, outputs stale.
  void reset() {
    std::fill(output_.begin(), output_.end(), stale);
    if (exercise_.collective() == Collective::broadcast || aliased_) {
      std::copy(input_.begin(), input_.end(), source_);
    }
  }
  void run(const Choice& choice) {
    if (exercise_.schedules) return run_schedule();
    Call call = exercise_.call(source_, result_, rank_);
    call.choice = choice;
    communicator_.run(call);
  }
  Choice chosen(const Choice& choice) {
    if (exercise_.schedules) return {(*exercise_.schedules)[0].header().algorithm, 0};
    Call call = exercise_.call(source_, result_, rank_);
    call.choice = choice;
    return communicator_.chosen(call);
  }

 private:
  std::size_t bytes_of(std::int64_t elements) const {
    return static_cast<std::size_t>(elements) * bytes_;
  }
  bool is_aliased(const MeasureOptions& options) const {
    Problem p = exercise_.problem.at(rank_);
    p.in_place = exercise_.schedules
                     ? (*exercise_.schedules)[static_cast<std::size_t>(rank_)].header().in_place
                     : options.in_place && !exercise_.tensor;
    return p.collective != Collective::broadcast && p.aliased();
  }
  bool output_within_input() const {
    return exercise_.collective() == Collective::scatter ||
           exercise_.collective() == Collective::reduce_scatter;
  }
  std::int64_t output_room() const {
    const std::int64_t in = exercise_.input_count(rank_), out = exercise_.output_count(rank_);
    return aliased_ ? std::max(in, out) : out;
  }
  void place() {
    source_ = aliased_ ? output_.data() : input_.data();
    result_ = output_.data();
    const Collective c = exercise_.collective();
    if (c == Collective::broadcast) source_ = output_.data();
    if (!aliased_) return;
    const std::size_t own = bytes_of(exercise_.block_offset(rank_));
    if (output_within_input()) result_ += own;
    if (c == Collective::gather || c == Collective::all_gather) source_ += own;
  }
  void run_schedule() {
    const Schedule& schedule = (*exercise_.schedules)[static_cast<std::size_t>(rank_)];
    const auto& header = schedule.header();
    if (exercise_.collective() == Collective::barrier) {
      return communicator_.run(schedule, ConstData(&token_, header.input, Datatype::u8),
                               Data(nullptr, 0, Datatype::u8));
    }
    void* const whole = output_.data();
    const void* const in = aliased_ ? whole : input_.data();
    communicator_.run(schedule, ConstData(in, header.input, exercise_.type),
                      Data(whole, header.output, exercise_.type), exercise_.op);
  }

  Communicator& communicator_;
  const Exercise& exercise_;
  int rank_;
  std::size_t bytes_;
  bool aliased_;  // input and output are one buffer, `output_`
  std::vector<std::byte> input_, output_;
  std::byte* source_ = nullptr;  // where the call's input is, and its result
  std::byte* result_ = nullptr;
  std::uint8_t token_ = 0;
};

/// Everything about one exercise; see measure().
class Measurement {
 public:
  Measurement(World& world, Communicator& communicator, const Exercise& exercise,
              const MeasureOptions& options)
      : world_(world), exercise_(exercise), options_(options) {
    world_.together([&] { bench_.emplace(communicator, exercise, options); });
  }

  MeasuredAll all(const std::vector<std::string>& names,
                  const std::function<void(const std::string&)>& before) {
    MeasuredAll all;
    for (const std::string& name : names) {
      const Choice wanted{name, options_.segment};
      Measured one;
      world_.together([&] {
        const Choice chosen = bench_->chosen(wanted);
        one.algorithm = chosen.algorithm;
        one.segment = std::max<std::int64_t>(chosen.segment, 0);
      });
      all.algorithms.push_back(one);
    }
    std::vector<std::uint64_t> hashes(names.size());
    for (const Fill fill : fills()) {
      const Values values(fill, exercise_.op, exercise_.type, exercise_.ranks());
      const Reference reference = make_reference(values);
      for (std::size_t i = 0; i < names.size(); ++i) {
        before(all.algorithms[i].algorithm);
        check(all.algorithms[i], {names[i], options_.segment}, reference, hashes[i]);
      }
    }
    const auto built_in = world_.built_in(exercise_, bench_->input(), bench_->output());
    if (built_in) {
      int iterations = 0;
      all.built_in_seconds = time(built_in, iterations);
    }
    const bool in_place = world_.sum(bench_->aliased() ? 1 : 0) > 0;
    for (std::size_t i = 0; i < names.size(); ++i) {
      Measured& one = all.algorithms[i];
      const Choice choice{names[i], options_.segment};
      before(one.algorithm);
      world_.together([&] { bench_->reset(); });
      one.seconds = time([&] { bench_->run(choice); }, one.iterations);
      // In place, on all ranks or at the root, each run began with the result of the last.
      if (!in_place) recheck(one, hashes[i]);
    }
    return all;
  }

 private:
  std::vector<Fill> fills() const {
    if (exercise_.collective() == Collective::barrier) return {Fill::bits};
    if (!reducing(exercise_.collective())) return {Fill::bits};
    const OpKind op = exercise_.op;
    const bool rounds = op == OpKind::sum || op == OpKind::avg || op == OpKind::prod;
    if (rounds && is_float(exercise_.type)) return {Fill::exact, Fill::random};
    return {Fill::exact};
  }
  bool shared_result() const {
    return exercise_.collective() == Collective::all_reduce ||
           exercise_.collective() == Collective::all_gather ||
           exercise_.collective() == Collective::broadcast;
  }

  Reference make_reference(const Values& values) {
    std::optional<Reference> reference;
    std::vector<std::byte> expected;
    world_.together([&] {
      bench_->fill(values);
      expected.assign(bench_->result_bytes(), stale);
      if (exercise_.collective() == Collective::broadcast &&
          world_.rank() == exercise_.problem.root) {
        std::copy_n(bench_->input(), expected.size(), expected.data());
      }
    });
    std::function<void()> built_in;
    if (values.fill() != Fill::random) {
      built_in = world_.built_in(exercise_, bench_->input(), expected.data());
    }
    world_.together([&] {
      if (built_in) {
        built_in();
        reference.emplace(exercise_, std::move(expected), world_.rank());
      } else {
        expected = {};
        reference.emplace(exercise_, values, world_.rank());
      }
    });
    return std::move(*reference);
  }

  void check(Measured& one, const Choice& choice, const Reference& reference, std::uint64_t& hash) {
    if (exercise_.collective() == Collective::barrier) return check_barrier(one, choice);
    std::int64_t wrong = 0;
    world_.together([&] {
      bench_->reset();
      bench_->run(choice);
      wrong = reference.wrong(bench_->result());
      hash = hash_of(bench_->result(), bench_->result_bytes());
    });
    if (shared_result() && !world_.equal(hash)) ++wrong;
    one.wrong += world_.sum(wrong);
    one.checks += world_.size();
  }

  void recheck(Measured& one, std::uint64_t hash) {
    if (exercise_.collective() == Collective::barrier) return;
    const bool same = hash_of(bench_->result(), bench_->result_bytes()) == hash;
    one.wrong += world_.sum(same ? 0 : 1);
    one.checks += world_.size();
  }

  /// Nobody leaves a barrier before the last has entered; tried with each of some ranks late.
  void check_barrier(Measured& one, const Choice& choice) {
    if (!world_.one_clock()) return;
    for (int late = 0; late < std::min(world_.size(), 8); ++late) {
      double entered = 0, left = 0;
      world_.barrier();
      world_.together([&] {
        if (world_.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        entered = now();
        bench_->run(choice);
        left = now();
      });
      one.wrong += world_.sum(left < world_.max(entered) ? 1 : 0);
      one.checks += world_.size();
    }
  }

  double time(const std::function<void()>& run, int& iterations) {
    const auto timed = [&](int runs) {
      double seconds = 0;
      world_.barrier();
      world_.together([&] {
        const double begin = now();
        for (int i = 0; i < runs; ++i) run();
        seconds = now() - begin;
      });
      return world_.max(seconds) / runs;
    };
    double one = 0;
    if (options_.warmup > 0) one = timed(options_.warmup);
    iterations = options_.iterations;
    if (iterations == 0) {
      if (options_.warmup == 0) one = timed(1);
      iterations = static_cast<int>(std::clamp(0.1 / std::max(one, 1e-9), 2.0, 1000.0));
    }
    return timed(iterations);
  }

  World& world_;
  const Exercise& exercise_;
  const MeasureOptions& options_;
  std::optional<Bench> bench_;
};

}  // namespace

std::vector<std::string> algorithms_for(const Exercise& exercise, const Registry& registry,
                                        const std::string& wanted) {
  if (wanted.empty() || exercise.schedules) return {""};
  std::vector<std::string> names;
  for (const Algorithm* algorithm : registry.of(exercise.collective())) {
    if (wanted == "all" ? refusal(*algorithm, exercise.problem).empty()
                        : algorithm->name == wanted) {
      names.push_back(algorithm->name);
    }
  }
  return names;
}

MeasuredAll measure(World& world, Communicator& communicator, const Exercise& exercise,
                    const std::vector<std::string>& algorithms, const MeasureOptions& options,
                    const std::function<void(const std::string&)>& before) {
  return Measurement(world, communicator, exercise, options).all(algorithms, before);
}

}  // namespace baton::cli
