#include "calibration.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <thread>

#include "baton/memory.hpp"
#include "cli/common/statistics.hpp"

// Overheads and gaps by parametrised round trips: Hoefler, Lichei & Rehm, Low-Overhead LogGP
// Parameter Assessment for Modern Interconnection Networks, IPDPS 2007.

namespace baton::cli::calibrate {
namespace {

constexpr int repeats = 7;  // of which the median counts
constexpr double lower = 0.25;
constexpr int train = 16;           // messages sent one after the other
constexpr std::int64_t answer = 8;  // bytes
constexpr std::int64_t sizes[] = {8,        64,       512,      2 << 10,   4 << 10,   8 << 10,
                                  16 << 10, 32 << 10, 64 << 10, 128 << 10, 512 << 10, 2 << 20};
constexpr std::int64_t largest = 2 << 20;
constexpr std::int64_t packet = 64 << 10;  // what TCP hands to a device at a time
constexpr double seconds_late = 0.01;      // of a receiver, to see whether its sender waits

void spin(double seconds) {
  for (const double end = now() + seconds; now() < end;) {
  }
}

/// Says whether ranks run on one kernel, whatever hosts they believe to be on.
std::string kernel() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  return id;
}

/// Per call of `work` on `bytes`, which touch the same memory each time.
double nanoseconds(const std::function<void()>& work) {
  std::vector<double> samples;
  for (int i = 0; i < repeats; ++i) {
    int calls = 0;
    const double begin = now();
    do {
      work();
      ++calls;
    } while (now() < begin + 2e-3);
    samples.push_back((now() - begin) * 1e9 / calls);
  }
  return std::round(quantile(samples, lower));
}

/// By this rank alone, in and out of its caches.
TimeTable local(const std::function<void(std::size_t bytes)>& work) {
  std::vector<TimeTable::Point> points{{0, nanoseconds([&] { work(4); })}};
  for (const std::int64_t bytes : {4 << 10, 64 << 10, 1 << 20, 8 << 20}) {
    const double ns = nanoseconds([&] { work(static_cast<std::size_t>(bytes)); });
    points.push_back({bytes, std::max(points.back().ns, ns)});
  }
  return TimeTable(points);
}

}  // namespace

Calibration::Calibration(World& world, double seconds, std::function<void(const std::string&)> says)
    : world_(world), seconds_(seconds), says_(std::move(says)) {
  world_.together([&] { messages_ = world_.plain_messages(); });
  if (!messages_ || world.size() < 2) {
    throw Error(ErrorCode::unsupported,
                "calibrate: expected 2 or more ranks started by mpirun, found " +
                    std::string(messages_ ? "1" : "none"));
  }
  world_.together([&] { messages_->reserve(static_cast<std::size_t>(2 * train * largest)); });
  for (int r = 1; r < world.size(); ++r) {
    if (world.host_of(r) != world.host_of(0) && across_.first < 0) across_ = {0, r};
    for (int other = 0; other < r && within_.first < 0; ++other) {
      if (world.host_of(other) == world.host_of(r)) within_ = {other, r};
    }
  }
}

Network Calibration::measure(int processors) {
  Network network;
  says_("folds and copies");
  std::vector<float> a(4 << 20, 1), b(4 << 20, 2);
  const FoldFunction add = host::fold(OpKind::sum, Datatype::f32);
  network.fold = local([&](std::size_t bytes) { add(a.data(), a.data(), b.data(), bytes / 4); });
  network.copy = local([&](std::size_t bytes) { std::memcpy(a.data(), b.data(), bytes); });
  network.call = 40;  // tests/bench: of a repeated call, beside its messages

  const int count = world_.host_count();
  network.ranks_per_host = count > 1 ? (world_.size() + count - 1) / count : 0;
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  const std::vector<std::string> kernels = world_.texts(kernel());
  const bool one = std::ranges::count(kernels, kernels[0]) == world_.size();
  if (one && world_.size() > cores) network.processors = cores;
  if (processors >= 0) network.processors = processors;

  processors_ = network.processors;
  copy_ = network.copy;
  if (within_.first >= 0) network.within = level(within_, "within a host");
  if (across_.first >= 0) network.across = level(across_, "across hosts");
  if (within_.first < 0) network.within = network.across;
  if (across_.first < 0) network.across = network.within;
  return network;
}

NetworkLevel Calibration::level(const Pair& pair, const std::string& what) {
  NetworkLevel level;
  says_(what + ": eager limit");
  level.eager = eager_limit(pair);
  if (level.eager < sizes[0]) {
    throw Error(ErrorCode::unsupported, "calibrate: expected messages of 8 B to be sent at once (" +
                                            what +
                                            "), found that their senders wait for their receivers");
  }
  std::vector<Sample> samples;
  for (const std::int64_t bytes : sizes) {
    says_(what + ": " + std::to_string(bytes) + " B");
    Sample sample{bytes, one_way(pair, bytes), gap(pair, bytes)};
    if (bytes <= level.eager) {
      sample.send = sending(pair, bytes, sample.one_way);
      sample.receive = receiving(pair, bytes, sample.one_way);
    }
    samples.push_back(sample);
  }
  level.post = std::llround(posting(pair));
  if (processors_ > 0) share(level, samples);
  const bool inside = world_.host_of(pair.first) == world_.host_of(pair.second);
  fit(level, samples, inside);
  if (level.eager < largest) {
    // A round trip more, but for the bytes between.
    const double extra = one_way(pair, level.eager + 64) - one_way(pair, level.eager);
    const auto trip = static_cast<double>(level.latency + level.wire.of(0));
    const auto most = static_cast<double>(level.send.of(0) + level.receive.of(0));
    level.handshake = std::llround(std::clamp((extra - 2 * trip) / 2, 0.0, most));
  }
  if (!inside) {
    level.packet = packet;
    fit_burst(level, samples);
  }
  return level;
}

// --- samples
// --------------------------------------------------------------------------------------

/// Lower quartile over repetitions of the greatest value that a rank has found; in ns.
double Calibration::typical(const std::function<double()>& sample, double share) {
  std::vector<double> values;
  for (int i = 0; i < repeats; ++i) {
    double value = 0;
    world_.together([&] {
      value = sample();
      messages_->sleepy_barrier();
    });
    values.push_back(world_.max(value));
  }
  return quantile(values, share) * 1e9;
}

double Calibration::one_way(const Pair& pair, std::int64_t bytes) {
  int trips = 8;
  const auto sample = [&] {
    return messages_->ping_pong(world_.rank(), pair.first, pair.second,
                                static_cast<std::size_t>(bytes), trips);
  };
  const double first = typical(sample) * 1e-9;
  trips = std::clamp(static_cast<int>(seconds_ / (2 * first)), 4, 2000);
  return typical(sample);
}

/// Of trains of two lengths, so that what happens once is no part of it.
double Calibration::gap(const Pair& pair, std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  const int rank = world_.rank();
  const auto trains = [&](int length) {
    return typical(
        [&]() -> double {
          const double begin = now();
          if (rank == pair.first) {
            messages_->exchange(pair.second, -1, size, length);
            messages_->recv(pair.second, answer);
            return now() - begin;
          }
          if (rank == pair.second) {
            messages_->exchange(-1, pair.first, size, length);
            messages_->send(pair.first, answer);
          }
          return 0;
        },
        0);  // the least of each: what disturbs a train makes it longer
  };
  return std::max(0.0, (trains(2 * train) - trains(train)) / train);
}

/// PRTT with delays that are longer than a message takes: what is more than the delays.
double Calibration::sending(const Pair& pair, std::int64_t bytes, double one_way) {
  const auto size = static_cast<std::size_t>(bytes);
  const int rank = world_.rank();
  const double delay = 3e-9 * one_way + 20e-6;
  const auto round_trip = [&](int length) {
    return typical([&]() -> double {
      if (rank == pair.first) {
        const double begin = now();
        for (int i = 0; i < length; ++i) {
          if (i > 0) spin(delay);
          messages_->send(pair.second, size);
        }
        messages_->recv(pair.second, answer);
        return now() - begin;
      }
      if (rank == pair.second) {
        for (int i = 0; i < length; ++i) messages_->recv(pair.first, size);
        messages_->send(pair.first, answer);
      }
      return 0;
    });
  };
  const double more = (round_trip(train) - round_trip(1)) / (train - 1);
  return std::max(0.0, more - delay * 1e9);
}

/// How long it takes to receive what is there already.
double Calibration::receiving(const Pair& pair, std::int64_t bytes, double one_way) {
  const auto size = static_cast<std::size_t>(bytes);
  const int rank = world_.rank();
  return typical([&]() -> double {
    double taken = 0;
    for (int i = 0; i < train; ++i) {
      if (rank == pair.first) {
        messages_->recv(pair.second, answer);
        messages_->send(pair.second, size);
      } else if (rank == pair.second) {
        messages_->send(pair.first, answer);
        spin(4e-9 * one_way + 50e-6);
        const double begin = now();
        messages_->recv(pair.first, size);
        taken += now() - begin;
      }
    }
    return taken / train;
  });
}

double Calibration::posting(const Pair& pair) {
  const int rank = world_.rank();
  return typical([&]() -> double {
    if (rank == pair.second) return messages_->posting(pair.first, answer, train) / train;
    if (rank == pair.first) messages_->exchange(pair.second, -1, answer, train);
    return 0;
  });
}

bool Calibration::waits_for_receiver(const Pair& pair, std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  const int rank = world_.rank();
  const double taken = typical(
      [&]() -> double {
        double seconds = 0;
        if (rank == pair.first) {
          messages_->recv(pair.second, answer);
          const double begin = now();
          messages_->send(pair.second, size);
          seconds = now() - begin;
        } else if (rank == pair.second) {
          messages_->send(pair.first, answer);
          spin(seconds_late);
          messages_->recv(pair.first, size);
        }
        return seconds;
      },
      0.5);
  return taken > 0.5e9 * seconds_late;
}

/// The largest message, to 64 bytes, whose sender does not wait; `largest` if that does not.
std::int64_t Calibration::eager_limit(const Pair& pair) {
  constexpr std::int64_t step = 64;
  if (waits_for_receiver(pair, sizes[0])) return 0;
  std::int64_t low = sizes[0], high = step;
  while (high <= largest && !waits_for_receiver(pair, high)) {
    low = high;
    high *= 8;
  }
  if (high > largest) {
    if (!waits_for_receiver(pair, largest)) return largest;
    high = largest;
  }
  while (high - low > step) {
    const std::int64_t middle = std::max(low + 1, low + (high - low) / 2) / step * step;
    (waits_for_receiver(pair, middle) ? high : low) = middle;
  }
  return low;
}

/// Of one message each way, of all ranks at once: short ones each time with others, long ones,
/// whose links would meet, with neighbours.
double Calibration::exchanging(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  const int rank = world_.rank(), ranks = world_.size();
  constexpr int rounds = 28, together = 2;
  return typical([&]() -> double {
    double begin = 0;
    for (int i = -1; i < rounds; ++i) {
      if (i == 0) begin = now();
      const int distance = bytes > answer ? 1 : 1 + (i + ranks) % (ranks - 1);
      messages_->exchange((rank + distance) % ranks, (rank + ranks - distance) % ranks, size,
                          together);
    }
    return (now() - begin) / (together * rounds);
  });
}

}  // namespace baton::cli::calibrate
