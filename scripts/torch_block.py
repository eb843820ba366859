"""Steps (forward and backward) of PyTorch's transformer block, some each time a line arrives on standard
input; prints the seconds of one. What scripts/bench-transformer compares with.

Usage: torch_block.py whole|tp|sp|memory --batch B --seq S ... [--rank R --ranks N --store FILE]
       torch_block.py whole|train|attention|forward --device cuda --type f32|tf32|bf16 --batch B --seq S ..."""

import argparse
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional


class BroadcastParallel(torch.autograd.Function):
    """Identity; the gradient is summed over ranks."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, dy):
        dy = dy.contiguous()
        dist.all_reduce(dy)
        return dy


class ReduceParallel(torch.autograd.Function):
    """Sum over ranks; its gradient passes."""

    @staticmethod
    def forward(ctx, x):
        x = x.contiguous()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, dy):
        return dy


class Exchange(torch.autograd.Function):
    """All-to-all that cuts dimension `cut` and joins `join`."""

    @staticmethod
    def forward(ctx, x, cut, join):
        ctx.dims = cut, join
        return exchange(x, cut, join)

    @staticmethod
    def backward(ctx, dy):
        cut, join = ctx.dims
        return exchange(dy, join, cut), None, None


def exchange(x, cut, join):
    parts = torch.stack([part.contiguous() for part in x.chunk(dist.get_world_size(), cut)])
    result = torch.empty_like(parts)
    dist.all_to_all_single(result, parts)
    return torch.cat(result.unbind(0), join)


def attend(q, k, v, causal=False):
    """[b, s, h, d]: on a GPU by PyTorch's own kernels, else as matmul, softmax, matmul."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    if q.is_cuda:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2)
    p = torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, -1)
    return (p @ v).transpose(1, 2)


class Block(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.form, self.causal = options.form, options.causal
        d, shards = options.d_model, options.ranks if options.form == "tp" else 1
        self.head_size = d // options.heads
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.q, self.k, self.v = (nn.Linear(d, d // shards, bias=False) for _ in range(3))
        self.o = nn.Linear(d // shards, d, bias=False)
        self.fc1 = nn.Linear(d, options.d_ff // shards)
        self.fc2 = nn.Linear(options.d_ff // shards, d, bias=False)
        self.fc2_bias = nn.Parameter(torch.zeros(d))

    def enter(self, x):
        return BroadcastParallel.apply(x) if self.form == "tp" else x

    def leave(self, x):
        return ReduceParallel.apply(x) if self.form == "tp" else x

    def forward(self, x):
        normed = self.enter(self.norm1(x))
        q, k, v = (f(normed).unflatten(-1, (-1, self.head_size)) for f in (self.q, self.k, self.v))
        if self.form == "sp":
            q, k, v = (Exchange.apply(t, 2, 1) for t in (q, k, v))
        attended = attend(q, k, v, self.causal)
        if self.form == "sp":
            attended = Exchange.apply(attended, 1, 2)
        h = x + self.leave(self.o(attended.flatten(-2)))
        f = self.fc2(functional.gelu(self.fc1(self.enter(self.norm2(h)))))
        return h + self.leave(f) + self.fc2_bias


def synchronize(options):
    if options.device == "cuda":
        torch.cuda.synchronize()


def take_turns(options, step):
    """Some steps for each line."""
    for _ in sys.stdin:
        if options.ranks > 1:
            dist.barrier()
        synchronize(options)
        start = time.perf_counter()
        for _ in range(options.steps):
            step()
        synchronize(options)
        print(f"{(time.perf_counter() - start) / options.steps:.7f}", flush=True)


def steps(options):
    if options.ranks > 1:
        dist.init_process_group("gloo", init_method=f"file://{options.store}", rank=options.rank,
                                world_size=options.ranks)
    place = {"device": options.device,
             "dtype": torch.bfloat16 if options.type == "bf16" else torch.float32}
    torch.backends.cuda.matmul.allow_tf32 = options.type == "tf32"
    if options.form in ("attention", "forward"):
        return attention_steps(options, place)
    block = Block(options).to(**place)
    positions = options.seq // (options.ranks if options.form == "sp" else 1)
    x = torch.randn(options.batch, positions, options.d_model, requires_grad=True, **place)
    dy = torch.randn_like(x)

    if options.form == "train":
        return training_steps(options, block, x, dy)

    def step():
        for tensor in (x, *block.parameters()):
            if tensor.grad is not None:
                tensor.grad.zero_()
        block(x).backward(dy)

    take_turns(options, step)


def training_steps(options, block, x, target):
    optimizer = torch.optim.AdamW(block.parameters(), fused=options.device == "cuda")
    x = x.detach()

    def step():
        optimizer.zero_grad(set_to_none=False)
        loss = functional.mse_loss(block(x), target)
        loss.backward()
        optimizer.step()
        loss.item()

    take_turns(options, step)


def attention_steps(options, place):
    """Attention alone, forward with or without backward."""
    shape = options.batch, options.seq, options.heads, options.d_model // options.heads
    backward = options.form == "attention"
    q, k, v = (torch.randn(shape, requires_grad=backward, **place) for _ in range(3))
    dout = torch.randn(shape, **place)

    def step():
        out = attend(q, k, v, options.causal)
        if backward:
            torch.autograd.grad(out, (q, k, v), dout)

    take_turns(options, step)


def attention_memory(options):
    """MiB that attention, forward and backward, adds beside its arguments and results."""

    def peak():  # getrusage() would count what was there before exec
        words = Path("/proc/self/status").read_text().split()
        return int(words[words.index("VmHWM:") + 1]) / 1024

    def run(batch, seq):
        shape = batch, seq, options.heads, options.d_model // options.heads
        q, k, v = (torch.rand(shape, requires_grad=True) for _ in range(3))
        for x in (q, k, v):
            x.grad = torch.ones_like(x)
        dout, out = torch.rand(shape), torch.ones(shape)
        before = peak()
        result = attend(q, k, v)
        result.backward(dout)
        return peak() - before - out.numel() * 4 / 2**20  # the result is not counted

    run(1, 16)
    print(f"{run(options.batch, options.seq):.1f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("form", choices=["whole", "tp", "sp", "memory", "train", "attention", "forward"])
    for name in ("batch", "seq", "d-model", "heads", "d-ff"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--store")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--type", choices=["f32", "tf32", "bf16"], default="f32")
    parser.add_argument("--steps", type=int, default=1, help="that a line asks for")
    parser.add_argument("--causal", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    attention_memory(options) if options.form == "memory" else steps(options)


main()
