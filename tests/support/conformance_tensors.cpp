#include <fmt/core.h>

#include "conformance.hpp"

namespace support::conformance {
namespace {

using namespace baton;
using Ints = Guarded<std::int32_t>;
using Index = std::vector<std::int64_t>;

std::int64_t elements(const Index& extents) {
  std::int64_t product = 1;
  for (const std::int64_t extent : extents) product *= extent;
  return product;
}

/// Where the element lies in a row-major tensor, and back.
std::int64_t flat(const Index& extents, const Index& at) {
  std::int64_t position = 0;
  for (std::size_t d = 0; d < extents.size(); ++d) position = position * extents[d] + at[d];
  return position;
}
Index unflat(const Index& extents, std::int64_t position) {
  Index at(extents.size());
  for (std::size_t d = extents.size(); d-- > 0;) {
    at[d] = position % extents[d];
    position /= extents[d];
  }
  return at;
}

Shape shape_of(const Index& extents) { return Shape(std::span<const std::int64_t>(extents)); }

std::size_t counted_from_end(int dim, std::size_t rank) {
  return static_cast<std::size_t>(dim < 0 ? dim + static_cast<int>(rank) : dim);
}

/// Element by element: out[at] is in of the rank whose part holds it.
void all_gather_along(Communicator& c, const Index& in, int dim, const Choice& choice) {
  const std::size_t d = counted_from_end(dim, in.size());
  Index out = in;
  out[d] *= c.size();
  const Ints input = Ints::of(5, c.rank(), elements(in));
  Ints output(elements(out)), expected(elements(out));
  for (std::int64_t i = 0; i < expected.size(); ++i) {
    Index at = unflat(out, i);
    const int from = static_cast<int>(at[d] / in[d]);
    at[d] %= in[d];
    expected[i] = value(5, from, flat(in, at));
  }
  c.all_gather(ConstTensor(input.span().data(), shape_of(in)),
               Tensor(output.span().data(), shape_of(out)), dim, choice);
  output.check(expected.span(), [&] {
    return where(c, Collective::all_gather, choice, elements(in),
                 fmt::format("{} along {}", shape_of(in).text(), dim));
  });
}

void all_to_all_along(Communicator& c, const Index& in, int scatter_dim, int gather_dim,
                      const Choice& choice, bool nonblocking) {
  const std::size_t s = counted_from_end(scatter_dim, in.size());
  const std::size_t g = counted_from_end(gather_dim, in.size());
  Index part = in;
  part[s] /= c.size();
  Index out = part;
  out[g] *= c.size();
  const Ints input = Ints::of(6, c.rank(), elements(in));
  Ints output(elements(out)), expected(elements(out));
  for (std::int64_t i = 0; i < expected.size(); ++i) {
    Index at = unflat(out, i);  // of the output, then of the part, then of the sender's input
    const int from = static_cast<int>(at[g] / part[g]);
    at[g] %= part[g];
    at[s] += c.rank() * part[s];
    expected[i] = value(6, from, flat(in, at));
  }
  const ConstTensor from(input.span().data(), shape_of(in));
  const Tensor to(output.span().data(), shape_of(out));
  if (nonblocking) {
    c.start_all_to_all(from, to, scatter_dim, gather_dim, choice).wait();
  } else {
    c.all_to_all(from, to, scatter_dim, gather_dim, choice);
  }
  const auto context = [&] {
    return where(c, Collective::all_to_all, choice, elements(in),
                 fmt::format("{} scattered along {}, gathered along {}", shape_of(in).text(),
                             scatter_dim, gather_dim));
  };
  output.check(expected.span(), context);
  input.check(Ints::of(6, c.rank(), elements(in)).span(), context);
}

const Index small{2, 3, 1, 4};

/// The algorithms that serve a tensor; whole, and cut so that pieces end within rows.
template <class Body>
void for_tensor_choices(Communicator& c, Collective collective, const Body& body) {
  Problem problem = problem_of(c, collective);
  problem.count = 12;
  problem.output_rows = 2;
  for_choices(c, problem, Scope{{}, {0, 20}, {}}, body);
}

}  // namespace

void tensor_all_gather(Communicator& c) {
  for (int rank = 1; rank <= 4; ++rank) {
    const Index in(small.begin(), small.begin() + rank);
    for (int dim = -rank; dim < rank; ++dim) {
      for_tensor_choices(c, Collective::all_gather,
                         [&](const Choice& choice) { all_gather_along(c, in, dim, choice); });
    }
  }
  all_gather_along(c, {2, 0, 3}, 1, {});
}

void tensor_all_to_all(Communicator& c) {
  for (int rank = 1; rank <= 4; ++rank) {
    for (int scatter = -rank; scatter < rank; ++scatter) {
      for (int gather = -rank; gather < rank; ++gather) {
        Index in(small.begin(), small.begin() + rank);
        in[counted_from_end(scatter, in.size())] *= c.size();
        for_tensor_choices(c, Collective::all_to_all, [&](const Choice& choice) {
          all_to_all_along(c, in, scatter, gather, choice, (scatter + gather) % 2 == 0);
        });
      }
    }
  }
  all_to_all_along(c, {c.size(), 0, 3}, 0, 1, {}, false);
  const Index ulysses{2, 3, 4 * c.size(), 5};  // [b, s/P, h, d] -> [b, s, h/P, d]
  all_to_all_along(c, ulysses, 2, 1, {}, false);
  const Index deepest{1, 2, 1, 2, c.size(), 2, 1, 2};
  all_to_all_along(c, deepest, -4, 6, {}, false);
}

}  // namespace support::conformance
