#include "tensor.hpp"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <limits>
#include <mutex>

#include "accelerator.hpp"
#include "baton/error.hpp"
#include "emulated.hpp"
#include "held.hpp"
#include "instantiation.hpp"
#include "shape_guard.hpp"

namespace baton::transformer {
namespace detail {
namespace {
[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, sentence);
}
}  // namespace

void refuse_index(const Shape& shape, int dim, std::int64_t index) {
  refuse(fmt::format("expected an index within dimension {} of {}, found {}", dim, shape.text(),
                     index));
}
void refuse_slice(const Shape& shape, int dim, std::int64_t begin, std::int64_t end) {
  refuse(fmt::format("expected a slice within dimension {} of {}, found [{}, {})", dim,
                     shape.text(), begin, end));
}
void refuse_reshape(const Shape& from, const Shape& to, bool contiguous) {
  if (!contiguous)
    refuse(fmt::format("expected contiguous elements to reshape {} to {}, found strides",
                       from.text(), to.text()));
  refuse(fmt::format("expected a shape of {} elements like {}, found {}", from.elements(),
                     from.text(), to.text()));
}
void refuse_dim(const Shape& shape, int dim) {
  refuse(fmt::format("expected a dimension of {}, found {}", shape.text(), dim));
}

namespace {

/// Large blocks that were freed, for whoever asks for the same size next: from the system, the
/// pages of each would be cleared anew. Holds `limit` bytes at most. One for the process, like the
/// heap that it stands before. Used by any threads.
class Blocks {
 public:
  static constexpr std::size_t smallest = 1 << 18, limit = 1 << 29;

  /// Null if there is none.
  void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(blocks_.rbegin(), blocks_.rend(),
                                    [&](const Block& block) { return block.bytes == bytes; });
    if (found == blocks_.rend()) return nullptr;
    void* const data = found->data;
    blocks_.erase(std::next(found).base());
    held_ -= bytes;
    return data;
  }
  /// In place of those that were given before all others, where there is no room.
  void give(void* data, std::size_t bytes) {
    if (bytes > limit) return std::free(data);
    const std::lock_guard lock(mutex_);
    blocks_.push_back({data, bytes});
    held_ += bytes;
    while (held_ > limit) {
      held_ -= blocks_.front().bytes;
      std::free(blocks_.front().data);
      blocks_.pop_front();
    }
  }

 private:
  struct Block {
    void* data;
    std::size_t bytes;
  };
  std::mutex mutex_;
  std::deque<Block> blocks_;
  std::size_t held_ = 0;
};

constexpr std::size_t huge_page = 2 << 20;

/// Memory in huge pages where the system has them: matrix products then look up fewer addresses.
void* in_huge_pages(std::size_t bytes) {
  void* data = nullptr;  // aligned_alloc() would take whole pages only
  if (posix_memalign(&data, huge_page, bytes) != 0) return nullptr;
#ifdef MADV_HUGEPAGE
  madvise(data, bytes / huge_page * huge_page, MADV_HUGEPAGE);  // else in small ones
#endif
  return data;
}

}  // namespace

struct Counters {
  /// The last is of all purposes together.
  std::array<std::atomic<std::int64_t>, purpose_count + 1> now{}, most{};

  void change(int purpose, std::int64_t bytes) {
    const auto at = static_cast<std::size_t>(purpose);
    const std::int64_t held = now[at] += bytes;
    std::int64_t before = most[at];
    while (held > before && !most[at].compare_exchange_weak(before, held)) {
    }
  }
};

namespace {

thread_local std::shared_ptr<Counters> counters;
thread_local Purpose purpose = Purpose::activations;

Blocks& blocks() {
  static Blocks& blocks = *new Blocks;  // arrays may live for as long as the process
  return blocks;
}

/// Gives memory back to its place.
struct Release {
  std::size_t kept = 0;               ///< bytes of a block for reuse; 0: of the heap
  std::shared_ptr<void> device;       ///< an accelerator's memory; null: the host's
  std::shared_ptr<Counters> counted;  ///< null: by nobody
  std::int64_t bytes = 0;
  int purpose = 0;

  void operator()(void* data) {
    if (counted) {
      counted->change(purpose, -bytes);
      counted->change(purpose_count, -bytes);
    }
    if (device) return device.reset();
    if (kept > 0) return blocks().give(data, kept);
    std::free(data);
  }
};

}  // namespace

void count_as(int to, const std::shared_ptr<void>& memory) {
  Release* const release = std::get_deleter<Release>(memory);
  if (!release || !release->counted || release->purpose == to) return;
  release->counted->change(release->purpose, -release->bytes);
  release->counted->change(to, release->bytes);
  release->purpose = to;
}

std::shared_ptr<void> aligned_bytes(const Shape& shape, std::size_t element_bytes) {
  constexpr std::size_t line = 64;
  std::size_t bytes = element_bytes;
  bool fits = true;
  for (int d = 0; d < shape.rank(); ++d)
    fits &= !__builtin_mul_overflow(bytes, static_cast<std::size_t>(shape[d]), &bytes);
  const auto refuse_memory = [&] {
    throw Error(ErrorCode::unsupported,
                fmt::format("expected memory for a tensor of {} with elements of {} B, found none",
                            shape.text(), element_bytes));
  };
  if (!fits || bytes > std::numeric_limits<std::ptrdiff_t>::max()) refuse_memory();
  Release release;
  release.counted = counters;
  release.purpose = static_cast<int>(purpose);
  release.bytes = static_cast<std::int64_t>(bytes);
  const auto owned = [&](void* data) {
    if (release.counted) {
      release.counted->change(release.purpose, release.bytes);
      release.counted->change(purpose_count, release.bytes);
    }
    return std::shared_ptr<void>(data, std::move(release));
  };
  if (Accelerator* const device = accelerator()) {
    release.device = device->allocate(std::max<std::size_t>(bytes, 1));
    if (!counters) return release.device;
    return owned(release.device.get());
  }
  bytes = (std::max<std::size_t>(bytes, 1) + line - 1) / line * line;
  const auto fresh = [&] {
    void* const data = bytes < huge_page ? std::aligned_alloc(line, bytes) : in_huge_pages(bytes);
    if (!data) refuse_memory();
    return data;
  };
#ifndef __SANITIZE_ADDRESS__  // which would miss the use of what was freed
  if (bytes >= Blocks::smallest) {
    release.kept = bytes;
    void* const kept = blocks().take(bytes);
    return owned(kept ? kept : fresh());
  }
#endif
  return owned(fresh());
}

void zero(void* data, std::size_t bytes) {
  if (bytes == 0) return;
  if (Accelerator* const device = accelerator()) return device->zero(data, bytes);
  if (emulates()) return;
  std::memset(data, 0, bytes);
}

namespace {

template <class To, class From>
To converted(From value) {
  if constexpr (std::is_same_v<To, From>)
    return value;
  else if constexpr (std::is_same_v<To, bf16>)
    return narrow<bf16>(value);
  else
    return widen(value);
}

template <class From, class To>
void copy(View<const From> from, View<To> to) {
  if (from.contiguous() && to.contiguous()) {
    if constexpr (std::is_same_v<To, From>)
      std::copy_n(from.data(), from.size(), to.data());
    else
      std::transform(from.data(), from.data() + from.size(), to.data(), converted<To, From>);
    return;
  }
  if (from.rank() == 1) {
    for (std::int64_t i = 0; i < from.extent(0); ++i) to(i) = converted<To>(from(i));
    return;
  }
  for (std::int64_t i = 0; i < from.extent(0); ++i)
    copy<From, To>(from.select(0, i), to.select(0, i));
}

}  // namespace
}  // namespace detail

std::string_view name(Purpose purpose) {
  constexpr std::string_view names[purpose_count] = {"activations", "parameters", "gradients",
                                                     "optimizer", "gathered"};
  return names[static_cast<int>(purpose)];
}

MemoryCount::MemoryCount() : counters_(std::make_shared<detail::Counters>()) {}

Held MemoryCount::held(Purpose purpose) const {
  const auto at = static_cast<std::size_t>(purpose);
  return {counters_->now[at], counters_->most[at]};
}
Held MemoryCount::held() const {
  return {counters_->now[purpose_count], counters_->most[purpose_count]};
}
void MemoryCount::forget_most() {
  for (std::size_t at = 0; at < counters_->now.size(); ++at)
    counters_->most[at] = counters_->now[at].load();
}

std::optional<MemoryCount> MemoryCount::of_thread() {
  if (!detail::counters) return {};
  MemoryCount count;
  count.counters_ = detail::counters;
  return count;
}

CountingScope::CountingScope(const MemoryCount& count)
    : before_(std::exchange(detail::counters, count.counters_)) {}
CountingScope::~CountingScope() { detail::counters = std::move(before_); }

PurposeScope::PurposeScope(Purpose purpose) : before_(std::exchange(detail::purpose, purpose)) {}
PurposeScope::~PurposeScope() { detail::purpose = before_; }

template <class T>
requires(!std::is_const_v<T>) void assign(View<const std::type_identity_t<T>> from, View<T> to) {
  expect_shape("assign", from.shape(), to.shape());
  if (Accelerator* const device = accelerator()) return device->assign(from, to);
  detail::copy(from, to);
}

template <Real From, Real To>
void convert(View<const From> from, View<To> to) {
  expect_shape("convert", from.shape(), to.shape());
  if (Accelerator* const device = accelerator()) return device->assign(from, to);
  detail::copy(from, to);
}

template BATON_INSTANTIATION void assign(View<const float>, View<float>);
template BATON_INSTANTIATION void assign(View<const double>, View<double>);
template BATON_INSTANTIATION void assign(View<const bf16>, View<bf16>);
template BATON_INSTANTIATION void assign(View<const std::int32_t>, View<std::int32_t>);
template BATON_INSTANTIATION void convert(View<const bf16>, View<float>);
template BATON_INSTANTIATION void convert(View<const float>, View<bf16>);

}  // namespace baton::transformer
