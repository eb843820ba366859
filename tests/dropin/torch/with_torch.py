"""Runs a test in PyTorch's environment: with_torch.py BUILD SCRIPT [ARGUMENT...]

Skips where BUILD/torch has no PyTorch, or no baton_torch (scripts/setup torch)."""

import os
import subprocess
import sys

build, script, *arguments = sys.argv[1:]
python = os.path.join(build, "torch", "bin", "python")
check = "import importlib.util, sys; sys.exit(importlib.util.find_spec('baton_torch') is None)"
if not os.path.exists(python) or subprocess.run([python, "-c", check]).returncode != 0:
    print(f"{os.path.join(build, 'torch')}: expected PyTorch and baton_torch, found none (scripts/setup torch)")
    sys.exit(77)
# What PyTorch's tests log at their ends would hide the results.
os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.execv(python, [python, "-W", "ignore", script, *arguments])
