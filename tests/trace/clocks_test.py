"""Recordings of processes of MPI: clocks with known offsets are found, and nothing arrives early.

Usage: clocks_test.py BATON PROBE FINALIZED_FIRST VIRTUAL_CLUSTER MPIRUN...
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BATON, PROBE, FINALIZED_FIRST, VIRTUAL_CLUSTER, *MPIRUN = sys.argv[1:]
CLUSTER = [VIRTUAL_CLUSTER, "with", "3", "1gbit"]
RANKS = 3
SECONDS = 1000  # by which rank r's clock is r times ahead

# Starts a rank in a time namespace of its own.
SHIFTED = ('exec unshare --time --fork --monotonic '
           '$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} * %d)) "$@"' % SECONDS)


def can_shift_clocks():
    try:
        return subprocess.run(["unshare", "--time", "--fork", "--monotonic", "5", "true"],
                              capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def has_virtual_hosts():
    """Whether there are some, and MPIRUN is of the library that runs on them."""
    if not MPIRUN[0].endswith("openmpi"):
        return False
    return subprocess.run([*CLUSTER, "true"], capture_output=True).returncode == 0


class ClocksTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.file = str(Path(self.folder.name) / "a.trace")
        self.addCleanup(self.folder.cleanup)

    def mpirun(self, *command, launcher=None, ranks=RANKS):
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("BATON_")}
        done = subprocess.run([*(launcher or [*MPIRUN, "-n", str(ranks)]), *command],
                              capture_output=True, text=True, timeout=250, env=inherited)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def probe(self, *arguments):
        done = subprocess.run([PROBE, *arguments], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def run_ring(self, *before, launcher=None):
        self.mpirun(*before, BATON, "run", "all_reduce", "--algorithm", "ring", "--bytes", "64K",
                    "--iters", "5", "--trace", self.file, launcher=launcher)
        trace = self.probe(self.file)
        self.assertEqual(trace["damage"], 0)
        self.assertGreaterEqual(len(trace["operations"]), 6)
        self.assertEqual(trace["messages"], len(trace["operations"]) * RANKS * 2 * (RANKS - 1))
        return trace

    def check_offsets(self, trace, seconds):
        """Rank r's clock was r * seconds ahead, within the bounds that are stated."""
        self.assertEqual([part["clock"] for part in trace["parts"]], list(range(RANKS)))
        for part in trace["parts"][1:]:
            for local, offset, error in (part["before"], part["after"]):
                self.assertLessEqual(abs(-offset - part["rank"] * seconds * 10**9), error)
                self.assertLessEqual(error, trace["clock_error"])
            self.assertLess(part["before"][0], part["after"][0])
        self.assertGreater(trace["clock_error"], 0)
        self.assertLess(trace["clock_error"], 10**9)

    def test_ranks_of_one_host_share_a_clock(self):
        trace = self.run_ring()
        self.assertEqual([part["clock"] for part in trace["parts"]], [0] * RANKS)
        self.assertEqual(trace["clock_error"], 0)
        self.assertEqual(trace["early_arrivals"], 0)

    @unittest.skipUnless(can_shift_clocks(), "needs root, and time namespaces")
    def test_clocks_that_are_ahead_are_found_to_be_so(self):
        self.check_offsets(self.run_ring("sh", "-c", SHIFTED, "sh"), SECONDS)

    @unittest.skipUnless(has_virtual_hosts(), "needs root, Open MPI, and network namespaces")
    def test_hosts_are_compared_whatever_their_clocks(self):
        self.check_offsets(self.run_ring(launcher=CLUSTER), 0)
        self.check_offsets(self.run_ring("sh", "-c", SHIFTED, "sh", launcher=CLUSTER), SECONDS)

    @unittest.skipUnless(can_shift_clocks(), "needs root, and time namespaces")
    def test_a_clock_that_was_not_compared_is_refused(self):
        # Its ranks cannot compare clocks again, and leave their own parts.
        self.mpirun("sh", "-c", SHIFTED, "sh", FINALIZED_FIRST, self.file, ranks=2)
        parts = [f"{self.file}.rank{r}" for r in range(2)]
        done = subprocess.run([PROBE, *parts], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("expected the clock of rank 1", done.stderr)
        self.assertIn("--force", done.stderr)
        trace = self.probe("--force", *parts)
        self.assertEqual(trace["ranks"], 2)
        self.assertEqual(len(trace["operations"]), 1)

    def test_parts_of_one_clock_need_no_comparison(self):
        self.mpirun(FINALIZED_FIRST, self.file)
        trace = self.probe(*(f"{self.file}.rank{r}" for r in range(RANKS)))
        self.assertEqual(len(trace["operations"]), 1)
        self.assertEqual(trace["early_arrivals"], 0)


if __name__ == "__main__":
    sys.argv[1:] = []
    unittest.main(verbosity=2)
