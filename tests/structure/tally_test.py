"""scripts/tally.py counts what went well, and misses nothing that did not.

Usage: tally_test.py ROOT
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TALLY = Path(sys.argv.pop(1), "scripts", "tally.py")
GOOD = {"name": "suite / good", "result": "OK", "returncode": 0,
        "stdout": "[doctest] test cases:  2 |  2 passed | 0 failed | 0 skipped\n"}


class TallyTest(unittest.TestCase):
    def tally(self, tests, said="", logs_of=(), expected=""):
        """Exit code and lines of a folder with these results, and with those of more runs in `logs_of`."""
        with tempfile.TemporaryDirectory() as root:
            Path(root, "tests").mkdir()
            Path(root, "tests", "allowed-skips").write_text("gone: there is no device\n")
            logs = Path(root, "build", "meson-logs")
            logs.mkdir(parents=True)
            (logs / "testlog.json").write_text("".join(json.dumps(test) + "\n" for test in tests))
            for name, result in logs_of:
                (logs / name).write_text(json.dumps(result) + "\n")
            if expected:
                (logs / "expected").write_text(expected)
            (logs.parent / "compile.log").write_text(said)
            done = subprocess.run([sys.executable, TALLY, root, "build"], capture_output=True, text=True)
            return done.returncode, done.stdout.splitlines()

    def test_good_results(self):
        self.assertEqual(self.tally([GOOD, GOOD]), (0, ["2 passed, 0 failed"]))

    def test_each_kind_of_failure(self):
        for other, why in (
                ({"result": "FAIL", "returncode": 7}, "fail, exit code 7"),
                ({"result": "TIMEOUT", "returncode": -15}, "timeout, exit code -15"),
                ({"result": "SKIP"}, "skipped, and not named in tests/allowed-skips"),
                ({"stdout": "[doctest] test cases:  0 |  0 passed | 0 failed | 3 skipped\n"}, "ran no test case"),
        ):
            code, lines = self.tally([GOOD, {**GOOD, "name": "suite / other", **other}])
            self.assertEqual((code, lines[0], lines[-1]),
                             (1, f"FAILED build: other: {why}", "1 passed, 1 failed"))

    def test_last_words_of_a_failure(self):
        said = "".join(f"line {number}\n" for number in range(100))
        failure = {"name": "suite / other", "result": "FAIL", "returncode": 1, "stdout": said,
                   "stderr": "the reason\n"}
        code, lines = self.tally([GOOD, failure])
        self.assertEqual(lines[1:-1], [f"    line {number}" for number in range(71, 100)] + ["    the reason"])

    def test_allowed_skips(self):
        code, lines = self.tally([GOOD, {**GOOD, "name": "suite / gone", "result": "SKIP"}])
        self.assertEqual((code, lines[-1]), (0, "1 passed, 0 failed"))

    def test_second_run_in_a_folder(self):
        _, lines = self.tally([GOOD], logs_of=[("testlog-memcheck-valgrind.json", {**GOOD, "result": "FAIL"})])
        self.assertEqual(lines[-1], "1 passed, 1 failed")

    def test_a_run_that_ends_early(self):
        for expected, last in ("1\n1\n", "2 passed, 0 failed"), ("1\n2\n", "2 passed, 1 failed"):
            self.assertEqual(self.tally([GOOD, GOOD], expected=expected)[1][-1], last)

    def test_nothing_built(self):
        code, lines = self.tally([])
        self.assertEqual((code, lines[0]), (1, "FAILED build: could not be built and tested"))

    def test_warnings_of_both_compilers(self):
        for line in ("a.cpp:17:13: warning: unused [-Wunused]", "a.cu(21): warning #445-D: not used"):
            code, lines = self.tally([GOOD], f"[1/2] one\n{line}\n[2/2] two\n")
            self.assertEqual((code, lines), (1, [f"FAILED build: {line}", "1 passed, 1 failed"]))


unittest.main()
