"""Records a program under the drop-in by BATON_TRACE, and checks what the recording says.

Usage: recorded.py DROP_IN PROBE LAUNCHER... -- PROGRAM...
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import launch


def main(arguments):
    drop_in, probe, *rest = arguments
    split = rest.index("--")
    launcher, program = rest[:split], rest[split + 1:]
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "a.trace")
        launch.run(launcher, program, preload=[drop_in],
                   environment={"BATON_TRACE": file, "BATON_TRACE_EVENTS": "4000000"})
        found = subprocess.run([probe, file], capture_output=True, text=True, timeout=100)
        if found.returncode != 0:
            sys.exit(found.stderr)
        trace = json.loads(found.stdout)
    names = sorted({operation["name"] for operation in trace["operations"]})
    groups = {tuple(operation["ranks"]) for operation in trace["operations"]}
    print(f"{len(trace['operations'])} operations, {trace['messages']} messages, {len(groups)} "
          f"groups of ranks: {', '.join(names)}")
    for what, held in (("nothing damaged", trace["damage"] == 0),
                       ("no message that arrives before it is sent", trace["early_arrivals"] == 0),
                       ("every collective that the program calls", len(names) >= 10),
                       ("messages", trace["messages"] > 1000),
                       ("communicators with other ranks than all", len(groups) > 2)):
        if not held:
            sys.exit(f"expected {what}, found otherwise")


if __name__ == "__main__":
    main(sys.argv[1:])
