#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <array>
#include <atomic>
#include <mutex>
#include <new>
#include <optional>

#include "baton/cuda.hpp"
#include "baton/cuda_runtime.hpp"
#include "baton/error.hpp"
#include "kernels.hpp"
#include "locked.hpp"

namespace baton {
namespace {

using namespace cuda;

constexpr std::size_t device_bytes = std::size_t{64} << 20, host_bytes = std::size_t{16} << 20;

cudaStream_t native(Stream stream) { return static_cast<cudaStream_t>(stream); }

using WaitValue = CUresult(CUstream, CUdeviceptr, cuuint32_t, unsigned int);

/// The driver's function, looked up at first use, so that nothing links the driver.
WaitValue* wait_value() {
  void* const function = driver_function("cuStreamWaitValue32");
  if (!function)
    throw Error(ErrorCode::unsupported,
                "expected a CUDA driver with cuStreamWaitValue32, found one without");
  return reinterpret_cast<WaitValue*>(function);
}

/// While it lives, the program may capture streams in other threads: CUDA would refuse this
/// thread's queries and allocations meanwhile, and spoil the capture.
class BesideCaptures {
 public:
  BesideCaptures() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~BesideCaptures() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  // then the thread's own
};

class CudaMarker final : public Marker {
 public:
  explicit CudaMarker(int device) : device_(device) {
    const CurrentDevice current(device_);
    const BesideCaptures beside;
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "an event");
  }
  ~CudaMarker() override { cudaEventDestroy(event_); }
  void set(Stream stream) override {
    const CurrentDevice current(device_);
    check(cudaEventRecord(event_, native(stream)), "an event on a stream");
  }
  bool passed() override {
    const BesideCaptures beside;
    const cudaError_t code = cudaEventQuery(event_);
    if (code == cudaErrorNotReady) return false;
    check(code, "work on a stream");
    return true;
  }
  void hold(Stream stream) override {
    const CurrentDevice current(device_);
    check(cudaStreamWaitEvent(native(stream), event_, 0), "a stream that waits for an event");
  }

 private:
  int device_;
  cudaEvent_t event_ = nullptr;
};

/// A word that counts up. A stream waits until the word reaches a value. The comparison is cyclic,
/// so the word may wrap around.
class CudaGate final : public Gate {
 public:
  /// `word` lies in locked memory.
  CudaGate(int device, std::byte* word, WaitValue* wait)
      : device_(device), wait_(wait), word_(new (word) Word(0)) {
    void* reached = nullptr;
    check(cudaHostGetDevicePointer(&reached, word, 0), "a word that streams wait for");
    address_ = reinterpret_cast<CUdeviceptr>(reached);
  }
  ~CudaGate() override {
    open();
    // The word is not given back: a stream may not have read it yet.
  }
  void hold(Stream stream) override {
    const CurrentDevice current(device_);
    const CUresult code =
        wait_(static_cast<CUstream>(stream), address_, ++held_, CU_STREAM_WAIT_VALUE_GEQ);
    if (code == CUDA_SUCCESS) return;
    --held_;
    Error error(ErrorCode::device,
                fmt::format("holding a stream: expected success, found the CUDA driver's error {}",
                            static_cast<int>(code)));
    error.backend_code = static_cast<int>(code);
    throw error;
  }
  void open() noexcept override { word_->store(held_, std::memory_order_release); }

 private:
  using Word = std::atomic<std::uint32_t>;
  static_assert(Word::is_always_lock_free && sizeof(Word) == 4);

  int device_;
  WaitValue* wait_;
  Word* word_;
  CUdeviceptr address_ = 0;
  std::uint32_t held_ = 0;
};

class CudaDevice final : public Device {
 public:
  /// For the thread's current device.
  explicit CudaDevice(int ordinal) : ordinal_(ordinal), wait_(wait_value()) {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, ordinal), "a device's properties");
    name_ = fmt::format("CUDA device {} ({})", ordinal, properties.name);
    if (!properties.memoryPoolsSupported)
      throw Error(ErrorCode::unsupported,
                  fmt::format("expected a device with memory pools, found {}", name_));
    check(cudaDeviceGetStreamPriorityRange(&least_priority_, &greatest_priority_),
          "the priorities of streams");
    check(cudaStreamCreateWithPriority(&memory_stream_, cudaStreamNonBlocking, greatest_priority_),
          "a stream");
    cudaMemPoolProps of{};
    of.allocType = cudaMemAllocationTypePinned;
    of.location.type = cudaMemLocationTypeDevice;
    of.location.id = ordinal;
    check(cudaMemPoolCreate(&pool_, &of), "a memory pool");
    std::uint64_t keep = ~std::uint64_t{0};  // keeps all memory from the system during its lifetime
    check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep), "a memory pool");
    free(allocate(device_bytes));
    locked_.emplace(host_bytes);
    load_kernels();
    reach_others();
  }
  ~CudaDevice() override {
    try {
      const CurrentDevice current(ordinal_);
      const BesideCaptures beside;
      locked_.reset();
      cudaStreamSynchronize(memory_stream_);
      cudaMemPoolDestroy(pool_);
      cudaStreamDestroy(memory_stream_);
    } catch (const Error&) {  // a device that is gone has nothing to free
    }
  }

  int ordinal() const { return ordinal_; }
  std::string name() const override { return name_; }

  Residence residence(const void* address) const override {
    cudaPointerAttributes of{};
    if (cudaPointerGetAttributes(&of, address) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      return Residence::host;
    }
    if (of.type == cudaMemoryTypeManaged) return Residence::device;
    if (of.type != cudaMemoryTypeDevice) return Residence::host;
    return of.device == ordinal_ ? Residence::device : Residence::other;
  }

  void check_stream(Stream stream) const override {
    const auto refuse = [&](const std::string& expected, const std::string& found) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("expected {}, found {}", expected, found));
    };
    const cudaStream_t s = native(stream);
    const CurrentDevice current(ordinal_);  // whose default stream it may be
    cudaStreamCaptureStatus capture{};
    check(cudaStreamIsCapturing(s, &capture), "a stream");
    if (capture != cudaStreamCaptureStatusNone)
      refuse("a stream that is not being captured, since messages are no part of a graph",
             "one that is");
    if (!s || s == cudaStreamLegacy || s == cudaStreamPerThread) return;
    int device = 0, priority = 0;
    check(cudaStreamGetDevice(s, &device), "a stream");
    if (device != ordinal_)
      refuse("a stream of " + name_, fmt::format("one of CUDA device {}", device));
    check(cudaStreamGetPriority(s, &priority), "a stream");
    if (priority == greatest_priority_ && greatest_priority_ != least_priority_)
      refuse("a stream of less than the highest priority, which the library's own work has",
             fmt::format("one of priority {}", priority));
  }

  std::byte* allocate(std::size_t bytes) override {
    const CurrentDevice current(ordinal_);
    const BesideCaptures beside;
    void* memory = nullptr;
    check_memory(cudaMallocFromPoolAsync(&memory, bytes, pool_, memory_stream_), bytes, name_);
    // The stream has no other work.
    check(cudaStreamSynchronize(memory_stream_), "memory of a device");
    return static_cast<std::byte*>(memory);
  }
  void free(std::byte* memory) noexcept override {
    if (memory) cudaFreeAsync(memory, memory_stream_);
  }
  std::byte* allocate_host(std::size_t bytes) override {
    const CurrentDevice current(ordinal_);
    const BesideCaptures beside;
    return locked_->take(bytes);
  }
  void free_host(std::byte* memory) noexcept override { locked_->give(memory); }

  Stream make_stream() override {
    const CurrentDevice current(ordinal_);
    const BesideCaptures beside;
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest_priority_),
          "a stream");
    return stream;
  }
  void end_stream(Stream stream) noexcept override {
    const BesideCaptures beside;
    cudaStreamSynchronize(native(stream));
    cudaStreamDestroy(native(stream));
  }
  std::unique_ptr<Marker> make_marker() override { return std::make_unique<CudaMarker>(ordinal_); }
  std::unique_ptr<Gate> make_gate() override {
    const CurrentDevice current(ordinal_);
    const BesideCaptures beside;
    return std::make_unique<CudaGate>(ordinal_, locked_->take(sizeof(std::uint32_t)), wait_);
  }

  void copy(std::span<const Rows> rows, std::size_t element_bytes, Stream stream) override {
    const CurrentDevice current(ordinal_);
    cuda::copy(element_bytes, rows, native(stream));
  }
  void fold(OpKind op, Datatype type, std::span<const Rows> rows, Stream stream) override {
    const CurrentDevice current(ordinal_);
    cuda::fold(op, type, rows, native(stream));
  }
  void divide(Datatype type, int ranks, std::span<const Rows> rows, Stream stream) override {
    const CurrentDevice current(ordinal_);
    cuda::divide(type, ranks, rows, native(stream));
  }

 private:
  /// Enables direct copies between devices if possible.
  void reach_others() {
    int devices = 0;
    check(cudaGetDeviceCount(&devices), "the devices");
    for (int other = 0; other < devices; ++other) {
      int can = 0;
      if (other == ordinal_ || cudaDeviceCanAccessPeer(&can, ordinal_, other) != cudaSuccess ||
          !can)
        continue;
      const cudaError_t code = cudaDeviceEnablePeerAccess(other, 0);
      if (code == cudaErrorPeerAccessAlreadyEnabled) {
        static_cast<void>(cudaGetLastError());
      } else {
        check(code, "a peer's memory");
      }
      cudaMemAccessDesc access{};
      access.location.type = cudaMemLocationTypeDevice;
      access.location.id = other;
      access.flags = cudaMemAccessFlagsProtReadWrite;
      check(cudaMemPoolSetAccess(pool_, &access, 1), "a peer's access");
    }
  }

  const int ordinal_;
  WaitValue* wait_;
  std::string name_;
  int least_priority_ = 0, greatest_priority_ = 0;
  cudaStream_t memory_stream_ = nullptr;
  cudaMemPool_t pool_ = nullptr;
  std::optional<LockedMemory> locked_;
};

}  // namespace

int cuda_devices() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess) return devices;
  static_cast<void>(cudaGetLastError());
  return 0;
}

int cuda_ordinal(const Device& device) {
  const auto* const cuda = dynamic_cast<const CudaDevice*>(&device);
  if (!cuda)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("expected a CUDA device, found {}", device.name()));
  return cuda->ordinal();
}

std::shared_ptr<Device> cuda_device(int ordinal) {
  static std::mutex mutex;
  static std::array<std::weak_ptr<Device>, 64> devices;
  const int found = cuda_devices();
  if (ordinal < 0 || ordinal >= found || ordinal >= static_cast<int>(devices.size()))
    throw Error(ErrorCode::unsupported,
                fmt::format("expected CUDA device {}, found {} devices{}", ordinal, found,
                            found == 0 ? " or no driver" : ""));
  const std::lock_guard lock(mutex);
  std::weak_ptr<Device>& known = devices[static_cast<std::size_t>(ordinal)];
  std::shared_ptr<Device> device = known.lock();
  if (!device) {
    const CurrentDevice current(ordinal);
    const BesideCaptures beside;
    device = std::make_shared<CudaDevice>(ordinal);
    known = device;
  }
  return device;
}

}  // namespace baton
