// Schedules: read, printed, proved, simulated and run.

#include <numeric>

#include "baton/explain.hpp"
#include "baton/schedule/algorithm.hpp"
#include "baton/schedule/passes.hpp"
#include "baton/schedule/text.hpp"
#include "baton/simulate.hpp"
#include "baton/verify.hpp"
#include "handles.hpp"

using namespace baton;
using namespace baton::c;

namespace {

const std::vector<Schedule>& all(const baton_schedules* schedules) {
  return *given(schedules, "schedules").schedules;
}

std::vector<Schedule> generated(Collective collective, std::string_view algorithm, int ranks,
                                std::int64_t count, int root, std::int64_t segment) {
  if (ranks < 1) base::refuse("expected at least 1 rank, found {}", ranks);
  if (count < 0 || segment < 0)
    base::refuse("expected a count and a segment of at least 0, found {} and {}", count, segment);
  if (rooted(collective) && (root < 0 || root >= ranks))
    base::refuse("expected a root from 0 to {}, found {}", ranks - 1, root);
  Problem problem;
  problem.collective = collective;
  problem.size = ranks;
  problem.root = rooted(collective) ? root : 0;
  problem.count = collective == Collective::barrier ? 1 : count;
  const Registry registry = Registry::builtin();
  const Algorithm& generator = registry.find(collective, algorithm);
  if (const std::string why = refusal(generator, problem); !why.empty())
    base::refuse("{}: {} {}", name(collective), generator.name, why);
  std::vector<Schedule> schedules;
  for (int r = 0; r < ranks; ++r)
    schedules.push_back(segmented(generator.generate(problem.at(r)), segment));
  return schedules;
}

/// The ranks of a host are neighbours.
std::shared_ptr<const Hosts> hosts(int ranks, int per_host) {
  if (per_host <= 0) return nullptr;
  std::vector<int> host_of(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) host_of[static_cast<std::size_t>(r)] = r / per_host;
  return host_grouping(host_of);
}

SimulateOptions simulate_options(const baton_simulate_options& from, int ranks,
                                 const Network& network) {
  if (from.ranks_per_host < -1 || from.window < 0 || from.calls < 0 || from.segment < 0)
    base::refuse(
        "baton_simulate_options: expected ranks_per_host of at least -1, window, calls and segment "
        "of at least 0, found {}, {}, {} and {}",
        from.ranks_per_host, from.window, from.calls, from.segment);
  SimulateOptions options;
  options.hosts =
      hosts(ranks, from.ranks_per_host == 0 ? network.ranks_per_host : from.ranks_per_host);
  if (from.window > 0) options.window = from.window;
  if (from.calls > 0) options.calls = from.calls;
  options.segment = from.segment;
  return options;
}

}  // namespace

int baton_schedules_parse(const char* text, const char* origin, baton_schedules** schedules) {
  return made(schedules, [&] {
    return std::make_shared<const std::vector<Schedule>>(
        parse(&given(text, "a text"), origin == nullptr ? "schedule" : origin));
  });
}
int baton_schedules_generate(const char* collective, const char* algorithm, int ranks,
                             int64_t count, int root, int64_t segment,
                             baton_schedules** schedules) {
  return made(schedules, [&] {
    return std::make_shared<const std::vector<Schedule>>(
        generated(collective_named(&given(collective, "a name of a collective")),
                  &given(algorithm, "a name of an algorithm"), ranks, count, root, segment));
  });
}
int baton_schedules_count(const baton_schedules* schedules) {
  return schedules == nullptr ? -1 : static_cast<int>(schedules->schedules->size());
}
int baton_schedules_print(const baton_schedules* schedules, int index, char* text, size_t room,
                          size_t* length) {
  return guarded([&] {
    const auto& list = all(schedules);
    if (index < -1 || index >= static_cast<int>(list.size()))
      base::refuse("expected a schedule from 0 to {}, or -1, found {}", list.size() - 1, index);
    std::string printed;
    for (std::size_t i = 0; i < list.size(); ++i)
      if (index == -1 || static_cast<std::size_t>(index) == i) printed += print(list[i]);
    give_text(printed, text, room, length);
  });
}
int baton_walk_through(const baton_schedules* schedules, char* text, size_t room, size_t* length) {
  return guarded([&] { give_text(walk_through(all(schedules)), text, room, length); });
}
void baton_schedules_destroy(baton_schedules* schedules) { delete schedules; }

int baton_run_schedules(baton_communicator* communicator, const baton_schedules* schedules,
                        const void* input, int64_t input_count, void* output, int64_t output_count,
                        int type, baton_op op) {
  return guarded([&] {
    Communicator& c = given(communicator);
    const auto& list = all(schedules);
    const auto own = std::find_if(list.begin(), list.end(),
                                  [&](const Schedule& s) { return s.rank() == c.rank(); });
    if (own == list.end()) base::refuse("expected a schedule of rank {}, found none", c.rank());
    c.run(*own, ConstData(input, input_count, datatype(type)),
          Data(output, output_count, datatype(type)), op_of(op));
  });
}

int baton_verify(const baton_schedules* schedules, baton_proof* proof, char* text, size_t room,
                 size_t* length) {
  return guarded([&] {
    const auto& list = all(schedules);
    const Proof found = verify(list, problems_of(list));
    std::string sentences;
    for (const Finding& finding : found.findings) sentences += finding.sentence + "\n";
    fill(proof, {0, static_cast<std::int64_t>(found.findings.size()), found.rounds, found.messages},
         "baton_proof");
    give_text(sentences, text, room, length);
  });
}

int baton_simulate(const baton_schedules* schedules, size_t element_bytes, const char* network,
                   const baton_simulate_options* options, baton_prediction* prediction,
                   int64_t* finish_ns, baton_timeline** timeline) {
  return guarded([&] {
    if (timeline != nullptr) *timeline = nullptr;
    const auto& list = all(schedules);
    const Network on = network_named(&given(network, "a name of a network"));
    SimulateOptions how = simulate_options(taken(options, "baton_simulate_options"),
                                           static_cast<int>(list.size()), on);
    how.timeline = timeline != nullptr;
    Prediction found = simulate(schedules->schedules, element_bytes, on, how);
    const auto across =
        std::accumulate(found.hosts.begin(), found.hosts.end(), std::int64_t{0},
                        [](std::int64_t sum, const HostBytes& host) { return sum + host.sent; });
    fill(prediction, {0, found.total, found.messages, found.steps, found.bytes_within, across},
         "baton_prediction");
    if (finish_ns != nullptr) std::copy(found.finish.begin(), found.finish.end(), finish_ns);
    if (timeline == nullptr) return;
    auto made = std::make_unique<baton_timeline>(baton_timeline{std::move(*found.timeline)});
    finish(made->timeline);
    *timeline = made.release();
  });
}
