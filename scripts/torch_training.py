"""Trains GPT-2 on random tokens, or VGG16 on random images, by PyTorch in f32, alone, by
DistributedDataParallel, by FSDP2 or, of GPT-2, by torch.distributed.pipelining (1F1B), and prints the
seconds of each step as JSON. What scripts/bench-training compares with.

Usage: torch_training.py gpt2|vgg16 one|dp|fsdp|pp --batch B ... [--rank R --ranks N --store FILE]"""

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


class Gpt2Stage(nn.Module):
    """Some blocks of a GPT-2; the last stage has a head of its own, since stages share no weights."""

    def __init__(self, options):
        super().__init__()
        first, last = options.rank == 0, options.rank == options.ranks - 1
        cut = [options.layers * rank // options.ranks for rank in range(options.ranks + 1)]
        if first:
            self.embedding = nn.Embedding(options.vocabulary, options.d_model)
            self.positions = nn.Embedding(options.seq, options.d_model)
        self.blocks = nn.Sequential(*(Block(options.d_model, options.heads)
                                      for _ in range(cut[options.rank], cut[options.rank + 1])))
        if last:
            self.norm = nn.LayerNorm(options.d_model)
            self.head = nn.Linear(options.d_model, options.vocabulary, bias=False)
        self.first, self.last = first, last

    def forward(self, x):
        if self.first:
            x = self.embedding(x) + self.positions.weight[:x.shape[1]]
        x = self.blocks(x)
        return self.head(self.norm(x)) if self.last else x


def pipelined(options, stage):
    """A function that makes one step's forward and backward by 1F1B."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    def loss(logits, targets):
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())

    place = PipelineStage(stage, options.rank, options.ranks, torch.device("cpu"))
    schedule = Schedule1F1B(place, n_microbatches=options.micro_batches, loss_fn=loss)

    def compute(ids, targets):
        schedule.step(*([ids] if stage.first else []), **({"target": targets} if stage.last else {}))
    return compute


class Vgg16(nn.Module):
    def __init__(self):
        super().__init__()
        layers, channels = [], 3
        for outputs in [64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0]:
            if outputs == 0:
                layers.append(nn.MaxPool2d(2))
                continue
            layers += [nn.Conv2d(channels, outputs, 3, padding=1), nn.ReLU(inplace=True)]
            channels = outputs
        self.blocks = nn.ModuleList([nn.Sequential(*layers), nn.Sequential(
            nn.Linear(512, 4096), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(4096, 4096),
            nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(4096, 10))])

    def forward(self, images, labels):
        features, classifier = self.blocks
        return functional.cross_entropy(classifier(features(images).flatten(1)), labels)


def made(options, samples):
    """A model, its optimizer and this rank's samples with their targets."""
    if options.model == "vgg16":
        images, labels = torch.randn(samples, 3, 32, 32), torch.randint(10, (samples,))
        return Vgg16(), lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9), (images, labels)
    tokens = torch.randint(options.vocabulary, (samples, options.seq + 1))
    model = Gpt2Stage(options) if options.form == "pp" else Gpt2(options)
    return model, lambda p: torch.optim.AdamW(p, lr=1e-3), (tokens[:, :-1], tokens[:, 1:])


def parsed():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=["gpt2", "vgg16"])
    parser.add_argument("form", choices=["one", "dp", "fsdp", "pp"])
    for name in ["batch", "steps"]:
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in ["layers", "d-model", "heads", "vocabulary", "seq"]:
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--micro-batches", type=int)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--store")
    return parser.parse_args()


def main():
    options = parsed()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    samples = options.batch // (1 if options.form == "pp" else options.ranks)
    model, make_optimizer, batch = made(options, samples)
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
    optimizer = make_optimizer(model.parameters())
    if options.form == "pp":
        compute = pipelined(options, model)
    else:
        def compute(*batch):
            model(*batch).backward()
    seconds = []
    for _ in range(options.steps):
        begin = time.perf_counter()
        optimizer.zero_grad()
        compute(*batch)
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
    if options.rank == 0:
        print(json.dumps(seconds))
    if options.form != "one":
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
