#include "collective_options.hpp"

#include <dlfcn.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "baton/error.hpp"
#include "baton/own_algorithms.hpp"
#include "baton/schedule.hpp"
#include "baton/schedule/passes.hpp"
#include "baton/schedule/text.hpp"
#include "diagrams/readers.hpp"
#include "select/select.hpp"
#include "text.hpp"

namespace baton::cli {
namespace {

std::int64_t bytes_of(const char* option, std::string_view text) {
  try {
    return parse_bytes(text);
  } catch (const Error& error) {
    refuse(fmt::format("{}: {}", option, error.what()));
  }
}

Hosts hosts_for(const std::string& text, int size) {
  Hosts hosts = parse_hosts(text);
  if (size > 0 && hosts.size() != size) {
    refuse(fmt::format("--hosts: expected the hosts of {} ranks, found those of {}", size,
                       hosts.size()));
  }
  return hosts;
}

/// Whether two symbols are of one object: dlsym() also finds those of the objects that it needs.
bool of_one_object(const void* a, const void* b) {
  Dl_info first, second;
  return dladdr(a, &first) != 0 && dladdr(b, &second) != 0 && first.dli_fbase == second.dli_fbase;
}

/// Adds the algorithms of a shared object, which is never unloaded: they are code.
void load(const std::string& file, Registry& registry) {
  // A name without a slash would be looked for among the system's libraries.
  const std::string path = file.find('/') == std::string::npos ? "./" + file : file;
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) refuse(fmt::format("expected a shared object, found {}", dlerror()));
  const auto* headers = static_cast<const int*>(dlsym(library, "baton_headers"));
  void* const function = dlsym(library, "baton_register");
  if (!headers || (function && !of_one_object(headers, function))) {
    refuse(
        "expected a shared object that includes baton/own_algorithms.hpp, found no baton_headers "
        "in it");
  }
  if (!function) refuse("expected a shared object that defines baton_register, found none");
  if (*headers != baton_headers) {
    refuse(fmt::format("expected one compiled with headers of version {}.{}, found {}.{}",
                       baton_headers / 1000, baton_headers % 1000, *headers / 1000,
                       *headers % 1000));
  }
  try {
    reinterpret_cast<decltype(&baton_register)>(function)(registry);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& exception) {
    refuse(fmt::format("expected algorithms of its baton_register, found an exception: {}",
                       exception.what()));
  } catch (...) {
    refuse("expected algorithms of its baton_register, found an exception of an unknown type");
  }
}

Problem problem_of(const CollectiveOptions& data, Collective collective) {
  Problem p;
  p.collective = collective;
  p.size = data.rank_count();
  p.hosts = data.grouping(p.size);
  if (data.root >= p.size) {
    refuse(fmt::format("expected a root from 0 to {}, found {}", p.size - 1, data.root));
  }
  p.root = rooted(collective) ? data.root_rank() : 0;
  p.in_place = data.in_place;
  p.average = reducing(collective) && data.op_kind() == OpKind::avg;
  const bool vector = collective == Collective::all_reduce || collective == Collective::reduce ||
                      collective == Collective::broadcast;
  p.count = data.count >= 0 ? data.count : (vector ? p.size : 1);  // an element per chunk
  if (collective == Collective::barrier) p.count = 1;
  return p;
}

std::vector<Schedule> unfused(const ScheduleRequest& request) {
  const CollectiveOptions& data = request.data;
  if (!data.file().empty()) return data.file_schedules();
  if (data.collective.empty()) {
    refuse("expected a collective (baton list shows them) or --schedule FILE, found neither");
  }
  const Registry registry = data.registry();
  const Collective collective = collective_named(data.collective);
  const Problem problem = problem_of(data, collective);
  const std::string& name =
      data.algorithm.empty() ? registry.of(collective).at(0)->name : data.algorithm;
  const Algorithm& algorithm = selecting::serving(registry, problem, name);
  std::vector<Schedule> schedules;
  for (int r = 0; r < problem.size; ++r) {
    // Elements of one byte: the request's segment counts elements.
    const selecting::Selection selection{&algorithm, request.segment, {}};
    schedules.push_back(selecting::scheduled(selection, problem.at(r), 1));
  }
  return schedules;
}

}  // namespace

std::vector<std::int64_t> CollectiveOptions::sizes(int factor) const {
  const auto colon = bytes.find(':');
  const std::int64_t first = bytes_of("--bytes", bytes.substr(0, colon));
  if (colon == std::string::npos) return {first};
  const std::int64_t last = bytes_of("--bytes", bytes.substr(colon + 1));
  if (first < 1 || last < first) {
    refuse(
        fmt::format("--bytes: expected FIRST:LAST with 1 <= FIRST <= LAST, found \"{}\"", bytes));
  }
  std::vector<std::int64_t> sizes{first};
  while (sizes.back() <= last / factor) sizes.push_back(sizes.back() * factor);
  return sizes;
}

Datatype CollectiveOptions::datatype() const {
  if (!goal.empty() && !type.empty()) {
    refuse(fmt::format("--dtype: expected none with --goal, which counts bytes, found {}", type));
  }
  if (!goal.empty()) return Datatype::u8;
  return type.empty() ? Datatype::f32 : datatype_named(type);
}

std::optional<std::int64_t> CollectiveOptions::segment_bytes() const {
  if (segment.empty()) return std::nullopt;
  return bytes_of("--segment", segment);
}

int CollectiveOptions::rank_count(int launched) const {
  if (launched > 0 && ranks > 0 && ranks != launched) {
    refuse(
        fmt::format("--ranks: expected the {} ranks of the launcher, found {}", launched, ranks));
  }
  if (launched > 0 && !hosts.empty()) {
    refuse("--hosts: expected ranks that are threads, found processes of MPI");
  }
  if (launched > 0) return launched;
  if (!hosts.empty()) return hosts_for(hosts, ranks).size();
  return ranks > 0 ? ranks : 4;
}

std::shared_ptr<const Hosts> CollectiveOptions::grouping(int size) const {
  return hosts.empty() ? nullptr : host_grouping(hosts_for(hosts, size).of());
}

const std::string& CollectiveOptions::file() const {
  return !msccl.empty() ? msccl : (!goal.empty() ? goal : schedule);
}

std::vector<Schedule> CollectiveOptions::file_schedules() const {
  if (!msccl.empty()) return diagrams::parse_msccl(file_text(msccl), msccl, {chunk, in_place});
  if (!goal.empty()) return diagrams::parse_goal(file_text(goal), goal);
  return schedules_in(schedule);
}

Registry CollectiveOptions::registry() const {
  Registry registry = Registry::builtin();
  for (const std::string& file : registries) {
    try {
      load(file, registry);
    } catch (const Error& error) {
      refuse(fmt::format("--registry {}: {}", file, error.what()));
    }
  }
  return registry;
}

std::vector<Option> CollectiveOptionSet::files(const std::vector<Option>& replaced,
                                               const std::string& more) const {
  const Option schedule =
      set_.add("--schedule", values_.schedule,
               "a schedule of your own instead" + more + " (format: lib/schedule/README.md)")
          .form("FILE")
          .excludes(replaced);
  const Option msccl = set_.add("--msccl", values_.msccl,
                                "the same from an algorithm in MSCCL's XML (diagrams/README.md)")
                           .form("FILE")
                           .excludes(replaced)
                           .excludes({schedule});
  set_.add("--chunk", values_.chunk, "elements of each chunk of that algorithm (default 1)")
      .form("N")
      .range(1, 1 << 24)
      .needs(msccl);
  return {schedule, msccl};
}

std::vector<Option> CollectiveOptionSet::files_and_goal(const std::vector<Option>& replaced,
                                                        const std::string& more) const {
  std::vector<Option> options = files(replaced, more);
  options.push_back(set_.add("--goal", values_.goal,
                             "messages and computations of a LogGOPSim file (GOAL); it has no data")
                        .form("FILE")
                        .excludes(replaced)
                        .excludes(options));
  return options;
}

ThreadOptions CollectiveOptions::threads() const {
  ThreadOptions threads;
  if (hosts.empty()) return threads;
  const Hosts parsed = parse_hosts(hosts);
  threads.hosts.assign(parsed.of().begin(), parsed.of().end());
  return threads;
}

ProvedSchedules proved_for_any_sends(const std::vector<Schedule>& schedules) {
  const auto problems = problems_of(schedules);
  ProvedSchedules own{{}, verify(schedules, problems)};
  if (own.proof.holds() || problems[0].collective == Collective::program ||
      !verify(schedules, problems, {nccl_slots}).holds()) {
    return own;
  }
  ProvedSchedules other;
  for (const Schedule& s : schedules) {
    other.in_order_of_data.emplace_back(s.header(),
                                        std::vector<Step>(s.steps().begin(), s.steps().end()),
                                        Regions(s.regions().begin(), s.regions().end()));
  }
  other.proof = verify(other.in_order_of_data, problems);
  return other.proof.holds() ? other : own;
}

std::vector<Schedule> schedules_in(const std::string& file) { return parse(file_text(file), file); }

std::vector<Schedule> schedules_of(const ScheduleRequest& request) {
  return request.fused ? fused(unfused(request), request.window) : unfused(request);
}

std::vector<Collective> collectives_named(const std::string& text) {
  if (text != "all") return {collective_named(text)};
  std::vector<Collective> all;
  for (int c = 0; c < collective_count; ++c) all.push_back(static_cast<Collective>(c));
  return all;
}

Options library_options() {
  Options library = Options::from_environment();
  if (std::getenv("BATON_TIMEOUT") == nullptr) library.timeout = std::chrono::seconds(60);
  return library;
}

Option add_trace(const OptionSet& set, std::string& file) {
  return set
      .add("--trace", file,
           "record the times of all messages of the library; `baton timeline --from FILE`\n"
           "draws them (BATON_TRACE=FILE)")
      .form("FILE");
}

void stop_recording(Communicator& communicator) {
  if (communicator.recording()) communicator.stop_recording(communicator.options().trace);
}

}  // namespace baton::cli
