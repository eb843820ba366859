// Every collective in its three forms, from one row each.

#include <span>

#include "baton/schedule/problem.hpp"
#include "handles.hpp"

namespace baton::c {
namespace {

ConstData in(const void* data, std::int64_t count, int type) {
  return {data, count, datatype(type)};
}
Data out(void* data, std::int64_t count, int type) { return {data, count, datatype(type)}; }

/// The elements of one block for each rank.
std::int64_t all(const Communicator& c, std::int64_t count) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(count, c.size(), &product))
    base::refuse("expected a count whose {} blocks have less than 2^63 elements, found {}",
                 c.size(), count);
  return product;
}

std::span<const std::int64_t> per_rank(const Communicator& c, const std::int64_t* list,
                                       const char* what) {
  return {&given(list, what), static_cast<std::size_t>(c.size())};
}
std::span<const std::int64_t> counts_of(const Communicator& c, const std::int64_t* counts) {
  return per_rank(c, counts, "a list of counts");
}
/// NULL: none.
std::span<const std::int64_t> offsets_of(const Communicator& c, const std::int64_t* offsets) {
  if (offsets == nullptr) return {};
  return per_rank(c, offsets, "");
}
std::int64_t own(const Communicator& c, const std::int64_t* counts) {
  return counts_of(c, counts)[static_cast<std::size_t>(c.rank())];
}
/// Elements of a buffer of these blocks.
std::int64_t extent(const Communicator& c, const std::int64_t* counts,
                    const std::int64_t* offsets = nullptr) {
  const auto list = counts_of(c, counts);
  if (offsets == nullptr) return Blocks::packed(list)->extent();
  return Blocks::placed(list, offsets_of(c, offsets))->extent();
}

std::vector<Data> list_of(void* const* tensors, const std::int64_t* counts, int number, int type) {
  if (number < 0) base::refuse("expected at least 0 tensors, found {}", number);
  std::vector<Data> list;
  for (int i = 0; i < number; ++i)
    list.push_back(out((&given(tensors, "a list of tensors"))[i],
                       (&given(counts, "a list of counts"))[i], type));
  return list;
}

Shape shape_of(const std::int64_t* extents, int dimensions) {
  if (dimensions < 0) base::refuse("expected at least 0 dimensions, found {}", dimensions);
  if (dimensions == 0) return {};
  return Shape({&given(extents, "a list of extents"), static_cast<std::size_t>(dimensions)});
}
/// The shape with another extent in a dimension (negative: from the end). Without the dimension it
/// stays as it is: the call refuses it.
template <class F>
Shape changed(const Shape& shape, int dim, const F& extent) {
  const int dimension = dim < 0 ? dim + shape.rank() : dim;
  if (dimension < 0 || dimension >= shape.rank()) return shape;
  return shape.with(dimension, extent(shape[dimension]));
}
Shape joined(const Communicator& c, const Shape& shape, int dim) {
  return changed(shape, dim, [&](std::int64_t extent) { return all(c, extent); });
}
Shape cut(const Communicator& c, const Shape& shape, int dim) {
  return changed(shape, dim, [&](std::int64_t extent) { return extent / c.size(); });
}

baton_plan planned(Communicator& c, Call call, Choice choice) {
  call.choice = std::move(choice);
  return {c.plan(call), c.chosen(call), c.traffic(call)};
}

}  // namespace
}  // namespace baton::c

using namespace baton;
using namespace baton::c;

// In `arguments`, those of the C++ functions, `c` is the communicator.
#define FORMS(name, member, parameters, arguments)                                               \
  int baton_##name(baton_communicator* communicator, BATON_LIST parameters const char* choice) { \
    return guarded([&] {                                                                         \
      Communicator& c = given(communicator);                                                     \
      c.member(BATON_LIST arguments choice_of(choice));                                          \
    });                                                                                          \
  }                                                                                              \
  int baton_start_##name(baton_communicator* communicator,                                       \
                         BATON_LIST parameters const char* choice, baton_request** request) {    \
    return made(request, [&] {                                                                   \
      Communicator& c = given(communicator);                                                     \
      return c.start_##member(BATON_LIST arguments choice_of(choice));                           \
    });                                                                                          \
  }                                                                                              \
  int baton_plan_##name(baton_communicator* communicator,                                        \
                        BATON_LIST parameters const char* choice, baton_plan** plan) {           \
    return made(plan, [&] {                                                                      \
      Communicator& c = given(communicator);                                                     \
      return planned(c, calls::member arguments, choice_of(choice));                             \
    });                                                                                          \
  }

FORMS(broadcast, broadcast, (void* data, int64_t count, int type, int root),
      (out(data, count, type), root))
FORMS(broadcast_list, broadcast,
      (void* const* tensors, const int64_t* counts, int number, int type, int root),
      (std::span<const Data>(list_of(tensors, counts, number, type)), root))
FORMS(reduce, reduce,
      (const void* input, void* output, int64_t count, int type, baton_op op, int root),
      (in(input, count, type), out(output, count, type), op_of(op), root))
FORMS(all_reduce, all_reduce,
      (const void* input, void* output, int64_t count, int type, baton_op op),
      (in(input, count, type), out(output, count, type), op_of(op)))
FORMS(all_reduce_list, all_reduce,
      (void* const* tensors, const int64_t* counts, int number, int type, baton_op op),
      (std::span<const Data>(list_of(tensors, counts, number, type)), op_of(op)))
FORMS(gather, gather, (const void* input, void* output, int64_t count, int type, int root),
      (in(input, count, type), out(output, all(c, count), type), root))
FORMS(gather_v, gather_v,
      (const void* input, void* output, const int64_t* counts, int type, int root),
      (in(input, own(c, counts), type), out(output, extent(c, counts), type), counts_of(c, counts),
       root))
FORMS(scatter, scatter, (const void* input, void* output, int64_t count, int type, int root),
      (in(input, all(c, count), type), out(output, count, type), root))
FORMS(scatter_v, scatter_v,
      (const void* input, void* output, const int64_t* counts, int type, int root),
      (in(input, extent(c, counts), type), out(output, own(c, counts), type), counts_of(c, counts),
       root))
FORMS(all_gather, all_gather, (const void* input, void* output, int64_t count, int type),
      (in(input, count, type), out(output, all(c, count), type)))
FORMS(all_gather_tensor, all_gather,
      (const void* input, const int64_t* extents, int dimensions, void* output, int type, int dim),
      (ConstTensor(input, datatype(type), shape_of(extents, dimensions)),
       Tensor(output, datatype(type), joined(c, shape_of(extents, dimensions), dim)), dim))
FORMS(all_gather_v, all_gather_v,
      (const void* input, void* output, const int64_t* counts, const int64_t* offsets, int type),
      (in(input, own(c, counts), type), out(output, extent(c, counts, offsets), type),
       counts_of(c, counts), offsets_of(c, offsets)))
FORMS(reduce_scatter, reduce_scatter,
      (const void* input, void* output, int64_t count, int type, baton_op op),
      (in(input, all(c, count), type), out(output, count, type), op_of(op)))
FORMS(reduce_scatter_v, reduce_scatter_v,
      (const void* input, void* output, const int64_t* counts, int type, baton_op op),
      (in(input, extent(c, counts), type), out(output, own(c, counts), type), counts_of(c, counts),
       op_of(op)))
FORMS(all_to_all, all_to_all, (const void* input, void* output, int64_t count, int type),
      (in(input, all(c, count), type), out(output, all(c, count), type)))
FORMS(all_to_all_tensor, all_to_all,
      (const void* input, const int64_t* extents, int dimensions, void* output, int type,
       int scatter_dim, int gather_dim),
      (ConstTensor(input, datatype(type), shape_of(extents, dimensions)),
       Tensor(output, datatype(type),
              joined(c, cut(c, shape_of(extents, dimensions), scatter_dim), gather_dim)),
       scatter_dim, gather_dim))
FORMS(all_to_all_v, all_to_all_v,
      (const void* input, const int64_t* send_counts, const int64_t* send_offsets, void* output,
       const int64_t* recv_counts, const int64_t* recv_offsets, int type),
      (in(input, extent(c, send_counts, send_offsets), type), counts_of(c, send_counts),
       out(output, extent(c, recv_counts, recv_offsets), type), counts_of(c, recv_counts),
       offsets_of(c, send_offsets), offsets_of(c, recv_offsets)))
FORMS(scan, scan, (const void* input, void* output, int64_t count, int type, baton_op op),
      (in(input, count, type), out(output, count, type), op_of(op)))
FORMS(exscan, exscan, (const void* input, void* output, int64_t count, int type, baton_op op),
      (in(input, count, type), out(output, count, type), op_of(op)))
FORMS(barrier, barrier, (), ())
