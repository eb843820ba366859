/// measured_times(): a rank's computations, one by one, in the order of a step.

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cmath>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "../optimizer.hpp"
#include "baton/error.hpp"
#include "times.hpp"

namespace baton::transformer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int most_blocks = 4;  // whose weights take turns, as in a model
constexpr int most_repeats = 5;
constexpr std::chrono::seconds enough{2};  // of repeats

Array<float> filled(const Shape& shape) {
  Array<float> array = Array<float>::uninitialized(shape);
  std::fill_n(array.data(), array.size(), 0.01f);
  return array;
}

constexpr std::size_t slot(BlockForward work) { return static_cast<std::size_t>(work); }
constexpr std::size_t slot(BlockBackward work) {
  return block_forward_count + static_cast<std::size_t>(work);
}
enum Others : std::size_t {
  embedding_forward = block_forward_count + block_backward_count,
  embedding_backward,
  head_norm,
  head_forward,
  head_input,
  head_weight,
  head_norm_backward,
  optimizer,
  slot_count
};

/// Samples of each computation.
class Samples {
 public:
  template <class Work>
  void time(std::size_t slot, const Work& work) {
    const auto begin = Clock::now();
    work();
    const std::chrono::duration<double, std::nano> ns = Clock::now() - begin;
    if (warm) samples_[slot].push_back(ns.count());
  }
  std::int64_t median(std::size_t slot) {
    std::vector<double>& all = samples_[slot];
    if (all.empty()) return 0;
    std::ranges::sort(all);
    return std::llround(all[all.size() / 2]);
  }
  bool warm = false;

 private:
  std::array<std::vector<double>, slot_count> samples_;
};

/// The arrays of one rank's layers, and their computations.
class RankWork {
 public:
  RankWork(const StepModel& model, const StepLayout& layout)
      : share_(share_of(model, layout)),
        d_(model.gpt2.d_model),
        cut_(d_ / layout.tp),
        heads_(model.gpt2.heads / layout.tp / layout.sp),
        head_size_(d_ / model.gpt2.heads),
        vocabulary_((model.gpt2.vocabulary + layout.tp - 1) / layout.tp),
        b_(share_.samples),
        s_(share_.positions),
        seq_(layout.sp > 1 ? model.seq : share_.positions),
        x_(filled({b_, share_.boundary / b_ / d_, d_})),
        dx_(filled(x_.shape())),
        whole_(filled({b_, s_, d_})),
        dwhole_(filled({b_, s_, d_})),
        table_(Param<float>("table", filled({vocabulary_, d_}))),
        logits_(filled({b_ * s_, vocabulary_})),
        ids_(static_cast<std::size_t>(b_ * s_)) {
    for (std::size_t i = 0; i < ids_.size(); ++i)
      ids_[i] = static_cast<std::int32_t>(i % static_cast<std::size_t>(vocabulary_));
    const auto n = std::min<std::int64_t>(most_blocks, model.gpt2.layers);
    for (std::int64_t i = 0; i < n; ++i) blocks_.emplace_back(*this);
    Params<float> all{&table_};
    for (BlockArrays& block : blocks_)
      for (Param<float>* param : block.params()) all.push_back(param);
    for (const Param<float>* param : all) parameters_ += param->value.size();
    adamw_ = std::make_unique<AdamW<float>>(all);
    all_ = all;
  }

  /// A step of these layers.
  void run(Samples& samples) {
    samples.time(embedding_forward, [&] {
      embedding<float>(ids(), table_.value, 0, whole_.view().rows());
      add<float>(dwhole_, whole_.view());
    });
    for (BlockArrays& block : blocks_) forward(block, samples);
    samples.time(head_norm, [&] { norm(blocks_[0], x_, dx_); });
    samples.time(head_forward, [&] {
      linear<float>(whole_.view().rows(), table_.value, View<float>(), logits_.view());
      const auto elements = static_cast<double>(ids_.size());
      static_cast<void>(
          cross_entropy<float>(std::as_const(logits_).view(), ids(), elements, logits_.view()));
    });
    samples.time(head_input, [&] {
      linear_backward_input<float>(logits_, table_.value, dwhole_.view().rows());
    });
    samples.time(head_weight, [&] {
      linear_backward_weight<float>(whole_.view().rows(), logits_, table_.grad.view(), {});
    });
    samples.time(head_norm_backward, [&] { norm_backward(blocks_[0]); });
    for (BlockArrays& block : blocks_) backward(block, samples);
    samples.time(embedding_backward, [&] {
      add<float>(whole_, dwhole_.view());
      embedding_backward_of_ids();
    });
    samples.time(optimizer, [&] {
      for (Param<float>* param : all_) param->zero_grad();
      adamw_->step();
    });
  }
  std::int64_t parameters() const { return parameters_; }

 private:
  struct BlockArrays {
    explicit BlockArrays(const RankWork& of)
        : norm_weight("norm", filled({of.d_})),
          norm_bias("bias", filled({of.d_})),
          q("q", filled({of.cut_, of.d_})),
          k("k", filled({of.cut_, of.d_})),
          v("v", filled({of.cut_, of.d_})),
          o("o", filled({of.d_, of.cut_})),
          fc1("fc1", filled({4 * of.cut_, of.d_})),
          fc2("fc2", filled({of.d_, 4 * of.cut_})),
          cut_bias("cut_bias", filled({of.cut_})),
          fc1_bias("fc1_bias", filled({4 * of.cut_})),
          x(filled(of.x_.shape())),
          stats(filled({of.x_.view().rows().extent(0), 2})),
          normed(filled({of.b_, of.s_, of.d_})),
          attended(filled({of.b_, of.s_, of.cut_})),
          pre(filled({of.b_, of.s_, 4 * of.cut_})),
          active(filled(pre.shape())),
          dactive(filled(pre.shape())),
          q_heads(filled({of.b_, of.seq_, of.heads_, of.head_size_})),
          k_heads(filled(q_heads.shape())),
          v_heads(filled(q_heads.shape())),
          out(filled(q_heads.shape())),
          log_sums(filled({of.b_, of.heads_, of.seq_})) {}
    Params<float> params() {
      return {&norm_weight, &norm_bias, &q, &k, &v, &o, &fc1, &fc2, &cut_bias, &fc1_bias};
    }
    Param<float> norm_weight, norm_bias, q, k, v, o, fc1, fc2, cut_bias, fc1_bias;
    Array<float> x, stats, normed, attended, pre, active, dactive;
    Array<float> q_heads, k_heads, v_heads, out, log_sums;
  };

  View<const std::int32_t> ids() const { return {ids_.data(), {std::ssize(ids_)}}; }
  void embedding_backward_of_ids() {
    transformer::embedding_backward<float>(ids(), dwhole_.view().rows(), 0, table_.grad.view());
  }
  void norm(BlockArrays& block, const Array<float>& from, Array<float>& to) {
    layer_norm<float>(from, block.norm_weight.value, block.norm_bias.value, 1e-5, to.view(),
                      block.stats.view());
  }
  void norm_backward(BlockArrays& block) {
    layer_norm_backward<float>(x_, block.x, block.norm_weight.value, block.stats, dx_.view(),
                               block.norm_weight.grad.view(), block.norm_bias.grad.view());
  }
  void forward(BlockArrays& block, Samples& samples) {
    using enum BlockForward;
    const auto cut = [&](Array<float>& heads) {  // as the linear layers have it
      return View<float>(heads.data(), {b_, s_, cut_});
    };
    samples.time(slot(norm1), [&] { norm(block, x_, block.x); });
    const auto projected = [&](BlockForward work, Param<float>& weight, Array<float>& heads) {
      samples.time(slot(work), [&] {
        linear<float>(block.normed, weight.value, block.cut_bias.value, cut(heads));
      });
    };
    projected(q, block.q, block.q_heads);
    projected(k, block.k, block.k_heads);
    projected(v, block.v, block.v_heads);
    AttentionOptions options;
    options.causal = true;
    samples.time(slot(attention), [&] {
      transformer::attention<float>(block.q_heads, block.k_heads, block.v_heads, options,
                                    block.out.view(), block.log_sums.view());
    });
    samples.time(slot(o), [&] {
      linear<float>(block.attended, block.o.value, View<float>(), whole_.view());
    });
    samples.time(slot(norm2), [&] {
      add_to_rows<float>(block.norm_bias.value, block.x.view());
      add<float>(x_, block.x.view());
      norm(block, block.x, dx_);
    });
    samples.time(slot(fc1), [&] {
      linear_activate<float>(Activation::gelu_tanh, block.normed, block.fc1.value,
                             block.fc1_bias.value, block.pre.view(), block.active.view());
    });
    samples.time(slot(fc2), [&] {
      linear<float>(block.active, block.fc2.value, View<float>(), whole_.view());
    });
    samples.time(slot(sum), [&] {
      add_to_rows<float>(block.norm_bias.value, dx_.view());
      add<float>(x_, dx_.view());
    });
  }
  void backward(BlockArrays& block, Samples& samples) {
    using enum BlockBackward;
    samples.time(slot(fc2_bias), [&] { add_rows<float>(x_, block.norm_bias.grad.view()); });
    samples.time(slot(fc2_input), [&] {
      linear_backward_input<float>(dwhole_, block.fc2.value, block.dactive.view());
    });
    samples.time(slot(fc1_input), [&] {
      activate_backward<float>(Activation::gelu_tanh, block.dactive, block.pre,
                               block.dactive.view());
      linear_backward_input<float>(block.dactive, block.fc1.value, whole_.view());
    });
    samples.time(slot(fc2_weight), [&] {
      linear_backward_weight<float>(block.active, dwhole_, block.fc2.grad.view(), {});
    });
    samples.time(slot(fc1_weight), [&] {
      linear_backward_weight<float>(block.normed, block.dactive, block.fc1.grad.view(),
                                    block.fc1_bias.grad.view());
    });
    samples.time(slot(norm2), [&] {
      norm_backward(block);
      add<float>(x_, dx_.view());
      add_rows<float>(x_, block.norm_bias.grad.view());
    });
    samples.time(slot(o_input), [&] {
      linear_backward_input<float>(dwhole_, block.o.value, block.attended.view());
    });
    samples.time(slot(o_weight), [&] {
      linear_backward_weight<float>(block.attended, dwhole_, block.o.grad.view(), {});
    });
    AttentionOptions options;
    options.causal = true;
    samples.time(slot(attention), [&] {
      attention_backward<float>(block.out, block.q_heads, block.k_heads, block.v_heads, block.out,
                                block.log_sums, options, dq_.view(), dk_.view(), dv_.view());
    });
    const auto cut = [&](const Array<float>& heads) {
      return View<const float>(heads.data(), {b_, s_, cut_});
    };
    const auto input = [&](BlockBackward work, const Array<float>& heads, Param<float>& weight) {
      samples.time(slot(work), [&] {
        linear_backward_input<float>(cut(heads), weight.value, whole_.view(),
                                     work != BlockBackward::q_input);
      });
    };
    input(q_input, dq_, block.q);
    input(k_input, dk_, block.k);
    input(v_input, dv_, block.v);
    const auto gradient = [&](BlockBackward work, const Array<float>& heads, Param<float>& weight) {
      samples.time(slot(work), [&] {
        linear_backward_weight<float>(block.normed, cut(heads), weight.grad.view(),
                                      block.cut_bias.grad.view());
      });
    };
    gradient(q_weight, dq_, block.q);
    gradient(k_weight, dk_, block.k);
    gradient(v_weight, dv_, block.v);
    samples.time(slot(norm1), [&] {
      norm_backward(block);
      add<float>(x_, dx_.view());
    });
  }

  const StepShare share_;
  const std::int64_t d_, cut_, heads_, head_size_, vocabulary_, b_, s_, seq_;
  Array<float> x_, dx_;          // of the positions between regions of axis tp
  Array<float> whole_, dwhole_;  // of those within
  Param<float> table_;
  Array<float> logits_;
  std::vector<std::int32_t> ids_;
  std::deque<BlockArrays> blocks_;
  Array<float> dq_ = filled({b_, seq_, heads_, head_size_}), dk_ = filled(dq_.shape()),
               dv_ = filled(dq_.shape());
  Params<float> all_;
  std::int64_t parameters_ = 0;
  std::unique_ptr<AdamW<float>> adamw_;
};

ComputeTimes times_of(Samples& samples, std::int64_t parameters) {
  PartTimes parts;
  ComputeTimes times;
  for (std::size_t i = 0; i < block_forward_count; ++i)
    times.block_forward += parts.block_forward[i] = samples.median(i);
  for (std::size_t i = 0; i < block_backward_count; ++i)
    times.block_backward += parts.block_backward[i] = samples.median(block_forward_count + i);
  parts.embedding_forward = samples.median(embedding_forward);
  parts.embedding_backward = samples.median(embedding_backward);
  parts.head_norm = samples.median(head_norm);
  parts.head_forward = samples.median(head_forward);
  parts.head_input = samples.median(head_input);
  parts.head_weight = samples.median(head_weight);
  parts.head_norm_backward = samples.median(head_norm_backward);
  times.head_forward = parts.head_norm + parts.head_forward;
  times.head_backward = parts.head_input + parts.head_weight + parts.head_norm_backward;
  times.optimizer_ns =
      static_cast<double>(samples.median(optimizer)) / static_cast<double>(parameters);
  times.parts = parts;
  return times;
}

}  // namespace

ComputeTimes measured_times(const StepModel& model, const StepLayout& layout, int at_once) {
  if (const std::string why = refusal(model, layout); !why.empty())
    throw Error(ErrorCode::invalid_argument, why);
  const auto n = static_cast<std::size_t>(std::max(at_once, 1));
  std::vector<Samples> samples(n);
  std::deque<RankWork> works;  // made here, so that only this thread throws
  for (std::size_t i = 0; i < n; ++i) {
    works.emplace_back(model, layout);
    works.back().run(samples[i]);
    samples[i].warm = true;
  }
  const auto begin = Clock::now();
  int left = most_repeats;
  std::barrier together(static_cast<std::ptrdiff_t>(n), [&]() noexcept {
    left = left < most_repeats && Clock::now() - begin > enough ? 0 : left - 1;
  });
  const auto measure = [&](std::size_t number) {
    for (;;) {
      together.arrive_and_wait();
      if (left < 0) return;
      works[number].run(samples[number]);
      if (left == 0) return;
    }
  };
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < n; ++i) others.emplace_back(measure, i);
  measure(0);
  others.clear();
  return times_of(samples[0], works[0].parameters());
}

}  // namespace baton::transformer
