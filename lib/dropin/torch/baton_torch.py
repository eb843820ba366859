"""A backend of torch.distributed whose collectives run by baton.

    torch.distributed.init_process_group("baton")

needs no import of this package.
"""

import atexit

import torch
import torch.distributed as dist

import _baton_torch

__all__ = ["explain", "register", "stats"]

_groups = []  # those that have not been destroyed


def _creator(name):
    world = None  # the group of all ranks

    def create(options, _):
        nonlocal world
        _groups[:] = [group for group in _groups if group.open]
        first = not dist.is_initialized()
        if world is not None and (first or not world.open):
            world = None
        group = _baton_torch.Group(options.store, options.group_rank, options.group_size,
                         options.timeout.total_seconds(), name, world, options.global_ranks_in_group,
                         "" if first else "-" + options.group_id)
        if first:
            world = group
        _groups.append(group)
        return group

    return create


def register(name="baton"):
    """Makes baton the backend of this name. torch.distributed calls it for "baton"; "gloo" puts it in gloo's place."""
    dist.Backend.register_backend(name, _creator(name), extended_api=True, devices=["cpu"])


@atexit.register
def _leave():
    # A program may end without destroy_process_group().
    for group in reversed(_groups):
        group.shutdown()


def _backend(group):
    group = group or dist.group.WORLD
    backend = group._get_backend(torch.device("cpu"))
    backend = getattr(backend, "wrapped_pg", backend)  # of TORCH_DISTRIBUTED_DEBUG=DETAIL
    if not isinstance(backend, _baton_torch.Group):
        raise ValueError(f'a process group of backend "baton" was expected, found one of "{backend.name()}"')
    return backend


def explain(operation, tensor, group=None, root=0):
    """The algorithm by which the group would run an operation on this tensor, and its messages.

    operation: "all_reduce", "broadcast", "all_gather", "reduce_scatter" or "all_to_all". Nothing is sent.
    """
    return _backend(group).explain(operation, tensor, root)


def stats(group=None):
    """Calls and bytes of each operation that this rank has begun: {"all_reduce": {"calls": 3, "bytes": 4096}}."""
    return _backend(group).counts()
