"""Training programs on the backend "baton" equal the same training on one process: DistributedDataParallel,
FSDP2 and tensor parallelism of a small GPT, pipelining, and attention by Ulysses."""

import unittest

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

import processes

BATCH, SEQUENCE, WIDTH, HEADS, LAYERS, VOCABULARY, STEPS = 12, 8, 24, 12, 2, 40, 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.q, self.k, self.v, self.proj = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.fc1, self.fc2 = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        n = self.norm1(x)
        q, k, v = (part(n).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2)
                   for part in (self.q, self.k, self.v))
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(attended.transpose(1, 2).flatten(2))
        return x + self.fc2(functional.gelu(self.fc1(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids):
        return self.head(self.blocks(self.embedding(ids)))


def model():
    torch.manual_seed(5)
    return Gpt().double()


def batches():
    generator = torch.Generator().manual_seed(6)
    for _ in range(STEPS):
        ids = torch.randint(VOCABULARY, (BATCH, SEQUENCE + 1), generator=generator)
        yield ids[:, :-1], ids[:, 1:]


def loss_of(logits, targets):
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def trained(net, part=slice(None), average=None):
    """The loss of each step; `average` makes it the whole batch's."""
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    losses = []
    for ids, targets in batches():
        optimizer.zero_grad()
        loss = loss_of(net(ids[part]), targets[part])
        loss.backward()
        optimizer.step()
        value = loss.detach().clone()
        if average:
            average(value)
        losses.append(value.item())
    return losses


def expect_losses(found, tolerance=1e-9):
    torch.testing.assert_close(torch.tensor(found), torch.tensor(trained(model())), rtol=tolerance,
                               atol=tolerance)


def of_rank(rank, size):
    return slice(rank * BATCH // size, (rank + 1) * BATCH // size)


def mean(value):
    dist.all_reduce(value, dist.ReduceOp.AVG)


def ddp(rank, size):
    net = nn.parallel.DistributedDataParallel(model(), bucket_cap_mb=0.01)
    expect_losses(trained(net, of_rank(rank, size), mean))


def power_sgd(rank, size):
    """The callbacks of its hook wait for further collectives. Gradients are approximations, as gloo's are."""
    from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook

    found = []
    for group in dist.group.WORLD, dist.new_group(backend="gloo"):
        net = nn.parallel.DistributedDataParallel(model(), process_group=group)
        net.register_comm_hook(PowerSGDState(group, start_powerSGD_iter=2), powerSGD_hook)
        found.append(trained(net, of_rank(rank, size), mean))
    torch.testing.assert_close(*found, rtol=1e-9, atol=1e-9)


def fsdp2(rank, size):
    from torch.distributed.fsdp import fully_shard

    net = model()
    mesh = dist.init_device_mesh("cpu", (size,))
    for block in net.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(net, mesh=mesh)
    expect_losses(trained(net, of_rank(rank, size), mean))


def tensor_parallel(rank, size):
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    net = model()
    mesh = dist.init_device_mesh("cpu", (size,))
    for block in net.blocks:
        columns = {name: ColwiseParallel() for name in ("q", "k", "v", "fc1")}
        rows = {name: RowwiseParallel() for name in ("proj", "fc2")}
        parallelize_module(block, mesh, columns | rows)
    expect_losses(trained(net))


def pipeline(rank, size):
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    whole = model()
    layers = [whole.embedding, *whole.blocks, whole.head]
    cut = [len(layers) * r // size for r in range(size + 1)]
    net = nn.Sequential(*layers[cut[rank]:cut[rank + 1]])
    stage = PipelineStage(net, rank, size, torch.device("cpu"))
    schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=loss_of)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    found = []
    for ids, targets in batches():
        optimizer.zero_grad()
        losses = []
        if rank == 0:
            schedule.step(ids)
        elif rank == size - 1:
            schedule.step(target=targets, losses=losses)
        else:
            schedule.step()
        optimizer.step()
        value = torch.stack(losses).mean().detach() if losses else torch.zeros((), dtype=torch.double)
        dist.broadcast(value, size - 1)
        found.append(value.item())
    expect_losses(found)


class AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(context, parts):
        received = torch.empty_like(parts)
        dist.all_to_all_single(received, parts.contiguous())
        return received

    @staticmethod
    def backward(context, gradient):
        return AllToAll.forward(context, gradient)


def ulysses(rank, size):
    """[b, s/P, h, d] to [b, s, h/P, d] and back, by all_to_all_single, with gradients."""
    torch.manual_seed(7)
    sequence, heads, depth = 12, 12, 4
    whole = [torch.randn(2, sequence, heads, depth, dtype=torch.double) for _ in range(4)]

    def turned(x, scatter, gather):
        """Cuts x along `scatter`, joins along `gather`."""
        parts = torch.stack(x.chunk(size, scatter)).contiguous()
        return torch.cat(list(AllToAll.apply(parts).unbind()), gather)

    def attention(q, k, v):
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)

    def gradients(inputs, function, weight):
        inputs = [x.clone().requires_grad_() for x in inputs]
        out = function(*inputs)
        (out * weight).sum().backward()
        return out.detach(), [x.grad for x in inputs]

    own = [x.chunk(size, 1)[rank].contiguous() for x in whole]
    found = gradients(own[:3], lambda *qkv: turned(attention(*(turned(x, 2, 1) for x in qkv)), 1, 2), own[3])
    out, wanted = gradients(whole[:3], attention, whole[3])
    expected = out.chunk(size, 1)[rank], [x.chunk(size, 1)[rank] for x in wanted]
    torch.testing.assert_close(found, expected)


class Programs(unittest.TestCase):
    pass


for function in ddp, power_sgd, fsdp2, tensor_parallel, pipeline, ulysses:
    def test(self, function=function):
        for size in 2, 3, 4:
            with self.subTest(size=size):
                processes.run(size, function)

    setattr(Programs, "test_" + function.__name__, test)

if __name__ == "__main__":
    unittest.main()
