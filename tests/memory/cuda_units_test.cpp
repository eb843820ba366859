/// The kernels' code, thread after thread on the host.

#include <doctest/doctest.h>

#include <array>
#include <utility>

#include "cuda_cases.hpp"
#include "memory/cuda/layout.hpp"
#include "memory/cuda/units.hpp"

using namespace baton;
using namespace cuda_cases;

namespace {

/// Runs `thread_of(unit, thread)` as a launch would.
template <class Job, class Thread>
void for_threads(const cuda::Batch<Job>& batch, Thread thread_of) {
  for (std::uint32_t unit = 0; unit < batch.units; ++unit)
    for (std::uint32_t thread = 0; thread < cuda::threads; ++thread) thread_of(unit, thread);
}

template <class T, OpKind op>
void fold_batch(const cuda::Batch<cuda::Strided<3>>& batch) {
  if constexpr (std::integral<T> || op <= OpKind::max) {
    constexpr OpKind folded = op == OpKind::avg ? OpKind::sum : op;
    for_threads(batch, [&](auto unit, auto thread) {
      cuda::fold_unit<folded, cuda::Served<folded, T>>(batch, unit, thread);
    });
  }
}

template <class T>
void divide_batch(const cuda::Batch<cuda::Strided<1>>& batch, int ranks) {
  for_threads(batch,
              [&](auto unit, auto thread) { cuda::divide_unit<T>(batch, ranks, unit, thread); });
}

/// Calls `call.operator()<T>()` with the element type of a datatype.
template <class... T, class Call>
void with_types(Datatype type, Call call) {
  ((type == datatype_of<T> ? call.template operator()<T>() : void()), ...);
}
template <class Call>
void with_type(Datatype type, Call call) {
  with_types<std::int8_t, std::uint8_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t,
             f8e4m3, f8e5m2, f16, bf16, float, double>(type, call);
}

class OnHost : public Backend {
 public:
  Image fold(OpKind op, Datatype type, Pieces pieces, const Image& image) override {
    return run(image, pieces, [&](const Pieces& here) {
      cuda::for_batches<3>(here, size_of(type), cuda::fold_widths(op, type), [&](auto& batch) {
        with_type(type, [&]<class T>() {
          [&]<std::size_t... i>(std::index_sequence<i...>) {
            ((op == static_cast<OpKind>(i) ? fold_batch<T, static_cast<OpKind>(i)>(batch) : void()),
             ...);
          }
          (std::make_index_sequence<builtin_op_count>());
        });
      });
    });
  }
  Image divide(Datatype type, int ranks, Pieces pieces, const Image& image) override {
    return run(image, pieces, [&](const Pieces& here) {
      cuda::for_batches<1>(here, size_of(type), cuda::widths_for(size_of(type)), [&](auto& batch) {
        with_type(type, [&]<class T>() { divide_batch<T>(batch, ranks); });
      });
    });
  }
  Image copy(std::size_t element_bytes, Pieces pieces, const Image& image) override {
    return run(image, pieces, [&](const Pieces& here) {
      cuda::for_copy_batches(
          here, element_bytes,
          [&](auto& batch) {
            for_threads(batch,
                        [&](auto unit, auto thread) { cuda::copy_unit(batch, unit, thread); });
          },
          [&](auto& batch) { turn(batch); });
    });
  }

  int turned = 0;  ///< transpositions that went by tiles

 private:
  /// `work` on a copy of the image that lies as device memory does.
  template <class Work>
  Image run(const Image& image, const Pieces& pieces, Work work) {
    std::vector<std::byte> memory(image.size() + 256);
    std::byte* base = memory.data();
    while (reinterpret_cast<std::uintptr_t>(base) % 256 != 0) ++base;
    std::memcpy(base, image.data(), image.size());
    work(placed(pieces, base));
    Image result(image.size());
    std::memcpy(result.data(), base, image.size());
    return result;
  }

  void turn(const cuda::Batch<cuda::Tiles>& batch) {
    for (std::uint32_t unit = 0; unit < batch.units; ++unit) {
      std::vector<cuda::Vector<16>> shared((batch.job_of(unit).shared_bytes() + 15) / 16);
      auto* bytes = reinterpret_cast<std::byte*>(shared.data());
      for (std::uint32_t thread = 0; thread < cuda::threads; ++thread)
        cuda::tile_in(batch, unit, thread, bytes);
      for (std::uint32_t thread = 0; thread < cuda::threads; ++thread)
        cuda::tile_out(batch, unit, thread, bytes);
    }
    turned += static_cast<int>(batch.count);
  }
};

OnHost on_host;

}  // namespace

TEST_CASE("folds of every count and alignment") { folds_of_every_count_and_alignment(on_host); }
TEST_CASE("folds in place") { folds_in_place(on_host); }
TEST_CASE("folds of strided pieces") { folds_of_strided_pieces(on_host); }
TEST_CASE("all pairs of special values") { all_pairs_of_special_values(on_host); }
TEST_CASE("divisions") { divisions(on_host); }
TEST_CASE("all 16-bit floats divided") { all_16_bit_floats_divided(on_host); }
TEST_CASE("strided copies") { strided_copies(on_host); }
TEST_CASE("random lists of copies") { random_lists_of_copies(on_host); }
TEST_CASE("transpositions, by tiles where cells are small") {
  OnHost here;
  transpositions(here);
  CHECK(here.turned > 50);
}
