"""Usage: nccl_tests_test.py SCRIPTS, the folder of scripts/"""

import contextlib
import io
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPTS = Path(sys.argv.pop())
sys.path.insert(0, str(SCRIPTS))
sys.dont_write_bytecode = True
import nccl_tests  # noqa: E402


class Tables(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        nccl_tests.PLACE = Path(folder.name)
        nccl_tests.LIMIT = 20
        self.table = nccl_tests.Table(None)

    def add(self, results, then="exit 0", **more):
        """The row of a program that writes these results as nccl-tests do."""
        text = json.dumps({"results": results})
        program = nccl_tests.PLACE / "program"
        program.write_text(f"#!/bin/sh\nfor file; do :; done\ncat >$file <<E\n{text}\nE\n{then}\n")
        program.chmod(0o755)
        with contextlib.redirect_stdout(io.StringIO()):
            self.table.add("all_reduce", program, (1, 2, 2), **more)
        return self.table.rows[-1]

    def finish(self):
        with contextlib.redirect_stdout(io.StringIO()):
            return self.table.finish("1.2.3")

    def test_results_are_counted(self):
        sides = [{"out_of_place": {"nwrong": 0}, "in_place": {"nwrong": 0}},
                 {"out_of_place": {"nwrong": 0}, "in_place": {"nwrong": None}}]
        row = self.add(sides)
        self.assertEqual((row["result"], row["checked"], row["wrong"]), ("passed", 3, 0))
        self.assertEqual(self.finish(), 0)

    def test_wrong_elements_fail(self):
        row = self.add([{"out_of_place": {"nwrong": 2}, "in_place": {"nwrong": 1}}])
        self.assertEqual((row["result"], row["wrong"]), ("failed", 3))
        self.assertEqual(self.finish(), 1)

    def test_wrong_elements_on_purpose_must_be_found(self):
        good = [{"out_of_place": {"nwrong": 0}, "in_place": {"nwrong": 0}}]
        self.assertEqual(self.add(good, wrong_expected=True)["result"], "failed")
        bad = [{"out_of_place": {"nwrong": 1}, "in_place": {"nwrong": 0}}]
        self.assertEqual(self.add(bad, "exit 3", wrong_expected=True)["result"], "passed")

    def test_programs_that_check_nothing_or_fail(self):
        self.assertEqual(self.add([])["result"], "failed")
        good = [{"out_of_place": {"nwrong": 0}, "in_place": {"nwrong": 0}}]
        self.assertEqual(self.add(good, "exit 3")["result"], "failed")
        self.assertEqual(self.add([], "echo nRanks 3 is not a power of 2")["result"], "skipped")

    def test_programs_that_hang_are_ended(self):
        nccl_tests.LIMIT = 1
        self.assertEqual(self.add([], "sleep 600")["result"], "out of time")
        self.assertEqual(self.finish(), 1)


class Layouts(unittest.TestCase):
    def test_threads_take_the_place_of_devices(self):
        layouts = [(1, 1, 1), (1, 2, 2), (1, 4, 1), (2, 1, 2)]
        self.assertEqual(nccl_tests.layouts_of("reduce", layouts, True), layouts)
        self.assertEqual(nccl_tests.layouts_of("reduce", layouts, None), layouts[:3])
        self.assertEqual(nccl_tests.layouts_of("hypercube", layouts, True),
                         [(1, 1, 1), (1, 4, 1), (2, 2, 1)])


class Refusals(unittest.TestCase):
    def test_a_folder_without_sources(self):
        done = subprocess.run([sys.executable, SCRIPTS / "nccl_tests.py", "/nowhere"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, "^nccl-tests: expected .*, found no")


unittest.main()
