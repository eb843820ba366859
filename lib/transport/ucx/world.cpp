#include "world.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "../../base/raise.hpp"
#include "baton/error.hpp"
#include "check.hpp"
#include "message.hpp"

namespace baton::ucx {
namespace {

// Control messages: empty, in context 0.
constexpr int bye = 0;       // "you have all that I sent, or will have it with this"
constexpr int received = 1;  // the answer

constexpr std::uint32_t control_context = 0;

// UCX's TCP asks the receiver before it sends a message longer than a segment: 8 KiB, unless told
// otherwise. Its receivers take segments of 64 KiB.
constexpr const char* tcp_segment = "64k";

const char* name_of_tcp_segment() {
  unsigned major = 0, minor = 0, release = 0;
  ucp_get_version(&major, &minor, &release);
  return major == 1 && minor < 17 ? "TX_SEG_SIZE" : "TCP_TX_SEG_SIZE";
}

/// Whether UCX must not read peers' memory. It does not ask whether it may: a message would fail.
bool without_single_copy() {
  for (const char* chosen : {"BATON_UCX_TLS", "UCX_TLS"})
    if (std::getenv(chosen) != nullptr) return false;
  return prctl(PR_GET_DUMPABLE) != 1;
}

ucp_context_h made_context(int size, bool with_tcp) {
  ucp_config_t* config = nullptr;
  check(ucp_config_read("BATON", nullptr, &config), "ucp_config_read");
  const std::unique_ptr<ucp_config_t, void (*)(ucp_config_t*)> owner(config, ucp_config_release);
  if (with_tcp)
    check(ucp_config_modify(config, name_of_tcp_segment(), tcp_segment), "ucp_config_modify");
  if (without_single_copy()) check(ucp_config_modify(config, "TLS", "^cma"), "ucp_config_modify");
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
  params.features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
  params.estimated_num_eps = static_cast<std::size_t>(size);
  ucp_context_h context = nullptr;
  check(ucp_init(&params, config, &context), "ucp_init");
  return context;
}

bool has_tcp(ucp_context_h context) {
  char* text = nullptr;
  std::size_t length = 0;
  FILE* const stream = open_memstream(&text, &length);
  if (stream == nullptr) return true;
  ucp_context_print_info(context, stream);
  std::fclose(stream);
  const bool found = std::string_view(text, length).find(" tcp/") != std::string_view::npos;
  std::free(text);
  return found;
}

ucp_context_h made_context(int size) {
  for (const char* chosen : {"UCX_TCP_TX_SEG_SIZE", "UCX_TCP_RX_SEG_SIZE"})
    if (std::getenv(chosen) != nullptr) return made_context(size, false);
  ucp_context_h context = made_context(size, true);
  if (has_tcp(context)) return context;
  ucp_cleanup(context);
  return made_context(size, false);  // UCX warns of options that nothing reads
}

ucp_worker_h made_worker(ucp_context_h context) {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucp_worker_h worker = nullptr;
  check(ucp_worker_create(context, &params, &worker), "ucp_worker_create");
  return worker;
}

}  // namespace

World::World(int rank, int size, const Exchange& exchange, const UcxOptions& options)
    : rank_(rank),
      process_(getpid()),
      options_(options),
      context_(made_context(size)),
      worker_(made_worker(context_.get())) {
  check(ucp_worker_get_efd(worker(), &wakeup_), "ucp_worker_get_efd", rank);
  const std::vector<std::vector<std::byte>> contacts =
      transport::exchanged(exchange, contact(), rank, size, sizeof(Contact) + 1);
  std::vector<transport::Place> places(contacts.size());
  std::vector<transport::ProcessId> processes(contacts.size());
  for (std::size_t r = 0; r < contacts.size(); ++r) {
    Contact other;
    std::memcpy(&other, contacts[r].data(), sizeof other);
    places[r] = other.place;
    processes[r] = other.process;
  }
  hosts_ = transport::hosts_in(places);
  crowded_ = transport::crowded(places, rank);
  cores_ = transport::shared_cores(places);

  for (int r = 0; r < size; ++r)
    peers_.push_back({.world = this, .rank = r, .process = processes[static_cast<std::size_t>(r)]});
  try {
    for (Peer& peer : peers_) {
      const auto r = static_cast<std::size_t>(peer.rank);
      const bool near = places[r].machine == places[static_cast<std::size_t>(rank)].machine;
      connect(peer, std::span(contacts[r]).subspan(sizeof(Contact)), near);
      if (peer.rank == rank_) continue;
      await_control<on_bye>(peer, bye);
    }
  } catch (...) {
    take_back();
    throw;
  }
}

World::~World() {
  if (getpid() != process_) {
    // A fork's copy: this rank goes on, and UCX would use what both processes share.
    static_cast<void>(worker_.release());
    static_cast<void>(context_.release());
    return;
  }
  try {
    leave();
  } catch (const Error&) {
    // The farewell is lost together with its connection.
  }
  take_back();
}

bool World::takes_cuda_memory() const {
  ucp_context_attr_t attributes{};
  attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  check(ucp_context_query(context_.get(), &attributes), "ucp_context_query");
  return (attributes.memory_types & UCS_BIT(UCS_MEMORY_TYPE_CUDA)) != 0;
}

void World::block(std::chrono::microseconds at_most, std::unique_lock<std::mutex>& turn) {
  const ucs_status_t armed = ucp_worker_arm(worker());
  if (armed == UCS_ERR_BUSY) {
    if (blocked_ == 0) return;
    // Arming took the event, perhaps before those who sleep have seen it. While it is signalled
    // anew nobody else falls asleep, so this ends once they are awake.
    ucp_worker_signal(worker());
    turn.unlock();
    sched_yield();
    return;
  }
  check(armed, "ucp_worker_arm", rank_);
  pollfd event{wakeup_, POLLIN, 0};
  const timespec time{at_most.count() / 1'000'000, at_most.count() % 1'000'000 * 1'000};
  const bool shared = turn.owns_lock();
  if (shared) {
    ++blocked_;
    turn.unlock();
  }
  const int code = ppoll(&event, 1, &time, nullptr) < 0 ? errno : 0;
  if (shared) {
    turn.lock();
    --blocked_;
  }
  if (code != 0 && code != EINTR)
    throw Error(ErrorCode::transport, "ppoll was expected to wait for UCX, but found: " +
                                          std::generic_category().message(code));
}

/// The contact of this rank: its place and process, then its worker's address.
std::vector<std::byte> World::contact() const {
  ucp_address_t* address = nullptr;
  std::size_t length = 0;
  check(ucp_worker_get_address(worker(), &address, &length), "ucp_worker_get_address", rank_);
  const Contact own{transport::own_place(), transport::own_process()};
  std::vector<std::byte> bytes(sizeof own + length);
  std::memcpy(bytes.data(), &own, sizeof own);
  std::memcpy(bytes.data() + sizeof own, address, length);
  ucp_worker_release_address(worker(), address);
  return bytes;
}

void World::connect(Peer& peer, std::span<const std::byte> address, bool near) {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  // UCX 1.13 has no shared memory for endpoints that detect the death of the other side.
  params.err_mode = near ? UCP_ERR_HANDLING_MODE_NONE : UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler = {[](void* failed, ucp_ep_h, ucs_status_t status) {
                          Peer& gone = *static_cast<Peer*>(failed);
                          if (gone.gone == UCS_OK) gone.gone = status;
                          gone.over = true;
                          gone.world->completed(nullptr);
                        },
                        &peer};
  check(ucp_ep_create(worker(), &params, &peer.endpoint), "ucp_ep_create", rank_, peer.rank);
}

/// Sends without waiting. An answer, or its absence, shows the outcome.
void World::control(Peer& peer, int kind) {
  ucp_request_param_t param{};
  void* request =
      ucp_tag_send_nbx(peer.endpoint, nullptr, 0, tag_of(control_context, rank_, kind), &param);
  if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
}

/// Calls Then(peer) when the peer's message has come.
template <auto Then>
void World::await_control(Peer& peer, int kind) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.user_data = &peer;
  param.cb.recv = [](void* request, ucs_status_t status, const ucp_tag_recv_info_t*, void* from) {
    ucp_request_free(request);
    if (status == UCS_OK) Then(*static_cast<Peer*>(from));
  };
  void* request = ucp_tag_recv_nbx(worker(), nullptr, 0, tag_of(control_context, peer.rank, kind),
                                   ~ucp_tag_t{0}, &param);
  if (UCS_PTR_IS_ERR(request)) fail(UCS_PTR_STATUS(request), "ucp_tag_recv_nbx", rank_, peer.rank);
  if (request == nullptr)
    Then(peer);
  else
    peer.awaited[kind] = request;
}

void World::on_bye(Peer& from) {
  from.awaited[bye] = nullptr;
  from.gone = UCS_ERR_NOT_CONNECTED;
  from.world->completed(nullptr);
  from.world->answer(from);
}

void World::on_received(Peer& from) {
  from.awaited[received] = nullptr;
  from.has_all = true;
  from.world->completed(nullptr);
}

/// Answers a peer's bye, unless a message from it is still under way.
void World::answer(Peer& peer) {
  const bool under_way = std::ranges::find(given_up_, peer.rank, &GivenUp::rank) != given_up_.end();
  // If this rank also leaves, its own farewell is the answer.
  if (leaving_ || under_way) return;
  control(peer, received);
  peer.over = true;
}

/// Ends an abandoned receive.
void World::settle(const void* request) {
  const auto receive = std::ranges::find(given_up_, request, &GivenUp::request);
  if (receive == given_up_.end()) return;
  ucp_request_free(receive->request);
  Peer& from = peers_[static_cast<std::size_t>(receive->rank)];
  given_up_.erase(receive);
  if (from.gone != UCS_OK && !from.over) answer(from);
}

/// Advances the worker until `done` or `end`.
template <class Done>
void World::progress_until(std::chrono::steady_clock::time_point end, const Done& done) {
  constexpr auto between_looks = std::chrono::milliseconds(20);
  auto look = std::chrono::steady_clock::now() + between_looks;
  while (!done()) {
    if (ucp_worker_progress(worker()) != 0) continue;
    const auto now = std::chrono::steady_clock::now();
    if (now > end) return;
    if (now > look) {
      dismiss_ended();
      look = now + between_looks;
    }
    std::unique_lock<std::mutex> alone;
    block(std::chrono::milliseconds(1), alone);
  }
}

/// Notes whose processes have ended: endpoints within a machine do not tell. What such a process
/// had sent is in this machine's memory, and has been received by now.
void World::dismiss_ended() {
  for (Peer& peer : peers_)
    if (peer.gone == UCS_OK && !peer.ended)
      peer.ended = transport::condition_of(peer.process, 0).life == transport::Life::ended;
}

// Waits for two reasons. A message that is complete for its sender may lie in a buffer that is lost
// with the sender: TCP drops unsent data if a socket with unread bytes is closed. And UCX 1.13
// aborts a sender whose connection breaks between its request and the answers; so a message
// abandoned midway must arrive before its receiver leaves.
void World::leave() {
  const auto end = std::chrono::steady_clock::now() + options_.farewell;
  progress_until(end, [&] {
    return std::ranges::all_of(given_up_, [&](const GivenUp& receive) {
      const Peer& from = peers_[static_cast<std::size_t>(receive.rank)];
      return from.over || from.ended;
    });
  });
  for (const GivenUp& receive : given_up_) ucp_request_free(receive.request);
  given_up_.clear();
  while (ucp_worker_progress(worker()) != 0) continue;  // finds ranks that have already left
  leaving_ = true;
  struct Told {
    const Peer* peer;
    void* flush;  // null: done at once
  };
  std::vector<Told> told;
  const ucp_request_param_t param{};
  for (Peer& peer : peers_) {
    if (peer.rank == rank_ || peer.gone != UCS_OK || peer.ended) continue;
    await_control<on_received>(peer, received);
    control(peer, bye);
    void* request = ucp_ep_flush_nbx(peer.endpoint, &param);
    told.push_back({&peer, UCS_PTR_IS_PTR(request) ? request : nullptr});
  }
  progress_until(end, [&] {
    return std::ranges::all_of(told, [](const Told& one) {
      const auto [peer, flush] = one;
      const bool flushed = !flush || ucp_request_check_status(flush) != UCS_INPROGRESS;
      return peer->ended || ((peer->has_all || peer->gone != UCS_OK) && flushed);
    });
  });
  for (const Told& one : told)
    if (one.flush) ucp_request_free(one.flush);
}

/// Cancels the receives without an answer: a worker that is destroyed complains of them.
void World::take_back() noexcept {
  for (Peer& peer : peers_)
    for (void* request : peer.awaited)
      if (request != nullptr) ucp_request_cancel(worker(), request);
}

}  // namespace baton::ucx
