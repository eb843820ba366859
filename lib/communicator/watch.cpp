#include "watch.hpp"

#include <fmt/core.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <numeric>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "../base/hash.hpp"
#include "../base/utf8.hpp"
#include "../status/flight.hpp"
#include "baton/output_file.hpp"
#include "operation.hpp"
#include "recording.hpp"

namespace baton::communicator {
namespace {

/// A name as a page keeps it and sentences can have it: on one line, cut between two characters.
std::string line_of(std::string_view name) {
  std::string line(base::beginning_of(name, status::longest_label));
  for (char& c : line)
    if (std::iscntrl(static_cast<unsigned char>(c)) != 0) c = ' ';
  return line;
}

}  // namespace

status::Call message_call(StepKind kind, int peer, int tag, std::int64_t count, Datatype type) {
  status::Call call;
  call.kind = kind == StepKind::send ? status::Call::Kind::send : status::Call::Kind::recv;
  call.type = static_cast<std::uint8_t>(type);
  call.root = peer;
  call.count = count;
  call.set_text("tag ");
  std::to_chars(call.text.data() + 4, call.text.data() + call.text.size() - 1, tag);
  return call;
}

status::Call internal_call(const char* name) {
  status::Call call;
  call.kind = status::Call::Kind::internal;
  call.set_text(name);
  return call;
}

void Watch::open(std::uint64_t communicator, std::uint64_t first, const std::string& label) {
  communicator_ = communicator;
  label_ = line_of(label);
  page_ = std::make_unique<status::Page>(communicator, context_.rank, context_.size, first, label_);
}

void Watch::reach(std::unique_ptr<status::Elsewhere> elsewhere) {
  if (!elsewhere || !elsewhere->any()) return;
  elsewhere_ = std::move(elsewhere);
  // For `baton status`; one rank of a machine is enough.
  if (page_ && elsewhere_->first_here() == context_.rank) page_->put_doors(elsewhere_->written());
}

void Watch::rename(std::string_view label) {
  label_ = line_of(label);
  if (page_) page_->layout().label.write(label_);
}

void Watch::show(const Operation& operation) {
  fmt::memory_buffer text;  // repeated calls allocate nothing
  operation.waits_for(text);
  show({text.data(), text.size()}, operation.blocker().first);
  shown_operation_ = &operation;
}

void Watch::show(std::string_view waits, int peer) {
  if (!page_) return;
  status::Layout& page = page_->layout();
  shown_operation_ = nullptr;
  page.waits.write(waits);
  page.thread.store(status::own_thread(), std::memory_order_relaxed);
  page.blocker.store(peer + 1, std::memory_order_release);
}

void Watch::hide() noexcept {
  shown_operation_ = nullptr;
  if (page_) page_->layout().blocker.store(0, std::memory_order_release);
}

void Watch::fail(const std::string& why) noexcept {
  if (!page_) return;
  status::Layout& page = page_->layout();
  if (page.verdict_number.load(std::memory_order_relaxed) == 0) page.failure.write(why);
  page.failed.store(1, std::memory_order_release);
}

std::vector<status::Finding> Watch::ask(status::Inquiry inquiry, std::span<const int> ranks) const {
  inquiry.communicator = communicator_;
  std::vector<int> far_ranks;
  for (const int rank : ranks) {
    if (far(rank))
      far_ranks.push_back(rank);
    else
      inquiry.members.push_back({rank, processes_[static_cast<std::size_t>(rank)]});
  }
  std::vector<status::Finding> near = status::answers(inquiry), away;
  if (!far_ranks.empty()) away = elsewhere_->ask(inquiry, far_ranks);
  std::vector<status::Finding> all;
  auto here = near.begin(), there = away.begin();
  for (const int rank : ranks) all.push_back(std::move(*(far(rank) ? there : here)++));
  return all;
}

std::vector<status::Witness> Watch::look() const {
  std::vector<int> ranks(processes_.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<status::Witness> witnesses;
  for (status::Finding& finding : ask({}, ranks)) {
    witnesses.push_back(std::move(finding.witness));
    witnesses.back().shown = shown_.empty() || shown_[witnesses.size() - 1];
  }
  // Its own page may be no file.
  witnesses[static_cast<std::size_t>(context_.rank)].standing = status::read(page_->layout());
  return witnesses;
}

namespace {

/// Whether the rank's machine told about it.
bool answered(const status::Finding& found) {
  const status::Life life = found.witness.condition.life;
  return life != status::Life::elsewhere && life != status::Life::refuses;
}

}  // namespace

bool Watch::gone(int rank) const {
  if (processes_.empty()) return false;
  const auto r = static_cast<std::size_t>(rank);
  const bool shown = !shown_.empty() && shown_[r];
  if (far(rank)) {
    const status::Finding found = elsewhere_->latest(rank, communicator_);
    return found.witness.condition.life == status::Life::ended ||
           (answered(found) && shown && !found.page);
  }
  if (condition(rank).life == status::Life::ended) return true;
  return shown && !status::exists(file_of(r));
}

status::Condition Watch::condition(int rank) const {
  if (processes_.empty()) return {};
  if (far(rank)) return elsewhere_->latest(rank, communicator_).witness.condition;
  return status::condition_of(processes_[static_cast<std::size_t>(rank)], 0);
}

bool Watch::runs(int rank) const {
  const status::Life life = condition(rank).life;
  return life == status::Life::runs || life == status::Life::sleeps;
}

bool Watch::shrinks(int rank) const {
  if (processes_.empty()) return false;
  if (far(rank)) {
    const auto standing = elsewhere_->latest(rank, communicator_).witness.standing;
    return standing && standing->shrinks;
  }
  const status::PeerPage page = page_of(rank);
  return page.valid() && page.layout().shrinks.load(std::memory_order_relaxed) != 0;
}

bool Watch::has_failed(int rank) const {
  if (processes_.empty()) return false;
  const status::Finding found = ask({}, std::span(&rank, 1)).front();
  if (found.witness.standing) return found.witness.standing->failed;
  return found.witness.condition.life == status::Life::ended ||
         (answered(found) && !shown_.empty() && shown_[static_cast<std::size_t>(rank)]);
}

void Watch::tell_of_message(const std::string& sentence, ErrorCode code) {
  if (!page_ || processes_.empty() || doubtful(0)) return;
  const std::vector<status::Witness> ranks = look();
  tell_all(ranks, status::first_pending(ranks), sentence, code);
}

void Watch::show_shrink(bool shrinks) noexcept {
  if (!page_) return;
  hide();
  page_->layout().shrinks.store(shrinks ? 1 : 0, std::memory_order_relaxed);
}

void Watch::leave_out(int rank, std::uint32_t turn) const {
  if (!processes_.empty())
    ask({.action = status::Action::leave_out, .number = turn}, std::span(&rank, 1));
}

bool Watch::left_out(std::uint32_t turn) const {
  return page_ && page_->layout().left_out.load(std::memory_order_relaxed) == turn;
}

void Watch::give_up_making(std::uint64_t communicator, const char* why, ErrorCode code) noexcept {
  if (!page_) return;
  status::Layout& page = page_->layout();
  page.unmade_why.write(why);
  page.unmade_code.store(static_cast<std::uint32_t>(code), std::memory_order_relaxed);
  page.unmade.store(communicator, std::memory_order_release);
}

Watch::Verdict Watch::unmade_by(int peer, std::uint64_t number) {
  if (!whole_ || whole_->processes_.empty()) return {};
  const int place = places_[static_cast<std::size_t>(peer)];
  std::optional<status::Standing> standing;
  if (whole_->far(place)) {
    standing = whole_->elsewhere_->latest(place, whole_->communicator_).witness.standing;
  } else {
    const status::PeerPage page = whole_->page_of(place);
    if (page.valid() && page.layout().unmade.load(std::memory_order_acquire) == communicator_)
      standing = page.read();
  }
  if (!standing || standing->unmade != communicator_) return {};
  return tell_all(look(), number, standing->unmade_why,
                  static_cast<ErrorCode>(standing->unmade_code));
}

namespace {

constexpr std::chrono::milliseconds patience_for_speaker{2000};

bool can_speak(const status::Witness& witness) {
  return witness.standing && witness.standing->blocker >= 0 &&
         (witness.condition.life == status::Life::runs ||
          witness.condition.life == status::Life::sleeps) &&
         !witness.condition.thread_ended &&
         witness.standing->collective(witness.standing->pending()) != nullptr;
}

Watch::Verdict on_page(const status::Standing& page) {
  if (page.verdict_number == 0) return {};
  return {page.verdict, static_cast<ErrorCode>(page.verdict_code)};
}

}  // namespace

void Watch::report(std::string_view sentence) const {
  if (whole_) return whole_->report(sentence);  // rank 0 may have no page here yet
  if (!processes_.empty()) {
    const int first = 0;
    const auto said = ask({.action = status::Action::report, .number = base::hash(sentence)},
                          std::span(&first, 1));
    if (said.front().page && !said.front().done) return;
  }
  const std::string line = fmt::format("baton: {}\n", sentence);
  // One call of the system: lines of several ranks do not mix.
  static_cast<void>(::write(STDERR_FILENO, line.data(), line.size()) < 0);
}

Watch::Verdict Watch::heard() const { return on_page(status::read(page_->layout())); }

Watch::Verdict Watch::awaited(int rank) const {
  const auto end = std::chrono::steady_clock::now() + patience_for_speaker;
  for (;;) {
    // Who speaks writes on all pages; the other one may be gone meanwhile.
    if (Verdict said = heard(); !said.sentence.empty()) return said;
    if (rank != context_.rank) {
      const status::Finding found = ask({}, std::span(&rank, 1)).front();
      const auto& standing = found.witness.standing;
      Verdict said = standing ? on_page(*standing) : Verdict{};
      if (!said.sentence.empty()) return said;
      if (!standing) return heard();
    }
    if (std::chrono::steady_clock::now() > end) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(far(rank) ? 50 : 1));
  }
}

Watch::Verdict Watch::tell_all(std::span<const status::Witness> ranks, std::uint64_t number,
                               std::string sentence, ErrorCode code) {
  // As long as on a page: all ranks say the same.
  sentence.resize(base::beginning_of(sentence, status::longest_verdict).size());
  const int own = context_.rank, size = static_cast<int>(ranks.size());
  int speaker = 0;  // the first with a page that others see
  while (speaker < size &&
         (!ranks[static_cast<std::size_t>(speaker)].standing || (speaker == own && !shows())))
    ++speaker;
  if (speaker == size) speaker = own;
  const auto act = [&](const status::Inquiry& inquiry, const std::vector<int>& asked) {
    if (asked == std::vector{own}) return status::act(inquiry, page_->layout());
    const auto found = ask(inquiry, asked);
    return !found.empty() && found.front().done;
  };
  Verdict said{sentence, code};
  const bool speaks =
      act({.action = status::Action::claim, .number = static_cast<std::uint64_t>(own)}, {speaker});
  if (!speaks) {
    if (Verdict other = awaited(speaker); !other.sentence.empty()) said = std::move(other);
  } else if (!context_.options.flight.empty()) {
    write_flight();  // before ranks hear of it, and leave
  }
  status::Inquiry news{.action = status::Action::tell,
                       .number = number,
                       .code = static_cast<std::uint32_t>(said.code),
                       .sentence = said.sentence};
  if (own != speaker) act(news, {own});
  std::vector<int> others;
  for (int r = 0; r < size; ++r)
    if (r != speaker && r != own && ranks[static_cast<std::size_t>(r)].standing)
      others.push_back(r);
  act(news, others);
  // Last: the first rank may leave with its page, and then others would take the next for it.
  if (speaks) news.action = status::Action::told;
  act(news, {speaker});
  return said;
}

void Watch::write_flight() const {
  std::vector<status::Standing> standings;
  for (const std::string& file : status::all_files()) {
    const status::PeerPage page(file);
    if (page.valid() && std::ranges::find(processes_, page.layout().process) != processes_.end())
      standings.push_back(page.read());
  }
  try {
    write_file(context_.options.flight, status::recording_of(standings));
  } catch (const Error& error) {
    report(error.what());  // the failure itself must be thrown
  }
}

Watch::Verdict Watch::verdict(const Error& error, const char* name, std::uint64_t number) {
  if (!page_ || processes_.empty()) return {};
  if (number != 0)
    if (Verdict said = heard(); !said.sentence.empty()) return said;
  const std::vector<status::Witness> ranks = look();
  const std::string sentence = status::diagnosis({.label = label_,
                                                  .rank = context_.rank,
                                                  .number = number,
                                                  .name = name,
                                                  .failure = error.what()},
                                                 ranks);
  if (number != 0) return tell_all(ranks, number, sentence, error.code);
  tell_of_message(sentence, error.code);
  return {sentence, error.code};
}

Watch::Verdict Watch::verdict(const Operation& operation, std::chrono::milliseconds waited,
                              ErrorCode code) {
  show(operation);
  return verdict(operation.name(), operation.number(), operation.blocker().first, waited, code);
}

Watch::Verdict Watch::verdict(const char* name, std::uint64_t own_number, int peer,
                              std::chrono::milliseconds waited, ErrorCode code) {
  if (!page_ || processes_.empty()) return {};
  if (own_number != 0)
    if (Verdict said = heard(); !said.sentence.empty()) return said;
  const std::vector<status::Witness> ranks =
      own_number == 0 ? look() : status::look_closely([this] { return look(); });
  // Who has not come here may still be in the operation that makes this communicator.
  const auto has_page = [](const status::Witness& rank) { return rank.standing.has_value(); };
  if (whole_ && making_ != 0 && !std::ranges::all_of(ranks, has_page))
    return whole_->verdict("split", making_, -1, waited, code);
  const auto compose = [&] {
    return status::diagnosis({.label = label_,
                              .rank = context_.rank,
                              .number = own_number,
                              .name = name,
                              .peer = peer,
                              .seconds = static_cast<double>(waited.count()) / 1000},
                             ranks);
  };
  if (own_number == 0) {
    Verdict own{compose(), code};
    tell_of_message(own.sentence, code);
    return own;
  }
  const std::uint64_t first = status::first_pending(ranks);
  const std::uint64_t number = first == 0 ? own_number : std::min(own_number, first);
  // The lowest rank that waits speaks for all.
  for (int r = 0; r < context_.rank; ++r) {
    if (!can_speak(ranks[static_cast<std::size_t>(r)])) continue;
    ask({.action = status::Action::give_up,
         .number = number,
         .code = static_cast<std::uint32_t>(code)},
        std::span(&r, 1));
    if (Verdict said = awaited(context_.rank); !said.sentence.empty()) return said;
    break;
  }
  return tell_all(ranks, number, compose(), code);
}

}  // namespace baton::communicator
