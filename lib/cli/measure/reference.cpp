#include "reference.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace baton::cli::measure {
namespace {

constexpr std::int64_t piece = 4096;  // elements that are reduced at a time

/// The ranks whose contributions an output of `rank` holds: 0 … last.
int last_contributor(const Case& subject, int rank) {
  if (subject.collective() == Collective::scan) return rank;
  if (subject.collective() == Collective::exscan) return rank - 1;
  return subject.ranks() - 1;
}

/// Elements of the output that the collective defines.
std::int64_t defined(const Case& subject, int rank) {
  if (subject.collective() == Collective::exscan && rank == 0) return 0;
  return subject.output_count(rank);
}

/// One element of an integer reduction, in 64 bits, of which the low ones are right.
template <class T>
T combined(OpKind op, T left, T right) {
  const auto l = static_cast<std::uint64_t>(std::int64_t(left));
  const auto r = static_cast<std::uint64_t>(std::int64_t(right));
  switch (op) {
    case OpKind::sum:
    case OpKind::avg:
      return static_cast<T>(l + r);
    case OpKind::prod:
      return static_cast<T>(l * r);
    case OpKind::min:
      return right < left ? right : left;
    case OpKind::max:
      return left < right ? right : left;
    case OpKind::logical_and:
      return left != 0 && right != 0;
    case OpKind::logical_or:
      return left != 0 || right != 0;
    case OpKind::logical_xor:
      return (left != 0) != (right != 0);
    case OpKind::bit_and:
      return static_cast<T>(l & r);
    case OpKind::bit_or:
      return static_cast<T>(l | r);
    default:
      return static_cast<T>(l ^ r);
  }
}

template <class Real>
Real combined_real(OpKind op, Real left, Real right) {
  switch (op) {
    case OpKind::prod:
      return left * right;
    case OpKind::min:
      return std::min(left, right);
    case OpKind::max:
      return std::max(left, right);
    default:
      return left + right;
  }
}

/// How far `folds` rounded folds may take a reduction from `result`, whose terms have magnitudes
/// that add up to `magnitudes`: the bounds of lib/memory/README.md, with 2^-53 in each fold for
/// `result`, which is not exact either. avg rounds twice more, in fp32 and in the datatype, where
/// it may underflow.
double tolerance(OpKind op, Datatype type, int folds, double result, double magnitudes, int ranks) {
  const double u = unit_roundoff(type), unit = u + 0x1p-53;
  if (op == OpKind::prod) return std::expm1((folds + 1) * std::log1p(unit)) * std::abs(result);
  const double sum = (folds * unit + 0x1p-53) * magnitudes;
  if (op != OpKind::avg) return sum;
  return (sum + 3 * u * magnitudes) / ranks + least_positive(type) / 2;
}

}  // namespace

Reference::Reference(const Case& subject, std::vector<std::byte> expected, int rank)
    : type_(subject.type), count_(defined(subject, rank)), expected_(std::move(expected)) {}

Reference::Reference(const Case& subject, const Values& values, int rank)
    : type_(subject.type), count_(defined(subject, rank)) {
  if (values.fill() != Fill::random) {
    expected_.resize(static_cast<std::size_t>(count_) * size_of(type_));
  }
  if (subject.tensor) {
    move_tensor(subject, values, rank);
  } else if (reducing(subject.collective())) {
    with_type(type_, [&](auto* type) { reduce<Pointee<decltype(type)>>(subject, values, rank); });
  } else {
    move(subject, values, rank);
  }
}

template <class T>
void Reference::reduce(const Case& subject, const Values& values, int rank) {
  using Real = std::conditional_t<std::is_same_v<T, double>, long double, double>;
  const OpKind op = subject.op;
  const int last = last_contributor(subject, rank);
  const std::int64_t offset =
      subject.collective() == Collective::reduce_scatter ? subject.block_offset(rank) : 0;
  const bool average = op == OpKind::avg, rounds = values.fill() == Fill::random;
  if (rounds) {
    middle_.resize(static_cast<std::size_t>(count_));
    tolerance_.resize(static_cast<std::size_t>(count_));
  }
  std::array<T, piece> term;
  std::array<T, piece> whole;
  std::array<Real, piece> real, magnitude;
  for (std::int64_t first = 0; first < count_; first += piece) {
    const auto n = static_cast<std::size_t>(std::min(piece, count_ - first));
    for (int r = 0; r <= last; ++r) {
      values.write(r, offset + first, static_cast<std::int64_t>(n), term.data());
      for (std::size_t i = 0; i < n; ++i) {
        if constexpr (std::is_integral_v<T>) {
          whole[i] = r == 0 ? term[i] : combined(op, whole[i], term[i]);
        } else {
          const Real x = to_real(term[i]);
          real[i] = r == 0 ? x : combined_real(op, real[i], x);
          magnitude[i] = (r == 0 ? 0 : magnitude[i]) + std::abs(x);
        }
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(first) + i;
      if constexpr (std::is_integral_v<T>) {
        using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
        if (average) {
          whole[i] =
              static_cast<T>(static_cast<Wide>(whole[i]) / static_cast<Wide>(subject.ranks()));
        }
      } else if (rounds) {
        if (average) real[i] /= subject.ranks();
        middle_[at] = static_cast<double>(real[i]);
        tolerance_[at] = std::nextafter(
            static_cast<float>(tolerance(op, type_, last, middle_[at],
                                         static_cast<double>(magnitude[i]), subject.ranks())),
            HUGE_VALF);
      } else {
        whole[i] = from_real<T>(static_cast<double>(real[i]));
        if (average && is_narrow<T>) {
          whole[i] = from_real<T>(static_cast<float>(to_real(whole[i])) /
                                  static_cast<float>(subject.ranks()));
        } else if (average) {
          whole[i] = from_real<T>(to_real(whole[i]) / subject.ranks());
        }
      }
    }
    if (!rounds) {
      std::memcpy(expected_.data() + static_cast<std::size_t>(first) * sizeof(T), whole.data(),
                  n * sizeof(T));
    }
  }
}

void Reference::move(const Case& subject, const Values& values, int rank) {
  const auto take = [&](int from, std::int64_t first, std::int64_t count, std::int64_t to) {
    values.write(from, first, count,
                 expected_.data() + static_cast<std::size_t>(to) * size_of(type_));
  };
  const Problem& p = subject.problem;
  switch (subject.collective()) {
    case Collective::broadcast:
      take(p.root, 0, count_, 0);
      break;
    case Collective::scatter:
      take(p.root, subject.block_offset(rank), count_, 0);
      break;
    case Collective::gather:
    case Collective::all_gather:
      if (count_ == 0) break;
      for (int r = 0; r < p.size; ++r) take(r, 0, p.block_count(r), subject.block_offset(r));
      break;
    case Collective::all_to_all:
      for (int r = 0; r < p.size; ++r) take(r, rank * p.count, p.count, r * p.count);
      break;
    default:
      break;
  }
}

void Reference::move_tensor(const Case& subject, const Values& values, int rank) {
  const auto& [input, output, scatter, gather] = *subject.tensor;
  const bool scatters = subject.collective() == Collective::all_to_all;
  const int dims = output.rank();
  // The data from one rank to one other has extent `joined` in the gathered dimension.
  const std::int64_t joined = output[gather] / subject.ranks();
  std::array<std::int64_t, Shape::max_rank> at{};
  for (std::int64_t o = 0; o < count_; ++o) {
    const int source = static_cast<int>(at[static_cast<std::size_t>(gather)] / joined);
    std::int64_t element = 0;
    for (int d = 0; d < dims; ++d) {
      std::int64_t index = at[static_cast<std::size_t>(d)];
      if (d == gather) index -= source * joined;
      if (scatters && d == scatter) index += rank * (input[d] / subject.ranks());
      element = element * input[d] + index;
    }
    values.write(source, element, 1,
                 expected_.data() + static_cast<std::size_t>(o) * size_of(type_));
    for (int d = dims - 1; d >= 0 && ++at[static_cast<std::size_t>(d)] == output[d]; --d) {
      at[static_cast<std::size_t>(d)] = 0;
    }
  }
}

std::int64_t Reference::wrong(const void* output) const {
  if (!middle_.empty()) {
    return with_type(type_, [&](auto* type) { return far<Pointee<decltype(type)>>(output); });
  }
  const std::size_t bytes = size_of(type_);
  const auto* got = static_cast<const std::byte*>(output);
  if (count_ == 0 ||
      std::memcmp(got, expected_.data(), static_cast<std::size_t>(count_) * bytes) == 0) {
    return 0;
  }
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count_); ++i) {
    wrong += std::memcmp(got + i * bytes, expected_.data() + i * bytes, bytes) != 0 ? 1 : 0;
  }
  return wrong;
}

template <class T>
std::int64_t Reference::far(const void* output) const {
  if constexpr (std::is_integral_v<T>) return 0;  // integers do not round
  const T* got = static_cast<const T*>(output);
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < middle_.size(); ++i) {
    const double off = std::abs(to_real(got[i]) - middle_[i]);
    wrong += off <= static_cast<double>(tolerance_[i]) ? 0 : 1;  // NaN is wrong
  }
  return wrong;
}

}  // namespace baton::cli::measure
