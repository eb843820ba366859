#include "arguments.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "../base/raise.hpp"
#include "../memory/residence.hpp"
#include "overlap.hpp"

namespace baton::communicator {
namespace {

template <class... Parts>
[[noreturn]] void refuse(Collective collective, fmt::format_string<Parts...> what,
                         Parts&&... parts) {
  base::refuse("{}: {}", name(collective), fmt::format(what, std::forward<Parts>(parts)...));
}

std::int64_t total(std::span<const std::int64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

std::string_view label(const Op& op) { return op.kind == OpKind::user ? op.label : name(op.kind); }

/// A rank's buffers in a call, and the inputs of their checks.
struct Checker {
  const Call& call;
  int rank, size;
  bool has_input, has_output;
  std::int64_t in = 0, out = 0;  // elements

  /// True unless this rank knows that the blocks are uneven.
  bool even(std::span<const std::int64_t> counts) const {
    return counts.empty() || (call.counts_at_root && rank != call.root);
  }
  template <class... Parts>
  [[noreturn]] void fail(fmt::format_string<Parts...> what, Parts&&... parts) const {
    refuse(call.collective, what, std::forward<Parts>(parts)...);
  }

  void root() const {
    if (call.root < 0 || call.root >= size) {
      fail("expected a root from 0 to {}, found {}", size - 1, call.root);
    }
  }
  void op() const {
    const Op& op = call.op;
    if (op.kind == OpKind::user) {
      if (!op.function) fail("expected a function of the user's operation, found none");
      return;
    }
    const Datatype type = this->type();
    if (!defined_on(op.kind, type)) {
      fail("expected an operation that is defined on {}, found {}", name(type), label(op));
    }
  }
  Datatype call_input_type() const {
    if (in_place_list()) return call_output_type();
    return call.inputs.empty() ? call.input.type : call.inputs[0].type;
  }
  Datatype type() const { return has_input ? call_input_type() : call_output_type(); }
  std::size_t element_bytes() const {
    return element_bytes_of(name(call.collective), type(),
                            reducing(call.collective) ? &call.op : nullptr);
  }
  bool in_place_list() const { return call.inputs.empty() && !call.outputs.empty(); }
  Datatype call_output_type() const {
    return call.outputs.empty() ? call.output.type : call.outputs[0].type;
  }
  void expect(const char* what, std::int64_t expected, const char* why, std::int64_t found) const {
    if (found != expected) {
      fail("expected an {} of {} elements ({}), found {}", what, expected, why, found);
    }
  }
  void divisible(const char* what, std::int64_t count) const {
    if (count % size != 0) {
      fail("expected an {} whose elements divide by {} ranks, found {}", what, size, count);
    }
  }
  void counts(const char* what, std::span<const std::int64_t> counts,
              std::span<const std::int64_t> offsets, std::int64_t room) const {
    if (counts.size() != static_cast<std::size_t>(size)) {
      fail("expected {} {}, one per rank, found {}", size, what, counts.size());
    }
    if (!offsets.empty() && offsets.size() != counts.size()) {
      fail("expected {} offsets beside the {}, found {}", size, what, offsets.size());
    }
    std::int64_t end = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const std::int64_t offset = offsets.empty() ? end : offsets[i];
      if (counts[i] < 0 || offset < 0) {
        fail("expected {} and offsets of at least 0, found {} at {} for rank {}", what, counts[i],
             offset, i);
      }
      if (counts[i] > 0 && offset + counts[i] > room) {
        fail("expected {} that fit into {} elements, found a block for rank {} that ends at {}",
             what, room, i, offset + counts[i]);
      }
      end = offset + counts[i];
    }
  }
};

/// The room of a buffer that exists on another rank only.
constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

int dimension(const Checker& check, const char* what, int dim, int rank) {
  if (dim < -rank || dim >= rank) {
    check.fail("expected a {} from {} to {} for a tensor of rank {}, found {}", what, -rank,
               rank - 1, rank, dim);
  }
  return dim < 0 ? dim + rank : dim;
}

void bind_tensors(const Checker& check, Arguments& arguments) {
  const Call& call = check.call;
  const Shape& in = call.input_shape;
  const int gather = dimension(check, "gather dimension", call.gather_dim, in.rank());
  Shape part = in;  // the data from one rank to one other
  if (call.collective == Collective::all_to_all) {
    const int scatter = dimension(check, "scatter dimension", call.scatter_dim, in.rank());
    if (in[scatter] % check.size != 0) {
      check.fail("expected dimension {} of {} to divide by {} ranks, found {}", scatter, in.text(),
                 check.size, in[scatter]);
    }
    part = in.with(scatter, in[scatter] / check.size);
    arguments.input_rows = in.product(0, scatter);
  }
  const Shape expected = part.with(gather, part[gather] * check.size);
  if (call.output_shape != expected) {
    check.fail("expected an output of shape {}, found {}", expected.text(),
               call.output_shape.text());
  }
  arguments.count = part.elements();
  arguments.output_rows = part.product(0, gather);
  if (arguments.count == 0 || check.size == 1) arguments.input_rows = arguments.output_rows = 1;
}

/// Sets the counts of the problem from the buffers of the collective.
void bind_counts(const Checker& check, Arguments& a) {
  const Call& call = check.call;
  const auto own = static_cast<std::size_t>(check.rank);
  switch (call.collective) {
    case Collective::broadcast:
      a.count = check.out;
      break;
    case Collective::reduce:
      a.count = check.in;
      if (check.has_output) check.expect("output", a.count, "as many as the input", check.out);
      break;
    case Collective::all_reduce:
    case Collective::scan:
    case Collective::exscan:
      a.count = check.in;
      check.expect("output", a.count, "as many as the input", check.out);
      break;
    case Collective::gather:
    case Collective::all_gather:
      if (call.tensor) return bind_tensors(check, a);
      a.count = check.in;
      if (check.even(call.recv_counts)) {
        if (check.has_output && !a.counts_at_root) {
          check.expect("output", check.size * a.count, "ranks times the input", check.out);
        }
        break;
      }
      check.counts("counts", call.recv_counts, call.recv_offsets,
                   check.has_output ? check.out : unlimited);
      check.expect("input", call.recv_counts[own], "this rank's count", check.in);
      a.output_counts = call.recv_counts;
      a.output_offsets = call.recv_offsets;
      break;
    case Collective::scatter:
    case Collective::reduce_scatter:
      a.count = check.out;
      if (check.even(call.send_counts)) {
        if (check.has_input && !a.counts_at_root) {
          check.expect("input", check.size * a.count, "ranks times the output", check.in);
        }
        break;
      }
      check.counts("counts", call.send_counts, call.send_offsets,
                   check.has_input ? check.in : unlimited);
      check.expect("output", call.send_counts[own], "this rank's count", check.out);
      a.input_counts = call.send_counts;
      a.input_offsets = call.send_offsets;
      break;
    case Collective::all_to_all:
      if (call.tensor) return bind_tensors(check, a);
      if (call.send_counts.empty() && call.recv_counts.empty()) {
        check.divisible("input", check.in);
        check.expect("output", check.in, "as many as the input", check.out);
        a.count = check.in / check.size;
        break;
      }
      check.counts("send counts", call.send_counts, call.send_offsets, check.in);
      check.counts("receive counts", call.recv_counts, call.recv_offsets, check.out);
      if (call.send_counts[own] != call.recv_counts[own]) {
        check.fail(
            "expected rank {} to receive from itself what it sends, found {} and {} elements",
            check.rank, call.recv_counts[own], call.send_counts[own]);
      }
      a.input_counts = call.send_counts;
      a.input_offsets = call.send_offsets;
      a.output_counts = call.recv_counts;
      a.output_offsets = call.recv_offsets;
      break;
    case Collective::barrier:
      a.count = 1;
      break;
    case Collective::program:
      check.fail("expected a collective, found a program");
  }
}

/// The elements of input and output that are the same memory where a call is in place.
struct InPlace {
  std::int64_t input_first, output_first, count;
  bool possible;  // whether there are any
};

InPlace in_place_part(const Checker& check, const Arguments& a) {
  const auto own = static_cast<std::size_t>(check.rank);
  const auto offset_of = [&](std::span<const std::int64_t> counts,
                             std::span<const std::int64_t> offsets) {
    if (counts.empty()) return a.count * check.rank;
    return offsets.empty() ? total(counts.first(own)) : offsets[own];
  };
  switch (check.call.collective) {
    case Collective::gather:
    case Collective::all_gather:
      if (a.output_rows > 1) return {0, 0, 0, false};  // rows of all ranks are joined
      return {0, offset_of(a.output_counts, a.output_offsets), check.in, true};
    case Collective::scatter:
    case Collective::reduce_scatter:
      return {offset_of(a.input_counts, a.input_offsets), 0, check.out, true};
    case Collective::all_to_all:
      return {0, 0, check.in,
              std::ranges::equal(a.input_counts, a.output_counts) &&
                  std::ranges::equal(a.input_offsets, a.output_offsets)};
    default:
      return {0, 0, check.in, true};
  }
}

/// Whether input and output are the same memory, as in place demands. Throws on any other overlap.
bool in_place(const Checker& check, const Arguments& a) {
  if (!check.has_input || !check.has_output) return false;
  const std::span<std::byte* const> bases = a.bases;
  const Buffers in{bases.first(a.input_sizes.size()), a.input_sizes, a.element_bytes},
      out{bases.subspan(a.input_sizes.size()), a.output_sizes, a.element_bytes};
  if (apart(in, out)) return false;
  const InPlace same = in_place_part(check, a);
  if (same.possible && same_memory(in, same.input_first, out, same.output_first, same.count))
    return true;
  const std::int64_t bytes =
      overlap({in, a.input_counts, a.input_offsets}, {out, a.output_counts, a.output_offsets});
  if (bytes == 0) return false;  // the blocks of one may lie between those of the other
  check.fail(
      "expected input and output that are apart or in place, found them overlapping by {} bytes in "
      "another way",
      bytes);
}

template <class List, class One>
std::int64_t append_buffers(const Checker& check, const char* what, const List& list,
                            const One& one, Datatype type, std::vector<std::byte*>& bases,
                            std::vector<std::int64_t>& sizes) {
  std::int64_t elements = 0;
  const auto append = [&](const auto& data) {
    if (data.count < 0) {
      check.fail("expected an {} of at least 0 elements, found {}", what, data.count);
    }
    if (data.count > 0 && !data.data) {
      check.fail("expected an {} of {} elements, found a null pointer", what, data.count);
    }
    if (data.type != type) {
      check.fail("expected an {} of {}, found {}", what, name(type), name(data.type));
    }
    bases.push_back(const_cast<std::byte*>(static_cast<const std::byte*>(data.data)));
    sizes.push_back(data.count);
    elements += data.count;
  };
  if (list.empty()) {
    append(one);
  } else {
    for (const auto& data : list) append(data);
  }
  return elements;
}

}  // namespace

std::size_t element_bytes_of(std::string_view call, Datatype type, const Op* op) {
  if (type != Datatype::user) return size_of(type);
  if (!op || op->kind != OpKind::user || op->element_bytes == 0)
    base::refuse(
        "{}: expected Datatype::user with a user's operation that states its element_bytes, found "
        "it with none",
        call);
  return op->element_bytes;
}

std::size_t message_element_bytes(std::string_view call, Datatype type) {
  if (type == Datatype::user)
    base::refuse("{}: expected elements of a known size, found {}", call, name(type));
  return size_of(type);
}

void Arguments::bind(const Call& call, int rank, int size) {
  collective = call.collective;
  op = call.op;
  root = call.root;
  counts_at_root = call.counts_at_root &&
                   (collective == Collective::gather || collective == Collective::scatter);
  element_bytes = 1;
  input_rows = output_rows = 1;
  input_counts = input_offsets = output_counts = output_offsets = {};
  in_place = false;
  bases.clear();
  input_sizes.clear();
  output_sizes.clear();
  Checker check{call, rank, size, true, true};
  if (collective == Collective::barrier) {
    type = Datatype::u8;
    count = 1;
    bases.assign({&token, nullptr});
    input_sizes.assign({1});
    output_sizes.assign({0});
    return;
  }
  if (rooted(collective)) check.root();
  check.has_input =
      collective != Collective::broadcast && (collective != Collective::scatter || rank == root);
  check.has_output =
      (collective != Collective::reduce && collective != Collective::gather) || rank == root;
  type = check.type();
  element_bytes = check.element_bytes();

  if (check.has_input && check.in_place_list()) {
    check.in = append_buffers(check, "input", call.outputs, call.output, type, bases, input_sizes);
  } else if (check.has_input) {
    check.in = append_buffers(check, "input", call.inputs, call.input, type, bases, input_sizes);
  } else {
    bases.push_back(nullptr);
    input_sizes.push_back(0);
  }
  if (check.has_output) {
    check.out =
        append_buffers(check, "output", call.outputs, call.output, type, bases, output_sizes);
  } else {
    bases.push_back(nullptr);
    output_sizes.push_back(0);
  }
  if (reducing(collective)) check.op();
  bind_counts(check, *this);
  in_place = check.in_place_list() || communicator::in_place(check, *this);
}

Problem Arguments::problem(int rank, int size) const {
  Problem p;
  p.collective = collective;
  p.size = size;
  p.rank = rank;
  p.root = root;
  p.count = count;
  p.in_place = in_place;
  p.commutative = op.kind == OpKind::user ? op.commutative : true;
  p.average = reducing(collective) && op.kind == OpKind::avg;
  p.input_rows = input_rows;
  p.output_rows = output_rows;
  const auto blocks = [](std::span<const std::int64_t> counts,
                         std::span<const std::int64_t> offsets) {
    return offsets.empty() ? Blocks::packed(counts) : Blocks::placed(counts, offsets);
  };
  if (!input_counts.empty()) p.input_blocks = blocks(input_counts, input_offsets);
  if (!output_counts.empty()) p.output_blocks = blocks(output_counts, output_offsets);
  if (collective != Collective::all_to_all && p.uneven()) {
    (p.input_blocks ? p.output_blocks : p.input_blocks) =
        p.input_blocks ? p.input_blocks : p.output_blocks;
  }
  return p;
}

void Arguments::check_reach() const {
  for (const std::byte* const data : bases) {
    if (data && host::in_device_memory(data))
      refuse(collective,
             "expected buffers that the host can reach, found one in a CUDA device's memory (those "
             "are for StreamCommunicator)");
  }
}

status::Call Arguments::shown() const {
  status::Call call;
  call.kind = status::Call::Kind::collective;
  call.collective = static_cast<std::uint8_t>(collective);
  if (collective == Collective::barrier) return call;
  call.type = static_cast<std::uint8_t>(type);
  if (reducing(collective)) call.op = static_cast<std::uint8_t>(op.kind);
  if (rooted(collective)) call.root = root;
  if (input_counts.empty() && output_counts.empty() && !counts_at_root) call.count = count;
  return call;
}

void Arguments::append_to(execute::PlanKey& key) const {
  const bool reduces = reducing(collective);
  key.add(static_cast<std::int64_t>(collective) | static_cast<std::int64_t>(type) << 8 |
          (in_place ? 1 << 16 : 0) | (reduces && op.kind == OpKind::avg ? 1 << 17 : 0) |
          (reduces && op.kind == OpKind::user && !op.commutative ? 1 << 18 : 0) |
          static_cast<std::int64_t>(root) << 32);
  key.add(count);
  if (counts_at_root) key.add(-8);
  if (type == Datatype::user) key.add(static_cast<std::int64_t>(element_bytes));
  if (input_rows != 1 || output_rows != 1) {
    key.add(-1);
    key.add(input_rows);
    key.add(output_rows);
  }
  const auto add_list = [&](std::int64_t mark, const auto& list) {
    if (list.empty()) return;
    key.add(mark);
    key.add_all(list);
  };
  add_list(-2, input_counts);
  add_list(-3, input_offsets);
  add_list(-4, output_counts);
  add_list(-5, output_offsets);
  if (input_sizes.size() > 1) add_list(-6, input_sizes);
  if (output_sizes.size() > 1) add_list(-7, output_sizes);
}

}  // namespace baton::communicator
