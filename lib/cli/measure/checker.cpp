#include "checker.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

namespace baton::cli::measure {
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
  if (!reducing(subject_.collective())) return {Fill::bits};
  const OpKind op = subject_.op;
  const bool rounds = op == OpKind::sum || op == OpKind::avg || op == OpKind::prod;
  if (rounds && is_float(subject_.type)) return {Fill::exact, Fill::random};
  return {Fill::exact};
}

bool Checker::shared_result() const {
  return subject_.collective() == Collective::all_reduce ||
         subject_.collective() == Collective::all_gather ||
         subject_.collective() == Collective::broadcast;
}

Reference Checker::reference(Fill fill, bool by_built_in) {
  const Values values(fill, subject_.op, subject_.type, subject_.ranks());
  std::optional<Reference> reference;
  std::vector<std::byte> expected;
  world_.together([&] {
    buffers_.fill(values);
    expected.assign(buffers_.result_bytes(), CaseBuffers::stale);
    if (subject_.collective() == Collective::broadcast && world_.rank() == subject_.problem.root) {
      std::copy_n(buffers_.input(), expected.size(), expected.data());
    }
  });
  std::vector<BuiltIn> built_ins;
  if (fill != Fill::random && by_built_in) {
    built_ins = world_.built_ins(subject_, buffers_.input(), expected.data());
  }
  world_.together([&] {
    if (built_ins.empty()) {
      expected = {};
      reference.emplace(subject_, values, world_.rank());
    } else {
      built_ins[0].run();
      reference.emplace(subject_, std::move(expected), world_.rank());
    }
  });
  return std::move(*reference);
}

void Checker::check(CheckResult& found, const std::function<void()>& run,
                    const Reference& reference) {
  if (subject_.collective() == Collective::barrier) return check_barrier(found, run);
  std::int64_t wrong = 0;
  world_.together([&] {
    buffers_.reset();
    run();
    wrong = reference.wrong(buffers_.result());
    found.hash = hash_of(buffers_.result(), buffers_.result_bytes());
  });
  if (shared_result() && !world_.equal(found.hash)) ++wrong;
  found.wrong += world_.sum(wrong);
  found.checks += world_.size();
}

void Checker::recheck(CheckResult& found) {
  if (subject_.collective() == Collective::barrier) return;
  const bool same = hash_of(buffers_.result(), buffers_.result_bytes()) == found.hash;
  found.wrong += world_.sum(same ? 0 : 1);
  found.checks += world_.size();
}

/// Nobody leaves a barrier before the last has entered; tried with each of some ranks late.
void Checker::check_barrier(CheckResult& found, const std::function<void()>& run) {
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
    found.wrong += world_.sum(left < world_.max(entered) ? 1 : 0);
    found.checks += world_.size();
  }
}

}  // namespace baton::cli::measure
