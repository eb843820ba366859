/// Convolution of f32 by oneDNN. Primitives are made once per thread and sizes. Images lie as
/// oneDNN likes them best already (image_shape()); weights are put into its order in each call,
/// which is a small part of the work.

#include <fmt/core.h>
#include <oneapi/dnnl/dnnl.hpp>

#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "baton/error.hpp"
#include "blas.hpp"
#include "images.hpp"
#include "on_host.hpp"

namespace baton::transformer::ops::onednn {
namespace {

using dnnl::memory;
using Dims = memory::dims;

/// Everything that a primitive depends on.
struct Sizes {
  std::int64_t n;
  std::int64_t inputs, h, w, block;               // of x
  std::int64_t outputs, out_h, out_w, out_block;  // of y
  Window window;
  bool bias, relu;
  int threads;

  Sizes(const Shape& x, const Shape& y, const Window& window, bool bias, bool relu, int threads)
      : n(x[0]),
        inputs(channels_of(x)),
        h(x[2]),
        w(x[3]),
        block(x[4]),
        outputs(channels_of(y)),
        out_h(y[2]),
        out_w(y[3]),
        out_block(y[4]),
        window(window),
        bias(bias),
        relu(relu),
        threads(threads) {}
  auto key() const {
    return std::array<std::int64_t, 15>{
        n,     inputs, h,         w,           block,         outputs,
        out_h, out_w,  out_block, window.size, window.stride, window.padding,
        bias,  relu,   threads};
  }

  memory::desc x() const { return images(x_dims(), block); }
  memory::desc y() const { return images(y_dims(), out_block); }
  /// In the order that the primitive likes best.
  memory::desc any_x() const { return described(x_dims(), memory::format_tag::any); }
  memory::desc any_y() const { return described(y_dims(), memory::format_tag::any); }
  memory::desc plain_weight() const { return described(weight_dims(), memory::format_tag::oihw); }
  /// In the order that the primitive likes best.
  memory::desc weight() const { return described(weight_dims(), memory::format_tag::any); }
  memory::desc bias_or_none() const {
    return bias ? described({outputs}, memory::format_tag::x) : memory::desc();
  }
  Dims stride() const { return {window.stride, window.stride}; }
  Dims padding() const { return {window.padding, window.padding}; }
  /// What lies behind the last place of the window needs no padding, and may be cut off.
  Dims padding_behind() const {
    const auto behind = [&](std::int64_t places, std::int64_t pixels) {
      return (places - 1) * window.stride + window.size - pixels - window.padding;
    };
    return {behind(out_h, h), behind(out_w, w)};
  }

 private:
  Dims x_dims() const { return {n, inputs, h, w}; }
  Dims y_dims() const { return {n, outputs, out_h, out_w}; }
  Dims weight_dims() const { return {outputs, inputs, window.size, window.size}; }
  static memory::desc described(const Dims& dims, memory::format_tag order) {
    return {dims, memory::data_type::f32, order};
  }
  static memory::desc images(const Dims& dims, std::int64_t block) {
    if (block == 1) return described(dims, memory::format_tag::nchw);
    if (block == 8) return described(dims, memory::format_tag::nChw8c);
    if (block == 16) return described(dims, memory::format_tag::nChw16c);
    if (block == dims[1]) return described(dims, memory::format_tag::nhwc);
    throw Error(ErrorCode::unsupported,
                fmt::format("convolution: expected 1, 8, 16 or all of {} channels side by side, "
                            "found {}",
                            dims[1], block));
  }
};

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

// Descriptors of operations are no objects of their own from oneDNN 3 on.
#if DNNL_VERSION_MAJOR >= 3
template <class Operation, class... Arguments>
auto described(const dnnl::primitive_attr& attributes, const Arguments&... arguments) {
  return typename Operation::primitive_desc(engine(), arguments..., attributes);
}
template <class Operation, class... Arguments>
auto described_backward(const dnnl::convolution_forward::primitive_desc& forward,
                        const dnnl::primitive_attr& attributes, const Arguments&... arguments) {
  return typename Operation::primitive_desc(engine(), arguments..., forward, attributes);
}
void append_relu(dnnl::post_ops& after) {
  after.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
}
#else
template <class Operation, class... Arguments>
auto described(const dnnl::primitive_attr& attributes, const Arguments&... arguments) {
  return typename Operation::primitive_desc(typename Operation::desc(arguments...), attributes,
                                            engine());
}
template <class Operation, class... Arguments>
auto described_backward(const dnnl::convolution_forward::primitive_desc& forward,
                        const dnnl::primitive_attr& attributes, const Arguments&... arguments) {
  return typename Operation::primitive_desc(typename Operation::desc(arguments...), attributes,
                                            engine(), forward);
}
void append_relu(dnnl::post_ops& after) {
  after.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
}
#endif

dnnl::primitive_attr attributes(const dnnl::post_ops& after = {}) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_post_ops(after);
  return attributes;
}

constexpr auto direct = dnnl::algorithm::convolution_direct;

/// A primitive, the orders in which it has its operands, and its scratch memory.
struct Prepared {
  dnnl::primitive primitive;
  memory::desc x, weight, y, scratch;
  bool fast;  ///< oneDNN has code for these orders, not only loops
};

enum class Direction : std::uint8_t { forward, backward_input, backward_weight };

Prepared prepared(Direction direction, const Sizes& s, const memory::desc& x,
                  const memory::desc& y) {
  const auto fast = [](const auto& d) {
    return !std::string_view(d.impl_info_str()).starts_with("ref");
  };
  dnnl::post_ops after;
  if (s.relu) append_relu(after);
  const auto forward = described<dnnl::convolution_forward>(
      attributes(after), dnnl::prop_kind::forward_training, direct, x, s.weight(), s.bias_or_none(),
      y, s.stride(), s.padding(), s.padding_behind());
  if (direction == Direction::backward_input) {
    const auto d = described_backward<dnnl::convolution_backward_data>(
        forward, attributes(), direct, x, s.weight(), y, s.stride(), s.padding(),
        s.padding_behind());
    return {dnnl::convolution_backward_data(d),
            d.diff_src_desc(),
            d.weights_desc(),
            d.diff_dst_desc(),
            d.scratchpad_desc(),
            fast(d)};
  }
  if (direction == Direction::backward_weight) {
    const auto d = described_backward<dnnl::convolution_backward_weights>(
        forward, attributes(), direct, x, s.weight(), s.bias_or_none(), y, s.stride(), s.padding(),
        s.padding_behind());
    return {dnnl::convolution_backward_weights(d),
            d.src_desc(),
            d.diff_weights_desc(),
            d.diff_dst_desc(),
            d.scratchpad_desc(),
            fast(d)};
  }
  return {dnnl::convolution_forward(forward),
          forward.src_desc(),
          forward.weights_desc(),
          forward.dst_desc(),
          forward.scratchpad_desc(),
          fast(forward)};
}

/// For images in their own order, or in the one that oneDNN likes best if that is much faster.
Prepared prepared(Direction direction, const Sizes& sizes) {
  Prepared as_they_lie = prepared(direction, sizes, sizes.x(), sizes.y());
  if (as_they_lie.fast) return as_they_lie;
  Prepared reordered = prepared(direction, sizes, sizes.any_x(), sizes.any_y());
  return reordered.fast ? reordered : as_they_lie;
}

/// This thread's primitive. A program has few sizes, so what it had before may go if it has many.
const Prepared& primitive(Direction direction, const Sizes& sizes) {
  constexpr std::size_t most = 1024;
  thread_local std::map<std::pair<Direction, decltype(sizes.key())>, Prepared> all;
  const std::pair key(direction, sizes.key());
  const auto found = all.find(key);
  if (found != all.end()) return found->second;
  if (all.size() >= most) all.clear();
  return all.emplace(key, prepared(direction, sizes)).first->second;
}

memory at(const memory::desc& d, const void* data) {
  return {d, engine(), const_cast<void*>(data)};  // NOLINT: operands to read are read
}
memory at(const memory::desc& d, const Array<float>& buffer) { return at(d, buffer.data()); }

Array<float> buffer_for(const memory::desc& d) {
  return Array<float>::uninitialized(
      {static_cast<std::int64_t>((d.get_size() + sizeof(float) - 1) / sizeof(float))});
}

/// to = from in another order, or that added.
void reorder(const memory& from, const memory& to, bool add, dnnl::stream& stream) {
  dnnl::post_ops after;
  if (add) after.append_sum(1);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(after);
  const dnnl::reorder::primitive_desc d(from, to, attributes);
  memory source = from, target = to;
  dnnl::reorder(d).execute(stream, source, target);
}

/// Calls body(stream, threads), and tells oneDNN's errors as ours.
template <class Body>
void run(const char* what, const Shape& x, const Body& body) {
  const OneDnnThreads threads;
  try {
    thread_local dnnl::stream stream(engine());
    body(stream, threads.count());
  } catch (const dnnl::error& error) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{} of {}: oneDNN gave status {}: {}", what, x.text(),
                            static_cast<int>(error.status), error.message));
  }
}

/// A weight in the orders of the primitives that take it, which most often is one.
class OrderedWeight {
 public:
  explicit OrderedWeight(View<const float> plain) : plain_(plain) {}
  memory in_order_of(const Prepared& prepared, const Sizes& sizes, dnnl::stream& stream) {
    if (buffer_.empty() || order_ != prepared.weight) {
      order_ = prepared.weight;
      buffer_ = buffer_for(order_);
      reorder(at(sizes.plain_weight(), plain_.data()), at(order_, buffer_), false, stream);
    }
    return at(order_, buffer_);
  }

 private:
  View<const float> plain_;
  memory::desc order_;
  Array<float> buffer_;
};

/// Images in the order that a primitive has them: themselves, or a copy.
class OrderedImages {
 public:
  OrderedImages(const memory::desc& own, const float* data, const memory::desc& order)
      : own_(at(own, data)), used_(own_) {
    if (own == order) return;
    copy_ = buffer_for(order);
    used_ = at(order, copy_);
  }
  memory read(dnnl::stream& stream) {
    if (!copy_.empty()) reorder(own_, used_, false, stream);
    return used_;
  }
  const memory& to_write() const { return used_; }
  void written(dnnl::stream& stream) const {
    if (!copy_.empty()) reorder(used_, own_, false, stream);
  }

 private:
  memory own_, used_;
  Array<float> copy_;
};

}  // namespace

std::int64_t channel_block(std::int64_t channels) {
  // The order that oneDNN chooses by itself: 0 stands for all channels.
  static const std::int64_t fastest = [] {
    const Dims images{8, 64, 16, 16}, weights{64, 64, 3, 3}, one{1, 1};
    const auto any_order = [](const Dims& dims) {
      return memory::desc(dims, memory::data_type::f32, memory::format_tag::any);
    };
    try {
      const OneDnnThreads threads;
      const auto chosen =
          described<dnnl::convolution_forward>(attributes(), dnnl::prop_kind::forward_training,
                                               direct, any_order(images), any_order(weights),
                                               any_order({64}), any_order(images), one, one, one)
              .dst_desc();
      const auto is = [&](memory::format_tag order) {
        return chosen == memory::desc(images, memory::data_type::f32, order);
      };
      if (is(memory::format_tag::nChw16c)) return 16;
      if (is(memory::format_tag::nChw8c)) return 8;
      if (is(memory::format_tag::nhwc)) return 0;
    } catch (const dnnl::error&) {  // NOLINT: convolution() will say why
    }
    return 1;
  }();
  if (fastest == 0) return channels;
  for (std::int64_t b = fastest; b >= 8; b /= 2)
    if (channels % b == 0) return b;
  return 1;
}

void convolution(View<const float> x, View<const float> weight, View<const float> bias,
                 const Window& window, bool relu, View<float> y, const Meanwhile& meanwhile) {
  run("convolution", x.shape(), [&](dnnl::stream& stream, int threads) {
    OrderedWeight ordered(weight);
    in_slices(y.shape(), meanwhile, [&](std::int64_t begin, std::int64_t end) {
      const View<const float> from = x.slice(0, begin, end);
      const View<float> to = y.slice(0, begin, end);
      if (to.size() == 0) return;
      const Sizes sizes(from.shape(), to.shape(), window, !bias.empty(), relu, threads);
      const Prepared& forward = primitive(Direction::forward, sizes);
      const Array<float> scratch = buffer_for(forward.scratch);
      OrderedImages inputs(sizes.x(), from.data(), forward.x);
      const OrderedImages results(sizes.y(), to.data(), forward.y);
      forward.primitive.execute(stream,
                                {{DNNL_ARG_SRC, inputs.read(stream)},
                                 {DNNL_ARG_WEIGHTS, ordered.in_order_of(forward, sizes, stream)},
                                 {DNNL_ARG_BIAS, at(sizes.bias_or_none(), bias.data())},
                                 {DNNL_ARG_DST, results.to_write()},
                                 {DNNL_ARG_SCRATCHPAD, at(forward.scratch, scratch)}});
      results.written(stream);
    });
  });
}

void convolution_backward_input(View<const float> dy, View<const float> weight,
                                const Window& window, View<float> dx, const Meanwhile& meanwhile) {
  run("convolution_backward_input", dx.shape(), [&](dnnl::stream& stream, int threads) {
    OrderedWeight ordered(weight);
    in_slices(dy.shape(), meanwhile, [&](std::int64_t begin, std::int64_t end) {
      const View<const float> from = dy.slice(0, begin, end);
      const View<float> to = dx.slice(0, begin, end);
      if (to.size() == 0) return;
      const Sizes sizes(to.shape(), from.shape(), window, false, false, threads);
      const Prepared& backward = primitive(Direction::backward_input, sizes);
      const Array<float> scratch = buffer_for(backward.scratch);
      OrderedImages gradients(sizes.y(), from.data(), backward.y);
      const OrderedImages results(sizes.x(), to.data(), backward.x);
      backward.primitive.execute(stream,
                                 {{DNNL_ARG_DIFF_DST, gradients.read(stream)},
                                  {DNNL_ARG_WEIGHTS, ordered.in_order_of(backward, sizes, stream)},
                                  {DNNL_ARG_DIFF_SRC, results.to_write()},
                                  {DNNL_ARG_SCRATCHPAD, at(backward.scratch, scratch)}});
      results.written(stream);
    });
  });
}

void convolution_backward_weight(View<const float> x, View<const float> dy, const Window& window,
                                 View<float> dweight, View<float> dbias,
                                 const Meanwhile& meanwhile) {
  run("convolution_backward_weight", x.shape(), [&](dnnl::stream& stream, int threads) {
    Array<float> of_bias = Array<float>::uninitialized(dbias.shape());
    in_slices(dy.shape(), meanwhile, [&](std::int64_t begin, std::int64_t end) {
      const View<const float> from = x.slice(0, begin, end), by = dy.slice(0, begin, end);
      if (by.size() == 0) return;
      const Sizes sizes(from.shape(), by.shape(), window, !dbias.empty(), false, threads);
      const Prepared& backward = primitive(Direction::backward_weight, sizes);
      const Array<float> of_weight = buffer_for(backward.weight),
                         scratch = buffer_for(backward.scratch);
      OrderedImages inputs(sizes.x(), from.data(), backward.x),
          gradients(sizes.y(), by.data(), backward.y);
      backward.primitive.execute(stream, {{DNNL_ARG_SRC, inputs.read(stream)},
                                          {DNNL_ARG_DIFF_DST, gradients.read(stream)},
                                          {DNNL_ARG_DIFF_WEIGHTS, at(backward.weight, of_weight)},
                                          {DNNL_ARG_DIFF_BIAS, at(sizes.bias_or_none(), of_bias)},
                                          {DNNL_ARG_SCRATCHPAD, at(backward.scratch, scratch)}});
      reorder(at(backward.weight, of_weight), at(sizes.plain_weight(), dweight.data()), true,
              stream);
      if (!dbias.empty()) ops::add<float>(of_bias, dbias);
    });
  });
}

}  // namespace baton::transformer::ops::onednn
