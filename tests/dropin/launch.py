"""Runs MPI programs for the tests of the drop-in."""

import os
import subprocess
import sys
from pathlib import Path

SECONDS = 240


def run(launcher, program, preload=(), environment=None):
    """The finished run of `program` under `launcher`, libraries preloaded into its ranks alone.

    YIELDING in the environment names a library to be preloaded beneath the others, always. Ends
    the test if the run's exit code is another than 0, or a library was not loaded.
    """
    yielding = os.environ.get("YIELDING")
    preload = [*preload, *([yielding] if yielding else [])]
    for library in preload:
        if not Path(library).is_file():
            sys.exit(f"expected the library {library}, found no such file")
    variables = dict(environment or {})
    if preload:
        variables["LD_PRELOAD"] = ":".join(map(str, preload))
    settings = [f"{name}={value}" for name, value in variables.items()]
    command = [*launcher, "env", *settings, *map(str, program)]
    what = " ".join(map(str, command))
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS,
            env={name: value for name, value in os.environ.items() if name != "LD_PRELOAD"},
        )
    except subprocess.TimeoutExpired as late:
        output = (late.stdout or b"").decode() + (late.stderr or b"").decode()
        sys.exit(f"{what}\nexpected an end after {SECONDS} s, found none; output:\n{output}")
    if done.returncode != 0 or "cannot be preloaded" in done.stderr:
        sys.exit(
            f"{what}\nexpected exit code 0, found {done.returncode}; output:\n"
            f"{done.stdout}{done.stderr}"
        )
    return done
