"""setup.py builds anew what lies in its build folder, also where no ninja says what has changed."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sources = pathlib.Path(__file__).resolve().parents[3] / "lib" / "dropin" / "torch"

# Writes its output, and a line into a list.
compiler = """#!/bin/sh
while [ $# -gt 1 ]; do
  if [ "$1" = -o ]; then echo "$2" >> "$LIST"; : > "$2"; fi
  shift
done
"""


class Setup(unittest.TestCase):
    def test_builds_anew(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            copy = folder / "lib" / "dropin" / "torch"
            shutil.copytree(sources, copy)
            programs = folder / "programs"  # no ninja among them
            programs.mkdir()
            (programs / "c++").write_text(compiler)
            (programs / "c++").chmod(0o755)
            (folder / "libbaton.so").touch()
            made = []
            for _ in range(2):
                lines = folder / "list"
                lines.write_text("")
                run = subprocess.run(
                    [sys.executable, "setup.py", "build"], cwd=copy, text=True, capture_output=True,
                    env=os.environ | {"PATH": str(programs), "CC": "c++", "CXX": "c++", "LIST": str(lines),
                                      "BATON_PREFIX": str(folder), "TORCH_DONT_CHECK_COMPILER_ABI": "1"})
                self.assertEqual(run.returncode, 0, run.stderr)
                made.append(sorted(line.rsplit("/", 1)[-1] for line in lines.read_text().split()))
                (copy / "driver.hpp").touch()
            self.assertIn("driver.o", made[0])
            self.assertEqual(*made)


unittest.main()
