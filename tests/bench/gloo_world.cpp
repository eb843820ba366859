#include "gloo_world.hpp"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/alltoall.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <map>

#include "cli/common/machine.hpp"

namespace baton::cli {
namespace {

/// Buffers of one case. gloo's classes of the older kind reduce within one buffer, so what
/// precedes them is the copy that a user of theirs would need, too.
struct Buffers {
  float* input;
  float* output;
  std::size_t in, out;  // elements
};

BuiltIn all_reduce(const std::shared_ptr<gloo::Context>& context, const char* name,
                   gloo::AllreduceOptions::Algorithm algorithm, const Buffers& b) {
  auto options = std::make_shared<gloo::AllreduceOptions>(context);
  options->setAlgorithm(algorithm);
  options->setInput(b.input, b.in);
  options->setOutput(b.output, b.out);
  options->setReduceFunction(
      static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
  return {name, [options] { gloo::allreduce(*options); }};
}

BuiltIn all_reduce_halving_doubling(const std::shared_ptr<gloo::Context>& context,
                                    const Buffers& b) {
  auto algorithm = std::make_shared<gloo::AllreduceHalvingDoubling<float>>(
      context, std::vector<float*>{b.output}, static_cast<int>(b.out));
  return {"gloo halving-doubling", [=] {
            std::copy_n(b.input, b.in, b.output);
            algorithm->run();
          }};
}

BuiltIn reduce_scatter(const std::shared_ptr<gloo::Context>& context, const Buffers& b) {
  const auto whole = std::make_shared<std::vector<float>>(b.in);
  const std::vector<int> counts(static_cast<std::size_t>(context->size), static_cast<int>(b.out));
  auto algorithm = std::make_shared<gloo::ReduceScatterHalvingDoubling<float>>(
      context, std::vector<float*>{whole->data()}, static_cast<int>(b.in), counts);
  return {"gloo halving-doubling", [=] {
            std::copy_n(b.input, b.in, whole->data());
            algorithm->run();
            std::copy_n(whole->data(), b.out, b.output);
          }};
}

BuiltIn broadcast(const std::shared_ptr<gloo::Context>& context, int root, const Buffers& b) {
  auto options = std::make_shared<gloo::BroadcastOptions>(context);
  options->setOutput(b.output, b.out);
  options->setRoot(root);
  return {"gloo", [options] { gloo::broadcast(*options); }};
}

BuiltIn all_gather(const std::shared_ptr<gloo::Context>& context, const Buffers& b) {
  auto options = std::make_shared<gloo::AllgatherOptions>(context);
  options->setInput(b.input, b.in);
  options->setOutput(b.output, b.out);
  return {"gloo", [options] { gloo::allgather(*options); }};
}

BuiltIn all_to_all(const std::shared_ptr<gloo::Context>& context, const Buffers& b) {
  auto options = std::make_shared<gloo::AlltoallOptions>(context);
  options->setInput(b.input, b.in);
  options->setOutput(b.output, b.out);
  return {"gloo", [options] { gloo::alltoall(*options); }};
}

/// gloo's exceptions as the program's.
template <class Body>
auto guarded(const char* what, const Body& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    throw Error(ErrorCode::transport,
                std::string("expected gloo to ") + what + ", found it fail: " + error.what());
  }
}

}  // namespace

GlooWorld::GlooWorld(int rank, int size, const std::string& folder, const std::string& interface)
    : World(rank, size) {
  guarded("connect", [&] {
    gloo::transport::tcp::attr attributes;
    attributes.iface = interface;
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    gloo::rendezvous::FileStore store(folder);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    context->connectFullMesh(store, device);
    context_ = std::move(context);
  });
  std::map<std::string, int> numbers;
  const auto names = texts(host_name());
  hosts_.clear();
  for (const std::string& name : names) {
    hosts_.push_back(numbers.emplace(name, static_cast<int>(numbers.size())).first->second);
  }
}

void GlooWorld::gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  guarded("gather", [&] {
    gloo::AllgatherOptions options(context_);
    options.setInput(const_cast<std::byte*>(mine.data()), mine.size());
    options.setOutput(all.data(), all.size());
    gloo::allgather(options);
  });
}

std::vector<BuiltIn> GlooWorld::built_ins(const Case& subject, const void* input, void* output,
                                          Entry) {
  if (subject.type != Datatype::f32 || subject.op != OpKind::sum) return {};
  const Buffers b{static_cast<float*>(const_cast<void*>(input)), static_cast<float*>(output),
                  static_cast<std::size_t>(subject.input_count(rank())),
                  static_cast<std::size_t>(subject.output_count(rank()))};
  return guarded("prepare", [&]() -> std::vector<BuiltIn> {
    using Algorithm = gloo::AllreduceOptions::Algorithm;
    switch (subject.collective()) {
      case Collective::broadcast:
        return {broadcast(context_, subject.problem.root, b)};
      case Collective::all_reduce:
        return {all_reduce(context_, "gloo ring", Algorithm::RING, b),
                all_reduce(context_, "gloo bcube", Algorithm::BCUBE, b),
                all_reduce_halving_doubling(context_, b)};
      case Collective::all_gather:
        return {all_gather(context_, b)};
      case Collective::reduce_scatter:
        return {reduce_scatter(context_, b)};
      case Collective::all_to_all:
        return {all_to_all(context_, b)};
      default:
        return {};
    }
  });
}

}  // namespace baton::cli
