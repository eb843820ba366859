"""PyTorch's ProcessGroupNCCL on ranks that share the first GPU; scripts/gpu-check runs it with NCCL's
interface preloaded. Exit code 77 where there is no PyTorch or no GPU.

Usage: torch_ranks.py RANKS
"""

import os
import socket
import subprocess
import sys


def collectives(dist, torch, rank, size):
    device = torch.device("cuda", 0)

    def full(value, count=1000, dtype=torch.float32):
        return torch.full((count,), value, dtype=dtype, device=device)

    def same(found, expected):
        torch.cuda.synchronize()
        assert torch.equal(found, expected), (found, expected)

    total = sum(range(1, size + 1))
    for dtype in torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.int8:
        data = full(rank + 1, dtype=dtype)
        dist.all_reduce(data)
        same(data, full(total, dtype=dtype))
    data = full(rank + 1)
    dist.all_reduce(data, op=dist.ReduceOp.AVG)
    same(data, full(total / size))
    data = full(rank + 1)
    dist.all_reduce(data, op=dist._make_nccl_premul_sum(2.0))
    same(data, full(2 * total))
    data = full(rank + 1)
    dist.broadcast(data, size - 1)
    same(data, full(size))
    gathered = full(0, 1000 * size)
    dist.all_gather_into_tensor(gathered, full(rank))
    same(gathered, torch.cat([full(r) for r in range(size)]))
    part = full(0)
    dist.reduce_scatter_tensor(part, torch.cat([full(r + 1) for r in range(size)]))
    same(part, full((rank + 1) * size))
    mixed = full(0, 1000 * size)
    dist.all_to_all_single(mixed, torch.cat([full(10 * rank + r) for r in range(size)]))
    same(mixed, torch.cat([full(10 * r + rank) for r in range(size)]))
    received = full(-1)
    own = full(rank)
    for request in dist.batch_isend_irecv(
            [dist.P2POp(dist.isend, own, (rank + 1) % size),
             dist.P2POp(dist.irecv, received, (rank - 1) % size)]):
        request.wait()
    same(received, full((rank - 1) % size))
    evens = dist.new_group(list(range(0, size, 2)))
    if rank % 2 == 0:
        data = full(1)
        dist.all_reduce(data, group=evens)
        same(data, full((size + 1) // 2))
    dist.barrier()


def data_parallel(dist, torch, rank, size):
    """A model on all ranks has the gradients of one that sees all samples."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
    model = model.cuda().double()
    alone = [p.detach().clone().requires_grad_() for p in model.parameters()]
    samples = torch.randn(8 * size, 16, device="cuda", dtype=torch.float64)
    torch.func.functional_call(model, dict(zip(dict(model.named_parameters()), alone)),
                               (samples,)).square().mean().backward()
    parallel = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0])
    parallel(samples[8 * rank:8 * rank + 8]).square().mean().backward()
    for parameter, expected in zip(model.parameters(), alone):
        torch.testing.assert_close(parameter.grad, expected.grad)


def run(rank, size):
    import torch
    import torch.distributed as dist
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", rank=rank, world_size=size)
    collectives(dist, torch, rank, size)
    data_parallel(dist, torch, rank, size)
    dist.destroy_process_group()


def main():
    if "RANK" in os.environ:
        return run(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    try:
        import torch
    except ImportError:
        print("skipped: expected PyTorch, found none")
        return 77
    if not torch.cuda.is_available():
        print("skipped: expected a GPU that PyTorch can use, found none")
        return 77
    size = int(sys.argv[1])
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ranks = [subprocess.Popen([sys.executable, __file__],
                              env=os.environ | {"RANK": str(rank), "WORLD_SIZE": str(size),
                                                "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
             for rank in range(size)]
    return max(abs(rank.wait()) for rank in ranks)


if __name__ == "__main__":
    sys.exit(main())
