#pragma once
/// The memory that a rank's arrays hold, counted where it is allocated.

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "tensor.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// The use of an array's memory.
enum class Purpose : std::uint8_t {
  activations,  ///< all that is none of the following
  parameters,
  gradients,
  optimizer,  ///< its state, and its masters of parameters
  gathered,   ///< whole parameters that are divided among ranks, while they are used
};
inline constexpr int purpose_count = 5;
/// The purpose's name, "gradients" for example.
std::string_view name(Purpose purpose);

/// Bytes of elements.
struct Held {
  std::int64_t now = 0;
  std::int64_t most = 0;  ///< at any time
};

/// Counts the bytes of arrays that threads make within a CountingScope, until they are freed, by
/// any thread.
class MemoryCount {
 public:
  MemoryCount();
  /// The bytes for one purpose.
  Held held(Purpose purpose) const;
  /// The bytes for all purposes together.
  Held held() const;
  /// Sets what was held at most to what is held now.
  void forget_most();
  /// That by which arrays of this thread are counted at present, for threads that work for it;
  /// empty: by nobody.
  static std::optional<MemoryCount> of_thread();

 private:
  friend class CountingScope;
  std::shared_ptr<detail::Counters> counters_;
};

/// Arrays that this thread makes are counted until the scope ends.
class CountingScope {
 public:
  /// Until then, they are counted by `count`.
  explicit CountingScope(const MemoryCount& count);
  ~CountingScope();
  CountingScope(const CountingScope&) = delete;
  CountingScope& operator=(const CountingScope&) = delete;

 private:
  std::shared_ptr<detail::Counters> before_;
};

/// Arrays that this thread makes are counted for this purpose until the scope ends; otherwise for
/// activations.
class PurposeScope {
 public:
  /// Until then, for `purpose`.
  explicit PurposeScope(Purpose purpose);
  ~PurposeScope();
  PurposeScope(const PurposeScope&) = delete;
  PurposeScope& operator=(const PurposeScope&) = delete;

 private:
  Purpose before_;
};

/// Counts an array's memory, with all arrays that share it, for `purpose` from here on.
template <class T>
void count_as(Purpose purpose, const Array<T>& array) {
  detail::count_as(static_cast<int>(purpose), array.owner());
}

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
