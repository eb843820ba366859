#include <algorithm>
#include <cassert>
#include <chrono>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "../../base/backoff.hpp"
#include "../../base/raise.hpp"
#include "../choice.hpp"
#include "../gathered.hpp"
#include "../groups.hpp"
#include "baton/mpi.hpp"
#include "baton/schedule/hosts.hpp"
#include "beside.hpp"
#include "check.hpp"
#include "message.hpp"
#include "single_copy.hpp"
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

namespace baton {
namespace {

using namespace mpi;

// Whether the library's own waiting leaves the core to other ranks. Open MPI yields
// (mpi_yield_when_idle), MPICH does not.
#ifdef OPEN_MPI
constexpr bool library_yields = true;
#else
constexpr bool library_yields = false;
#endif

/// Whether the MPI library claims to accept CUDA memory.
bool cuda_aware() {
#if defined(MPIX_CUDA_AWARE_SUPPORT) || (defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 40000000)
  return MPIX_Query_cuda_support() == 1;
#else
  return false;
#endif
}

/// Refers to the transport's state, which may change between calls.
class MpiBlockingCalls final : public BlockingCalls {
 public:
  MpiBlockingCalls(const MPI_Comm& communicator, const int& rank)
      : communicator_(communicator), rank_(rank) {}

  void send(const OutgoingMessage& out) override {
    const Elements elements(out.bytes);
    check(MPI_Send(out.data, elements.count(), elements.type(), out.peer, out.tag, communicator_),
          "MPI_Send", rank_, out.peer);
  }

  std::size_t recv(const IncomingMessage& in) override {
    const Elements elements(in.bytes);
    MPI_Status status;
    const int code = MPI_Recv(in.data, elements.count(), elements.type(), in.peer, in.tag,
                              communicator_, &status);
    return received(code, "MPI_Recv", in, status);
  }

  std::size_t send_recv(const OutgoingMessage& out, const IncomingMessage& in) override {
    const Elements sent(out.bytes), room(in.bytes);
    MPI_Status status;
    const int code =
        MPI_Sendrecv(out.data, sent.count(), sent.type(), out.peer, out.tag, in.data, room.count(),
                     room.type(), in.peer, in.tag, communicator_, &status);
    return received(code, "MPI_Sendrecv", in, status);
  }

 private:
  std::size_t received(int code, const char* call, const IncomingMessage& in,
                       const MPI_Status& status) const {
    if (code == MPI_SUCCESS) [[likely]]
      return length(status);
    Pending none{MPI_REQUEST_NULL, in.peer, true, in.bytes};
    return failed(code, call, none, status, rank_);
  }

  const MPI_Comm& communicator_;
  const int& rank_;
};

class MpiTransport final : public Transport {
 public:
  /// Takes over `communicator`, which nobody else may use, and finds the ranks' places.
  explicit MpiTransport(MPI_Comm communicator) : communicator_(communicator) {
    prepare();
    const auto places = transport::gathered(*this, transport::own_place());
    hosts_ = transport::hosts_in(places);
    crowded_ = transport::crowded(places, rank_);
    backoff_ = base::Backoff::of_rank(crowded_);
    copy_once_from(transport::readable_processes(*this, places));
  }
  /// Takes over `part`, a split of `whole`. The places are already known.
  MpiTransport(const MpiTransport& whole, MPI_Comm part)
      : communicator_(part),
        crowded_(whole.crowded_),
        backoff_(base::Backoff::of_rank(whole.crowded_)) {
    prepare();
    std::vector<int> hosts;
    std::vector<pid_t> processes;
    for (const int rank : whole.ranks_of_part(part)) {
      hosts.push_back(whole.hosts_[static_cast<std::size_t>(rank)]);
      processes.push_back(whole.single_copy_ ? whole.single_copy_->process(rank) : 0);
    }
    const Hosts numbered(hosts);
    hosts_.assign(numbered.of().begin(), numbered.of().end());
    copy_once_from(std::move(processes));
  }

  ~MpiTransport() override {
    // The next communicator that MPI makes could receive messages that nobody received, or that
    // were abandoned and may still arrive. Then the communicator is not freed; MPI_Finalize frees
    // it.
    int left = 0;
    if (!MpiTransport::alive() || gave_up_) return;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, communicator_, &left, MPI_STATUS_IGNORE);
    if (left != 0) return;
    if (MPI_Comm_free(&communicator_) != MPI_SUCCESS) communicator_ = MPI_COMM_NULL;
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Capabilities capabilities() const override {
    int level = MPI_THREAD_SINGLE;
    check(MPI_Query_thread(&level), "MPI_Query_thread", rank_);
    return {.name = "mpi",
            .library = library_version(),
            .tags = tags(),
            .concurrent = level == MPI_THREAD_MULTIPLE,
            .cancels = false,  // MPI promises no cancelling of sends
            .spins = crowded_ ? 256 : 4096,
            .device_memory = cuda_aware(),
            .subgroups = true,
            .hosts = hosts_};
  }

  bool alive() const override {
    int finalized = 0;
    return MPI_Finalized(&finalized) == MPI_SUCCESS && finalized == 0;
  }

  void isend(int peer, int tag, const void* data, std::size_t bytes, Message& message) override {
    auto& send = *new (message.state) Pending{MPI_REQUEST_NULL, peer, false, bytes};
    const Elements elements(bytes);
    check(
        MPI_Isend(data, elements.count(), elements.type(), peer, tag, communicator_, &send.request),
        "MPI_Isend", rank_, peer);
  }

  void irecv(int peer, int tag, void* data, std::size_t bytes, Message& message) override {
    auto& recv = *new (message.state) Pending{MPI_REQUEST_NULL, peer, true, bytes};
    const Elements elements(bytes);
    check(
        MPI_Irecv(data, elements.count(), elements.type(), peer, tag, communicator_, &recv.request),
        "MPI_Irecv", rank_, peer);
  }

  bool test(Message& message, std::size_t& bytes) override {
    Pending& pending = pending_in(message);
    if (pending.single_copy) [[unlikely]] {
      return test_single_copy(pending, bytes);
    }
    int complete = 0;
    MPI_Status status;
    const int code =
        MPI_Test(&pending.request, &complete, pending.receive ? &status : MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) [[unlikely]] {
      bytes = failed(code, "MPI_Test", pending, status, rank_);
      return true;
    }
    if (complete == 0) {
      if (single_copy_ && single_copy_->any()) [[unlikely]]
        single_copy_->advance();
      return false;
    }
    backoff_.reset();
    bytes = pending.receive ? length(status) : pending.bytes;
    return true;
  }

  void cancel(Message& message) override {
    Pending& pending = pending_in(message);
    gave_up_ = true;
    if (pending.single_copy) return single_copy_->cancel(*pending.single_copy);
    give_up(pending.request, pending.receive, rank_, pending.peer);
  }

  void progress() override {
    int found = 0;
    check(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, communicator_, &found, MPI_STATUS_IGNORE),
          "MPI_Iprobe", rank_);
    if (single_copy_) single_copy_->advance();
  }

  void idle(std::chrono::microseconds at_most) override {
    backoff_.wait(at_most);  // MPI cannot block on several messages
  }

  BlockingCalls* blocking() override { return !crowded_ || library_yields ? &blocking_ : nullptr; }
  SingleCopy* single_copy() override { return single_copy_ ? &*single_copy_ : nullptr; }

  std::unique_ptr<Transport> split(int color, int key) override {
    MPI_Comm part = MPI_COMM_NULL;
    check(MPI_Comm_split(communicator_, color < 0 ? MPI_UNDEFINED : color, key, &part),
          "MPI_Comm_split", rank_);
    if (part == MPI_COMM_NULL) return nullptr;
    return std::make_unique<MpiTransport>(*this, part);
  }
  std::unique_ptr<Transport> subgroup(const std::vector<int>& ranks, int number) override {
    MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
    check(MPI_Comm_group(communicator_, &all), "MPI_Comm_group", rank_);
    check(MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some),
          "MPI_Group_incl", rank_);
    MPI_Comm part = MPI_COMM_NULL;
    const int code = MPI_Comm_create_group(communicator_, some, number, &part);
    check(MPI_Group_free(&all), "MPI_Group_free", rank_);
    check(MPI_Group_free(&some), "MPI_Group_free", rank_);
    check(code, "MPI_Comm_create_group", rank_);
    return std::make_unique<MpiTransport>(*this, part);
  }
  void expect_strays() override { gave_up_ = true; }

  /// The ranks in this communicator of the ranks of `part`, all of which are in it.
  std::vector<int> ranks_of_part(MPI_Comm part) const {
    MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
    check(MPI_Comm_group(communicator_, &all), "MPI_Comm_group", rank_);
    check(MPI_Comm_group(part, &some), "MPI_Comm_group", rank_);
    int size = 0;
    check(MPI_Group_size(some, &size), "MPI_Group_size", rank_);
    std::vector<int> ranks(static_cast<std::size_t>(size)), from(ranks.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    check(MPI_Group_translate_ranks(some, size, ranks.data(), all, from.data()),
          "MPI_Group_translate_ranks", rank_);
    check(MPI_Group_free(&all), "MPI_Group_free", rank_);
    check(MPI_Group_free(&some), "MPI_Group_free", rank_);
    return from;
  }

 private:
  void prepare() {
    check(MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_rank(communicator_, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(communicator_, &size_), "MPI_Comm_size", rank_);
  }

  /// Enables single copies from these processes, if there are any and MPI has enough tags.
  void copy_once_from(std::vector<pid_t> processes) {
    const bool any = std::ranges::any_of(processes, [](pid_t process) { return process != 0; });
    if (!any || tags() == all_tags() || cuda_aware()) return;
    single_copy_.emplace(communicator_, rank_, tags(), std::move(processes));
  }
  bool test_single_copy(Pending& pending, std::size_t& bytes) {
    try {
      if (!single_copy_->test(*pending.single_copy, bytes)) return false;
    } catch (...) {
      gave_up_ = true;
      single_copy_->cancel(*std::exchange(pending.single_copy, nullptr));
      throw;
    }
    backoff_.reset();
    return true;
  }

  /// The number of tags for messages, the same on all ranks. Tags for answers follow, if MPI has
  /// enough.
  int tags() const {
    const int all = all_tags();
    return all >= promised_tags + MemoryReads::tags ? all - MemoryReads::tags : all;
  }
  int all_tags() const {
    int* most = nullptr;
    int found = 0;
    // Only MPI_COMM_WORLD is sure to have the attribute.
    check(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found), "MPI_Comm_get_attr", rank_);
    return found != 0 ? std::min(*most, std::numeric_limits<int>::max() - 1) + 1 : promised_tags;
  }

  static constexpr int promised_tags = 32768;

  MPI_Comm communicator_;
  MpiBlockingCalls blocking_{communicator_, rank_};
  std::vector<int> hosts_;  // of each rank
  bool crowded_ = false;
  bool gave_up_ = false;  // a message was abandoned, or may come and find no receiver
  std::optional<MemoryReads> single_copy_;
  int rank_ = 0;
  int size_ = 0;
  base::Backoff backoff_;  // reset when a message completes
};

/// The MPI transport that a transport of baton/mpi.hpp is, or has.
const MpiTransport& mpi_of(const Transport& transport) {
  const auto* const beside = dynamic_cast<const BesideMpi*>(&transport);
  return dynamic_cast<const MpiTransport&>(beside ? beside->mpi() : transport);
}

/// A duplicate of a program's communicator.
MPI_Comm duplicate(MPI_Comm communicator) {
  int initialized = 0, finalized = 0, inter = 0;
  check(MPI_Initialized(&initialized), "MPI_Initialized");
  check(MPI_Finalized(&finalized), "MPI_Finalized");
  if (initialized == 0 || finalized != 0)
    base::refuse("an MPI transport needs MPI{}",
                 initialized == 0 ? " to be initialised, but MPI_Init was not called"
                                  : ", but MPI was finalised");
  if (communicator == MPI_COMM_NULL)
    base::refuse("an MPI transport needs a communicator, but got MPI_COMM_NULL");
  check(MPI_Comm_test_inter(communicator, &inter), "MPI_Comm_test_inter");
  if (inter != 0)
    base::refuse("an MPI transport needs an intracommunicator, but got an intercommunicator");
  MPI_Comm own = MPI_COMM_NULL;
  check(MPI_Comm_dup(communicator, &own), "MPI_Comm_dup");
  return own;
}

/// Shared memory between the ranks of `mpi`, or `mpi` itself.
std::unique_ptr<Transport> by_memory(std::unique_ptr<MpiTransport> mpi) {
  const Exchange exchange = [&](const std::vector<std::byte>& own) {
    return transport::exchange_through(*mpi, own);
  };
  const transport::Meeting meeting{mpi->rank(), mpi->size(), exchange};
  // Ranks may have other thread levels, and other opinions of CUDA.
  struct Ability {
    bool concurrent, device_memory;
  };
  const Capabilities can = mpi->capabilities();
  const auto abilities = transport::gathered(*mpi, Ability{can.concurrent, can.device_memory});
  const auto wishes = transport::wishes(meeting, {"mpi", "shm"});
  const ShmOptions options{.concurrent = std::ranges::any_of(abilities, &Ability::concurrent)};
  std::unique_ptr<Transport> memory;
  std::string why;
  if (wishes.chosen == "shm")
    memory = shm_transport(meeting.rank, meeting.size, exchange, options);
  else if (wishes.chosen.empty() && wishes.one_host && meeting.size > 1 &&
           std::ranges::none_of(abilities, &Ability::device_memory))
    memory = transport::shm_if_possible(meeting, options, why);
  // Where ranks may not read each other's memory, MPI libraries move long messages faster.
  if (memory && wishes.chosen.empty() &&
      !memory->single_copy()->reads((meeting.rank + 1) % meeting.size))
    memory.reset();
  if (!memory) return mpi;
  return std::make_unique<BesideMpi>(std::move(memory), std::move(mpi));
}

}  // namespace

std::unique_ptr<Transport> mpi_transport_over(MPI_Comm own) {
  return std::make_unique<MpiTransport>(own);
}

std::unique_ptr<Transport> mpi_transport_within(const Transport& whole, MPI_Comm own) {
  return std::make_unique<MpiTransport>(mpi_of(whole), own);
}

std::unique_ptr<Transport> mpi_transport(MPI_Comm communicator) {
  return mpi_transport_over(duplicate(communicator));
}

std::unique_ptr<Transport> mpi_process_transport_over(MPI_Comm own) {
  return by_memory(std::make_unique<MpiTransport>(own));
}

std::unique_ptr<Transport> mpi_process_transport_within(const Transport& whole, MPI_Comm own,
                                                        int number) {
  auto mpi = mpi_transport_within(whole, own);
  const auto* const beside = dynamic_cast<const BesideMpi*>(&whole);
  if (!beside) return mpi;
  return beside->part(mpi_of(whole).ranks_of_part(own), number, std::move(mpi));
}

std::unique_ptr<Transport> mpi_process_transport(MPI_Comm communicator) {
  return mpi_process_transport_over(duplicate(communicator));
}

}  // namespace baton
