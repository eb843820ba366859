#include "exchange.hpp"

#include <fmt/core.h>

#include <utility>

namespace baton::communicator {

using Clock = std::chrono::steady_clock;

bool Absence::lasts(int rank, bool gone) {
  static constexpr std::chrono::seconds last_messages{1};
  const auto now = Clock::now();
  if (gone) return now - since_.try_emplace(rank, now).first->second >= last_messages;
  since_.erase(rank);
  return false;
}

Exchange::Exchange(Launcher& launcher, const Context& context, const char* name,
                   std::chrono::milliseconds limit)
    : launcher_(launcher),
      context_(context),
      name_(name),
      limit_(limit),
      begin_(Clock::now()),
      look_at_(begin_ + Watch::quiet_before_show) {
  launcher.free_next_tag();
  launcher.next_tag();
  number_ = launcher.sequence();
  place_ = launcher.watch().begin(number_, internal_call(name));
}

Exchange::~Exchange() {
  launcher_.watch().hide();
  launcher_.watch().end(place_);
}

bool Exchange::alone(int peer) {
  const Watch& watch = launcher_.watch();
  if (peer >= 0) return absence_.lasts(peer, watch.gone(peer));
  for (int rank = 0; rank < context_.size; ++rank)
    if (absence_.lasts(rank, watch.condition(rank).life == status::Life::ended)) return true;
  return false;
}

void Exchange::check(int peer) {
  static constexpr std::chrono::milliseconds between_looks{20};
  const auto now = Clock::now();
  if (now < look_at_) return;
  look_at_ = now + between_looks;
  Watch& watch = launcher_.watch();
  if (peer >= 0)
    watch.show(fmt::format("waits for rank {}", peer), peer);
  else
    watch.show("waits for others", context_.size);  // nobody knows for whom
  if (watch.told(number_)) give_up(watch.told_as(), peer);
  if (alone(peer)) give_up(ErrorCode::transport, peer);
  if (limit_.count() > 0 && now - begin_ > limit_) give_up(ErrorCode::timeout, peer);
}

Error Exchange::retold(const Watch::Verdict& verdict) const {
  return communicator::retold(verdict, numbered(name_, number_), context_.rank);
}

void Exchange::give_up(ErrorCode code, int peer) {
  const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin_);
  const Watch::Verdict verdict = launcher_.watch().verdict(name_, number_, peer, waited, code);
  if (!verdict.sentence.empty()) throw retold(verdict);
  throw retold({fmt::format("{} of communicator '{}' cannot complete within {} s", name_,
                            launcher_.watch().label(), static_cast<double>(waited.count()) / 1000),
                code});
}

Error Exchange::told(const Error& error) const {
  if (!error.operation.empty()) return error;  // check() has thrown it
  const Watch::Verdict verdict = launcher_.watch().verdict(error, name_, number_);
  return verdict.sentence.empty() ? error : retold(verdict);
}

}  // namespace baton::communicator
