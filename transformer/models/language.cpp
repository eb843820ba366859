#include "language.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "../accelerator.hpp"
#include "../instantiation.hpp"
#include "baton/error.hpp"

namespace baton::transformer {

TokenShare share_of_step(const Sequences& data, const RankData& own, std::int64_t step,
                         const Mesh& mesh) {
  const TokenBatch batch = data.batch(own.partition.samples(step * own.batch, own.batch));
  const std::int64_t samples = own.batch * mesh.size(Axis::dp);
  return {positions_of(batch, mesh), own.batch * mesh.rank(Axis::dp),
          static_cast<double>(samples * data.length())};
}

template <class T>
StepLoss train_step(Gpt2<T>& model, DataParallel<T>& replicas, const TokenShare& share,
                    Optimizer<T>& optimizer, const Mesh& mesh, const StepOptions& options) {
  const std::int64_t samples = share.batch.shape[0];
  if (options.micro_batches > samples) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("micro_batches: expected at most the {} samples of a rank, found {}",
                            samples, options.micro_batches));
  }
  const auto compute = [&](int m, Context& context) {
    const Range range = slice_of(samples, options.micro_batches, m);
    context.first_sample = share.first_sample + range.begin;
    const double loss = model.forward(samples_of(share.batch, range), share.tokens, context);
    model.backward(context);
    return loss;
  };
  return train_step(replicas, optimizer, mesh, Axis::dp | Axis::sp, MicroBatch(compute), options);
}

double evaluate(const std::function<double(const TokenShare& share)>& loss_of,
                const Sequences& data, std::int64_t samples, std::int64_t batch, const Mesh& mesh,
                Axes others) {
  if (samples < 1 || samples > data.size() || batch < 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("evaluate: expected 1 to {} sequences in batches of at least 1, found "
                            "{} in batches of {}",
                            data.size(), samples, batch));
  }
  const auto tokens = static_cast<double>(samples * data.length());
  double loss = 0;
  for (std::int64_t first = 0; first < samples; first += batch) {
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(std::min(batch, samples - first)));
    std::iota(numbers.begin(), numbers.end(), first);
    const TokenBatch all = data.batch(numbers);
    const Range own = slice_of(all.shape[0], mesh.size(Axis::dp), mesh.rank(Axis::dp));
    loss += loss_of({share_of(all, mesh), own.begin, tokens});
  }
  if (Communicator* const ranks = mesh.along(others)) ranks->all_reduce(std::span(&loss, 1), sum);
  return loss;
}

template <class T>
double evaluate(Gpt2<T>& model, DataParallel<T>& replicas, const Sequences& data,
                std::int64_t samples, std::int64_t batch, const Mesh& mesh) {
  const auto loss = [&](const TokenShare& share) {
    Context context;
    context.keeps = context.training = false;
    replicas.attach(context, false);
    return model.forward(share.batch, share.tokens, context);
  };
  return evaluate(loss, data, samples, batch, mesh, Axis::dp | Axis::sp);
}

namespace {

/// An index with a probability that is proportional to the exponential of its logit.
std::int32_t drawn(const std::vector<double>& logits, const Sampling& sampling,
                   std::uint64_t number) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](std::int32_t token) { return logits[static_cast<std::size_t>(token)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return logit(a) > logit(b); });
  if (sampling.temperature == 0) return order.front();
  if (sampling.top > 0) order.resize(std::min(order.size(), std::size_t(sampling.top)));
  const auto weight = [&](std::int32_t token) {
    return std::exp((logit(token) - logit(order.front())) / sampling.temperature);
  };
  double all = 0;
  for (const std::int32_t token : order) all += weight(token);
  double rest = all * sampling.random.uniform(number);
  for (const std::int32_t token : order)
    if ((rest -= weight(token)) <= 0) return token;
  return order.back();
}

}  // namespace

template <class T>
std::vector<std::int32_t> generate(
    const std::function<Array<T>(View<const std::int32_t> ids)>& logits_of, std::int64_t context,
    std::span<const std::int32_t> prompt, std::int64_t count, const Sampling& sampling) {
  if (prompt.empty() || !(sampling.temperature >= 0)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("generate: expected a prompt and a temperature of at least 0, found {} "
                            "tokens and {}",
                            prompt.size(), sampling.temperature));
  }
  std::vector<std::int32_t> tokens(prompt.begin(), prompt.end());
  const auto most = static_cast<std::size_t>(context);
  for (std::int64_t number = 0; number < count; ++number) {
    const std::size_t seen = std::min(tokens.size(), most);
    const View<const std::int32_t> ids(tokens.data() + (tokens.size() - seen),
                                       {1, static_cast<std::int64_t>(seen)});
    const Array<T> all = logits_of(ids);
    const Array<T> last =
        to_host<T>(all.view().select(0, 0).select(0, static_cast<std::int64_t>(seen) - 1));
    std::vector<double> logits;
    for (const T value : last.span()) logits.push_back(widen(value));
    tokens.push_back(drawn(logits, sampling, static_cast<std::uint64_t>(number)));
  }
  tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(prompt.size()));
  return tokens;
}

template <class T>
std::vector<std::int32_t> generate(Gpt2<T>& model, DataParallel<T>& replicas,
                                   std::span<const std::int32_t> prompt, std::int64_t count,
                                   const Sampling& sampling) {
  const std::function logits = [&](View<const std::int32_t> ids) {
    Context context;
    context.keeps = context.training = false;
    replicas.attach(context, false);
    return model.logits(ids, std::move(context));
  };
  return generate<T>(logits, model.config().context, prompt, count, sampling);
}

#define BATON_INSTANTIATE(T)                                                                      \
  template BATON_INSTANTIATION StepLoss train_step(Gpt2<T>&, DataParallel<T>&, const TokenShare&, \
                                                   Optimizer<T>&, const Mesh&,                    \
                                                   const StepOptions&);                           \
  template BATON_INSTANTIATION double evaluate(Gpt2<T>&, DataParallel<T>&, const Sequences&,      \
                                               std::int64_t, std::int64_t, const Mesh&);          \
  template BATON_INSTANTIATION std::vector<std::int32_t> generate<T>(                             \
      const std::function<Array<T>(View<const std::int32_t>)>&, std::int64_t,                     \
      std::span<const std::int32_t>, std::int64_t, const Sampling&);                              \
  template BATON_INSTANTIATION std::vector<std::int32_t> generate(                                \
      Gpt2<T>&, DataParallel<T>&, std::span<const std::int32_t>, std::int64_t, const Sampling&);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
