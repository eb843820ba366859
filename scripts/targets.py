"""The tests of some suites in a build folder, each with the targets of ninja that it needs.

Usage: targets.py BUILD SUITE...    prints the targets of all of them
"""

import json
import os
import sys
from pathlib import Path


def tests_of(build, suites):
    """Meson's description of each test, by name, and its "targets"."""
    info = Path(build, "meson-info")
    files = {target["id"]: [os.path.relpath(name, build) for name in target["filename"]]
             for target in json.loads((info / "intro-targets.json").read_text())}
    tests = {}
    for test in json.loads((info / "intro-tests.json").read_text()):
        if suites & {suite.partition(":")[2] for suite in test["suite"]}:
            test["targets"] = [name for target in test["depends"] for name in files[target]]
            tests[test["name"]] = test
    return tests


if __name__ == "__main__":
    found = tests_of(sys.argv[1], set(sys.argv[2:]))
    print(*sorted({target for test in found.values() for target in test["targets"]}))
