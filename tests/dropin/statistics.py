"""Checks that the statistics name every collective of a program, and which of them were passed on.

Usage: statistics.py DROP_IN LAUNCHER... -- CONFORMANCE
"""

import re
import sys

import launch

ROW = re.compile(r"^(MPIX?_\w+) +\d+ +\d+ \w+ +(\d+) +[\d.]+ +[\d.]+  (passed on: )?(.+)$",
                 re.MULTILINE)
# What rank 0 calls in the group passed_on that is passed on, and how often; the persistent forms
# have another prefix in an extension of Open MPI.
PASSED_ON = {
    "MPI_Neighbor_allgather": 1, "MPI_Ineighbor_alltoall": 1, "Allreduce_init": 1,
    "Alltoall_init": 1, "Barrier_init": 1, "MPI_Bcast": 2, "MPI_Barrier": 1, "MPI_Iallgather": 1,
}
TAKEN_OVER = {"MPI_Alltoallw": 1, "MPI_Ialltoallw": 1, "MPI_Iallreduce": 5}


def main(arguments):
    drop_in, *rest = arguments
    split = rest.index("--")
    launcher, program = rest[:split], rest[split + 1 :]
    done = launch.run(launcher, [*program, "passed_on"], preload=[drop_in],
                      environment={"BATON_PMPI_STATS": "1"})
    found = {True: {}, False: {}}
    for name, calls, passed_on, _ in ROW.findall(done.stderr):
        name = name.partition("_")[2] if name.endswith("_init") else name
        kind = found[bool(passed_on)]
        kind[name] = kind.get(name, 0) + int(calls)
    wrong = []
    for kind, expected in ((True, PASSED_ON), (False, TAKEN_OVER)):
        for name, calls in expected.items():
            if found[kind].get(name, 0) != calls:
                wrong.append(f"{name}, {'passed on' if kind else 'taken over'}: expected {calls} "
                             f"calls, found {found[kind].get(name, 0)}")
    print("\n".join([*wrong, done.stderr] if wrong else ["all counted"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
