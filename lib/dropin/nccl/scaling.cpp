#include "scaling.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "../../base/raise.hpp"

namespace baton::nccl_abi {
namespace {

// The scalar lies in memory so many times, for wide vectors.
constexpr std::size_t copies = 256;

std::byte* writable(const void* memory) {
  return static_cast<std::byte*>(const_cast<void*>(memory));
}

/// `count` elements side by side.
Rows plain(void* to, const void* from, std::size_t count) {
  Rows rows;
  rows.at[0] = static_cast<std::byte*>(to);
  rows.at[1] = writable(from);
  rows.block = static_cast<std::int64_t>(count);
  return rows;
}

}  // namespace

struct Scalings::Scalar {
  Datatype type;
  const std::byte* on_device;  // null: it is `bytes`
  std::array<std::byte, 8> bytes;
};

Scalings::~Scalings() {
  for (const Block& block : blocks_) {
    try {
      if (!block.passed()) continue;
    } catch (...) {  // a device that failed does no more work
    }
    if (block.on_host)
      device_->free_host(block.memory);
    else
      device_->free(block.memory);
  }
}

bool Scalings::passed() noexcept {
  const std::lock_guard lock(mutex_);
  try {
    return std::ranges::all_of(
        blocks_, [&](const Block& block) { return block.owner == this || block.passed(); });
  } catch (...) {
    return true;
  }
}

ncclRedOp_t Scalings::create(const void* scalar, Datatype type, bool on_device) {
  const std::lock_guard lock(mutex_);
  Scalar made{type, nullptr, {}};
  if (on_device)
    made.on_device = static_cast<const std::byte*>(scalar);
  else
    std::memcpy(made.bytes.data(), scalar, size_of(type));
  scalars_[next_] = std::make_shared<const Scalar>(made);
  return static_cast<ncclRedOp_t>(next_++);
}

void Scalings::destroy(ncclRedOp_t op) {
  const std::lock_guard lock(mutex_);
  if (scalars_.erase(op) == 0)
    base::refuse("expected an operation of ncclRedOpCreatePreMulSum, found {}",
                 static_cast<int>(op));
}

std::shared_ptr<const Scalings::Scalar> Scalings::find(ncclRedOp_t op, Datatype type) {
  const std::lock_guard lock(mutex_);
  const auto found = scalars_.find(op);
  if (found == scalars_.end())
    base::refuse("expected an operation of NCCL's or of ncclRedOpCreatePreMulSum, found {}",
                 static_cast<int>(op));
  if (found->second->type != type)
    base::refuse("expected elements of {}, as this PreMulSum has, found {}",
                 name(found->second->type), name(type));
  return found->second;
}

std::byte* Scalings::take(std::size_t bytes, bool on_host, const Products& owner) {
  for (Block& block : blocks_) {
    if (block.on_host != on_host || block.bytes < bytes || !block.passed()) continue;
    block.owner = &owner;
    return block.memory;
  }
  blocks_.reserve(blocks_.size() + 1);
  std::unique_ptr<Marker> marker = device_->make_marker();
  std::byte* const memory = on_host ? device_->allocate_host(bytes) : device_->allocate(bytes);
  blocks_.push_back({memory, bytes, on_host, &owner, std::move(marker)});
  return memory;
}

void* Scalings::Products::multiply(const Scalar& scalar, const void* in, void* out,
                                   std::size_t count) {
  const std::lock_guard lock(scalings_.mutex_);
  Device& device = *scalings_.device_;
  const std::size_t bytes = size_of(scalar.type);
  std::byte* const factors = scalings_.take(copies * bytes, false, *this);
  if (out == nullptr) out = scalings_.take(count * bytes, false, *this);
  const auto copy = [&](std::byte* to, const std::byte* from, std::size_t elements) {
    const Rows rows = plain(to, from, elements);
    device.copy(std::span(&rows, 1), bytes, stream_);
  };
  if (scalar.on_device != nullptr) {
    copy(factors, scalar.on_device, 1);
    for (std::size_t n = 1; n < copies; n *= 2) copy(factors + n * bytes, factors, n);
  } else {
    std::byte* const read = scalings_.take(copies * bytes, true, *this);
    for (std::size_t i = 0; i < copies; ++i)
      std::memcpy(read + i * bytes, scalar.bytes.data(), bytes);
    copy(factors, read, copies);
  }
  // The factors serve each row: their stride is 0.
  const std::size_t whole = count / copies * copies;
  Rows rows[2] = {plain(out, in, copies),
                  plain(static_cast<std::byte*>(out) + whole * bytes,
                        static_cast<const std::byte*>(in) + whole * bytes, count - whole)};
  for (Rows& one : rows) one.at[2] = factors;
  rows[0].rows = static_cast<std::int64_t>(count / copies);
  rows[0].stride[0] = rows[0].stride[1] = static_cast<std::int64_t>(copies * bytes);
  const std::span<const Rows> all(rows);
  device.fold(OpKind::prod, scalar.type,
              whole == 0       ? all.last(1)
              : whole == count ? all.first(1)
                               : all,
              stream_);
  return out;
}

void Scalings::release(const Products& owner) noexcept {
  const std::lock_guard lock(mutex_);
  for (Block& block : blocks_) {
    if (block.owner != &owner) continue;
    try {
      block.used->set(owner.stream_);
      block.owner = nullptr;
    } catch (...) {  // nobody knows when the device is through with it
      block.owner = this;
    }
  }
}

}  // namespace baton::nccl_abi
