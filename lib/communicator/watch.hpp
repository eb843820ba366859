#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../execute/run.hpp"
#include "../status/diagnosis.hpp"
#include "../status/inquiry.hpp"
#include "../status/page.hpp"
#include "../status/service.hpp"
#include "baton/error.hpp"
#include "baton/schedule/step.hpp"
#include "baton/types.hpp"
#include "context.hpp"

namespace baton::communicator {

class Operation;

/// A message as ranks show it.
status::Call message_call(StepKind kind, int peer, int tag, std::int64_t count, Datatype type);
/// An operation of the library's own.
status::Call internal_call(const char* name);

/// Shows others this rank's operations, and finds out from theirs why one does not complete.
class Watch final : public execute::BlockedView {
 public:
  /// Shorter waits are not shown.
  static constexpr std::chrono::milliseconds quiet_before_show{2};

  explicit Watch(const Context& context) : context_(context) {}

  /// Opens this rank's page. `communicator` is equal on all its ranks, and no other's; `first`: the
  /// number of operations before.
  void open(std::uint64_t communicator, std::uint64_t first, const std::string& label);
  /// `processes`: of each rank; `shown`: which had a page then, empty: unknown. Until then the
  /// pages of others are not looked at.
  void meet(std::vector<status::ProcessId> processes, std::vector<bool> shown = {}) {
    processes_ = std::move(processes);
    shown_ = std::move(shown);
  }
  /// Ranks of other machines; before, they are not looked at.
  void reach(std::unique_ptr<status::Elsewhere> elsewhere);
  /// The same of a communicator of these ranks; null: all run on this machine, or cannot be asked.
  std::unique_ptr<status::Elsewhere> elsewhere_of(const std::vector<int>& ranks) const {
    return elsewhere_ ? elsewhere_->part(ranks) : nullptr;
  }
  /// The processes of these ranks; empty if unknown.
  std::vector<status::ProcessId> processes_of(const std::vector<int>& ranks) const {
    std::vector<status::ProcessId> processes;
    if (processes_.empty()) return processes;
    for (const int rank : ranks) processes.push_back(processes_.at(static_cast<std::size_t>(rank)));
    return processes;
  }
  /// While this communicator is made from another, which outlives that: it has these ranks of it,
  /// if they are known. `number`: of the other's operation that makes it; 0: it has none.
  void made_from(Watch& whole, std::uint64_t number, std::vector<int> ranks) {
    whole_ = ranks.empty() ? nullptr : &whole;
    making_ = number;
    places_ = std::move(ranks);
  }
  void made() { whole_ = nullptr; }
  /// Whether others can see this rank's page.
  bool shows() const { return page_ && page_->shared(); }
  std::uint64_t communicator() const { return communicator_; }
  const std::string& label() const { return label_; }
  void rename(std::string_view label);

  std::uint64_t begin(std::uint64_t number, const status::Call& call) noexcept {
    return page_ ? page_->begin(number, call) : 0;
  }
  void end(std::uint64_t place) noexcept {
    if (page_) page_->end(place);
  }
  /// Shows what an operation waits for, until hide(). The page has room for one.
  void show(const Operation& operation);
  void show(std::string_view waits, int peer);
  void hide() noexcept;
  /// Unless another operation is shown.
  void hide(const Operation& operation) noexcept {
    if (shown_operation_ == &operation) hide();
  }
  bool shows_a_wait() const {
    return page_ && page_->layout().blocker.load(std::memory_order_relaxed) != 0;
  }
  void enters(Wait receive, Wait send) noexcept override {
    if (page_) page_->enters({receive.peer, receive.step}, {send.peer, send.step});
  }
  void leaves() noexcept override {
    if (page_) page_->leaves();
  }
  /// Shows that the communicator is of no further use.
  void fail(const std::string& why) noexcept;
  /// Whether a peer has given up this collective or an earlier one.
  bool told(std::uint64_t number) const {
    const std::uint64_t given_up =
        page_ ? page_->layout().given_up.load(std::memory_order_acquire) : 0;
    return given_up != 0 && number >= given_up;
  }
  /// Whether the result of an operation may be void: it was given up, or it is a message (number 0)
  /// and something was.
  bool doubtful(std::uint64_t number) const {
    const std::uint64_t given_up =
        page_ ? page_->layout().given_up.load(std::memory_order_acquire) : 0;
    return given_up != 0 && (number == 0 || number >= given_up);
  }
  /// Whether a rank has failed in this communicator, or has left it.
  bool has_failed(int rank) const;
  /// Tells all that a message has failed here: collectives that some have not completed are given
  /// up.
  void tell_of_message(const std::string& sentence, ErrorCode code);
  /// The kind of failure for which it was given up.
  ErrorCode told_as() const {
    const std::uint32_t code = page_->layout().verdict_code.load(std::memory_order_relaxed);
    return code == 0 ? ErrorCode::timeout : static_cast<ErrorCode>(code);
  }
  /// Whether a rank has ended, or has left the communicator.
  bool gone(int rank) const;
  /// Whether a rank waits in shrink(): it comes to no other operation.
  bool shrinks(int rank) const;
  /// Shows others that this rank does.
  void show_shrink(bool shrinks) noexcept;
  /// Tells a rank that shrink() number `turn` goes on without it.
  void leave_out(int rank, std::uint32_t turn) const;
  /// Whether others have told this rank so.
  bool left_out(std::uint32_t turn) const;
  /// Shows that this rank cannot make a communicator from this one.
  void give_up_making(std::uint64_t communicator, const char* why, ErrorCode code) noexcept;
  /// Whether a rank's process is alive and not stopped, as far as is known.
  bool runs(int rank) const;
  /// Of a rank's process; elsewhere, if it is not known.
  status::Condition condition(int rank) const;
  /// Writes a sentence to standard error, as one line, unless another rank has reported the same.
  void report(std::string_view sentence) const;
  struct Verdict {
    std::string sentence;  ///< empty: nobody can tell
    ErrorCode code = ErrorCode::timeout;
  };
  /// Why this peer could not make the communicator; tells all others. An empty sentence: it could,
  /// or it is made.
  Verdict unmade_by(int peer, std::uint64_t number);
  /// The sentence of all ranks about an operation that has not completed, for which this one has
  /// `waited`.
  Verdict verdict(const Operation& operation, std::chrono::milliseconds waited,
                  ErrorCode code = ErrorCode::timeout);
  /// The same of another operation, which is shown.
  Verdict verdict(const char* name, std::uint64_t number, int peer,
                  std::chrono::milliseconds waited, ErrorCode code = ErrorCode::timeout);
  /// The sentence of all ranks about a collective that has failed here; `name` and `number` are
  /// its.
  Verdict verdict(const Error& error, const char* name, std::uint64_t number);

 private:
  std::string file_of(std::size_t rank) const {
    return status::file_of(processes_[rank], communicator_, static_cast<int>(rank));
  }
  status::PeerPage page_of(int rank) const {
    return status::PeerPage(file_of(static_cast<std::size_t>(rank)));
  }
  bool far(int rank) const { return elsewhere_ && elsewhere_->has(rank); }
  /// Asks these ranks, wherever they run.
  std::vector<status::Finding> ask(status::Inquiry inquiry, std::span<const int> ranks) const;
  /// Looks at all ranks.
  std::vector<status::Witness> look() const;
  /// The sentence that a rank has given this one. It holds for what fails later, also if that was
  /// to come before: it is why.
  Verdict heard() const;
  /// Writes the last operations of this machine's ranks to Options::flight.
  void write_flight() const;
  /// The sentence on a rank's page, or on the own one; waits for one that is being written.
  Verdict awaited(int rank) const;
  /// Several ranks may find a failure at once. The one that writes on the first page speaks for
  /// all.
  Verdict tell_all(std::span<const status::Witness> ranks, std::uint64_t number,
                   std::string sentence, ErrorCode code);

  const Context& context_;
  std::uint64_t communicator_ = 0;
  std::vector<status::ProcessId> processes_;
  std::vector<bool> shown_;
  const Operation* shown_operation_ = nullptr;  // compared only
  std::string label_;
  std::unique_ptr<status::Page> page_;
  std::unique_ptr<status::Elsewhere> elsewhere_;  // null: all ranks run here, or cannot be asked
  Watch* whole_ = nullptr;                        // null: the communicator is made
  std::uint64_t making_ = 0;
  std::vector<int> places_;
};

/// Shows a call of the library's own while it exists.
class Shown {
 public:
  Shown(Watch& watch, const status::Call& call) : watch_(watch), place_(watch.begin(0, call)) {}
  ~Shown() { watch_.end(place_); }
  Shown(const Shown&) = delete;
  Shown& operator=(const Shown&) = delete;

 private:
  Watch& watch_;
  std::uint64_t place_;
};

}  // namespace baton::communicator
