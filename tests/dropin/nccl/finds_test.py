"""The library stands in NCCL's place, however a program asks for it.

Usage: finds_test.py PROGRAM LIBRARY NCCL: NCCL itself, or the word "none"
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM, LIBRARY = (str(Path(file).resolve()) for file in sys.argv[1:3])
NCCL = sys.argv[3]
del sys.argv[1:]


def ask(*arguments, **environment):
    done = subprocess.run([PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, env=os.environ | environment, timeout=60)
    return done.stdout.splitlines(), done.stderr


class Finds(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.link = Path(folder.name) / "libnccl.so.2"
        self.link.symlink_to(LIBRARY)

    def finds(self, found, file=LIBRARY):
        self.assertTrue(found and os.path.samefile(found[0], file), found)

    def test_preloaded(self):
        self.finds(ask(LD_PRELOAD=LIBRARY)[0])

    def test_by_its_name(self):
        self.finds(ask("libnccl.so.2", LD_LIBRARY_PATH=str(self.link.parent))[0])

    def test_audit_redirects_every_path(self):
        for name in "libnccl.so.2", "/nowhere/at/all/libnccl.so.2":
            self.finds(ask(name, LD_AUDIT=LIBRARY)[0])

    def test_calls_that_are_not_taken_over(self):
        """They go to NCCL where there is one; that is said once."""
        if NCCL == "none":
            self.skipTest("expected NCCL itself, found none")
        for how in {"LD_PRELOAD": LIBRARY}, {"LD_AUDIT": LIBRARY}:
            arguments = ["libnccl.so.2"] if "LD_AUDIT" in how else []
            found, said = ask(*arguments, BATON_NCCL_LIBRARY=NCCL, **how)
            self.finds(found)
            self.assertGreater(int(found[2]), 0)
            self.assertEqual(said, "baton: ncclLLA2ACalcSlots is passed on to NCCL\n")
        found, said = ask(LD_PRELOAD=LIBRARY, BATON_NCCL_LIBRARY="/nowhere/libnccl.so.2")
        self.assertEqual(found[2], "0")
        self.assertIn("ncclLLA2ACalcSlots is not taken over, and there is no NCCL", said)

    def test_switched_off(self):
        """Everything goes to NCCL, without a word."""
        if NCCL == "none":
            self.skipTest("expected NCCL itself, found none")
        found, said = ask(LD_PRELOAD=LIBRARY, BATON_NCCL="off", BATON_NCCL_LIBRARY=NCCL)
        self.assertEqual(said, "")
        self.assertGreater(int(found[1]), 0)
        found, said = ask(NCCL, LD_AUDIT=LIBRARY, BATON_NCCL="off")
        self.finds(found, NCCL)
        self.assertEqual(said, "")
        without, _ = ask(LD_PRELOAD=LIBRARY, BATON_NCCL="off", BATON_NCCL_LIBRARY="/nowhere")
        self.assertEqual(without, [])


unittest.main()
