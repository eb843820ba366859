#include "drop_in.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "baton/checked.hpp"
#include "baton/mpi.hpp"

namespace baton::pmpi {
namespace {

/// Rank 0's settings on all ranks. Ends the program with a sentence if they are wrong.
Settings agreed_settings() {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  unsigned long words[3] = {};
  if (rank == 0) {
    try {
      const Settings settings = Settings::from_environment();
      words[0] = settings.blocking.to_ulong();
      words[1] = settings.nonblocking.to_ulong();
      words[2] = settings.stats ? 1 : 0;
    } catch (const Error& error) {
      std::fprintf(stderr, "baton: %s\n", error.what());
      PMPI_Abort(MPI_COMM_WORLD, 2);
    }
  }
  PMPI_Bcast(words, 3, MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD);
  Settings settings;
  settings.blocking = words[0];
  settings.nonblocking = words[1];
  settings.stats = words[2] != 0;
  return settings;
}

/// Whether the ranks of this host outnumber its cores.
bool cores_are_shared() {
  MPI_Comm host = MPI_COMM_NULL;
  int ranks = 1;
  if (PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host) !=
      MPI_SUCCESS)
    return false;
  PMPI_Comm_size(host, &ranks);
  PMPI_Comm_free(&host);
  return ranks > static_cast<int>(std::thread::hardware_concurrency());
}

/// Makes errors on a communicator return during its scope.
class Returning {
 public:
  explicit Returning(MPI_Comm comm) : comm_(comm) {
    PMPI_Comm_get_errhandler(comm, &handler_);
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  }
  ~Returning() {
    PMPI_Comm_set_errhandler(comm_, handler_);
    if (handler_ != MPI_ERRHANDLER_NULL) PMPI_Errhandler_free(&handler_);
  }
  Returning(const Returning&) = delete;
  Returning& operator=(const Returning&) = delete;

 private:
  MPI_Comm comm_;
  MPI_Errhandler handler_ = MPI_ERRHANDLER_NULL;
};

// MPI's query of a generalized request.
int query(void* state, MPI_Status* status) {
  PMPI_Status_set_elements(status, MPI_BYTE, 0);
  PMPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  const auto& outcome = *static_cast<const Outcome*>(state);
  return outcome.code != MPI_SUCCESS && Failures::note(outcome) ? MPI_SUCCESS : outcome.code;
}
int dispose(void* state) {
  delete static_cast<Outcome*>(state);
  return MPI_SUCCESS;
}
int cancel(void*, int) { return MPI_SUCCESS; }

int class_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::truncated:
      return MPI_ERR_TRUNCATE;
    case ErrorCode::invalid_argument:
      return MPI_ERR_ARG;
    case ErrorCode::transport: {
      int kind = MPI_ERR_OTHER;
      char text[MPI_MAX_ERROR_STRING];
      int length = 0;
      // A code of the system's has another text.
      const bool of_mpi =
          error.backend_code != MPI_SUCCESS &&
          PMPI_Error_string(error.backend_code, text, &length) == MPI_SUCCESS &&
          error.backend_text == std::string_view(text, static_cast<std::size_t>(length)) &&
          PMPI_Error_class(error.backend_code, &kind) == MPI_SUCCESS;
      return of_mpi ? kind : MPI_ERR_OTHER;
    }
    default:
      return MPI_ERR_OTHER;
  }
}

}  // namespace

DropIn* DropIn::now_ = nullptr;
std::atomic<unsigned> DropIn::epoch_{0};

void DropIn::open() {
  const Settings settings = agreed_settings();
  if (!settings.any()) return;
  auto* const self = new DropIn(settings);
  int level = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&level);
  self->threads_ = level == MPI_THREAD_MULTIPLE;
  self->crowded_ = cores_are_shared();
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, drop_group, &self->keyval_, self);
  try {
    self->attach(MPI_COMM_WORLD, nullptr);
    const auto* const world = self->group(MPI_COMM_WORLD);
    if (world) self->attach(MPI_COMM_SELF, world->get());
    const auto* const alone = self->group(MPI_COMM_SELF);
    if (alone) {
      self->datatypes_ = std::make_unique<Datatypes>((*alone)->own);
      now_ = self;
      return;
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "baton: %s\n", error.what());
    PMPI_Abort(MPI_COMM_WORLD, 2);
  }
  delete self;
}

void DropIn::close() {
  DropIn* const self = std::exchange(now_, nullptr);
  if (!self) return;
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (self->settings_.stats && rank == 0) std::fputs(self->stats_.text().c_str(), stderr);
  delete self;
}

DropIn::~DropIn() {
  pending_.clear();
  windows_.clear();
  files_.clear();
  datatypes_.reset();
  PMPI_Comm_delete_attr(MPI_COMM_SELF, keyval_);
  PMPI_Comm_delete_attr(MPI_COMM_WORLD, keyval_);
  PMPI_Comm_free_keyval(&keyval_);
}

// --- communicators -----------------------------------------------------------------------------

int DropIn::drop_group(MPI_Comm comm, int, void* group, void*) {
  epoch_.fetch_add(1, std::memory_order_release);
  const std::unique_ptr<std::shared_ptr<Group>> hung(static_cast<std::shared_ptr<Group>*>(group));
  if (DropIn* const drop_in = now()) {
    const auto lock = drop_in->use(**hung);
    (*hung)->comm = MPI_COMM_NULL;
    PMPI_Comm_get_errhandler(comm, &(*hung)->handler);  // operations under way may fail
  }
  return MPI_SUCCESS;
}

const std::shared_ptr<Group>* DropIn::group(MPI_Comm comm) const {
  if (comm == MPI_COMM_NULL) return nullptr;
  struct Last {
    MPI_Comm comm = MPI_COMM_NULL;
    const std::shared_ptr<Group>* group = nullptr;
    unsigned epoch = 0;
  };
  thread_local Last last;  // programs use one communicator many times
  const unsigned epoch = epoch_.load(std::memory_order_acquire);
  if (last.comm == comm && last.epoch == epoch) return last.group;
  std::shared_ptr<Group>* found = nullptr;
  int flag = 0;
  if (PMPI_Comm_get_attr(comm, keyval_, &found, &flag) != MPI_SUCCESS || flag == 0) return nullptr;
  last = {comm, found, epoch};
  return found;
}

void DropIn::hang(MPI_Comm comm, std::shared_ptr<Group> group) {
  group->comm = comm;
  auto hung = std::make_unique<std::shared_ptr<Group>>(std::move(group));
  if (PMPI_Comm_set_attr(comm, keyval_, hung.get()) == MPI_SUCCESS)
    static_cast<void>(hung.release());
}

void DropIn::attach(MPI_Comm comm, const Group* like, int number) {
  int inter = 0;
  if (comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter != 0)
    return;
  MPI_Comm own = MPI_COMM_NULL;
  {
    // A duplicate would run the program's attribute callbacks.
    const Returning returning(comm);
    MPI_Group ranks = MPI_GROUP_NULL;
    PMPI_Comm_group(comm, &ranks);
    if (PMPI_Comm_create(comm, ranks, &own) != MPI_SUCCESS) own = MPI_COMM_NULL;
    PMPI_Group_free(&ranks);
    const int made = own != MPI_COMM_NULL ? 1 : 0;
    int everywhere = 0;
    PMPI_Allreduce(&made, &everywhere, 1, MPI_INT, MPI_MIN, comm);
    if (everywhere == 0) {
      if (own != MPI_COMM_NULL) PMPI_Comm_free(&own);
      return;
    }
  }
  if (like)
    return hang(comm, mpi_process_transport_within(like->messages, own, number), own, *like);
  auto transport = mpi_process_transport_over(own);
  const Transport& messages = *transport;
  hang(comm, std::make_shared<Group>(
                 own, messages, Communicator(std::move(transport), Options::from_environment()),
                 nullptr));
}

void DropIn::attach(MPI_Comm comm, MPI_Comm own, const Group& like) {
  hang(comm, mpi_transport_within(like.messages, own), own, like);
}

void DropIn::hang(MPI_Comm comm, std::unique_ptr<Transport> transport, MPI_Comm own,
                  const Group& like) {
  const Transport& messages = *transport;
  if (like.communicator.options().check > 1) transport = checked_transport(std::move(transport));
  hang(comm, std::make_shared<Group>(
                 own, messages, Communicator(std::move(transport), like.communicator, members(own)),
                 &like));
}

std::vector<int> DropIn::members(MPI_Comm comm) const {
  const auto* const world = group(MPI_COMM_WORLD);
  if (!world) return {};
  MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
  int size = 0;
  std::vector<int> members;
  bool known = PMPI_Comm_group(MPI_COMM_WORLD, &all) == MPI_SUCCESS &&
               PMPI_Comm_group(comm, &some) == MPI_SUCCESS &&
               PMPI_Group_size(some, &size) == MPI_SUCCESS;
  if (known) {
    std::vector<int> ranks(static_cast<std::size_t>(size));
    members.resize(ranks.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    known =
        PMPI_Group_translate_ranks(some, size, ranks.data(), all, members.data()) == MPI_SUCCESS &&
        std::count(members.begin(), members.end(), MPI_UNDEFINED) == 0;
  }
  for (MPI_Group* group : {&some, &all}) {
    if (*group != MPI_GROUP_NULL && PMPI_Group_free(group) != MPI_SUCCESS) known = false;
  }
  return known ? members : std::vector<int>();
}

void DropIn::remember(MPI_Win win, std::shared_ptr<Group> group) {
  const std::lock_guard lock(uses_mutex_);
  windows_[win] = std::move(group);
}
void DropIn::remember(MPI_File file, std::shared_ptr<Group> group) {
  const std::lock_guard lock(uses_mutex_);
  files_[file] = std::move(group);
}
void DropIn::forget(MPI_Win win) {
  const std::lock_guard lock(uses_mutex_);
  windows_.erase(win);
}
void DropIn::forget(MPI_File file) {
  const std::lock_guard lock(uses_mutex_);
  files_.erase(file);
}

// --- operations under way ----------------------------------------------------------------------

bool DropIn::advance() {
  if (!pending()) return false;
  const std::unique_lock lock(pending_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  bool ended = false;
  const void* advanced = nullptr;  // the family that has just advanced
  for (std::size_t i = 0; i < pending_.size();) {
    Pending& pending = *pending_[i];
    Group* const group = pending.group();
    std::unique_lock<std::mutex> using_group;
    if (group) {
      using_group = std::unique_lock(group->mutex, std::try_to_lock);
      if (!using_group.owns_lock()) {  // its user advances it
        ++i;
        continue;
      }
      if (group->family != advanced) {
        group->communicator.progress();
        advanced = group->family;
      }
    }
    int code = MPI_SUCCESS;
    if (!pending.complete(code)) {
      ++i;
      continue;
    }
    pending.outcome->code = code;
    if (code != MPI_SUCCESS) {
      pending.outcome->group = pending.called_on();
      failed_.store(true, std::memory_order_relaxed);
    }
    PMPI_Grequest_complete(pending.request);
    using_group = {};
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
    pending_count_.fetch_sub(1, std::memory_order_relaxed);
    ended = true;
  }
  return ended;
}

int DropIn::add(std::unique_ptr<Pending> pending, MPI_Request* request) {
  auto outcome = std::make_unique<Outcome>();
  const int code = PMPI_Grequest_start(query, dispose, cancel, outcome.get(), request);
  if (code != MPI_SUCCESS) return code;
  pending->request = *request;
  outcome->request = *request;
  pending->outcome = outcome.release();
  const std::lock_guard lock(pending_mutex_);
  pending_.push_back(std::move(pending));
  pending_count_.fetch_add(1, std::memory_order_relaxed);
  return MPI_SUCCESS;
}

void DropIn::keep(MPI_Op op, MPI_Datatype type) {
  const std::lock_guard lock(uses_mutex_);
  if (op != MPI_OP_NULL) ++op_uses_[op].count;
  if (type != MPI_DATATYPE_NULL) ++type_uses_[type].count;
}

void DropIn::release(MPI_Op op, MPI_Datatype type) {
  // Whether the handle's last use ends, and the program has freed it.
  const auto ends = [this](auto& uses, auto handle) {
    const std::lock_guard lock(uses_mutex_);
    const auto found = uses.find(handle);
    if (found == uses.end() || --found->second.count > 0) return false;
    const bool freed = found->second.freed;
    uses.erase(found);
    return freed;
  };
  // Without the lock: the program's attribute callbacks may free other handles.
  if (ends(op_uses_, op)) PMPI_Op_free(&op);
  if (ends(type_uses_, type)) PMPI_Type_free(&type);
}

int DropIn::free_op(MPI_Op* op) {
  {
    const std::lock_guard lock(uses_mutex_);
    if (const auto found = op_uses_.find(*op); found != op_uses_.end()) {
      found->second.freed = true;
      *op = MPI_OP_NULL;
      return MPI_SUCCESS;
    }
  }
  return PMPI_Op_free(op);
}

int DropIn::free_type(MPI_Datatype* type) {
  {
    const std::lock_guard lock(uses_mutex_);
    if (const auto found = type_uses_.find(*type); found != type_uses_.end()) {
      found->second.freed = true;
      *type = MPI_DATATYPE_NULL;
      return MPI_SUCCESS;
    }
  }
  return PMPI_Type_free(type);
}

namespace {

// Launchers lose what they have not yet read of standard error when ranks end the program.
constexpr std::chrono::milliseconds time_to_arrive{200};

/// Whether an error on the program's communicator ends the program.
bool is_fatal(const Group& group) {
  if (group.comm == MPI_COMM_NULL) return group.handler == MPI_ERRORS_ARE_FATAL;
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  if (PMPI_Comm_get_errhandler(group.comm, &handler) != MPI_SUCCESS) return true;
  const bool fatal = handler == MPI_ERRORS_ARE_FATAL;
  if (handler != MPI_ERRHANDLER_NULL) PMPI_Errhandler_free(&handler);
  return fatal;
}

}  // namespace

void report_if_fatal(const Group& group, std::string_view sentence) {
  if (!is_fatal(group)) return;
  group.communicator.report(sentence);
  std::this_thread::sleep_for(time_to_arrive);
}

int code_of(const Error& error, const Group& group) {
  report_if_fatal(group, error.what());
  const int kind = class_of(error);
#ifndef MPICH_VERSION  // MPICH gives a code added to a predefined class another text
  int code = kind;
  if (PMPI_Add_error_code(kind, &code) == MPI_SUCCESS) {
    const std::string text(error.what());
    PMPI_Add_error_string(code, text.substr(0, MPI_MAX_ERROR_STRING - 1).c_str());
    return code;
  }
#endif
  return kind;
}

int raise(MPI_Comm comm, int code) {
  if (code != MPI_SUCCESS) PMPI_Comm_call_errhandler(comm, code);
  return code;
}

int raise(Group& group, int code) {
  MPI_Comm comm = MPI_COMM_NULL;
  {
    const auto lock = DropIn::now()->use(group);
    comm = group.comm;
  }
  if (comm != MPI_COMM_NULL) return raise(comm, code);
  // No handler can be called without a communicator.
  PMPI_Comm_set_errhandler(group.own, group.handler);
  raise(group.own, code);
  PMPI_Comm_set_errhandler(group.own, MPI_ERRORS_RETURN);
  return code;
}

}  // namespace baton::pmpi
