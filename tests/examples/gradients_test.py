"""An example of the C interface: alone, under mpirun, and recorded.

Usage: gradients_test.py BATON RANKS MPIRUN WORD... -- PROGRAM WORD...
       gradients_test.py BATON 0 -- PROGRAM WORD...
RANKS 0: ranks are threads, of which the examples have 4. The recording is drawn by the program BATON.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

split = sys.argv.index("--")
baton, ranks, *mpirun = sys.argv[1:split]
program = sys.argv[split + 1:]
size = int(ranks) or 4
launcher = [*mpirun, "-n", ranks] if mpirun else []


def run(command, **environment):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120,
                          env=os.environ | {"BATON_TIMEOUT": "60"} | environment)
    assert done.returncode == 0, done
    return done.stdout


average = (1 + size) / 2
with tempfile.TemporaryDirectory() as folder:
    trace, picture = Path(folder, "t.trace"), Path(folder, "t.svg")
    said = [float(word) for word in run([*launcher, *program], BATON_TRACE=str(trace)).split()]
    assert said == [average, average * size], said
    run([baton, "timeline", "--from", trace, "-o", picture])
    assert f"{size} ranks" in picture.read_text(), picture.read_text()[:2000]
