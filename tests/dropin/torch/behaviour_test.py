"""The backend "baton" beside gloo, operation by operation: the same results, and the same kind of error."""

import datetime
import os
import tempfile
import threading
import time
import unittest
from inspect import signature
from pathlib import Path

import torch
import torch.distributed as dist

import _baton_torch
import processes

OPS = dist.ReduceOp
TYPES = [torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64]


def tensor(count, rank, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(1000 * seed + rank)
    return torch.randint(1, 4, (count,), generator=generator).to(dtype)


def both(size, *ranks):
    """The same group over baton and over gloo."""
    ranks = list(ranks) or list(range(size))
    return dist.new_group(ranks), dist.new_group(ranks, backend="gloo")


def same(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)


def raised(function):
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError("an error was expected, found none")


def reductions(rank, size):
    ours, theirs = both(size)
    for dtype in TYPES:
        for op in OPS.SUM, OPS.PRODUCT, OPS.MIN, OPS.MAX, *(() if dtype.is_floating_point
                                                            else (OPS.BAND, OPS.BOR, OPS.BXOR)):
            for count in 0, 1, 5, 1023:
                if dtype is torch.uint8 and op == OPS.PRODUCT:
                    continue
                results = []
                for group in ours, theirs:
                    value = tensor(count, rank, dtype)
                    dist.all_reduce(value, op, group=group)
                    rooted = tensor(count, rank, dtype, 1)
                    dist.reduce(rooted, size - 1, op, group=group)
                    results.append((value, rooted if rank == size - 1 else None))
                same(*results)
    # Beyond gloo's: averages, bfloat16, booleans, complex numbers, 8-bit floats, factors.
    value = torch.full((7,), float(rank), dtype=torch.bfloat16)
    dist.all_reduce(value, OPS.AVG)
    same(value, torch.full((7,), (size - 1) / 2, dtype=torch.bfloat16))
    truth = torch.tensor([rank == 0, True, False])
    dist.all_reduce(truth, OPS.SUM)
    same(truth, torch.tensor([True, True, False]))
    truth = torch.tensor([rank == 0, True, False])
    dist.all_reduce(truth, OPS.MIN)
    same(truth, torch.tensor([size == 1, True, False]))
    number = torch.full((3,), complex(1, rank))
    dist.all_reduce(number)
    same(number, torch.full((3,), complex(size, sum(range(size)))))
    scaled = torch.ones(4)
    dist.all_reduce(scaled, dist._make_nccl_premul_sum(0.5))
    same(scaled, torch.full((4,), size / 2))
    turned = torch.ones(3, 4).t()
    dist.all_reduce(turned, dist._make_nccl_premul_sum(2.0))
    same(turned, torch.full((4, 3), 2.0 * size))
    wide = torch.ones(4)  # the factor's type is another one
    dist.all_reduce(wide, dist._make_nccl_premul_sum(torch.full((1,), 0.5, dtype=torch.float64)))
    same(wide, torch.full((4,), size / 2))
    whole = torch.arange(4096)
    error = raised(lambda: dist.all_reduce(whole, dist._make_nccl_premul_sum(2.0)))
    assert isinstance(error, ValueError) and "expected floating-point numbers to multiply" in str(error)
    assert isinstance(raised(lambda: dist.all_reduce(number, OPS.PRODUCT)), ValueError)
    assert "Invalid scalar type" in str(raised(lambda: dist.all_reduce(torch.ones(2, dtype=torch.int16))))


def movement(rank, size):
    ours, theirs = both(size)
    for dtype in *TYPES, torch.bool, torch.bfloat16, torch.int16, torch.complex64:
        for count in 0, 1, 1025:
            root = 0
            results = []
            for group in (ours, theirs) if dtype in TYPES else (ours,):
                spread = tensor(count, rank, dtype)
                dist.broadcast(spread, size - 1, group=group)
                gathered = [torch.empty(count, dtype=dtype) for _ in range(size)]
                dist.all_gather(gathered, tensor(count, rank, dtype, 1), group=group)
                rooted = [torch.empty(count, dtype=dtype) for _ in range(size)] if rank == root else None
                dist.gather(tensor(count, rank, dtype, 2), rooted, root, group=group)
                part = torch.empty(count, dtype=dtype)
                parts = [tensor(count, r, dtype, 3) for r in range(size)] if rank == root else None
                dist.scatter(part, parts, root, group=group)
                results.append((spread, gathered, rooted, part))
            expected = (tensor(count, size - 1, dtype), [tensor(count, r, dtype, 1) for r in range(size)],
                        [tensor(count, r, dtype, 2) for r in range(size)] if rank == root else None,
                        tensor(count, rank, dtype, 3))
            for result in results:
                same(result, expected)
    # One tensor in, one out, and uneven splits.
    whole = torch.empty(size * 6)
    dist.all_gather_into_tensor(whole, torch.full((6,), float(rank)))
    same(whole, torch.arange(float(size)).repeat_interleave(6))
    part = torch.empty(6)
    dist.reduce_scatter_tensor(part, torch.arange(6.0 * size))
    same(part, size * torch.arange(6.0 * rank, 6 * rank + 6))
    uneven = [torch.empty(r + 1) for r in range(size)]
    dist.all_gather(uneven, torch.full((rank + 1,), float(rank)))
    same(uneven, [torch.full((r + 1,), float(r)) for r in range(size)])
    part = torch.empty(rank + 1)
    dist.reduce_scatter(part, [torch.full((r + 1,), float(r)) for r in range(size)])
    same(part, torch.full((rank + 1,), float(rank * size)))
    sent = [r + rank for r in range(size)]
    received = torch.empty(sum(sent), 2)
    dist.all_to_all_single(received, torch.full((sum(sent), 2), float(rank)), sent, sent)
    same(received, torch.cat([torch.full((r + rank, 2), float(r)) for r in range(size)]))
    lists = [torch.empty(2) for _ in range(size)]
    dist.all_to_all(lists, [torch.full((2,), 10.0 * rank + r) for r in range(size)])
    same(lists, [torch.full((2,), 10.0 * r + rank) for r in range(size)])
    # Some ranks give splits, others none.
    even = torch.empty(size)
    splits = [1] * size if rank == 0 else None
    dist.all_to_all_single(even, torch.arange(float(size)), splits, splits)
    same(even, torch.full((size,), float(rank)))


def layouts(rank, size):
    """Tensors with gaps, without elements, and of other layouts."""
    wide = torch.zeros(4, 6)
    view = wide[:, ::2]
    view.fill_(rank + 1)
    dist.all_reduce(view)
    total = size * (size + 1) / 2
    same(wide, torch.tensor([total, 0.0]).repeat(4, 3))
    turned = torch.arange(6.0).view(2, 3).t()
    dist.broadcast(turned, 0)
    same(turned, torch.arange(6.0).view(2, 3).t())
    columns = torch.zeros(size, 3).t()
    rows = [columns[:, r] for r in range(size)]
    dist.all_gather(rows, torch.full((3,), float(rank)))
    same(columns, torch.arange(float(size)).repeat(3, 1))
    sparse = torch.sparse_coo_tensor([[rank, size]], [1.0, 2.0], (size + 1,))
    dist.all_reduce(sparse)
    same(sparse.to_dense(), torch.tensor([1.0] * size + [2.0 * size]))
    raised(lambda: dist.broadcast(sparse, 0))


def lazy_views(rank, size):
    """Of views that PyTorch resolves late: conj(), and the imaginary part of it. They are sent and filled."""
    own = torch.arange(4) + torch.full((4,), complex(0, rank + 1))
    everyones = [torch.arange(4) + torch.full((4,), complex(0, -r - 1)) for r in range(size)]
    into = [torch.empty_like(own) for _ in range(size)]
    dist.gather(own.conj(), into if rank == 0 else None)
    if rank == 0:
        same(into, everyones)
    dist.gather(own, [one.conj() for one in into] if rank == 0 else None)
    if rank == 0:
        same(into, everyones)
    part = torch.empty(4)
    dist.scatter(part, [one.conj().imag for one in into] if rank == 0 else None)
    same(part, own.imag)
    negative = own.conj().imag
    assert negative.is_neg()
    parts = torch.empty(size, 4)
    dist.all_gather(list(parts), negative)
    same(parts, -torch.arange(1.0, size + 1).repeat_interleave(4).view(size, 4))
    # The backend itself: torch.distributed gives it a copy.
    dist.group.WORLD._get_backend(torch.device("cpu")).allreduce([negative]).wait()
    same(own.imag, torch.full((4,), size * (size + 1) / 2))


def coalesced(rank, size):
    tensors = [torch.full((n,), float(rank)) for n in (3, 1, 1000)]
    with dist._coalescing_manager():
        for t in tensors:
            dist.all_reduce(t)
    for t in tensors:
        same(t, torch.full_like(t, sum(range(size))))
    outputs = [torch.empty(size * n) for n in (2, 5)]
    with dist._coalescing_manager():
        for output, n in zip(outputs, (2, 5)):
            dist.all_gather_into_tensor(output, torch.full((n,), float(rank)))
    same(outputs, [torch.arange(float(size)).repeat_interleave(n) for n in (2, 5)])
    parts = [torch.empty(n) for n in (2, 5)]
    with dist._coalescing_manager():
        for part, n in zip(parts, (2, 5)):
            dist.reduce_scatter_tensor(part, torch.ones(n * size))
    same(parts, [torch.full((n,), float(size)) for n in (2, 5)])


def messages(rank, size):
    """Order by tag, receives from any rank, large messages, both ways at once."""
    ring = [(rank + 1) % size, (rank - 1) % size]
    for count in 1, 100_000, 3_000_000:
        got = torch.empty(count)
        works = [dist.isend(torch.full((count,), float(rank)), ring[0], tag=3), dist.irecv(got, ring[1], tag=3)]
        for work in works:
            work.wait()
        same(got, torch.full((count,), float(ring[1])))
    if rank == 0:
        found = []
        for _ in range(2 * (size - 1)):
            got = torch.empty(1)
            source = dist.recv(got, tag=7)
            assert got.item() == source
            found.append(source)
        assert sorted(found) == sorted(list(range(1, size)) * 2)
    else:
        for _ in range(2):
            dist.send(torch.tensor([float(rank)]), 0, tag=7)
    if rank == 0 and size > 1:
        dist.send(torch.tensor([1.0]), 1, tag=1)
        dist.send(torch.tensor([2.0]), 1, tag=2)
    elif rank == 1:
        two, one = torch.empty(1), torch.empty(1)
        dist.recv(two, 0, tag=2)
        dist.recv(one, 0, tag=1)
        assert (one.item(), two.item()) == (1, 2)
    error = raised(lambda: dist.send(torch.ones(1), (rank + 1) % size, tag=5000))
    assert "tag from 0 to" in str(error), error


def objects(rank, size):
    everything = [None] * size
    dist.all_gather_object(everything, {"rank": rank, "text": "x" * (100 * rank)})
    assert [one["rank"] for one in everything] == list(range(size))
    told = [{"from": 0}, [1, 2]] if rank == 0 else [None, None]
    dist.broadcast_object_list(told, 0)
    assert told == [{"from": 0}, [1, 2]]
    mine = [None]
    dist.scatter_object_list(mine, [(r, r) for r in range(size)] if rank == 0 else None, 0)
    assert mine == [(rank, rank)]


def by_device(rank, size):
    """A backend for each device, as in "cpu:baton,cuda:nccl"."""
    value = torch.ones(3)
    dist.all_reduce(value)
    same(value, torch.full((3,), float(size)))
    assert isinstance(dist.group.WORLD._get_backend(torch.device("cpu")), _baton_torch.Group)


def groups(rank, size):
    """Sub-groups work beside each other, also while the others' operations are under way."""
    whole = torch.ones(200_000)
    work = dist.all_reduce(whole, async_op=True)
    pairs = [dist.new_group([r, (r + 1) % size]) for r in range(size)]
    for first, group in enumerate(pairs):
        if rank in (first, (first + 1) % size):
            value = torch.full((50,), float(rank))
            dist.all_reduce(value, group=group)
            same(value, torch.full((50,), float(first + (first + 1) % size)))
    work.wait()
    same(whole, torch.full_like(whole, size))
    mesh = dist.init_device_mesh("cpu", (size,), mesh_dim_names=("dp",))
    value = torch.ones(3)
    dist.all_reduce(value, group=mesh.get_group("dp"))
    same(value, torch.full((3,), float(size)))


def futures(rank, size):
    values = [torch.full((1000,), float(rank)) for _ in range(40)]
    works = [dist.all_reduce(value, async_op=True) for value in values]
    seen = []
    future = works[-1].get_future().then(lambda f: seen.append(f.value()[0].sum().item()))
    future.wait()  # the thread of the driver completes it
    assert seen == [1000.0 * sum(range(size))]
    for work in reversed(works):
        work.wait()
        assert work.is_completed() and work.is_success()
    for value in values:
        same(value, torch.full_like(value, sum(range(size))))
    # Nobody waits: it completes by itself.
    value = torch.full((1000,), float(rank))
    work = dist.all_reduce(value, async_op=True)
    end = time.monotonic() + 60
    while not work.is_completed() and time.monotonic() < end:
        time.sleep(0.001)
    assert work.is_completed()


def callbacks_that_wait(rank, size):
    """Callbacks of futures wait for further operations, as those of powerSGD do."""
    first, second = dist.new_group(), dist.new_group()

    def reduced(value, group=None):
        return dist.all_reduce(value, group=group, async_op=True).get_future()

    # One in another one.
    def reduces(future):
        further = reduced(future.value()[0], first)
        return further.then(lambda its: reduced(its.value()[0], second).wait()[0]).wait()

    same(reduced(torch.ones(3)).then(reduces).wait(), torch.full((3,), float(size**3)))
    # For what has begun before.
    both = [dist.irecv(torch.empty(1), 1 - rank, tag=tag).get_future() for tag in (1, 2)]
    chained = both[0].then(lambda _: both[1].wait()[0])
    dist.barrier()
    for tag in 1, 2:
        dist.isend(torch.tensor([float(tag)]), 1 - rank, tag=tag)
    same(chained.wait(), torch.tensor([2.0]))
    # A thread that waits for something else calls it.
    if rank == 0:
        chained = dist.irecv(torch.empty(1), 1, tag=3).get_future().then(
            lambda future: reduced(future.value()[0], first).wait()[0])
        dist.recv(torch.empty(1), 1, tag=4)
        same(chained.wait(), torch.tensor([3.0]))
    else:
        time.sleep(0.3)  # rank 0 waits
        dist.send(torch.ones(1), 0, tag=3)
        dist.all_reduce(torch.full((1,), 2.0), group=first)
        dist.send(torch.ones(1), 0, tag=4)


def destroys_beside_others(rank, size):
    """A group ends while an operation of another one is under way."""
    group = dist.new_group()
    dist.barrier(group=group)
    got = torch.empty(1)
    if rank == 0:
        work = dist.irecv(got, 1)
        dist.destroy_process_group(group)
        dist.send(torch.ones(1), 1)
        work.wait()
    else:
        dist.recv(got, 0)
        dist.send(torch.ones(1), 0)


def leaves_beside_others(rank, size):
    """A rank leaves a group at once, also where the other one is in an operation of another group."""
    groups = [dist.new_group() for _ in range(3)]
    for group in groups:
        dist.barrier(group=group)
    store = dist.distributed_c10d._get_default_store()
    got = torch.empty(1)
    if rank == 0:
        work = dist.irecv(got, 1)
        store.set("rank 0 receives", "")
        work.wait()  # its timeout is less than three farewells without an answer
    else:
        store.wait(["rank 0 receives"])
        for group in groups:
            dist.destroy_process_group(group)
        dist.send(torch.ones(1), 0)


def begins_again(rank, size, folder):
    """Groups one after the other by one store; also after ranks that waited in vain."""
    dist.destroy_process_group()
    store = dist.FileStore(f"{folder}/again", size)
    for _ in range(3):
        time.sleep(0.2 * rank)  # the first ones do not take what the others left there
        dist.init_process_group("baton", store=store, rank=rank, world_size=size)
        value = torch.ones(3)
        dist.all_reduce(value)
        same(value, torch.full((3,), float(size)))
        dist.destroy_process_group()

    def begin(seconds):
        return _baton_torch.Group(store, rank, size, seconds, "baton", None, [], "")

    for late in range(size):
        if rank == late:
            store.wait([f"in vain {late} {r}" for r in range(size) if r != late])
        else:
            raised(lambda: begin(1.0))
            store.set(f"in vain {late} {rank}", "")
        group = begin(30.0)
        value = torch.ones(3)
        group.allreduce([value]).wait()
        same(value, torch.full((3,), float(size)))
        group.shutdown()


def async_barrier(rank, size):
    """It returns at once, and is over when the collectives before it are."""
    token = torch.zeros(1)
    if rank == 1:
        dist.recv(token, 0)  # comes only if the calls below have returned
    value = torch.ones(100_000)
    dist.all_reduce(value, async_op=True)
    barrier = dist.barrier(async_op=True)
    if rank == 0:
        dist.send(token, 1)
    barrier.wait()
    same(value, torch.full_like(value, size))
    assert barrier.is_completed() and barrier.is_success()
    # Also where each has ended as a whole before the next one begins.
    dist.barrier()
    dist.barrier(async_op=True).wait()


def async_barrier_after_failure(rank, size):
    """It fails if a collective before it does."""
    if rank == 1:
        time.sleep(4)
        os._exit(0)
    work = dist.all_reduce(torch.ones(100), async_op=True)
    barrier = dist.barrier(async_op=True)
    for one in work, barrier:
        assert "rank" in str(raised(one.wait))
    os._exit(0)  # rank 1 does not take part in the end


def inference(rank, size):
    """Tensors with gaps that were made in inference mode, and others; any thread completes them."""
    with torch.inference_mode():
        inside = torch.ones(4, 6)[:, ::2]
        scaled = torch.ones(4)
    outside = torch.ones(4, 6, requires_grad=True)[:, ::2].detach()
    for value, op in (inside, OPS.SUM), (outside, OPS.SUM), (scaled, dist._make_nccl_premul_sum(1.0)):
        work = dist.all_reduce(value, op, async_op=True)
        end = time.monotonic() + 60
        while not work.is_completed() and time.monotonic() < end:  # by the driver's thread
            time.sleep(0.001)
        work.wait()
        same(value, torch.full_like(value, size))
    with torch.inference_mode():
        for value in inside, outside:
            dist.all_reduce(value)
            same(value, torch.full_like(value, size * size))


def counts_of_threads(rank, size):
    """Several threads use a group at a time; no call is lost."""
    import baton_torch

    calls, threads = 200_000, 4
    group = dist.group.WORLD._get_backend(torch.device("cpu"))

    def use():
        for _ in range(calls):
            group.barrier()

    using = [threading.Thread(target=use) for _ in range(threads)]
    for one in using:
        one.start()
    while any(one.is_alive() for one in using):
        baton_torch.stats()
        time.sleep(0)
    assert baton_torch.stats()["barrier"]["calls"] == threads * calls, baton_torch.stats()


def names_the_dead(rank, size, victim):
    """monitored_barrier fails on the survivors of a rank that ends."""
    dist.barrier()
    if rank == victim:
        os._exit(0)
    error = str(raised(lambda: dist.monitored_barrier(timeout=datetime.timedelta(seconds=60))))
    expected = f"Rank {victim} failed to pass monitoredBarrier: " if rank == 0 else \
        "received errors while waiting for send/recv from rank 0: "
    assert expected in error and " ms" not in error, error
    os._exit(0)


def names_the_first_dead(rank, size):
    names_the_dead(rank, size, 0)


def names_the_last_dead(rank, size):
    names_the_dead(rank, size, size - 1)


def passes_after_timeout(rank, size):
    """A monitored_barrier that timed out does not disturb the next ones."""
    store = dist.distributed_c10d._get_default_store()
    long, short = datetime.timedelta(seconds=60), datetime.timedelta(seconds=1)
    for late in range(size):
        if rank == late:
            store.wait([f"gave up {late} {r}" for r in range(size) if r != late], long)
        if rank == late == 0:
            dist.monitored_barrier(timeout=long)  # all others have come
        else:
            raised(lambda: dist.monitored_barrier(timeout=short))
        store.set(f"gave up {late} {rank}", "")
        for _ in range(3):
            dist.monitored_barrier(timeout=long)
    value = torch.ones(3)
    dist.all_reduce(value)
    same(value, torch.full((3,), float(size)))


def names_the_missing(rank, size):
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=30))
    if rank == 1:
        time.sleep(3)
        return
    error = str(raised(lambda: dist.monitored_barrier(timeout=datetime.timedelta(seconds=1))))
    assert ("Rank 1 failed to pass monitoredBarrier" if rank == 0 else "rank 0") in error, error


def times_out(rank, size):
    """The error names the ranks that are waited for, and comes in time."""
    if rank == 1:
        time.sleep(4)
        os._exit(0)
    begin = time.monotonic()
    error = str(raised(lambda: dist.all_reduce(torch.ones(4))))
    assert "Timed out" in error and "rank" in error and "all_reduce #1" in error, error
    assert time.monotonic() - begin < 20
    later = str(raised(lambda: dist.all_reduce(torch.ones(4))))
    assert "failed earlier" in later or "longer than its timeout" in later, later
    os._exit(0)  # rank 1 does not take part in the end


def hangs(rank, size, folder, description=None, name="world"):
    """All survivors say the same, and name the rank that does not come."""
    x = torch.ones(1000)
    group = None
    if name != "world":
        group = dist.new_group(list(range(size)), group_desc=description, timeout=datetime.timedelta(seconds=2))
    dist.broadcast(x, 0, group=group)
    if rank == 1:
        time.sleep(6)
        os._exit(0)
    error = str(raised(lambda: dist.all_reduce(x, group=group)))
    Path(folder, f"part{rank}").write_text(error)
    os.rename(Path(folder, f"part{rank}"), Path(folder, str(rank)))
    while len([file for file in os.listdir(folder) if file.isdigit()]) < size - 1:
        time.sleep(0.01)
    if rank == 0:
        said = {Path(folder, file).read_text() for file in os.listdir(folder)}
        assert len(said) == 1, said
        for part in ("all_reduce #2: Timed out waiting 2000ms; all_reduce #",
                     f"of communicator '{name}' cannot complete (no progress for 2 s): ",
                     "rank 1 has not entered it (last: broadcast #"):
            assert part in error, error
    os._exit(0)


def hangs_in_described(rank, size, folder):
    hangs(rank, size, folder, "mesh_tp", "mesh_tp")


def hangs_in_numbered(rank, size, folder):
    hangs(rank, size, folder, None, "group 1")


def aborts(rank, size):
    """abort() ends what is under way; another thread that waits hears of it."""
    if rank == 1:
        time.sleep(3)
        os._exit(0)
    group = dist.group.WORLD._get_backend(torch.device("cpu"))
    work = dist.all_reduce(torch.ones(4), async_op=True)
    heard = []
    waiting = threading.Thread(target=lambda: heard.append(str(raised(work.wait))))
    waiting.start()
    time.sleep(0.3)
    group.abort()
    waiting.join(20)
    assert not waiting.is_alive() and "aborted" in heard[0], heard
    assert "aborted" in str(raised(lambda: dist.all_reduce(torch.ones(4))))
    os._exit(0)


def destroyed_in_flight(rank, size):
    if rank == 1:
        time.sleep(4)
        os._exit(0)
    work = dist.all_reduce(torch.ones(4), async_op=True)
    alone = []

    def make_another(_):
        alone.append(_baton_torch.Group(dist.HashStore(), 0, 1, 10.0, "baton", None, [], ""))

    work.get_future().add_done_callback(make_another)  # it is called amid the group's end
    begin = time.monotonic()
    dist.destroy_process_group()
    assert time.monotonic() - begin < 30
    assert alone and alone[0].open
    alone[0].shutdown()
    assert "destroyed" in str(raised(work.wait))
    os._exit(0)


def threads_of_process():
    return len(os.listdir("/proc/self/task"))


def leaves_no_thread(rank, size):
    with_group = threads_of_process()
    dist.all_reduce(torch.ones(4))
    dist.barrier()
    dist.destroy_process_group()
    assert threads_of_process() < with_group, os.listdir("/proc/self/task")


def wrong_arguments(rank, size):
    for wrong in (lambda: dist.all_gather([torch.empty(2)] * (size + 1), torch.empty(2)),
                  lambda: dist.all_gather_into_tensor(torch.empty(3 * size + 1), torch.empty(3)),
                  lambda: dist.reduce_scatter_tensor(torch.empty(3), torch.empty(3 * size + 1)),
                  lambda: dist.all_to_all_single(torch.empty(size), torch.empty(size), [1] * (size + 1),
                                                 [1] * size),
                  lambda: dist.broadcast(torch.empty(2), size)):
        assert isinstance(raised(wrong), (ValueError, RuntimeError))
    value = torch.ones(2)
    dist.all_reduce(value)  # the group is as good as before
    same(value, torch.full((2,), float(size)))


def explains(rank, size):
    import baton_torch

    text = baton_torch.explain("all_reduce", torch.empty(1000))
    assert f"all_reduce of 1000 f32 on {size} ranks: algorithm " in text, text
    assert "explain: expected broadcast" in str(raised(lambda: baton_torch.explain("sum", torch.empty(1))))
    dist.all_reduce(torch.ones(10))
    dist.all_reduce(torch.ones(10))
    assert baton_torch.stats()["all_reduce"] == {"calls": 2, "bytes": 80}
    gloo = dist.new_group(backend="gloo")
    assert 'found one of' in str(raised(lambda: baton_torch.stats(gloo)))
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    checked = dist.new_group()
    dist.all_reduce(torch.ones(10), group=checked)
    assert baton_torch.stats(checked)["all_reduce"] == {"calls": 1, "bytes": 40}
    assert "all_reduce of 1000 f32" in baton_torch.explain("all_reduce", torch.empty(1000), checked)


class Behaviour(unittest.TestCase):
    pass


def add(function, sizes, **options):
    def test(self):
        for size in sizes:
            with self.subTest(size=size), tempfile.TemporaryDirectory() as folder:
                arguments = [folder] if "folder" in signature(function).parameters else []
                processes.run(size, function, *arguments, **options)

    setattr(Behaviour, "test_" + function.__name__, test)


for function in (reductions, movement, layouts, lazy_views, coalesced, objects, wrong_arguments, leaves_no_thread,
                 explains):
    add(function, (1, 2, 3))
for function in messages, groups, futures, async_barrier, inference:
    add(function, (2, 3, 4))
add(by_device, (2,), backend="cpu:baton")
add(names_the_missing, (3,))
add(passes_after_timeout, (2, 3))
add(names_the_first_dead, (2, 3))
add(names_the_last_dead, (2, 3))
add(callbacks_that_wait, (2,), timeout=datetime.timedelta(seconds=20), limit=60)
add(destroys_beside_others, (2,), timeout=datetime.timedelta(seconds=20), limit=60)
add(leaves_beside_others, (2,), timeout=datetime.timedelta(seconds=12),
    environment={"BATON_TRANSPORT": "ucx"})
add(begins_again, (2, 3))
add(async_barrier_after_failure, (2,), timeout=datetime.timedelta(seconds=2))
add(counts_of_threads, (1,))
add(hangs, (2, 3, 4), timeout=datetime.timedelta(seconds=2))
add(hangs_in_described, (3,), timeout=datetime.timedelta(seconds=2))
add(hangs_in_numbered, (3,), timeout=datetime.timedelta(seconds=2))
for function in times_out, aborts, destroyed_in_flight:
    add(function, (2, 3), timeout=datetime.timedelta(seconds=2) if function is times_out else None)

if __name__ == "__main__":
    unittest.main()
