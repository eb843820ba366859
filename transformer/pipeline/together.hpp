#pragma once
/// The ranks that compute the same stages, when one of them fails.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "../mesh.hpp"
#include "../watch.hpp"
#include "described.hpp"

namespace baton::transformer {

/// Collectives of the ranks that have the same stages, along axes dp, tp and sp of a mesh.
///
/// Each rank keeps a description of the collectives that it has started in a pass. A rank that
/// fails tells the others how many it has started on each communicator. From then on they describe
/// to it those that it does not know, earlier ones too, and it takes part in them with zeros, until
/// they start no more. The README has the argument. While no rank fails, nothing is sent: a rank
/// has a receive under way from each other one for as long as the mesh lives.
///
/// The messages have tag 1023 of the communicator along all three axes. Collectives that do not
/// start in Group::start() are unknown to it. Functions throw the errors of communicators.
class Together final : public ExchangeWatch {
 public:
  /// That of a mesh, which lives as long as the mesh; null if it has no other ranks along these
  /// axes. Every rank takes part in the same passes on a mesh.
  static Together* of(const Mesh& mesh);
  ~Together() override;
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;

  /// A pass begins. end() or give_up() must follow.
  void begin();
  /// An exception ends the pass on this rank alone; nothing, if it has ended. Communicators are of
  /// no more use if anything was under way.
  void give_up() noexcept;
  Request start(Communicator& ranks, const Call& call) override;
  void wait(Request& request) override;
  void settle(Request& request) noexcept override;
  /// This rank has failed: from here on it starts nothing of its own.
  void fail();
  /// Whether an error of a communicator came through, so that no wait may end any more.
  bool broken() const { return broken_; }
  /// This rank starts nothing more in this pass. If it has failed, returns when that holds of all
  /// others, and it has taken part in all that they have started.
  void finish();
  /// The pass has ended on all ranks of the mesh.
  void end();

 private:
  explicit Together(const Mesh& mesh);
  static constexpr int most_groups = 7;
  using Counts = std::array<std::int64_t, most_groups>;
  static constexpr std::size_t piece_words = 128;  // of a message
  using Piece = std::array<std::int64_t, piece_words>;

  /// Those of this rank along some of the axes.
  struct Members {
    Axes axes;
    Communicator* ranks = nullptr;
    std::int64_t started = 0;         // collectives, joined ones too
    std::vector<std::int64_t> words;  // of this rank's own collectives, end to end
    std::vector<std::size_t> begins;  // of each in `words`
  };
  struct Peer {
    int rank = 0;
    bool listens = false;  // has a receive under way
    Message message{};
    Piece piece{};
    std::vector<std::int64_t> coming;  // a message whose end has not come, or of the next pass
    bool failed = false, ended = false;
    std::array<bool, most_groups> member{};
    Counts next{};  // after a failure: the next collective to describe to it
  };
  struct Outgoing {
    Message message{};
    Piece piece{};
    bool under_way = true;
  };

  void listen(Peer& peer);
  void poll();
  void take(Peer& peer);
  void act(Peer& peer);
  void send(const Peer& peer, std::span<const std::int64_t> words);
  void describe_to(Peer& peer, std::size_t group);
  template <class F>
  auto watched(const F& function);

  const std::array<int, 3> place_;  // of this rank along the axes
  Communicator& all_;
  Transport& transport_;
  std::vector<Members> groups_;
  std::deque<Peer> peers_;
  std::deque<Outgoing> outgoing_;
  std::deque<Joined> joined_;
  std::int64_t pass_ = 0;
  std::size_t arrived_ = 0;  // pieces
  bool failed_ = false, ended_ = false, broken_ = false;
};

}  // namespace baton::transformer
