// What the library itself costs a call: everything but the transport, which here completes every
// message at once. CPU time of one thread, so that a busy machine disturbs little.

#include <fmt/format.h>
#include <time.h>

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

template <class Body>
void measure(const char* what, const Body& body) {
  constexpr int repeats = 200000, rounds = 9;
  for (int i = 0; i < 1000; ++i) body();
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    const double begin = cpu_seconds();
    for (int i = 0; i < repeats; ++i) body();
    best = std::min(best, (cpu_seconds() - begin) / repeats);
  }
  fmt::print("{:<56} {:>8.1f} ns\n", what, best * 1e9);
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
  const baton::Registry registry = baton::Registry::builtin();
  for (const baton::Algorithm& algorithm : registry.all()) {
    fmt::print(
        "{:<56} {:>8.2f} ms\n",
        fmt::format("schedule of {} {}, 4096 ranks", name(algorithm.collective), algorithm.name),
        generation_ms(algorithm));
  }
}
