"""Programs that end by an error under the drop-in: its sentence is on standard error, alone on its line and
once.

Usage: errors_test.py WRONG PRELOAD mpirun ARGUMENT..."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

WRONG, PRELOAD, *LAUNCHER = sys.argv[1:]
RANKS = 4
SECONDS = 100

EXPECTED = {
    "root": ["expected a root from 0 to 3, found 4"],
    "count": ["expected a count of at least 0, found -1"],
    "differs": ["expected the same call on all ranks", "on rank 0 and", "on rank 1"],
    "late": ["of communicator 'world' cannot complete", "rank 1 has not entered it", "sleeps"],
    "freed": ["expected the same call on all ranks", "on rank 0 and", "on rank 1"],
    "named": ["of communicator 'ocean and ice' cannot complete", "rank 1 has not entered it", "sleeps"],
}


def sentences(fault, check):
    settings = [f"BATON_CHECK={check}", "BATON_TIMEOUT=2"]
    yielding = os.environ.get("YIELDING")
    preload = ":".join([PRELOAD, *([yielding] if yielding else [])])
    command = [LAUNCHER[0], "-n", str(RANKS), *LAUNCHER[1:], "env", *settings, f"LD_PRELOAD={preload}", WRONG,
               fault]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS,
                          env={n: v for n, v in os.environ.items() if n != "LD_PRELOAD"})
    return done, [line for line in done.stderr.splitlines() if "baton:" in line]


CASES = [(fault, check) for fault in EXPECTED for attempt in range(3)
         for check in ([1] if fault in ("differs", "freed") else [0, 2] if fault == "root" else [0, 1])]
with ThreadPoolExecutor(3) as pool:  # jobs that mostly wait for their timeout
    for (fault, check), (done, lines) in zip(CASES, pool.map(lambda case: sentences(*case), CASES)):
        what = f"{fault}, check {check}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
        if done.returncode == 0 or len(lines) != 1:
            sys.exit(f"expected one line of ours and a failure, found {len(lines)} in {what}")
        if not lines[0].startswith("baton: ") or any(part not in lines[0] for part in EXPECTED[fault]):
            sys.exit(f"expected a line with {EXPECTED[fault]}, found {lines[0]} in {what}")
        print(lines[0])

for fault in ("handled", "handled_freed", "handled_later"):
    done, lines = sentences(fault, 0)
    if lines or done.returncode != 0 or "handled" not in done.stdout:
        sys.exit(f"{fault}: expected a program that handles the error itself, found {done.stdout}{done.stderr}")
