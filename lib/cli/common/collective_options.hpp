#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "baton/communicator.hpp"
#include "baton/launch.hpp"
#include "baton/schedule.hpp"
#include "baton/verify.hpp"
#include "command_line.hpp"

namespace baton::cli {

/// Collective, data and ranks as a command line names them. Functions throw Error(invalid_argument)
/// for values that do not exist or contradict each other.
struct CollectiveOptions {
  // With values, so that designated initializers may leave some out.
  std::string collective = {}, algorithm = {}, bytes = {}, type = {}, op = {}, segment = {},
              hosts = {}, schedule = {}, msccl = {}, goal = {};
  int ranks = 0;                             ///< 0: not given
  int root = -1;                             ///< -1: not given
  std::int64_t count = -1;                   ///< -1: not given
  std::int64_t chunk = 1;                    ///< elements of each chunk of `msccl`
  std::vector<std::string> registries = {};  ///< shared objects with algorithms
  bool in_place = false;

  /// Elements of a GOAL file are bytes.
  Datatype datatype() const;
  OpKind op_kind() const { return op.empty() ? OpKind::sum : op_named(op); }
  int root_rank() const { return std::max(root, 0); }
  /// "8:64M" as 8, 16, … 64M, each `factor` times the last; "4K" as itself.
  std::vector<std::int64_t> sizes(int factor = 2) const;
  /// Empty: not given.
  std::optional<std::int64_t> segment_bytes() const;
  /// The number of ranks; `launched`: of an MPI launcher, or 0.
  int rank_count(int launched = 0) const;
  /// The user's file of schedules, in whichever form; empty: none.
  const std::string& file() const;
  /// Its schedules, one for each rank.
  std::vector<Schedule> file_schedules() const;
  /// The built-in algorithms, then those of the shared objects, which stay loaded.
  Registry registry() const;
  /// Ranks by host, for `size` ranks; null: one host.
  std::shared_ptr<const Hosts> grouping(int size) const;
  /// Threads as ranks on these hosts.
  ThreadOptions threads() const;
};

/// Declares, documents and checks the options of CollectiveOptions; a command declares those that
/// it takes.
class CollectiveOptionSet {
 public:
  CollectiveOptionSet(const OptionSet& set, CollectiveOptions& values)
      : set_(set), values_(values) {}

  Option collective(const std::string& more = "") const {
    return set_.add("collective", values_.collective, "such as all_reduce" + more).form("");
  }
  Option algorithm(const std::string& help) const {
    return set_.add("--algorithm", values_.algorithm, help).form("A");
  }
  Option bytes(const std::string& more) const {
    return set_
        .add("--bytes", values_.bytes, "size of the whole vector, as nccl-tests counts it" + more)
        .form("SIZE");
  }
  Option type() const {
    return set_
        .add("--dtype", values_.type,
             "i8 u8 i32 u32 i64 u64 f8e4m3 f8e5m2 f16 bf16 f32 f64 (default f32)")
        .form("TYPE");
  }
  Option op() const {
    return set_
        .add("--op", values_.op,
             "sum avg prod min max, and for integers logical_and logical_or logical_xor bit_and\n"
             "bit_or bit_xor (default sum)")
        .form("OP");
  }
  Option root() const {
    return set_.add("--root", values_.root, "rank of the root (default 0)")
        .form("R")
        .range(0, INT32_MAX);
  }
  Option ranks(const std::string& help, int most = 4096) const {
    return set_.add("--ranks", values_.ranks, help).form("P").range(1, most);
  }
  Option hosts(const std::string& before = "") const {
    return set_
        .add("--hosts", values_.hosts,
             before + "2x4: 2 hosts of 4 ranks each; 0,1,0,1: the host of each rank (default: one)")
        .form("HOSTS");
  }
  Option segment(const std::string& help) const {
    return set_.add("--segment", values_.segment, help).form("S");
  }
  Option count() const {
    return set_
        .add("--count", values_.count,
             "elements: of a vector (default P), of a rank's block (default 1)")
        .form("N")
        .range(0);
  }
  Option in_place(const std::string& more = "") const {
    return set_.flag("--in-place", values_.in_place, "input and output are the same memory" + more);
  }
  /// Files of schedules, which exclude one another and `replaced`: --schedule and --msccl.
  std::vector<Option> files(const std::vector<Option>& replaced,
                            const std::string& more = "") const;
  /// The same and --goal.
  std::vector<Option> files_and_goal(const std::vector<Option>& replaced,
                                     const std::string& more = "") const;
  Option registry() const {
    return set_
        .add("--registry", values_.registries,
             "a shared object with algorithms of your own (see tests/examples); may be repeated")
        .form("LIB.so")
        .one_value_each();
  }

 private:
  OptionSet set_;
  CollectiveOptions& values_;
};

/// Messages that NCCL buffers on a connection, as long as each fits into a slot (NCCL_STEPS).
inline constexpr int nccl_slots = 8;

/// The schedules that a command line asks for.
struct ScheduleRequest {
  /// Without a collective: those of data.file(). Without an algorithm: the reference.
  CollectiveOptions data;
  std::int64_t segment = 0;  ///< elements; 0: not cut; data.segment is not read
  bool fused = false;        ///< messages are put in fused groups
  int window = 0;            ///< of a fused group: messages of one channel; 0: any number
};

struct ProvedSchedules {
  /// The same steps, each waiting only for those whose regions overlap its own; empty: they stay.
  std::vector<Schedule> in_order_of_data;
  Proof proof;  ///< of these, otherwise of the schedules as they were
};
/// Proves schedules for any sends. Those that are proved for buffered sends only are put in the
/// order of their data, if that is proved for any.
ProvedSchedules proved_for_any_sends(const std::vector<Schedule>& schedules);

/// The schedules that a file has, as text. Throws Error(invalid_argument).
std::vector<Schedule> schedules_in(const std::string& file);
/// The schedules of all ranks. Throws Error(invalid_argument), such as for what does not exist.
std::vector<Schedule> schedules_of(const ScheduleRequest& request);

/// One by its name, or "all". Throws Error(invalid_argument).
std::vector<Collective> collectives_named(const std::string& text);

/// Options of the library, from the environment. Without BATON_TIMEOUT a hang ends after a minute,
/// with a sentence.
Options library_options();

/// Option --trace, and the end of what it asks for: collective.
Option add_trace(const OptionSet& set, std::string& file);
void stop_recording(Communicator& communicator);

}  // namespace baton::cli
