"""The section of README.md for C users: its program compiles, and its second command draws it.

Usage: readme_test.py README BATON COMPILER... -- WORD...
WORDs stand for those of pkg-config, for the library in the build folder.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

split = sys.argv.index("--")
readme, baton, *compiler = sys.argv[1:split]
section = Path(readme).read_text().split("## From C, Python or Fortran\n")[1].split("\n## ")[0]
source = re.search(r"```c\n(.*?)```", section, re.DOTALL)[1]
compile_it, draw = re.findall(r"^    (.+)$", section, re.MULTILINE)
assert compile_it == "cc program.c $(pkg-config --cflags --libs baton-c) -o program", compile_it
with tempfile.TemporaryDirectory() as folder:
    Path(folder, "program.c").write_text(source)
    subprocess.run([*compiler, "program.c", *sys.argv[split + 1:], "-o", "program"], check=True, cwd=folder)
    draw = re.sub(r"\bbaton timeline", f"{baton} timeline", draw)
    subprocess.run(draw, check=True, cwd=folder, shell=True)
    picture = Path(folder, "t.svg").read_text()
    messages = len(re.findall(r"<title>", picture))
    assert "all_reduce" in picture and "ring" in picture and messages >= 24, picture[:2000]
