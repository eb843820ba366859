"""Runs an MPI program with and without the drop-in and compares what it prints.

Usage: compare.py [--also ARGUMENT] DROP_IN LAUNCHER... -- PROGRAM...

With the drop-in, which is preloaded into the ranks alone, PROGRAM is also given ARGUMENT, and lines
that begin with "beyond the library: " are not compared. Prints a diff if the others differ; exit
code 1 then, and if a run fails.
"""

import difflib
import sys

import launch

BEYOND = "beyond the library: "


def main(arguments):
    also = []
    if arguments[0] == "--also":
        also, arguments = arguments[1:2], arguments[2:]
    drop_in, rest = arguments[0], arguments[1:]
    split = rest.index("--")
    launcher, program = rest[:split], rest[split + 1 :]

    plain = launch.run(launcher, program).stdout.splitlines()
    ours = launch.run(launcher, program + also, preload=[drop_in]).stdout.splitlines()
    ours = [line for line in ours if not line.startswith(BEYOND)]
    if not plain:
        sys.exit(f"compare.py: expected lines of {program[0]}, found none")
    difference = list(
        difflib.unified_diff(plain, ours, "without the drop-in", "with the drop-in", n=1, lineterm="")
    )
    print("\n".join(difference) or f"the same {len(plain)} lines with and without the drop-in")
    return 1 if difference else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
