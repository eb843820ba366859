#include "checker.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "clock.hpp"

namespace baton::cli {
namespace {

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

}  // namespace

std::vector<Fill> Checker::fills() const {
  if (!reducing(exercise_.collective())) return {Fill::bits};
  const OpKind op = exercise_.op;
  const bool rounds = op == OpKind::sum || op == OpKind::avg || op == OpKind::prod;
  if (rounds && is_float(exercise_.type)) return {Fill::exact, Fill::random};
  return {Fill::exact};
}

bool Checker::shared_result() const {
  return exercise_.collective() == Collective::all_reduce ||
         exercise_.collective() == Collective::all_gather ||
         exercise_.collective() == Collective::broadcast;
}

Reference Checker::reference(Fill fill) {
  const Values values(fill, exercise_.op, exercise_.type, exercise_.ranks());
  std::optional<Reference> reference;
  std::vector<std::byte> expected;
  world_.together([&] {
    trial_.fill(values);
    expected.assign(trial_.result_bytes(), TrialBuffers::stale);
    if (exercise_.collective() == Collective::broadcast &&
        world_.rank() == exercise_.problem.root) {
      std::copy_n(trial_.input(), expected.size(), expected.data());
    }
  });
  std::vector<BuiltIn> built_ins;
  if (fill != Fill::random) {
    built_ins = world_.built_ins(exercise_, trial_.input(), expected.data());
  }
  world_.together([&] {
    if (built_ins.empty()) {
      expected = {};
      reference.emplace(exercise_, values, world_.rank());
    } else {
      built_ins[0].run();
      reference.emplace(exercise_, std::move(expected), world_.rank());
    }
  });
  return std::move(*reference);
}

void Checker::check(Verdict& verdict, const std::function<void()>& run,
                    const Reference& reference) {
  if (exercise_.collective() == Collective::barrier) return check_barrier(verdict, run);
  std::int64_t wrong = 0;
  world_.together([&] {
    trial_.reset();
    run();
    wrong = reference.wrong(trial_.result());
    verdict.hash = hash_of(trial_.result(), trial_.result_bytes());
  });
  if (shared_result() && !world_.equal(verdict.hash)) ++wrong;
  verdict.wrong += world_.sum(wrong);
  verdict.checks += world_.size();
}

void Checker::recheck(Verdict& verdict) {
  if (exercise_.collective() == Collective::barrier) return;
  const bool same = hash_of(trial_.result(), trial_.result_bytes()) == verdict.hash;
  verdict.wrong += world_.sum(same ? 0 : 1);
  verdict.checks += world_.size();
}

/// Nobody leaves a barrier before the last has entered; tried with each of some ranks late.
void Checker::check_barrier(Verdict& verdict, const std::function<void()>& run) {
  if (!world_.one_clock()) return;
  for (int late = 0; late < std::min(world_.size(), 8); ++late) {
    double entered = 0, left = 0;
    world_.barrier();
    world_.together([&] {
      if (world_.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      entered = now();
      run();
      left = now();
    });
    verdict.wrong += world_.sum(left < world_.max(entered) ? 1 : 0);
    verdict.checks += world_.size();
  }
}

}  // namespace baton::cli
