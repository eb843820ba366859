"""Scripts give up where the programs that they call do.

Usage: scripts_test.py ROOT
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPTS = Path(sys.argv.pop(1), "scripts")


class ScriptsTest(unittest.TestCase):
    def test_a_failed_build(self):
        """compile() fails where ninja does, also where errexit is off, and shows what compilers say."""
        with tempfile.TemporaryDirectory() as root:
            Path(root, "build").mkdir()
            Path(root, "scripts").mkdir()
            shutil.copy(SCRIPTS / "common.sh", Path(root, "scripts"))
            Path(root, "scripts", "try").write_text('source "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"\n'
                                                    "compile build all && echo built || echo failed\n")
            for code, last in (0, "built"), (3, "failed"):
                Path(root, "ninja").write_text(f"#!/bin/sh\necho '[1/2] one'\necho 'a.cpp: odd'\nexit {code}\n")
                Path(root, "ninja").chmod(0o755)
                done = subprocess.run(["bash", Path(root, "scripts", "try")], capture_output=True, text=True,
                                      env=os.environ | {"PATH": f"{root}:{os.environ['PATH']}"})
                lines = done.stdout.splitlines()
                self.assertEqual((done.returncode, lines[-1], "a.cpp: odd" in lines), (0, last, True))

    def test_a_soak_of_nothing(self):
        """A soak without a fault to have is refused."""
        done = subprocess.run([sys.executable, SCRIPTS / "soak.py", "--only", "unreadable", "--over", "shm"],
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn('expected a fault that jobs over shm can have, found "unreadable"', done.stderr)


unittest.main()
