"""A rank of baton_launch fails: failing_test.py PROGRAM MPIRUN WORD..."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

program, *mpirun = sys.argv[1:]
sentence = "broadcast: expected a root from 0 to "


def run(command, **environment):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=os.environ | environment)


alone = run([program], BATON_TIMEOUT="0.5")  # of the rank that waits
assert alone.stdout == f"invalid_argument: {sentence}1, found 99\n", alone
assert alone.returncode == 1, alone
with tempfile.TemporaryDirectory() as folder:
    said = Path(folder, "said")  # a launcher that ends its processes may drop their output
    into_file = [*mpirun, "sh", "-c", 'exec "$0" 2>>"$1"', program, str(said)]
    launched = run(into_file)
    assert f"rank 0: {sentence}2, found 99\n" in said.read_text(), (launched, said.read_text())
    assert launched.returncode != 0 and not launched.stdout, launched
    misled = run(into_file, BATON_TIMEOUT="soon")
    assert 'BATON_TIMEOUT: expected seconds of at least 0, found "soon"' in said.read_text(), misled
    assert misled.returncode != 0, misled
