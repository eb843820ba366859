"""Usage: analysis_page_test.py ROOT BATON-TRAIN BATON: runs the commands of transformer/ANALYSIS.md that say what
they print, and compares it"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT, PROGRAMS = Path(sys.argv[1]).resolve(), [Path(file).resolve() for file in sys.argv[2:]]
PAGE = ROOT / "transformer" / "ANALYSIS.md"


def examples(text):
    """(command, what it prints) of each line that begins with `$`, up to the next one or the block's end."""
    found = []
    for block in re.findall(r"(?:^    .*\n(?:\n(?=    ))*)+", text, re.M):
        lines = [line[4:].rstrip() for line in block.splitlines()]
        while lines:
            line = lines.pop(0)
            if not line.startswith("$ "):
                continue
            while line.endswith("\\"):
                line = line[:-1] + lines.pop(0).strip()
            shown = []
            while lines and not lines[0].startswith("$ "):
                shown.append(lines.pop(0))
            found.append((line[2:], "\n".join(shown).strip("\n")))
    return found


class Page(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "build").mkdir()
        for program in PROGRAMS:
            (self.folder / "build" / program.name).symlink_to(program)
        shutil.copy(ROOT / "README.md", self.folder)

    def test_commands_print_what_the_page_says(self):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("BATON_")}
        commands = examples(PAGE.read_text())
        self.assertGreater(len(commands), 10)
        for command, shown in commands:
            with self.subTest(command=command):
                done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=self.folder, env=environment,
                                      text=True, capture_output=True, timeout=120)
                self.assertEqual(done.returncode, 0, done.stderr)
                printed = "\n".join(line.rstrip() for line in done.stdout.splitlines()).strip("\n")
                self.assertEqual(printed, shown)

    def test_a_page_that_is_wrong_is_found(self):
        self.assertEqual(examples("    $ a | \\\n        b\n    1\n\n    2\n    $ c\n\ntext\n\n    $ d\n    3\n"),
                         [("a | b", "1\n\n2"), ("c", ""), ("d", "3")])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
