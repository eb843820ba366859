#include "case.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "select/table.hpp"
#include "text.hpp"

namespace baton::cli {
namespace {

void check_op(Collective collective, OpKind op, Datatype type) {
  if (!reducing(collective) || defined_on(op, type)) return;
  refuse(fmt::format("{}: expected an operation that is defined on {}, found {}", name(collective),
                     name(type), name(op)));
}

Problem apart(const Problem& problem, int rank) {
  Problem p = problem.at(rank);
  p.in_place = false;
  return p;
}

}  // namespace

std::int64_t Case::input_count(int rank) const {
  return collective() == Collective::barrier ? 0 : apart(problem, rank).input_extent();
}

std::int64_t Case::output_count(int rank) const {
  return collective() == Collective::barrier ? 0 : apart(problem, rank).output_extent();
}

std::int64_t Case::block_offset(int i) const {
  const auto& blocks = problem.input_blocks ? problem.input_blocks : problem.output_blocks;
  return blocks ? blocks->offsets[static_cast<std::size_t>(i)] : i * problem.count;
}

std::int64_t Case::bytes() const { return selecting::table_bytes(problem, size_of(type)); }

double bus_factor(Collective collective, double parts) {
  if (collective == Collective::all_reduce) return 2 * (parts - 1) / parts;
  return selecting::blockwise(collective) ? (parts - 1) / parts : 1;
}

Call Case::call(const ConstData& in, const Data& out) const {
  switch (collective()) {
    case Collective::broadcast:
      return calls::broadcast(out, problem.root);
    case Collective::reduce:
      return calls::reduce(in, out, op, problem.root);
    case Collective::all_reduce:
      return calls::all_reduce(in, out, op);
    case Collective::gather:
      return calls::gather(in, out, problem.root);
    case Collective::scatter:
      return calls::scatter(in, out, problem.root);
    case Collective::all_gather:
      return tensor ? calls::all_gather(ConstTensor(in.data, type, tensor->input),
                                        Tensor(out.data, type, tensor->output), tensor->gather_dim)
                    : calls::all_gather(in, out);
    case Collective::reduce_scatter:
      return calls::reduce_scatter(in, out, op);
    case Collective::all_to_all:
      return tensor ? calls::all_to_all(ConstTensor(in.data, type, tensor->input),
                                        Tensor(out.data, type, tensor->output), tensor->scatter_dim,
                                        tensor->gather_dim)
                    : calls::all_to_all(in, out);
    case Collective::scan:
      return calls::scan(in, out, op);
    case Collective::exscan:
      return calls::exscan(in, out, op);
    case Collective::barrier:
      return calls::barrier();
    case Collective::program:
      break;
  }
  return {};
}

void Case::run(Communicator& communicator, const ConstData& in, const Data& out,
               const Choice& choice) const {
  switch (collective()) {
    case Collective::broadcast:
      return communicator.broadcast(out, problem.root, choice);
    case Collective::all_reduce:
      return communicator.all_reduce(in, out, op, choice);
    case Collective::all_gather:
      if (tensor) break;
      return communicator.all_gather(in, out, choice);
    case Collective::reduce_scatter:
      return communicator.reduce_scatter(in, out, op, choice);
    case Collective::all_to_all:
      if (tensor) break;
      return communicator.all_to_all(in, out, choice);
    case Collective::barrier:
      return communicator.barrier(choice);
    default:
      break;
  }
  Call described = call(in, out);
  described.choice = choice;
  communicator.run(described);
}

std::string Case::text() const {
  if (collective() == Collective::barrier) return "barrier";
  return fmt::format("{} of {} {}", baton::name(collective()), human_bytes(bytes()),
                     baton::name(type));
}

Case flat_case(Collective collective, int ranks, std::int64_t elements, Datatype type, OpKind op,
               int root) {
  if (rooted(collective) && (root < 0 || root >= ranks)) {
    refuse(fmt::format("{}: expected a root from 0 to {}, found {}", name(collective), ranks - 1,
                       root));
  }
  check_op(collective, op, type);
  Case subject;
  subject.type = type;
  subject.op = op;
  Problem& p = subject.problem;
  p.collective = collective;
  p.size = ranks;
  p.root = rooted(collective) ? root : 0;
  p.average = reducing(collective) && op == OpKind::avg;
  p.count = selecting::blockwise(collective) ? elements / ranks : elements;
  if (elements > 0) p.count = std::max<std::int64_t>(p.count, 1);
  if (collective == Collective::barrier) p.count = 1;
  return subject;
}

std::vector<Case> sized_cases(Collective collective, int ranks,
                              const std::vector<std::int64_t>& sizes, Datatype type, OpKind op,
                              int root) {
  const auto type_bytes = static_cast<std::int64_t>(size_of(type));
  std::vector<Case> cases;
  for (const std::int64_t bytes : sizes) {
    const std::int64_t elements = bytes == 0 ? 0 : std::max<std::int64_t>(1, bytes / type_bytes);
    Case subject = flat_case(collective, ranks, elements, type, op, root);
    if (!cases.empty() && cases.back().problem.count == subject.problem.count) continue;
    subject.asked = bytes;
    cases.push_back(std::move(subject));
  }
  return cases;
}

Case tensor_case(Collective collective, int ranks, const Shape& input, Datatype type,
                 int scatter_dim, int gather_dim) {
  const auto dimension = [&](const char* what, int dim) {
    if (dim < -input.rank() || dim >= input.rank()) {
      refuse(fmt::format("{}: expected a {} dimension from {} to {}, found {}", name(collective),
                         what, -input.rank(), input.rank() - 1, dim));
    }
    return dim < 0 ? dim + input.rank() : dim;
  };
  TensorShapes shapes{input, input, 0, dimension("gather", gather_dim)};
  if (collective == Collective::all_to_all) {
    shapes.scatter_dim = dimension("scatter", scatter_dim);
    const std::int64_t extent = input[shapes.scatter_dim];
    if (extent % ranks != 0) {
      refuse(fmt::format("{}: expected dimension {} of {} to divide by {} ranks, found {}",
                         name(collective), shapes.scatter_dim, input.text(), ranks, extent));
    }
    shapes.output = input.with(shapes.scatter_dim, extent / ranks);
  }
  const Shape part = shapes.output;
  shapes.output = part.with(shapes.gather_dim, part[shapes.gather_dim] * ranks);
  Case subject;
  subject.type = type;
  Problem& p = subject.problem;
  p.collective = collective;
  p.size = ranks;
  p.count = part.elements();
  if (collective == Collective::all_to_all) p.input_rows = input.product(0, shapes.scatter_dim);
  p.output_rows = part.product(0, shapes.gather_dim);
  if (p.count == 0 || ranks == 1) p.input_rows = p.output_rows = 1;
  subject.tensor = shapes;
  return subject;
}

Case schedule_case(std::vector<Schedule> schedules, Datatype type, OpKind op) {
  Case subject;
  subject.problem = problems_of(schedules)[0];
  subject.type = type;
  const Problem& p = subject.problem;
  subject.op = p.average ? OpKind::avg : op;
  if (reducing(p.collective) && !p.average && op == OpKind::avg) {
    refuse("expected a schedule that ends with the divide steps of avg, found one without");
  }
  check_op(p.collective, subject.op, type);
  subject.schedules = std::make_shared<const std::vector<Schedule>>(std::move(schedules));
  return subject;
}

}  // namespace baton::cli
