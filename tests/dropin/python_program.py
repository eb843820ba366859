"""A program of mpi4py: every collective in both forms, on numpy arrays and on Python's objects.

Prints a line of name and result for each call; exit code 1 if a result was not as expected. With
--drop-in a drop-in must be preloaded.
"""

import ctypes
import sys

import numpy as np
from mpi4py import MPI

COUNT = 1000
wrong = False


def show(comm, name, found, expected):
    """All ranks' results as one line, printed by rank 0 of MPI_COMM_WORLD."""
    global wrong
    right = np.array_equal(found, expected)
    if not right:
        wrong = True
        print(f"FAILED {name} on rank {comm.rank}: {expected} expected, {found} found",
              file=sys.stderr)
    mine = float(np.sum(np.asarray(found, dtype="d")))
    printer = MPI.Group.Translate_ranks(MPI.COMM_WORLD.group, [0], comm.group)[0]
    if comm.rank != printer:
        comm.send(mine, printer, tag=9)
    else:
        sums = [mine if peer == printer else comm.recv(source=peer, tag=9)
                for peer in range(comm.size)]
        print(f"{comm.name} {name}: {sums}", flush=True)


def arrays(comm, wait):
    """Calls in the form that `wait` completes: Bcast and the like, or Ibcast and the like."""
    rank, size = comm.rank, comm.size
    root = size - 1
    form = (lambda name: name) if wait is None else (lambda name: "I" + name.lower())

    def call(name, *arguments, **options):
        request = getattr(comm, form(name))(*arguments, **options)
        if wait:
            wait(request)

    def data(of=rank, count=COUNT, kind="i"):
        return np.arange(count, dtype=kind) + 100 * of

    def everyone(count=COUNT, kind="i"):
        return [data(peer, count, kind) for peer in range(size)]

    call("Barrier")
    out = data() if rank == root else np.zeros(COUNT, "i")
    call("Bcast", out, root=root)
    show(comm, form("Bcast"), out, data(root))

    for kind in "bhilqfdFD":
        out = np.zeros(7, kind)
        call("Allreduce", np.arange(7).astype(kind), out, MPI.SUM)
        show(comm, form("Allreduce") + " " + kind, out.real, (np.arange(7) * size).astype(kind).real)
    for op, fold in ((MPI.MIN, np.minimum), (MPI.MAX, np.maximum), (MPI.BXOR, np.bitwise_xor)):
        out = data()
        call("Allreduce", MPI.IN_PLACE, out, op)
        show(comm, form("Allreduce") + " in place", out, fold.reduce(everyone()))
    out = np.zeros(COUNT, "d")
    call("Reduce", data(kind="d"), out, MPI.SUM, root=root)
    show(comm, form("Reduce"), out, sum(everyone(kind="d")) if rank == root else np.zeros(COUNT))

    every = np.concatenate(everyone())
    out = np.zeros(COUNT * size, "i")
    call("Gather", data(), out, root=root)
    show(comm, form("Gather"), out, every if rank == root else 0 * every)
    out = np.zeros(COUNT * size, "i")
    call("Allgather", data(), out)
    show(comm, form("Allgather"), out, every)
    out = np.zeros(COUNT, "i")
    call("Scatter", every, out, root=root)
    show(comm, form("Scatter"), out, data())

    counts = [3 * peer + 1 for peer in range(size)]
    uneven = np.concatenate([data(peer, counts[peer]) for peer in range(size)])
    mine = data(rank, counts[rank])
    out = np.zeros(sum(counts), "i")
    call("Gatherv", mine, (out, counts), root=root)
    show(comm, form("Gatherv"), out, uneven if rank == root else 0 * uneven)
    out = np.zeros(sum(counts), "i")
    call("Allgatherv", mine, (out, counts))
    show(comm, form("Allgatherv"), out, uneven)
    out = np.zeros(counts[rank], "i")
    call("Scatterv", (uneven, counts), out, root=root)
    show(comm, form("Scatterv"), out, mine)

    out = np.zeros(5 * size, "i")
    call("Alltoall", np.repeat(np.arange(size, dtype="i") + 10 * rank, 5), out)
    show(comm, form("Alltoall"), out, np.repeat(10 * np.arange(size) + rank, 5))
    out = np.zeros(size * (rank + 1), "i")
    sent = np.concatenate([np.full(peer + 1, 10 * rank + peer, "i") for peer in range(size)])
    call("Alltoallv", (sent, [peer + 1 for peer in range(size)]), (out, [rank + 1] * size))
    show(comm, form("Alltoallv"), out, np.repeat(10 * np.arange(size) + rank, rank + 1))

    out = np.zeros(size, "i")
    at, ones = [4 * peer for peer in range(size)], [1] * size
    call("Alltoallw", [np.arange(size, dtype="i") + 10 * rank, ones, at, [MPI.INT] * size],
         [out, ones, at, [MPI.INT] * size])
    show(comm, form("Alltoallw"), out, 10 * np.arange(size) + rank)

    total = sum(everyone(6 * size, "d"))
    out = np.zeros(6)
    call("Reduce_scatter_block", data(rank, 6 * size, "d"), out, MPI.SUM)
    show(comm, form("Reduce_scatter_block"), out, total[6 * rank : 6 * rank + 6])
    total = sum(everyone(sum(counts), "d"))
    out = np.zeros(counts[rank])
    call("Reduce_scatter", data(rank, sum(counts), "d"), out, counts, MPI.SUM)
    begin = sum(counts[:rank])
    show(comm, form("Reduce_scatter"), out, total[begin : begin + counts[rank]])
    out = np.zeros(COUNT, "i")
    call("Scan", data(), out, MPI.SUM)
    show(comm, form("Scan"), out, sum(everyone()[: rank + 1]))
    out = np.zeros(COUNT, "i")
    call("Exscan", data(), out, MPI.SUM)
    show(comm, form("Exscan"), out, sum(everyone()[:rank], np.zeros(COUNT, "i")))


def objects(comm):
    """Pickled objects, whose lengths differ, and an operation written in Python."""
    rank, size = comm.rank, comm.size
    shared = comm.bcast({"key": list(range(50))} if rank == 0 else None)
    show(comm, "bcast", shared["key"], range(50))
    show(comm, "allgather", sum(comm.allgather([rank] * (rank + 1)), []),
         sum(([peer] * (peer + 1) for peer in range(size)), []))
    show(comm, "alltoall", comm.alltoall([rank * peer for peer in range(size)]),
         [rank * peer for peer in range(size)])
    show(comm, "allreduce", comm.allreduce(rank, op=MPI.MAX), size - 1)
    show(comm, "scatter", comm.scatter([3 * peer for peer in range(size)] if rank == 0 else None),
         3 * rank)

    def first(inout, other, datatype):
        """Keeps the left operand: not commutative."""
        other[:] = inout[:]

    op = MPI.Op.Create(first, commute=False)
    out = np.zeros(4, "i")
    comm.Allreduce(np.full(4, rank + 5, "i"), out, op)
    op.Free()
    show(comm, "an operation in Python", out, np.full(4, 5))


def strided(comm):
    """A column of a matrix, as a derived datatype."""
    column = MPI.INT.Create_vector(6, 1, 8)
    column.Commit()
    matrix = np.zeros((6, 8), "i")
    if comm.rank == 0:
        matrix[:, 3] = np.arange(6)
    comm.Bcast([matrix.ravel()[3:], 1, column])
    column.Free()
    expected = np.zeros((6, 8), "i")
    expected[:, 3] = np.arange(6)
    show(comm, "a column", matrix, expected)


def main():
    if "--drop-in" in sys.argv and not hasattr(ctypes.CDLL(None), "baton_pmpi_version"):
        sys.exit("python_program.py: expected a drop-in to be preloaded, found none")
    world = MPI.COMM_WORLD
    world.name = "world"
    half = world.Split(world.rank % 2, -world.rank)
    half.name = "half"
    for comm in (world, half) if world.rank % 2 == 0 else (world,):
        comm.allreduce(0)  # mpi4py makes a communicator for it
        MPI.Pcontrol(1)
        arrays(comm, None)
        arrays(comm, lambda request: request.Wait())
        objects(comm)
        strided(comm)
        MPI.Pcontrol(0)
    half.Free()
    return 1 if wrong else 0


if __name__ == "__main__":
    code = main()
    if code:
        MPI.COMM_WORLD.Abort(code)
