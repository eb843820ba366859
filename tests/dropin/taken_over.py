"""Counts the collectives of a program that reach the MPI library beneath the drop-in.

Usage: taken_over.py DROP_IN COUNTING LAUNCHER... -- PROGRAM...

PROGRAM must call all of them. With the drop-in: none arrives. With BATON_PMPI=only:NAME,...: none
of those, all others. With BATON_PMPI=off: all, which shows that the counter counts. Exit code 1 if
it is otherwise.
"""

import re
import sys

import launch

ONLY = (["bcast", "alltoallv", "allreduce"], ["iallreduce", "ibarrier", "gather"])


def counts(launcher, program, preload, setting):
    """Calls of all ranks by name in lower case, those of large forms included."""
    environment = {"BATON_PMPI": setting} if setting else {}
    done = launch.run(launcher, program, preload=preload, environment=environment)
    found = {}
    for name, calls in re.findall(r"^counted (\w+?)(?:_c)? (\d+)$", done.stderr, re.MULTILINE):
        found[name.lower()] = found.get(name.lower(), 0) + int(calls)
    if not found:
        sys.exit(f"expected counts on the standard error, found:\n{done.stderr}")
    return found


def listed(calls):
    return ", ".join(f"{name} {number}" for name, number in sorted(calls.items())) or "none"


def main(arguments):
    preload, rest = arguments[:2], arguments[2:]
    split = rest.index("--")
    launcher, program = rest[:split], rest[split + 1 :]

    off = counts(launcher, program, preload, "off")
    called = set(off)
    print(f"BATON_PMPI=off: reached the MPI library: {listed(off)}")
    idle = [name for name, calls in sorted(off.items()) if calls == 0]
    if idle:
        print(f"expected the program to call every collective, found none of {', '.join(idle)}")
    wrong = 1 if idle else 0
    for setting, taken in (("", called), *(("only:" + ",".join(only), set(only)) for only in ONLY)):
        found = counts(launcher, program, preload, setting)
        reached = {name: calls for name, calls in found.items() if name in taken and calls > 0}
        missing = {name: 0 for name in called - taken if found[name] == 0}
        print(f"BATON_PMPI={setting}: reached the MPI library: {listed(reached)}")
        if reached or missing:
            print(f"expected none of those taken over and all others, missing: {listed(missing)}")
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
