"""A recorded program: BATON_TRACE names a file; names of record_function are in it."""

import os
import subprocess
import sys
import tempfile
import unittest

program = """
import os, sys
import torch
import torch.distributed as dist
from torch.profiler import record_function

dist.init_process_group("baton")
rank = dist.get_rank()
with record_function("layer 1"):
    dist.all_reduce(torch.ones(1000))
pair = dist.new_group([1, 2])
if rank > 0:
    with record_function("outer"), record_function("pair"):
        dist.broadcast(torch.ones(10), 1, group=pair)
with record_function("a message"):
    if rank == 0:
        dist.send(torch.ones(7), 1)
    if rank == 1:
        dist.recv(torch.empty(7))  # from any rank
dist.all_reduce(torch.ones(1000))
if sys.argv[1] == "destroy":
    dist.destroy_process_group()
"""


class Recording(unittest.TestCase):
    def test_names_and_groups(self):
        baton = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(sys.executable))), "baton")
        for end in "destroy", "leave":
            with self.subTest(end=end), tempfile.TemporaryDirectory() as folder:
                with open(f"{folder}/program.py", "w") as file:
                    file.write(program)
                run = subprocess.run(
                    [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "3",
                     f"{folder}/program.py", end], text=True, capture_output=True, timeout=120,
                    env=os.environ | {"BATON_TRACE": f"{folder}/trace"})
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertEqual(sorted(os.listdir(folder)), ["program.py", "trace"])
                table = subprocess.run([baton, "timeline", "--from", f"{folder}/trace"], text=True,
                                       capture_output=True, check=True).stdout
                for name in ("all_reduce (layer 1)", "broadcast (pair)", "message (a message)", "all_reduce "):
                    self.assertIn(" " + name, table)
                self.assertNotIn("baton:", table)


unittest.main()
