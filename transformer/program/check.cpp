#include "check.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "../pipeline/failure.hpp"
#include "../training/compare.hpp"

namespace baton::transformer::program {

void Difference::add(double other, const std::string& at) {
  // A NaN is larger than any number, and stays.
  if (std::isnan(relative) || other <= relative) return;
  relative = other;
  where = at;
}

double Differences::largest() const {
  Difference all;
  for (const Difference& d : {loss, output, gradients, weights}) all.add(d.relative, d.where);
  return all.relative;
}

namespace {

template <class T>
class Comparing {
 public:
  Comparing(const Mesh& mesh, const Replicated<T>& found, const Replicated<T>* reference, int epoch)
      : mesh_(mesh), found_(found), reference_(reference), epoch_(epoch) {}

  void outputs(Difference& difference) const {
    const Array<T> output = found_.task.output(found_.replicas);
    if (!reference_ || output.empty()) return;
    const Array<T> expected = reference_->task.output(reference_->replicas);
    difference.add(relative(output, expected), at("output"));
  }

  void weights(Difference& difference) const {
    const auto expected = references();
    const auto whole = [&](const Param<T>& param) { return whole_value(param, mesh_); };
    found_.replicas.with_values([&] {
      for_each_whole(whole, [&](const ParamInfo& param, const Array<T>& value) {
        if (reference_ && found_.task.matters(param))
          difference.add(relative(value, expected.at(param.name)->value), at(param.name));
      });
    });
  }

  void gradients(Difference& difference) const {
    const auto expected = references();
    double steepest = 0;  // of any parameter: what is small beside it may be nothing but rounding
    for (const auto& [name, param] : expected)
      for (const T g : param->grad.span())
        steepest = std::fmax(steepest, std::abs(double(widen(g))));
    const auto whole = [&](const Param<T>& param) { return whole_grad(param, mesh_); };
    for_each_whole(whole, [&](const ParamInfo& param, const Array<T>& grad) {
      if (!reference_) return;
      const double most = compare_tensors<T>(grad, expected.at(param.name)->grad, 0).max_difference;
      difference.add(most == 0 ? 0 : most / steepest, at(param.name));
    });
  }

 private:
  static double relative(const Array<T>& found, const Array<T>& expected) {
    return compare_tensors<T>(found, expected, 0).relative();
  }
  std::map<std::string, const Param<T>*> references() const {
    std::map<std::string, const Param<T>*> all;
    if (!reference_) return all;
    for (const Param<T>* param : reference_->task.model().params()) all[whole_name(*param)] = param;
    return all;
  }
  /// use(name, array) on all ranks, with each parameter of all stages: array_of(parameter), which
  /// is collective over the ranks of a stage.
  template <class ArrayOf, class Use>
  void for_each_whole(const ArrayOf& array_of, const Use& use) const {
    Communicator* const stages = mesh_.along(Axis::pp);
    const Params<T> own = found_.task.model().params();
    const int ranks = stages ? stages->size() : 1, rank = stages ? stages->rank() : 0;
    for (int owner = 0; owner < ranks; ++owner) {
      auto count = static_cast<std::int64_t>(own.size());
      if (stages) stages->broadcast(std::span(&count, 1), owner);
      for (std::int64_t p = 0; p < count; ++p) {
        ParamInfo info;
        Array<T> array;
        if (owner == rank) {
          info = *own[static_cast<std::size_t>(p)];
          info.name = whole_name(info);
          array = array_of(*own[static_cast<std::size_t>(p)]);
        }
        if (stages) send_to_all(*stages, owner, info, array);
        use(info, array);
      }
    }
  }
  static void send_to_all(Communicator& ranks, int owner, ParamInfo& info, Array<T>& array) {
    info.name = broadcast_text(ranks, info.name, owner);
    std::array<std::int64_t, Shape::max_rank + 1> shape{};
    shape[0] = array.shape().rank();
    for (int d = 0; d < array.shape().rank(); ++d)
      shape[static_cast<std::size_t>(d) + 1] = array.extent(d);
    ranks.broadcast(std::span(shape), owner);
    if (ranks.rank() != owner) {
      array = Array<T>::uninitialized(Shape(
          std::span<const std::int64_t>(shape).subspan(1, static_cast<std::size_t>(shape[0]))));
    }
    ranks.broadcast(Data(array.span()), owner);
  }
  std::string at(const std::string& what) const {
    return fmt::format("{}, epoch {}", what, epoch_);
  }

  const Mesh& mesh_;
  const Replicated<T>& found_;
  const Replicated<T>* reference_;
  int epoch_;
};

}  // namespace

template <class T>
void compare(const TrainOptions& options, const Mesh& mesh, const Replicated<T>& found,
             const Replicated<T>* reference, int epoch, Differences& differences) {
  const Comparing<T> comparing(mesh, found, reference, epoch);
  if (options.check_output) comparing.outputs(differences.output);
  // Those of fsdp are divided.
  if (options.check_gradients && options.parallel != Parallel::fsdp)
    comparing.gradients(differences.gradients);
  if (options.check_weights) comparing.weights(differences.weights);
}

#define BATON_INSTANTIATE(T)                                                    \
  template void compare(const TrainOptions&, const Mesh&, const Replicated<T>&, \
                        const Replicated<T>*, int, Differences&);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer::program
