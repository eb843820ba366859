"""Trains GPT-2 by PyTorch on random tokens in f32, alone, by DistributedDataParallel or by FSDP2, and
prints the seconds of each step as JSON. What scripts/bench-training compares with.

Usage: torch_gpt2.py one|dp|fsdp --layers L --d-model D ... [--rank R --ranks N --store FILE]"""

import argparse
import json
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.qkv, self.proj = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.fc1, self.fc2 = nn.Linear(d_model, 4 * d_model), nn.Linear(4 * d_model, d_model)

    def forward(self, x):
        b, s, d = x.shape
        q, k, v = (part.view(b, s, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).chunk(3, -1))
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(attended.transpose(1, 2).reshape(b, s, d))
        return x + self.fc2(functional.gelu(self.fc1(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.embedding = nn.Embedding(options.vocabulary, options.d_model)
        self.positions = nn.Embedding(options.seq, options.d_model)
        self.blocks = nn.ModuleList(Block(options.d_model, options.heads) for _ in range(options.layers))
        self.norm = nn.LayerNorm(options.d_model)

    def forward(self, ids, targets):
        x = self.embedding(ids) + self.positions.weight[:ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = functional.linear(self.norm(x), self.embedding.weight)
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def parsed():
    parser = argparse.ArgumentParser()
    parser.add_argument("form", choices=["one", "dp", "fsdp"])
    for name in ["layers", "d-model", "heads", "vocabulary", "seq", "batch", "steps"]:
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--store")
    return parser.parse_args()


def main():
    options = parsed()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = Gpt2(options)
    if options.form != "one":
        dist.init_process_group("gloo", init_method=f"file://{options.store}", rank=options.rank,
                                world_size=options.ranks)
    if options.form == "dp":
        model = nn.parallel.DistributedDataParallel(model)
    if options.form == "fsdp":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        mesh = init_device_mesh("cpu", (options.ranks,))
        for block in model.blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens = torch.randint(options.vocabulary, (options.batch // options.ranks, options.seq + 1))
    seconds = []
    for _ in range(options.steps):
        begin = time.perf_counter()
        optimizer.zero_grad()
        model(tokens[:, :-1], tokens[:, 1:]).backward()
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
    if options.rank == 0:
        print(json.dumps(seconds))
    if options.form != "one":
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
