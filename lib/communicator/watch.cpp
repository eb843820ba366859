#include "watch.hpp"

#include <fmt/core.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

#include "../base/hash.hpp"
#include "../status/flight.hpp"
#include "baton/output_file.hpp"
#include "operation.hpp"
#include "recording.hpp"

namespace baton::communicator {

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
  label_ = label;
  page_ = std::make_unique<status::Page>(communicator, context_.rank, context_.size, first, label);
}

void Watch::show(const Operation& operation) {
  fmt::memory_buffer text;  // repeated calls allocate nothing
  operation.waits_for(text);
  show({text.data(), text.size()}, operation.blocker().first);
}

void Watch::show(std::string_view waits, int peer) {
  if (!page_) return;
  status::Layout& page = page_->layout();
  page.waits.write(waits);
  page.thread.store(status::own_thread(), std::memory_order_relaxed);
  page.blocker.store(peer + 1, std::memory_order_release);
}

void Watch::hide() noexcept {
  if (page_) page_->layout().blocker.store(0, std::memory_order_release);
}

void Watch::fail(const std::string& why) noexcept {
  if (page_ && page_->layout().verdict_number.load(std::memory_order_relaxed) == 0)
    page_->layout().failure.write(why);
}

std::vector<status::PeerPage> Watch::pages() const {
  std::vector<status::PeerPage> pages;
  for (std::size_t r = 0; r < processes_.size(); ++r) pages.emplace_back(file_of(r));
  return pages;
}

bool Watch::gone(int rank) const {
  if (processes_.empty()) return false;
  if (condition(rank).life == status::Life::ended) return true;
  const auto r = static_cast<std::size_t>(rank);
  return !shown_.empty() && shown_[r] && !status::exists(file_of(r));
}

bool Watch::shrinks(int rank) const {
  if (processes_.empty()) return false;
  const status::PeerPage page = page_of(rank);
  return page.valid() && page.layout().shrinks.load(std::memory_order_relaxed) != 0;
}

void Watch::show_shrink(bool shrinks) noexcept {
  if (!page_) return;
  hide();
  page_->layout().shrinks.store(shrinks ? 1 : 0, std::memory_order_relaxed);
}

void Watch::leave_out(int rank, std::uint32_t turn) const {
  if (processes_.empty()) return;
  const status::PeerPage page = page_of(rank);
  if (page.valid()) page.layout().left_out.store(turn, std::memory_order_relaxed);
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
  if (!whole_ || whole_->processes_.empty() || places_.empty()) return {};
  const status::PeerPage page = whole_->page_of(places_[static_cast<std::size_t>(peer)]);
  if (!page.valid() || page.layout().unmade.load(std::memory_order_acquire) != communicator_)
    return {};
  const auto code = page.layout().unmade_code.load(std::memory_order_relaxed);
  return tell_all(pages(), number, page.layout().unmade_why.read(), static_cast<ErrorCode>(code));
}

namespace {

constexpr std::chrono::milliseconds patience_for_speaker{2000};

/// The pages of other communicators on this machine whose ranks wait.
std::vector<status::Standing> waiting_elsewhere(std::uint64_t communicator) {
  std::vector<status::Standing> waiting;
  for (const std::string& file : status::all_files()) {
    const status::PeerPage page(file);
    if (page.valid() && page.layout().communicator != communicator &&
        page.layout().blocker.load(std::memory_order_relaxed) > 0)
      waiting.push_back(page.read());
  }
  return waiting;
}

}  // namespace

std::vector<status::Witness> Watch::witnesses(const std::vector<status::PeerPage>& pages) const {
  const std::vector<status::Standing> elsewhere = waiting_elsewhere(communicator_);
  std::vector<status::Witness> ranks;
  for (std::size_t r = 0; r < pages.size(); ++r) {
    const status::ProcessId& process = processes_[r];
    status::Witness& witness = ranks.emplace_back();
    if (static_cast<int>(r) == context_.rank)
      witness.standing = status::read(page_->layout());
    else if (pages[r].valid())
      witness.standing = pages[r].read();
    witness.shown = shown_.empty() || shown_[r];
    const std::int32_t thread = witness.standing ? witness.standing->thread : 0;
    witness.condition = status::condition_of(process, thread);
    if (!witness.standing || witness.standing->blocker >= 0) continue;
    // Ranks of one process are told apart by their threads.
    for (const status::Standing& other : elsewhere)
      if (other.process == process && other.thread == thread) witness.others.push_back(other);
  }
  return ranks;
}

namespace {

/// True for the first caller: it writes the page's sentence.
bool claim(status::Layout& page) {
  std::uint32_t none = 0;
  return page.verdict_claim.compare_exchange_strong(none, 1);
}

/// Writes the sentence on a page, unless it has one that another rank claimed.
void tell(status::Layout& page, bool claimed, std::uint64_t number, const std::string& sentence,
          ErrorCode code) {
  if (claimed) {
    page.verdict.write(sentence);
    page.verdict_code.store(static_cast<std::uint32_t>(code), std::memory_order_relaxed);
    page.verdict_number.store(number, std::memory_order_release);
  }
  page.given_up.store(number, std::memory_order_release);
}

bool can_speak(const status::Witness& witness) {
  return witness.standing && witness.standing->blocker >= 0 &&
         (witness.condition.life == status::Life::runs ||
          witness.condition.life == status::Life::sleeps) &&
         !witness.condition.thread_ended &&
         witness.standing->collective(witness.standing->pending()) != nullptr;
}

}  // namespace

void Watch::report(std::string_view sentence) const {
  const std::uint64_t hash = base::hash(sentence);
  if (!processes_.empty()) {
    const status::PeerPage first = page_of(0);
    if (first.valid())
      for (std::atomic<std::uint64_t>& reported : first.layout().reported) {
        std::uint64_t found = 0;
        if (reported.compare_exchange_strong(found, hash)) break;
        if (found == hash) return;
      }
  }
  const std::string line = fmt::format("baton: {}\n", sentence);
  // One call of the system: lines of several ranks do not mix.
  static_cast<void>(::write(STDERR_FILENO, line.data(), line.size()) < 0);
}

namespace {

/// The sentence on a page, if it holds for this number.
Watch::Verdict on_page(const status::Layout& page, std::uint64_t number) {
  const std::uint64_t about = page.verdict_number.load(std::memory_order_acquire);
  if (about == 0 || number < about) return {};
  return {page.verdict.read(),
          static_cast<ErrorCode>(page.verdict_code.load(std::memory_order_relaxed))};
}

/// The same; waits for a sentence that is being written.
Watch::Verdict awaited(const status::Layout& page, std::uint64_t number,
                       std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  for (;;) {
    Watch::Verdict said = on_page(page, number);
    if (!said.sentence.empty() || std::chrono::steady_clock::now() > end) return said;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

Watch::Verdict Watch::heard(std::uint64_t number) const { return on_page(page_->layout(), number); }

// Several ranks may find a failure at once. The one that writes on the first page speaks for all.
Watch::Verdict Watch::tell_all(const std::vector<status::PeerPage>& pages, std::uint64_t number,
                               const std::string& sentence, ErrorCode code) {
  const auto first = std::ranges::find_if(pages, &status::PeerPage::valid);
  status::Layout& speakers = first == pages.end() ? page_->layout() : first->layout();
  Verdict said{sentence, code};
  const bool speaks = claim(speakers);
  if (!speaks) {
    if (Verdict other = awaited(speakers, number, patience_for_speaker); !other.sentence.empty())
      said = std::move(other);
  } else if (!context_.options.flight.empty()) {
    write_flight();  // before ranks hear of it, and leave
  }
  tell(speakers, speaks, number, said.sentence, said.code);
  const auto others = [&](status::Layout& page) {
    tell(page, claim(page), number, said.sentence, said.code);
  };
  for (const status::PeerPage& page : pages)
    if (page.valid()) others(page.layout());
  others(page_->layout());
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
  if (Verdict said = heard(number); !said.sentence.empty()) return said;
  const std::vector<status::PeerPage> all = pages();
  return tell_all(all, number,
                  status::diagnosis({.label = label_,
                                     .rank = context_.rank,
                                     .number = number,
                                     .name = name,
                                     .failure = error.what()},
                                    witnesses(all)),
                  error.code);
}

Watch::Verdict Watch::verdict(const Operation& operation, std::chrono::milliseconds waited,
                              ErrorCode code) {
  show(operation);
  return verdict(operation.name(), operation.number(), operation.blocker().first, waited, code);
}

Watch::Verdict Watch::verdict(const char* name, std::uint64_t own_number, int peer,
                              std::chrono::milliseconds waited, ErrorCode code) {
  if (!page_ || processes_.empty()) return {};
  const std::vector<status::PeerPage> all = pages();
  const std::vector<status::Witness> ranks = witnesses(all);
  const auto compose = [&] {
    return status::diagnosis({.label = label_,
                              .rank = context_.rank,
                              .number = own_number,
                              .name = name,
                              .peer = peer,
                              .seconds = static_cast<double>(waited.count()) / 1000},
                             ranks);
  };
  if (own_number == 0) return {compose(), code};
  if (Verdict said = heard(own_number); !said.sentence.empty()) return said;
  const std::uint64_t first = status::first_pending(ranks);
  const std::uint64_t number = first == 0 ? own_number : std::min(own_number, first);
  // The lowest rank that waits speaks for all.
  for (std::size_t r = 0; r < static_cast<std::size_t>(context_.rank); ++r) {
    if (!can_speak(ranks[r])) continue;
    all[r].layout().verdict_code.store(static_cast<std::uint32_t>(code), std::memory_order_relaxed);
    all[r].layout().given_up.store(number, std::memory_order_release);
    Verdict said = awaited(page_->layout(), own_number, patience_for_speaker);
    if (!said.sentence.empty()) return said;
    break;
  }
  return tell_all(all, number, compose(), code);
}

}  // namespace baton::communicator
