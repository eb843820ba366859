// What the library itself costs a call: everything but the transport, which here completes every
// message at once. CPU time of one thread, so that a busy machine disturbs little.

#include <fmt/core.h>
#include <time.h>  // NOLINT: clock_gettime is POSIX's

#include <algorithm>
#include <cstring>
#include <vector>

#include "baton/baton.hpp"

namespace {

/// Rank 0 of a group whose messages complete as soon as they are tested.
class InstantTransport final : public baton::Transport {
 public:
  explicit InstantTransport(int size) : size_(size) {}
  int rank() const override { return 0; }
  int size() const override { return size_; }
  baton::Capabilities capabilities() const override { return {.name = "instant"}; }
  void isend(int, int, const void*, std::size_t bytes, baton::Message& message) override {
    std::memcpy(message.state, &bytes, sizeof bytes);
  }
  void irecv(int, int, void*, std::size_t bytes, baton::Message& message) override {
    std::memcpy(message.state, &bytes, sizeof bytes);
  }
  bool test(baton::Message& message, std::size_t& bytes) override {
    std::memcpy(&bytes, message.state, sizeof bytes);
    return true;
  }
  void cancel(baton::Message&) override {}
  void progress() override {}
  void idle(std::chrono::microseconds) override {}
  std::unique_ptr<baton::Transport> split(int, int) override { return nullptr; }

 private:
  int size_;
};

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// The least of some rounds, in ns per call.
template <class Body>
double nanoseconds(const Body& body, int repeats = 200000) {
  constexpr int rounds = 9;
  for (int i = 0; i < 1000; ++i) body();
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    const double begin = cpu_seconds();
    for (int i = 0; i < repeats; ++i) body();
    best = std::min(best, (cpu_seconds() - begin) / repeats);
  }
  return best * 1e9;
}

void print(const std::string& what, double nanoseconds) {
  fmt::print("{:<56} {:>8.1f} ns\n", what, nanoseconds);
}

template <class Body>
void measure(const char* what, const Body& body) {
  print(what, nanoseconds(body));
}

/// What recording adds to each step.
void measure_recording(int ranks, int repeats) {
  // The others take no part in its beginning and end: a communicator of one rank records.
  baton::Communicator alone(std::make_unique<InstantTransport>(1));
  alone.start_recording();
  std::vector<int> members(static_cast<std::size_t>(ranks), 0);
  const baton::Communicator plain(std::make_unique<InstantTransport>(ranks));
  const auto schedule = [&](baton::Communicator& comm, std::vector<float>& data) {
    return comm.schedule([&] {
      baton::Call call = baton::calls::all_reduce(std::span<const float>(data),
                                                  std::span<float>(data), baton::sum);
      call.choice = {"ring", 0};
      return call;
    }());
  };
  baton::Communicator off(std::make_unique<InstantTransport>(ranks), plain);
  baton::Communicator on(std::make_unique<InstantTransport>(ranks), alone, members);
  std::vector<float> data(static_cast<std::size_t>(ranks), 1);
  const auto steps = static_cast<double>(schedule(off, data).steps().size());
  const auto all_reduce = [&](baton::Communicator& comm) {
    return [&] { comm.all_reduce(data, baton::sum, {"ring", 0}); };
  };
  const double without = nanoseconds(all_reduce(off), repeats);
  const double with = nanoseconds(all_reduce(on), repeats);
  print(fmt::format("ring all_reduce on {} ranks, {:.0f} steps: each step", ranks, steps),
        without / steps);
  print("  the same, recorded: more for each step", (with - without) / steps);
}

/// The longest that a rank of 4096 takes to write its schedule, in milliseconds of CPU time.
double generation_ms(const baton::Algorithm& algorithm) {
  constexpr int ranks = 4096;
  static const auto hosts = std::make_shared<const baton::Hosts>(baton::parse_hosts("64x64"));
  double longest = 0;
  for (const int rank : {0, 1, ranks / 2 - 1, ranks - 1}) {
    baton::Problem p;
    p.collective = algorithm.collective;
    p.size = ranks;
    p.rank = rank;
    p.count = 3 * ranks + 1;
    p.blocks = 64;
    if (algorithm.hierarchical) p.hosts = hosts;
    double best = 1e9;
    for (int i = 0; i < 3; ++i) {
      const double begin = cpu_seconds();
      const baton::Schedule schedule = algorithm.generate(p);
      best = std::min(best, cpu_seconds() - begin);
    }
    longest = std::max(longest, best);
  }
  return longest * 1e3;
}

}  // namespace

int main() {
  baton::Communicator comm(std::make_unique<InstantTransport>(2));
  float x[2] = {1, 2}, y[2] = {};
  const std::span<const float> in(x);
  const std::span<float> out(y);
  measure("all_reduce 8 B, repeated", [&] { comm.all_reduce(in, out, baton::sum); });
  baton::PersistentCall persistent = comm.plan(baton::calls::all_reduce(in, out, baton::sum));
  measure("all_reduce 8 B, persistent", [&] { persistent.run(); });
  const baton::Call call = baton::calls::all_reduce(in, out, baton::sum);
  measure("all_reduce 8 B, by description (checks, key, look-up)", [&] { comm.run(call); });
  measure("all_reduce 8 B, start and wait",
          [&] { comm.start_all_reduce(in, out, baton::sum).wait(); });
  measure("plan look-up with all checks (chosen)", [&] { comm.chosen(call); });
  measure_recording(2, 200000);
  measure_recording(64, 5000);
  const baton::Registry registry = baton::Registry::builtin();
  for (const baton::Algorithm& algorithm : registry.all()) {
    fmt::print(
        "{:<56} {:>8.2f} ms\n",
        fmt::format("schedule of {} {}, 4096 ranks", name(algorithm.collective), algorithm.name),
        generation_ms(algorithm));
  }
}
