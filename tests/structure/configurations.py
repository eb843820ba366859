"""The project configures with few of its optional features.

Usage: configurations.py ROOT MESON...

Prints the error of each configuration that fails; exit code 1 if there is any.
"""

import subprocess
import sys
import tempfile

CONFIGURATIONS = [[], ["tests"], ["tests", "mpi"], ["tests", "ucx"], ["tests", "transformer"]]


def main():
    root, *meson = sys.argv[1:]
    wrong = 0
    for features in CONFIGURATIONS:
        options = ["-Dauto_features=disabled", *(f"-D{feature}=enabled" for feature in features)]
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([*meson, "setup", *options, folder, root], capture_output=True, text=True)
        if done.returncode != 0:
            wrong += 1
            print(f"expected a configuration with {' '.join(options)}, found:\n{done.stdout}{done.stderr}")
    sys.exit(1 if wrong else 0)


main()
