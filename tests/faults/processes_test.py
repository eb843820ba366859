"""Each fault of process_faults.py once, in a job of 4 processes.

Usage: processes_test.py FOLDER-OF-THE-PROGRAMS ucx|shm [FAULT...]"""

import random
import sys
from pathlib import Path

import process_faults

folder, over, *names = sys.argv[1:]
problems, skipped = 0, 0
names = names or process_faults.faults_of(over)
for name in names:
    outcome = process_faults.run(name, process_faults.Course(Path(folder), over, 4, random.Random(1), 1))
    print(f"{name}: " + (f"skipped: {outcome.skipped}" if outcome.skipped else
                         f"{outcome.happened} times, {outcome.deaf} deaf ranks, "
                         f"{len(outcome.problems)} problems"), flush=True)
    for problem in outcome.problems:
        print(f"  {problem}", flush=True)
    problems += len(outcome.problems)
    skipped += bool(outcome.skipped)
    if not outcome.skipped and not outcome.problems and outcome.happened == 0:
        print("  the fault did not happen")
        problems += 1
sys.exit(1 if problems else 77 if skipped == len(names) else 0)
