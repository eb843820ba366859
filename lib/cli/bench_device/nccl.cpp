#include <cuda_runtime_api.h>
#include <fmt/core.h>
#include <nccl.h>

#include "baton/nccl.hpp"
#include "peer_library.hpp"
#include "transport/nccl/check.hpp"
#include "transport/nccl/connect.hpp"

namespace baton::cli::bench_device {
namespace {

ncclDataType_t nccl_type(Datatype type) {
  switch (type) {
    case Datatype::i8:
      return ncclInt8;
    case Datatype::u8:
    case Datatype::f8e4m3:  // moved only: not every NCCL and device folds them
    case Datatype::f8e5m2:
      return ncclUint8;
    case Datatype::i32:
      return ncclInt32;
    case Datatype::u32:
      return ncclUint32;
    case Datatype::i64:
      return ncclInt64;
    case Datatype::u64:
      return ncclUint64;
    case Datatype::f16:
      return ncclFloat16;
    case Datatype::bf16:
      return ncclBfloat16;
    case Datatype::f32:
      return ncclFloat32;
    default:
      return ncclFloat64;
  }
}

std::optional<ncclRedOp_t> nccl_op(OpKind op) {
  switch (op) {
    case OpKind::sum:
      return ncclSum;
    case OpKind::prod:
      return ncclProd;
    case OpKind::min:
      return ncclMin;
    case OpKind::max:
      return ncclMax;
    case OpKind::avg:
      return ncclAvg;
    default:
      return {};
  }
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
