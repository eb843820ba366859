/// The kernels' code, thread after thread on the host.

#include <doctest/doctest.h>

#include <array>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "cuda_cases.hpp"
#include "memory/cuda/layout.hpp"
#include "support/cuda/on_host.hpp"

using namespace baton;
using namespace cuda_cases;

namespace {

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
            (fold<T, static_cast<OpKind>(i)>(op, batch), ...);
          }
          (std::make_index_sequence<builtin_op_count>());
        });
      });
    });
  }
  Image divide(Datatype type, int ranks, Pieces pieces, const Image& image) override {
    return run(image, pieces, [&](const Pieces& here) {
      cuda::for_batches<1>(here, size_of(type), cuda::widths_for(size_of(type)), [&](auto& batch) {
        with_type(type, [&]<class T>() { on_host::divide_batch<T>(batch, ranks); });
      });
    });
  }
  Image copy(std::size_t element_bytes, Pieces pieces, const Image& image) override {
    return run(image, pieces, [&](const Pieces& here) {
      cuda::for_copy_batches(
          here, element_bytes, [](auto& batch) { on_host::copy_batch(batch); },
          [&](auto& batch) {
            on_host::turn_batch(batch);
            for (const cuda::Tiles& tiles : std::span(batch.jobs, batch.count)) {
              ++turned;
              turns.insert({tiles.loads.width, tiles.stores.width});
              gathers.insert({tiles.stores.width, tiles.piece, tiles.cell.divisor() == 1});
            }
          });
    });
  }

  int turned = 0;                                           ///< transpositions that went by tiles
  std::set<std::pair<std::uint32_t, std::uint32_t>> turns;  ///< widths of their loads and stores
  /// Widths of their stores and pieces, whether a piece is a cell.
  std::set<std::tuple<std::uint32_t, std::uint32_t, bool>> gathers;

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

  template <class T, OpKind op>
  static void fold(OpKind wanted, const cuda::Batch<cuda::Strided<3>>& batch) {
    if constexpr (on_host::folds<T, op>)
      if (op == wanted) on_host::fold_batch<T, op>(batch);
  }
};

OnHost kernels;

}  // namespace

TEST_CASE("folds of every count and alignment") { folds_of_every_count_and_alignment(kernels); }
TEST_CASE("folds in place") { folds_in_place(kernels); }
TEST_CASE("folds of strided pieces") { folds_of_strided_pieces(kernels); }
TEST_CASE("all pairs of special values") { all_pairs_of_special_values(kernels); }
TEST_CASE("divisions") { divisions(kernels); }
TEST_CASE("all 16-bit floats divided") { all_16_bit_floats_divided(kernels); }
TEST_CASE("strided copies") { strided_copies(kernels); }
TEST_CASE("random lists of copies") { random_lists_of_copies(kernels); }
TEST_CASE("transpositions, by tiles where cells are small") {
  OnHost here;
  transpositions(here);
  CHECK(here.turned > 250);
}
TEST_CASE("transpositions of every width") {
  OnHost here;
  transpositions_of_every_width(here);
  for (const std::uint32_t load : {1, 2, 4, 8, 16}) {
    for (const std::uint32_t store : {1, 2, 4, 8, 16}) {
      CHECK(here.turns.contains({load, store}));
      for (const std::uint32_t piece : {1, 2, 4}) {
        for (const bool single : {true, false})
          CHECK(here.gathers.contains({store, piece, single}) == (piece <= store));
      }
    }
  }
}
