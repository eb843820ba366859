#include <fmt/format.h>

#include <algorithm>

#include "bench.hpp"
#include "bench_table.hpp"
#include "jobs.hpp"
#include "machine.hpp"
#include "text.hpp"

namespace baton::cli {
namespace {

/// One rank's part of the benchmark. Rank 0 prints.
class DeviceBenchmark {
 public:
  DeviceBenchmark(World& world, const std::vector<Card>& cards, const BenchOptions& options,
                  std::vector<Exercise> exercises)
      : world_(world),
        cards_(cards),
        card_(cards[static_cast<std::size_t>(world.rank()) % cards.size()]),
        options_(options),
        exercises_(std::move(exercises)),
        communicator_(world.transport(), card_.device, library_options(false)),
        table_(world.rank() == 0, world.size(), exercises_.size(), options.progress) {}

  /// The exit code.
  int run(std::ofstream& json) {
    table_.print(head());
    for (const Exercise& exercise : exercises_) {
      int round = 0;
      const auto before = [&] {
        table_.show(fmt::format("{}, sample {}", exercise.text(), ++round));
      };
      table_.add({exercise,
                  device_contest(world_, communicator_, card_, exercise, options_.contest, before),
                  0});
    }
    table_.close();
    if (json.is_open()) write_json(json, options_.json, result());
    return table_.wrong() > 0 ? 1 : 0;
  }

 private:
  std::string head() const {
    std::string text = fmt::format("# baton {}, {} as threads of one process on {}\n",
                                   BATON_VERSION, counted(world_.size(), "rank"),
                                   counted(static_cast<std::int64_t>(cards_.size()), "device"));
    for (const Card& card : cards_) text += fmt::format("# {}\n", card.device->name());
    return text +
           fmt::format(
               "# {} {}; size: of the whole vector; times: of the slowest rank, per call, medians "
               "of {} samples ({} from {} on), +-\n"
               "# half the distance of the quartiles; a sample: calls back to back in a stream, "
               "until the stream has done them;\n"
               "# no built-in beside them: NCCL is not called\n",
               options_.type, options_.op, options_.contest.pairs, options_.contest.large_pairs,
               human_bytes(options_.contest.large)) +
           bench_head();
  }

  Json result() const {
    std::vector<Json> devices, own;
    for (const Card& card : cards_) devices.emplace_back(card.device->name());
    for (const std::string& variable : own_environment()) own.emplace_back(variable);
    return Json::object({{"baton", BATON_VERSION},
                         {"compiler", compiler()},
                         {"processor", processor()},
                         {"ranks", world_.size()},
                         {"devices", Json::array(devices)},
                         {"environment", Json::object({{"ours", Json::array(own)}})},
                         {"pairs", options_.contest.pairs},
                         {"large_pairs", options_.contest.large_pairs},
                         {"large_bytes", options_.contest.large},
                         {"sample_ms", options_.sample_ms},
                         {"checked", table_.checks()},
                         {"wrong", table_.wrong()},
                         {"rows", Json::array(table_.json())}});
  }

  World& world_;
  const std::vector<Card>& cards_;
  const Card& card_;
  const BenchOptions& options_;
  std::vector<Exercise> exercises_;
  StreamCommunicator communicator_;
  BenchTable table_;
};

}  // namespace

int bench_on(const std::vector<Card>& cards, int ranks, const BenchOptions& options,
             Session& session) {
  std::vector<Exercise> exercises = exercises_for(options, ranks);
  std::ofstream json;
  if (!options.json.empty()) json = json_file(options.json);
  ThreadOptions threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.devices.push_back(cards[static_cast<std::size_t>(rank) % cards.size()].device);
  }
  int code = 0;
  std::ofstream none;
  session.run(ranks, threads, [&](World& world) {
    const bool writes = world.rank() == 0;
    const int found = DeviceBenchmark(world, cards, options, exercises).run(writes ? json : none);
    if (writes) code = found;
  });
  return code;
}

int bench_device(const BenchOptions& options, Session& session) {
  if (options.device != "cuda") {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--device: expected cuda, found \"{}\"", options.device));
  }
  if (session.ranks() > 0) {
    throw Error(ErrorCode::unsupported,
                "--device: expected ranks that are threads (--ranks N), found processes of MPI");
  }
  int devices = 0;
  try {
    devices = cuda_cards();
  } catch (const Error& error) {
    throw Error(error.code, fmt::format("--device cuda: {}", error.what()));
  }
  if (devices == 0) {
    throw Error(ErrorCode::unsupported, "--device cuda: expected a CUDA device, found none");
  }
  const int ranks = options.ranks > 0 ? options.ranks : std::max(devices, 2);
  std::vector<Card> cards;
  for (int i = 0; i < std::min(devices, ranks); ++i) cards.push_back(cuda_card(i));
  return bench_on(cards, ranks, options, session);
}

}  // namespace baton::cli
