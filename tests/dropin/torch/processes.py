"""Runs a function in processes that form a process group, and collects its failures."""

import os
import tempfile
import traceback

import torch
import torch.distributed as dist


def _child(rank, size, backend, timeout, environment, function, arguments, store, failures):
    torch.set_num_threads(1)
    os.environ.update(environment)
    try:
        dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=size,
                                timeout=timeout)
        function(rank, size, *arguments)
        if dist.is_initialized():
            dist.destroy_process_group()
    except BaseException:
        failures.put((rank, traceback.format_exc()))
        os._exit(1)  # nobody waits for this rank


def run(size, function, *arguments, backend="baton", timeout=None, environment=(), limit=120):
    """function(rank, size, *arguments) on `size` processes; raises the first failure."""
    context = torch.multiprocessing.get_context("fork")
    failures = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        processes = [context.Process(target=_child, args=(rank, size, backend, timeout, environment, function,
                                                          arguments, f"{folder}/store", failures))
                     for rank in range(size)]
        for process in processes:
            process.start()
        try:
            for process in processes:
                process.join(limit)
            late = [rank for rank, process in enumerate(processes) if process.is_alive()]
        finally:
            for process in processes:
                process.kill()
    said = []
    while not failures.empty():
        said.append("rank %d:\n%s" % failures.get())
    if late:
        said.append(f"ranks {late} did not end within {limit} s")
    codes = [process.exitcode for process in processes]
    if said or any(codes):
        raise AssertionError("\n".join(said) or f"exit codes {codes}")
