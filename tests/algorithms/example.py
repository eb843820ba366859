#!/usr/bin/env python3
"""Usage: example.py README SOURCE: writes the one C++ example of README to SOURCE."""

import re
import sys
from pathlib import Path

examples = re.findall(r"```cpp\n(.*?)```", Path(sys.argv[1]).read_text(), re.DOTALL)
if len(examples) != 1:
    sys.exit(f"expected one C++ example in {sys.argv[1]}, found {len(examples)}")
Path(sys.argv[2]).write_text(examples[0])
