"""Ranks average their gradients, and sum the averages: threads, or processes under mpirun."""

import ctypes
import sys
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_int64, c_ssize_t, c_void_p

baton = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else "libbaton-c.so.1")
F32, SUM, AVG, FAILED = 10, 1, 2, 9  # of baton/c/types.h
Body = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)
reduction = [c_void_p, c_void_p, c_void_p, c_int64, c_int, c_ssize_t, c_char_p]
baton.baton_last_error.restype = c_char_p
baton.baton_rank.argtypes = [c_void_p]
baton.baton_all_reduce.argtypes = reduction
baton.baton_start_all_reduce.argtypes = [*reduction, POINTER(c_void_p)]
baton.baton_wait.argtypes = [POINTER(c_void_p)]
baton.baton_launch.argtypes = [c_int, c_void_p, Body, c_void_p]


def check(status):
    if status:
        raise RuntimeError(baton.baton_last_error().decode())


@Body
def rank_program(world, _):
    try:
        count = 1000
        gradients, sums = (c_float * count)(*[baton.baton_rank(world) + 1] * count), (c_float * count)()
        check(baton.baton_all_reduce(world, gradients, gradients, count, F32, AVG, None))
        request = c_void_p()  # in the background: by the ring, in pieces of 128 KiB
        check(baton.baton_start_all_reduce(world, gradients, sums, count, F32, SUM, b"ring:128K", byref(request)))
        check(baton.baton_wait(byref(request)))
        if baton.baton_rank(world) == 0:
            print(f"{gradients[0]:g} {sums[count - 1]:g}", flush=True)
        return 0
    except Exception as error:  # does not leave through C
        print(error, file=sys.stderr)
        return FAILED


check(baton.baton_launch(4, None, rank_program, None))
