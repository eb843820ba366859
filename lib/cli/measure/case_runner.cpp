#include "case_runner.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

namespace baton::cli::measure {

CaseBuffers::CaseBuffers(int rank, const Case& subject, bool in_place)
    : subject_(subject),
      rank_(rank),
      bytes_(size_of(subject.type)),
      aliased_(is_aliased(in_place)),
      input_(bytes_of(subject.input_count(rank_)), stale),
      output_(bytes_of(aliased_ ? std::max(subject.input_count(rank_), subject.output_count(rank_))
                                : subject.output_count(rank_)),
              stale) {
  const Collective c = subject.collective();
  source_ = aliased_ || c == Collective::broadcast ? output_.data() : input_.data();
  result_ = output_.data();
  if (!aliased_) return;
  const std::size_t own = bytes_of(subject.block_offset(rank_));
  if (scattering(c)) result_ += own;
  if (gathering(c)) source_ += own;
}

void CaseBuffers::fill(const Values& values) {
  const bool root = rank_ == subject_.problem.root;
  if (subject_.collective() == Collective::broadcast) {
    // Its data is output everywhere: root's is laid there before each run.
    if (root) input_.resize(result_bytes());
    if (root) values.write(rank_, 0, subject_.output_count(rank_), input_.data());
  } else {
    values.write(rank_, 0, subject_.input_count(rank_), input_.data());
  }
}

void CaseBuffers::reset() {
  std::fill(output_.begin(), output_.end(), stale);
  if (subject_.collective() == Collective::broadcast || aliased_) {
    std::copy(input_.begin(), input_.end(), source_);
  }
}

bool CaseBuffers::is_aliased(bool in_place) const {
  Problem p = subject_.problem.at(rank_);
  p.in_place = subject_.schedules
                   ? (*subject_.schedules)[static_cast<std::size_t>(rank_)].header().in_place
                   : in_place && !subject_.tensor;
  return p.collective != Collective::broadcast && p.aliased();
}

CaseRunner::CaseRunner(Communicator& communicator, const Case& subject, bool in_place)
    : CaseBuffers(communicator.rank(), subject, in_place),
      communicator_(communicator),
      in_(source_, subject.input_count(rank_), subject.type),
      out_(result_, subject.output_count(rank_), subject.type) {}

void CaseRunner::run(const Choice& choice) {
  if (!subject_.schedules) return subject_.run(communicator_, in_, out_, choice);
  const Schedule& schedule = (*subject_.schedules)[static_cast<std::size_t>(rank_)];
  const auto& header = schedule.header();
  if (subject_.collective() == Collective::barrier) {
    return communicator_.run(schedule, ConstData(&token_, header.input, Datatype::u8),
                             Data(nullptr, 0, Datatype::u8));
  }
  void* const whole = output_.data();
  const void* const in = aliased_ ? whole : input_.data();
  communicator_.run(schedule, ConstData(in, header.input, subject_.type),
                    Data(whole, header.output, subject_.type), subject_.op);
}

Choice CaseRunner::chosen(const Choice& choice) {
  if (subject_.schedules) return {(*subject_.schedules)[0].header().algorithm, 0};
  Call call = subject_.call(in_, out_);
  call.choice = choice;
  return communicator_.chosen(call);
}

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
  const Collective c = subject_.collective();
  if (c == Collective::barrier) return check_barrier(found, run);
  const bool shared =
      c == Collective::all_reduce || c == Collective::all_gather || c == Collective::broadcast;
  std::int64_t wrong = 0;
  world_.together([&] {
    buffers_.reset();
    run();
    wrong = reference.wrong(buffers_.result());
    found.hash = hash_of(buffers_.result(), buffers_.result_bytes());
  });
  if (shared && !world_.equal(found.hash)) ++wrong;
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
