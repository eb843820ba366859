/// Folds and packing on a CUDA device, as shares of the bandwidth of a plain copy of as many bytes.
/// Exit code 77 where there is no device.

#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "baton/cuda_runtime.hpp"
#include "memory/cuda/kernels.hpp"

using namespace baton;
using baton::Rows;
using cuda::check;

namespace {

/// Device memory, freed at the end.
class Room {
 public:
  explicit Room(std::size_t bytes) {
    check(cudaMalloc(&memory_, bytes), "taking memory");
    check(cudaMemset(memory_, 0, bytes), "filling memory");
  }
  ~Room() { cudaFree(memory_); }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  std::byte* at(std::int64_t offset) const { return static_cast<std::byte*>(memory_) + offset; }

 private:
  void* memory_ = nullptr;
};

class Timer {
 public:
  Timer() {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
    check(cudaEventCreate(&start_), "making an event");
    check(cudaEventCreate(&end_), "making an event");
  }
  ~Timer() {
    cudaEventDestroy(start_);
    cudaEventDestroy(end_);
    cudaStreamDestroy(stream_);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  cudaStream_t stream() const { return stream_; }

  /// Seconds of one call: the median of `samples` runs of `calls` calls that follow each other.
  double seconds(const std::function<void()>& call, int calls = 20, int samples = 11) const {
    for (int i = 0; i < 3; ++i) call();
    std::vector<double> times;
    for (int i = 0; i < samples; ++i) {
      check(cudaEventRecord(start_, stream_), "recording an event");
      for (int j = 0; j < calls; ++j) call();
      check(cudaEventRecord(end_, stream_), "recording an event");
      check(cudaEventSynchronize(end_), "waiting for an event");
      float milliseconds = 0;
      check(cudaEventElapsedTime(&milliseconds, start_, end_), "timing");
      times.push_back(milliseconds * 1e-3 / calls);
    }
    std::ranges::nth_element(times, times.begin() + samples / 2);
    return times[static_cast<std::size_t>(samples / 2)];
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t start_ = nullptr, end_ = nullptr;
};

/// Bytes read and written per second by cudaMemcpyAsync, which reads and writes `traffic` bytes in
/// all.
double copy_bandwidth(const Timer& timer, const Room& room, std::int64_t traffic) {
  const auto half = static_cast<std::size_t>(traffic / 2);
  const double time = timer.seconds([&] {
    check(cudaMemcpyAsync(room.at(0), room.at(traffic / 2), half, cudaMemcpyDeviceToDevice,
                          timer.stream()),
          "copying");
  });
  return static_cast<double>(traffic) / time;
}

void report(std::string_view what, std::string_view detail, std::int64_t bytes,
            std::int64_t traffic, double time, double copy) {
  const double rate = static_cast<double>(traffic) / time;
  fmt::print("| {} | {} | {} MiB | {:.0f} us | {:.0f} GB/s | {:.0f} % |\n", what, detail,
             bytes >> 20, time * 1e6, rate * 1e-9, 100 * rate / copy);
}

void folds(const Timer& timer, const Room& room) {
  for (const std::int64_t bytes : {16 << 20, 64 << 20, 256 << 20}) {
    const double copy = copy_bandwidth(timer, room, 3 * bytes);
    for (const Datatype type :
         {Datatype::f32, Datatype::f64, Datatype::f16, Datatype::bf16, Datatype::f8e4m3,
          Datatype::f8e5m2, Datatype::i8, Datatype::i32, Datatype::i64}) {
      for (const OpKind op : {OpKind::sum, OpKind::max}) {
        const Rows piece{.at = {room.at(0), room.at(bytes), room.at(2 * bytes)},
                         .block = bytes / static_cast<std::int64_t>(size_of(type))};
        const double time =
            timer.seconds([&] { cuda::fold(op, type, std::span(&piece, 1), timer.stream()); });
        report("fold", fmt::format("{} {}", name(op), name(type)), bytes, 3 * bytes, time, copy);
      }
    }
  }
}

/// The copies of Ulysses' all-to-all of [b, s/P, h, d] on one of P ranks: `pack` cuts heads for
/// each peer out of the input, `unpack` lays each peer's part of the sequence into [b, s, h/P, d].
void ulysses(const Timer& timer, const Room& room, std::string_view layout, std::int64_t element,
             std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t d, std::int64_t ranks) {
  const std::int64_t part = b * (s / ranks) * (h / ranks) * d * element, bytes = part * ranks;
  std::vector<Rows> pack, unpack;
  for (std::int64_t peer = 0; peer < ranks; ++peer) {
    const std::int64_t block = h / ranks * d, run = s / ranks * block;
    pack.push_back({.at = {room.at(bytes + peer * part), room.at(peer * block * element)},
                    .stride = {block * element, h * d * element},
                    .block = block,
                    .rows = b * (s / ranks)});
    unpack.push_back({.at = {room.at(peer * run * element), room.at(bytes + peer * part)},
                      .stride = {ranks * run * element, run * element},
                      .block = run,
                      .rows = b});
  }
  const double copy = copy_bandwidth(timer, room, 2 * bytes);
  for (const auto& [what, pieces] : {std::pair{"pack", &pack}, {"unpack", &unpack}}) {
    const double time = timer.seconds([&, pieces = pieces] {
      cuda::copy(static_cast<std::size_t>(element), *pieces, timer.stream());
    });
    report(what, fmt::format("{}, P = {}", layout, ranks), bytes, 2 * bytes, time, copy);
  }
}

/// Scattering the last of two dimensions, an element for each peer: a transposition.
void turned(const Timer& timer, const Room& room, std::int64_t element, std::int64_t rows,
            std::int64_t ranks) {
  const std::int64_t bytes = element * rows * ranks;
  std::vector<Rows> pieces;
  for (std::int64_t peer = 0; peer < ranks; ++peer) {
    pieces.push_back({.at = {room.at(bytes + peer * rows * element), room.at(peer * element)},
                      .stride = {element, ranks * element},
                      .block = 1,
                      .rows = rows});
  }
  const double copy = copy_bandwidth(timer, room, 2 * bytes);
  const double time =
      timer.seconds([&] { cuda::copy(static_cast<std::size_t>(element), pieces, timer.stream()); });
  report("transpose", fmt::format("[{}, {}] of {} B", rows, ranks, element), bytes, 2 * bytes, time,
         copy);
}

}  // namespace

int main() {  // NOLINT(bugprone-exception-escape): ends with the error
  int devices = 0;
  const cudaError_t found = cudaGetDeviceCount(&devices);
  if (found != cudaSuccess || devices == 0) {
    fmt::print("skipped: expected a CUDA device, found none ({})\n", cudaGetErrorString(found));
    return 77;
  }
  cudaDeviceProp device;
  check(cudaGetDeviceProperties(&device, 0), "asking for the device");
  fmt::print(
      "{}\n\n| what | of | size | time | read and written | of a copy "
      "|\n|---|---|---|---|---|---|\n",
      device.name);
  cuda::load_kernels();
  const Timer timer;
  const Room room(std::size_t{768} << 20);
  folds(timer, room);
  for (const std::int64_t ranks : {2, 4, 8}) {
    ulysses(timer, room, "bf16 [1, 8192/P, 32, 128]", 2, 1, 8192, 32, 128, ranks);
    ulysses(timer, room, "f32 [4, 4096/P, 16, 64]", 4, 4, 4096, 16, 64, ranks);
    ulysses(timer, room, "bf16 [2, 8192/P, 8, 40]", 2, 2, 8192, 8, 40, ranks);
  }
  for (const std::int64_t element : {2, 4, 8}) turned(timer, room, element, 1 << 21, 8);
}
