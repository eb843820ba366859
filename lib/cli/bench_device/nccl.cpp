#include <cuda_runtime_api.h>
#include <fmt/core.h>
#include <nccl.h>

#include <utility>

#include "baton/nccl.hpp"
#include "peer_library.hpp"
#include "transport/nccl/connect.hpp"

namespace baton::cli::bench_device {
namespace {

ncclDataType_t nccl_type(Datatype type) {
  constexpr std::pair<Datatype, ncclDataType_t> types[] = {
      {Datatype::i8, ncclInt8},     {Datatype::u8, ncclUint8},      {Datatype::i32, ncclInt32},
      {Datatype::u32, ncclUint32},  {Datatype::i64, ncclInt64},     {Datatype::u64, ncclUint64},
      {Datatype::f16, ncclFloat16}, {Datatype::bf16, ncclBfloat16}, {Datatype::f32, ncclFloat32},
      {Datatype::f64, ncclFloat64}};
  for (const auto& [ours, theirs] : types) {
    if (ours == type) return theirs;
  }
  return ncclUint8;  // 8-bit floats are moved only: not every NCCL and device folds them
}

std::optional<ncclRedOp_t> nccl_op(OpKind op) {
  constexpr std::pair<OpKind, ncclRedOp_t> ops[] = {{OpKind::sum, ncclSum},
                                                    {OpKind::prod, ncclProd},
                                                    {OpKind::min, ncclMin},
                                                    {OpKind::max, ncclMax},
                                                    {OpKind::avg, ncclAvg}};
  for (const auto& [ours, theirs] : ops) {
    if (ours == op) return theirs;
  }
  return {};
}

/// Without time limits: with one, NCCL would start a thread for each call.
constexpr std::chrono::milliseconds no_limit(0);

class Nccl final : public PeerLibrary {
 public:
  Nccl(Transport& host, const Gpu& gpu)
      : device_(gpu.device),
        rank_(host.rank()),
        communicator_(nccl::connect(host, *device_, no_limit)) {}
  ~Nccl() override { ncclCommDestroy(communicator_); }  // nobody is left to be told

  std::string name() const override {
    int version = 0;
    nccl::check(ncclGetVersion(&version), "ncclGetVersion", communicator_, rank_);
    return fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  }
  std::unique_ptr<FusedTransport> groups(Transport& host) override {
    return nccl_transport(host, *device_, no_limit);
  }
  std::optional<PeerCall> call(const Case& subject, const void* in, void* out) override;

 private:
  template <class Function, class... Arguments>
  PeerCall calling(const char* name, Function function, Arguments... arguments) {
    return {name, [=, this](Stream stream) {
              nccl::check(function(arguments..., communicator_, static_cast<cudaStream_t>(stream)),
                          name, communicator_, rank_);
            }};
  }

  std::shared_ptr<Device> device_;
  int rank_;
  ncclComm_t communicator_;
};

std::optional<PeerCall> Nccl::call(const Case& e, const void* in, void* out) {
  const std::optional<ncclRedOp_t> op = nccl_op(e.op);
  const bool float8 = is_float(e.type) && size_of(e.type) == 1;
  if (reducing(e.collective()) && (!op || float8)) return {};
  const auto n = static_cast<std::size_t>(e.problem.count);
  const ncclDataType_t type = nccl_type(e.type);
  const int root = e.problem.root;
  switch (e.collective()) {
    case Collective::broadcast:
      return calling("ncclBroadcast", ncclBroadcast, out, out, n, type, root);
    case Collective::reduce:
      return calling("ncclReduce", ncclReduce, in, out, n, type, *op, root);
    case Collective::all_reduce:
      return calling("ncclAllReduce", ncclAllReduce, in, out, n, type, *op);
    case Collective::all_gather:
      return calling("ncclAllGather", ncclAllGather, in, out, n, type);
    case Collective::reduce_scatter:
      return calling("ncclReduceScatter", ncclReduceScatter, in, out, n, type, *op);
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
    case Collective::gather:
      return calling("ncclGather", ncclGather, in, out, n, type, root);
    case Collective::scatter:
      return calling("ncclScatter", ncclScatter, in, out, n, type, root);
    case Collective::all_to_all:
      return calling("ncclAlltoAll", ncclAlltoAll, in, out, n, type);
#endif
    default:
      return {};
  }
}

}  // namespace

std::unique_ptr<PeerLibrary> nccl_library(Transport& host, const Gpu& gpu) {
  return std::make_unique<Nccl>(host, gpu);
}

}  // namespace baton::cli::bench_device
