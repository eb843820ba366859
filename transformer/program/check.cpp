#include "check.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

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
    const Params<T> expected = references();
    found_.replicas.with_values([&] {
      const Params<T> params = found_.task.model().params();
      for (std::size_t p = 0; p < params.size(); ++p) {
        const Array<T> value = whole_value(*params[p], mesh_);
        if (reference_ && found_.task.matters(*params[p]))
          difference.add(relative(value, expected[p]->value), at(params[p]->name));
      }
    });
  }

  void gradients(Difference& difference) const {
    const Params<T> expected = references();
    double steepest = 0;  // of any parameter: what is small beside it may be nothing but rounding
    for (const Param<T>* param : expected)
      for (const T g : param->grad.span())
        steepest = std::fmax(steepest, std::abs(double(widen(g))));
    const Params<T> params = found_.task.model().params();
    for (std::size_t p = 0; p < params.size(); ++p) {
      const Array<T> grad = whole_grad(*params[p], mesh_);
      if (!reference_) continue;
      const double most = compare_tensors<T>(grad, expected[p]->grad, 0).max_difference;
      difference.add(most == 0 ? 0 : most / steepest, at(params[p]->name));
    }
  }

 private:
  static double relative(const Array<T>& found, const Array<T>& expected) {
    return compare_tensors<T>(found, expected, 0).relative();
  }
  Params<T> references() const {
    return reference_ ? reference_->task.model().params() : Params<T>();
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
