#!/usr/bin/env python3
"""The algorithms of this folder: every file <collective>_<algorithm>.cpp.

Usage: collect.py names                     their names without ".cpp", one a line
       collect.py check STAMP DEPFILE NAME...
The second writes STAMP if these are the names; otherwise it says what is new or gone, with exit
code 1. DEPFILE makes ninja run it again when a file comes or goes.
"""

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def names():
    """Files with an underscore are algorithms; those that algorithms share have none."""
    return sorted(file.stem for file in FOLDER.glob("*_*.cpp"))


def check(stamp, depfile, known):
    new, gone = set(names()) - set(known), set(known) - set(names())
    if new or gone:
        found = [f"{name}.cpp is new" for name in sorted(new)]
        found += [f"{name}.cpp is gone" for name in sorted(gone)]
        sys.exit("expected the algorithms that the build folder was set up with, found that "
                 + ", ".join(found) + ": run meson setup --reconfigure BUILD_FOLDER")
    if not Path(stamp).exists():  # a newer one would have everything compiled again
        Path(stamp).write_text("")
    Path(depfile).write_text(f"{stamp}: {FOLDER}\n")


def main():
    if sys.argv[1:] == ["names"]:
        print("\n".join(names()))
    elif len(sys.argv) > 4 and sys.argv[1] == "check":
        check(sys.argv[2], sys.argv[3], sys.argv[4:])
    else:
        sys.exit(__doc__)


main()
