"""Counts the results that `meson test` left in build folders, names what failed and why, with the last lines
that the test wrote, and prints `N passed, N failed` last. Exit code 1 if anything failed.

Usage: tally.py ROOT FOLDER...

A folder that could not be built or tested counts as one failure. So does one with fewer results than the
lines of meson-logs/expected add up to; each warning in its compile.log; a test that was skipped, as a whole or in part, unless ROOT/tests/allowed-skips names it
with a reason; and a doctest program that ran no case at all.
"""

import json
import re
import sys
from pathlib import Path

WARNING = re.compile(r" warning( #[\w-]+)?: ")  # of GCC and of nvcc
CASES = re.compile(r"\[doctest\] test cases: *(\d+) .*?(\d+) skipped")


def allowed_skips(file):
    """The lines `name: reason` of a file as a dictionary."""
    skips = {}
    for number, line in enumerate(file.read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        name, _, reason = map(str.strip, line.partition(": "))
        if not reason:
            sys.exit(f"{file}:{number}: expected 'name: reason', found '{line}'")
        skips[name] = reason
    return skips


def verdict(test):
    """'passed', 'skipped', or what went wrong."""
    if test["result"] == "SKIP":
        return "skipped"
    if test["result"] not in ("OK", "EXPECTEDFAIL"):
        return f"{test['result'].lower()}, exit code {test['returncode']}"
    cases = [tuple(map(int, found)) for found in CASES.findall(test.get("stdout", ""))]
    if any(ran == 0 for ran, _ in cases):
        return "ran no test case"
    return "skipped" if any(skipped for _, skipped in cases) else "passed"


def last_words(test, lines=30):
    """The last lines that a test wrote, indented."""
    said = (test.get("stdout", "") + test.get("stderr", "")).rstrip().splitlines()
    return "".join(f"\n    {line}" for line in said[-lines:])


def main():
    root, *folders = sys.argv[1:]
    allowed = allowed_skips(Path(root, "tests/allowed-skips"))
    passed, failures = 0, []
    for folder in folders:
        said = Path(root, folder, "compile.log")
        failures += [f"{folder}: {line}" for line in said.read_text(errors="replace").splitlines()
                     if WARNING.search(line)] if said.is_file() else []
        logs = sorted(Path(root, folder, "meson-logs").glob("testlog*.json"))
        lines = [line for log in logs for line in log.read_text().splitlines()]
        plan = Path(root, folder, "meson-logs", "expected")
        expected = sum(map(int, plan.read_text().split())) if plan.is_file() else 0
        if not lines:
            failures.append(f"{folder}: could not be built and tested")
        elif len(lines) < expected:
            failures.append(f"{folder}: expected the results of {expected} tests, found {len(lines)}")
        for test in map(json.loads, lines):
            name = test["name"].partition(" / ")[2] or test["name"]
            outcome = verdict(test)
            if outcome == "passed":
                passed += 1
            elif outcome == "skipped" and name in allowed:
                print(f"skipped, as allowed: {folder}: {name}: {allowed[name]}")
            elif outcome == "skipped":
                failures.append(f"{folder}: {name}: skipped, and not named in tests/allowed-skips")
            else:
                failures.append(f"{folder}: {name}: {outcome}{last_words(test)}")
    for failure in failures:
        print("FAILED", failure)
    print(f"{passed} passed, {len(failures)} failed")
    sys.exit(bool(failures))


main()
