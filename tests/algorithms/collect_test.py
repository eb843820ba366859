"""The build notices algorithms' files that come and go.

Usage: collect_test.py COLLECT_PY
"""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

COLLECT = Path(sys.argv.pop(1)).resolve()


class Collect(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        shutil.copy(COLLECT, self.folder)
        for name in ("broadcast_linear", "all_reduce_ring"):
            (self.folder / f"{name}.cpp").touch()
        (self.folder / "composition.cpp").touch()
        self.stamp, self.depfile = self.folder / "stamp", self.folder / "stamp.d"

    def run_it(self, *arguments):
        return subprocess.run([sys.executable, self.folder / COLLECT.name, *arguments],
                              capture_output=True, text=True)

    def check(self, *names):
        return self.run_it("check", self.stamp, self.depfile, *names)

    def test_names(self):
        found = self.run_it("names")
        self.assertEqual(found.stdout, "all_reduce_ring\nbroadcast_linear\n")

    def test_the_same_files(self):
        self.assertEqual(self.check("broadcast_linear", "all_reduce_ring").returncode, 0)
        self.assertIn(str(self.folder), self.depfile.read_text())
        before = self.stamp.stat().st_mtime_ns
        self.assertEqual(self.check("broadcast_linear", "all_reduce_ring").returncode, 0)
        self.assertEqual(self.stamp.stat().st_mtime_ns, before)

    def test_files_that_came_and_went(self):
        found = self.check("broadcast_linear", "scan_mine")
        self.assertEqual(found.returncode, 1)
        self.assertEqual(found.stderr,
                         "expected the algorithms that the build folder was set up with, found "
                         "that all_reduce_ring.cpp is new, scan_mine.cpp is gone: run "
                         "meson setup --reconfigure BUILD_FOLDER\n")
        self.assertFalse(self.stamp.exists())

    def test_wrong_arguments(self):
        self.assertNotEqual(self.run_it("list").returncode, 0)


unittest.main()
