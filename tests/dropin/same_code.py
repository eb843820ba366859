"""Shows that statistics do not change which code of the drop-in runs.

Usage: same_code.py DROP_IN COUNTING LAUNCHER... -- PROGRAM...

COUNTING, preloaded beneath the drop-in, names the ways through the drop-in's code by which blocking
collectives send. They must be the same with BATON_PMPI_STATS=1 as without. Exit code 1 if not.
"""

import re
import sys

import launch

FEWEST = 10  # blocking collectives of the program that send


def ways(launcher, program, preload, stats):
    done = launch.run(launcher, program, preload=preload,
                      environment={"BATON_PMPI_STATS": stats})
    if ("# baton: collectives" in done.stderr) != (stats == "1"):
        sys.exit(f"BATON_PMPI_STATS={stats}: statistics are not as expected in:\n{done.stderr}")
    return set(re.findall(r"^sent from (\w+(?: [0-9a-f]+)+)$", done.stderr, re.MULTILINE))


def main(arguments):
    preload, rest = arguments[:2], arguments[2:]
    split = rest.index("--")
    launcher, program = rest[:split], rest[split + 1 :]
    without, having = (ways(launcher, program, preload, stats) for stats in "01")
    names = {way.split()[0] for way in without}
    print(f"{len(without)} ways of {', '.join(sorted(names))}")
    wrong = [f"with statistics only: {way}" for way in sorted(having - without)]
    wrong += [f"without statistics only: {way}" for way in sorted(without - having)]
    if len(names) < FEWEST:
        wrong.append(f"expected at least {FEWEST} collectives that send, found {len(names)}")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
