#pragma once
/// Sums of inputs that each rank multiplies by a number first: ncclRedOpCreatePreMulSum.

#include <nccl.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "baton/device.hpp"
#include "baton/types.hpp"

namespace baton::nccl_abi {

/// A rank's operations, and the device's memory that they work in.
class Scalings {
 public:
  explicit Scalings(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  /// Frees the memory that streams have passed. The rest stays taken, as they may write to it yet.
  ~Scalings();
  Scalings(const Scalings&) = delete;
  Scalings& operator=(const Scalings&) = delete;

  /// `scalar` is read now, or by the device in each call if it lies there.
  ncclRedOp_t create(const void* scalar, Datatype type, bool on_device);
  /// Throws Error(invalid_argument) for an operation that does not exist.
  void destroy(ncclRedOp_t op);
  /// Whether streams have passed all calls so far, or never will: the device failed.
  bool passed() noexcept;

  /// The number of an operation, which holds if the operation is destroyed meanwhile. Throws
  /// Error(invalid_argument) unless it exists, for this datatype.
  struct Scalar;
  std::shared_ptr<const Scalar> find(ncclRedOp_t op, Datatype type);
  /// The memory of products, the device's and the host's. It may be used again when the stream has
  /// come to the end of this object. One at a time.
  class Products {
   public:
    Products(Scalings& scalings, Stream stream) : scalings_(scalings), stream_(stream) {}
    ~Products() { scalings_.release(*this); }
    Products(const Products&) = delete;
    Products& operator=(const Products&) = delete;

    /// Gives out = in · scalar to the stream. Without `out`, the product lies in this object's
    /// memory. Returns the product. Throws Error(memory, device).
    void* multiply(const Scalar& scalar, const void* in, void* out, std::size_t count);

   private:
    friend class Scalings;
    Scalings& scalings_;
    const Stream stream_;
  };

 private:
  struct Block {
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    bool on_host = false;
    const void* owner = nullptr;  ///< Products, or for ever this Scalings: the device failed
    std::unique_ptr<Marker> used;

    bool passed() const { return owner == nullptr && used->passed(); }
  };
  std::byte* take(std::size_t bytes, bool on_host, const Products& owner);
  void release(const Products& owner) noexcept;

  const std::shared_ptr<Device> device_;
  std::mutex mutex_;
  int next_ = ncclNumOps;
  std::map<int, std::shared_ptr<const Scalar>> scalars_;
  std::vector<Block> blocks_;
};

}  // namespace baton::nccl_abi
