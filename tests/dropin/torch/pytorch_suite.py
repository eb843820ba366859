"""PyTorch's own tests of torch.distributed (those that its wheel contains), by gloo or by baton in gloo's place.

Usage: pytorch_suite.py gloo|baton RANKS [--for gloo|mpi] [--only PART,...] [--known FILE] [--json FILE] [--list]

Baton registers itself as "gloo", so the tests that PyTorch keeps for gloo run, too. With --for mpi those run
that it keeps for MPI, such as all_to_all's. Processes are forked: each would otherwise import PyTorch again.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import unittest

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("backend", choices=["gloo", "baton"])
parser.add_argument("ranks", type=int)
parser.add_argument("--for", dest="kept", choices=["gloo", "mpi"], default="gloo",
                    help="run the tests that PyTorch keeps for this backend")
parser.add_argument("--only", help="parts of the names of tests to run, separated by commas")
parser.add_argument("--known", help="file of lines `name: reason`: tests that fail, and must fail")
parser.add_argument("--json", help="file for the results")
parser.add_argument("--list", action="store_true", help="print the names of the tests")
options = parser.parse_args()

os.environ.update(BACKEND=options.kept, WORLD_SIZE=str(options.ranks), MASTER_ADDR="127.0.0.1",
                  OMP_NUM_THREADS="1", TEMP_DIR=tempfile.mkdtemp(prefix="baton-suite-"),
                  DISTRIBUTED_TESTS_DEFAULT_TIMEOUT="120")
os.environ.setdefault("INIT_METHOD", f"file://{os.environ['TEMP_DIR']}/shared_init_file")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

torch.set_num_threads(1)
if options.backend == "baton":
    import baton_torch

    baton_torch.register("gloo")

from torch.testing._internal.distributed import distributed_test  # noqa: E402

distributed_test.BACKEND = "gloo"


class Suite(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context("fork").Process)


class Results(unittest.TextTestResult):
    """Outcome, seconds and message of each test."""

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def note(self, test, outcome, message=""):
        name = test._testMethodName
        self.outcomes[name] = {"outcome": outcome, "seconds": round(time.monotonic() - self.began, 2),
                               "message": message[-3000:]}
        print(f"{outcome:8} {name}", flush=True)

    def addSuccess(self, test):
        self.note(test, "passed")

    def addSkip(self, test, reason):
        self.note(test, "skipped", reason)

    def addError(self, test, error):
        super().addError(test, error)
        self.note(test, "failed", self._exc_info_to_string(error, test))

    addFailure = addError


def main():
    names = unittest.TestLoader().getTestCaseNames(Suite)
    if options.only:
        parts = options.only.split(",")
        names = [name for name in names if any(part in name for part in parts)]
    if options.list:
        return print(*names, sep="\n")
    Results.outcomes = {}
    runner = unittest.TextTestRunner(resultclass=Results, stream=open(os.devnull, "w"))
    runner.run(unittest.TestSuite(Suite(name) for name in names))
    outcomes = Results.outcomes
    if options.json:
        with open(options.json, "w") as file:
            json.dump(outcomes, file, indent=1)
    counts = {kind: sum(o["outcome"] == kind for o in outcomes.values()) for kind in ("passed", "failed", "skipped")}
    print(f"{options.backend}, {options.ranks} ranks:",
          ", ".join(f"{count} {kind}" for kind, count in counts.items()))
    known = []
    if options.known:
        with open(options.known) as file:
            known = [line.partition(":")[0] for line in file if line.strip()]
    unexpected = [name for name, outcome in outcomes.items()
                  if name not in known and outcome["outcome"] == "failed"]
    for name in unexpected:
        print(f"\n{name}\n{outcomes[name]['message']}")
    passing = [name for name in known if outcomes.get(name, {}).get("outcome") == "passed"]
    for name in passing:
        print(f"{name}: expected to fail, as {options.known} says, but passed")
    sys.exit(bool(unexpected or passing or not counts["passed"]))


main()
