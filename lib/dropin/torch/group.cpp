#include "group.hpp"

#include <c10/util/StringUtil.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "baton/explain.hpp"
#include "errors.hpp"
#include "names.hpp"
#include "rendezvous.hpp"

namespace baton::pytorch {
namespace {

using namespace std::chrono_literals;

// A tag of send() and recv() that the group itself uses.
constexpr int barrier_tag = 1023;

// How long shutdown() waits for operations under way.
constexpr auto patience = 2s;

Driver& driver_of_process() {
  static Driver driver;
  return driver;
}

std::chrono::milliseconds or_default(std::chrono::milliseconds timeout,
                                     std::chrono::milliseconds usual) {
  return timeout == c10d::kUnsetTimeout ? usual : timeout;
}

}  // namespace

Group::Group(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
             c10::intrusive_ptr<Options> options, const c10::intrusive_ptr<Group>& world,
             std::vector<int> members, const std::string& suffix)
    : Backend(rank, size), options_(std::move(options)), driver_(driver_of_process()) {
  translating([&] {
    auto transport = rendezvous(*store, rank, size, options_->timeout);
    if (world && world->communicator_) {
      const auto turn = driver_.turn();
      communicator_ = std::make_unique<Communicator>(std::move(transport), *world->communicator_,
                                                     std::move(members));
      return;
    }
    baton::Options chosen = baton::Options::from_environment();
    // Of the calls that the driver does not wait for: to agree on options, to end a recording.
    if (chosen.timeout.count() == 0)
      chosen.timeout = std::min<std::chrono::milliseconds>(options_->timeout, 60s);
    if (!chosen.trace.empty()) {
      chosen.trace += suffix;
      remember_names();
    }
    communicator_ = std::make_unique<Communicator>(std::move(transport), std::move(chosen));
  });
  driver_.add(this, *communicator_);
  init();
}

Group::~Group() { shutdown(); }

void Group::shutdown() {
  if (!communicator_) return;
  if (reason().empty()) driver_.wait_all(this, Clock::now() + patience);
  {
    const std::lock_guard lock(mutex_);
    if (over_.empty()) over_ = "it has been destroyed";
  }
  driver_.remove(this, "the process group was destroyed");
  communicator_.reset();
}

void Group::abort() {
  {
    const std::lock_guard lock(mutex_);
    over_ = "it has been aborted";
  }
  driver_.abort(this, "the process group was aborted");
}

std::string Group::reason() const {
  const std::lock_guard lock(mutex_);
  return over_;
}

void Group::check_usable(const char* operation) const {
  const std::string over = reason();
  if (!over.empty())
    C10_THROW_ERROR(DistBackendError,
                    c10::str(operation, ": expected a process group that can be used, but ", over));
}

// PyTorch tells a group its description and its number after it was made.
void Group::name_as_described() {
  const std::string& description = getGroupDesc();
  {
    const std::lock_guard lock(mutex_);
    if (!communicator_ || description == described_) return;
    described_ = description;
  }
  if (description.empty() || description == "default_pg") return;  // of all ranks
  const bool undefined = description == "undefined";
  if (undefined && getGroupUid().empty()) return;
  const auto turn = driver_.turn();
  communicator_->set_name(undefined ? "group " + getGroupUid() : description);
}

Group::Pointer Group::work(c10d::OpType type, const char* name, const Tensors& inputs,
                           std::chrono::milliseconds timeout, const char* title) {
  check_usable(name);
  name_as_described();
  const std::uint64_t number = count(type, name, inputs);
  const IgnoredNames ignored;
  auto work = c10::make_intrusive<Work>(
      driver_, parked_, rank_, type, number,
      c10::str(options_->backend, ":", title ? title : name).c_str(), inputs);
  work->name = c10::str(name, " #", number);
  work->group = this;
  work->collective = !c10d::isP2POp(type);
  work->timeout = or_default(timeout, options_->timeout);
  return work;
}

std::uint64_t Group::count(c10d::OpType type, const char* name, const Tensors& inputs) {
  const std::lock_guard lock(mutex_);
  Count& count = counts_[name];
  ++count.calls;
  for (const Tensor& tensor : inputs)
    if (tensor.defined() && tensor.layout() == at::kStrided)
      count.bytes += static_cast<std::int64_t>(tensor.nbytes());
  return c10d::isP2POp(type) ? ++messages_ : ++collectives_;
}

Group::Result Group::begin(const Pointer& work, Work::Begin begin, bool async) {
  work->begins(std::move(begin));
  work->deadline = Clock::now() + work->timeout;
  translating([&] { driver_.start(std::shared_ptr<Task>(work.get(), [work](Task*) {}), !async); });
  return work;
}

Group::Result Group::begin(const Pointer& work, std::vector<Call> calls, bool async) {
  return begin(
      work,
      [this, calls = std::move(calls)](Work&) {
        std::vector<Request> requests;
        for (const Call& call : calls) requests.push_back(communicator_->start(call));
        return requests;
      },
      async);
}

Group::Result Group::message(c10d::OpType type, Tensors& tensors, int peer, int tag) {
  const bool sends = type == c10d::OpType::SEND;
  const char* const name = sends ? "send" : "recv";
  const auto refuse = [&](const std::string& found) {
    throw std::invalid_argument(c10::str("Group::", name, ": ", found));
  };
  c10d::assertSingleElement(refuse, tensors);
  c10d::assertDense(refuse, tensors);
  c10d::assertCPU(refuse, tensors);
  if (tag < 0 || tag >= barrier_tag)
    refuse(c10::str("expected a tag from 0 to ", barrier_tag - 1, ", found ", tag));
  const bool anyone = type == c10d::OpType::RECVANYSOURCE;
  const Pointer work =
      this->work(type, name, tensors, c10d::kUnsetTimeout, anyone ? "recvAnySource" : nullptr);
  const Elements elements = moved(tensors[0].scalar_type());
  if (!sends) work->results = tensors;
  const ConstData out = sends ? work->read(tensors[0], elements) : ConstData();
  const Data in = sends ? Data() : work->write(tensors[0], elements);
  work->source = peer;
  return begin(
      work,
      [=, this](Work& its) -> std::optional<std::vector<Request>> {
        if (anyone) its.source = communicator_->probe(tag);
        if (anyone && its.source < 0) return std::nullopt;
        std::vector<Request> requests;
        requests.push_back(sends ? communicator_->start_send(out, its.source, tag)
                                 : communicator_->start_recv(in, its.source, tag));
        return requests;
      },
      true);
}

Group::Result Group::send(Tensors& tensors, int peer, int tag) {
  return message(c10d::OpType::SEND, tensors, peer, tag);
}
Group::Result Group::recv(Tensors& tensors, int peer, int tag) {
  return message(c10d::OpType::RECV, tensors, peer, tag);
}
Group::Result Group::recvAnysource(Tensors& tensors, int tag) {
  return message(c10d::OpType::RECVANYSOURCE, tensors, -1, tag);
}

Group::Result Group::barrier(const c10d::BarrierOptions& opts) {
  const Pointer work = this->work(c10d::OpType::BARRIER, "barrier", {}, opts.timeout);
  work->closes = true;  // collectives that every rank has called before are complete after it
  return begin(work, {calls::barrier()}, opts.asyncOp);
}

Group::Numbered Group::numbered(bool sends, int peer, std::int64_t call) {
  const Tensor number = at::full({1}, call, at::kLong);
  const Pointer work = this->work(sends ? c10d::OpType::SEND : c10d::OpType::RECV,
                                  "monitored_barrier", {}, c10d::kUnsetTimeout);
  work->timeout = 24h * 365;  // a rank that comes late finds its message received
  const Data data = work->update(number, moved(at::kLong));
  begin(
      work,
      [=, this](Work&) {
        std::vector<Request> requests;
        requests.push_back(sends ? communicator_->start_send(data, peer, barrier_tag)
                                 : communicator_->start_recv(data, peer, barrier_tag));
        return requests;
      },
      false);
  return {work, number};
}

void Group::expect(int peer) {
  Numbered& numbered = expected_[peer];
  if (!numbered.work) numbered = this->numbered(false, peer, 0);
}

bool Group::arrived(int peer, std::int64_t call, Clock::time_point until) {
  for (;;) {
    expect(peer);
    Numbered& numbered = expected_[peer];
    if (!driver_.wait(*numbered.work, until)) return false;
    const Numbered found = std::exchange(numbered, {});
    found.work->wait();  // throws its failure
    if (found.number.item<std::int64_t>() >= call) return true;
  }
}

void Group::monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all_ranks) {
  check_usable("monitored_barrier");
  const auto timeout = or_default(opts.timeout, options_->timeout);
  const auto until = Clock::now() + timeout;
  const std::int64_t call = ++monitored_;
  // A failure breaks the communicator: what follows it says nothing of the other ranks.
  const auto blaming = [](const std::string& whom, const auto& use) {
    try {
      return use();
    } catch (const c10::Error& error) {
      C10_THROW_ERROR(DistBackendError, whom + error.what_without_backtrace());
    }
  };
  if (rank_ != 0) {
    const std::string rank_0 = c10::str(
        "Rank ", rank_,
        " successfully reached monitoredBarrier, but received errors while waiting for send/recv "
        "from rank 0: ");
    const bool answered = blaming(rank_0, [&] {
      const Pointer sent = numbered(true, 0, call).work;
      expect(0);
      return driver_.wait(*sent, until) && sent->wait() && arrived(0, call, until);
    });
    if (!answered)
      C10_THROW_ERROR(DistBackendError, c10::str(rank_0, "no answer within ", timeout.count(),
                                                 " ms; rank 0 names the ranks that did not come"));
    return;
  }
  const auto rank = [](int r) {
    return c10::str("Rank ", r, " failed to pass monitoredBarrier: ");
  };
  for (int r = 1; r < size_; ++r) blaming(rank(r), [&] { expect(r); });
  std::vector<int> missing;
  for (int r = 1; r < size_ && (missing.empty() || wait_all_ranks); ++r) {
    const bool late = Clock::now() >= until;
    if (blaming(rank(r), [&] { return arrived(r, call, until); })) continue;
    if (late && missing.empty())
      C10_THROW_ERROR(DistBackendError, c10::str("Rank 0 timed out in monitoredBarrier after ",
                                                 timeout.count(), " ms, before rank ", r, " came"));
    missing.push_back(r);
  }
  if (!missing.empty()) {
    std::string ranks = missing.size() > 1 ? "Ranks" : "Rank";
    for (const int r : missing) ranks += c10::str(r == missing[0] ? " " : ", ", r);
    C10_THROW_ERROR(DistBackendError, c10::str(ranks, " failed to pass monitoredBarrier in ",
                                               timeout.count(), " ms"));
  }
  std::vector<Pointer> answers;
  for (int r = 1; r < size_; ++r)
    answers.push_back(blaming(rank(r), [&] { return numbered(true, r, call).work; }));
  for (int r = 1; r < size_; ++r)
    blaming(rank(r), [&] { return answers[static_cast<std::size_t>(r - 1)]->wait(); });
}

std::map<std::string, Count> Group::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::string Group::explain(const std::string& operation, const Tensor& tensor, int root) {
  check_usable("explain");
  const Elements elements = moved(tensor.scalar_type());
  const std::int64_t n = tensor.numel() * elements.per;
  Tensor many = at::empty({tensor.numel() * size_}, tensor.options());
  const Data one(tensor.mutable_data_ptr(), n, elements.type);
  const Data all(many.mutable_data_ptr(), n * size_, elements.type);
  const auto call = [&] {
    if (operation == "broadcast") return calls::broadcast(one, root);
    if (operation == "all_reduce") return calls::all_reduce(one, sum);
    if (operation == "all_gather") return calls::all_gather(one, all);
    if (operation == "reduce_scatter") return calls::reduce_scatter(all, one, sum);
    if (operation == "all_to_all") return calls::all_to_all(all, all);
    throw std::invalid_argument(
        c10::str("explain: expected broadcast, all_reduce, all_gather, reduce_scatter or "
                 "all_to_all, found \"",
                 operation, "\""));
  }();
  return translating([&] {
    const auto turn = driver_.turn();
    const Choice choice = communicator_->chosen(call);
    const Traffic traffic = communicator_->traffic(call);
    std::string text = c10::str(
        operation, " of ", n, " ", baton::name(elements.type), " on ", size_, " ranks: algorithm ",
        choice.algorithm, ", ",
        choice.segment.value_or(0) > 0 ? c10::str("segments of ", *choice.segment, " bytes")
                                       : "uncut",
        "; rank ", rank_, " sends ", traffic.messages, " messages, ", traffic.bytes, " bytes\n");
    return text + in_words(communicator_->schedule(call));
  });
}

}  // namespace baton::pytorch
