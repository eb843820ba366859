"""The library of the C interface exports the functions of lib/c/exports.map, which are those that its
headers declare, each in the node of the map that lists it.

Usage: c_exports.py READELF LIBRARY MAP HEADER...

Prints a line for each name that one of the three has and another lacks, and one if the library's name
has another number than BATON_ABI_VERSION. The exit code is 1 if there is any.
"""

import re
import subprocess
import sys
from pathlib import Path


def exported(readelf, library):
    """name@node of every function that the library exports."""
    done = subprocess.run([readelf, "--dyn-syms", "--wide", library], capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines() if re.match(r"\s*\d+: ", line)]
    return {row[7].replace("@@", "@") for row in rows if row[6] != "UND" and row[3] != "OBJECT"}


def listed(version_map):
    """name@node of every name in the map."""
    nodes = re.findall(r"^(\w+) \{(.*?)^\}", version_map.read_text(), re.MULTILINE | re.DOTALL)
    return {f"{name}@{node}" for node, inside in nodes for name in re.findall(r"^ +(\w+);", inside, re.MULTILINE)}


def main():
    readelf, library, version_map, *headers = sys.argv[1:]
    code = re.sub(r"//.*|\btypedef\b.*?;", "", "".join(Path(header).read_text() for header in headers))
    declared = set(re.findall(r"^BATON_C_API [\w\s*]*?\b(\w+)\(", code, re.MULTILINE))
    found, names = exported(readelf, library), listed(Path(version_map))
    wrong = [f"{library}: expected no export that {version_map} does not list, found {name}" for name in found - names]
    wrong += [f"{library}: expected to export {name}, as {version_map} lists it, found none" for name in names - found]
    listed_names = {name.split("@")[0] for name in names}
    wrong += [f"{version_map}: expected {name}, which a header declares, found none" for name in declared - listed_names]
    wrong += [f"{version_map}: expected names that a header declares, found {name}" for name in listed_names - declared]
    number = re.search(r"^#define BATON_ABI_VERSION (\d+)$", code, re.MULTILINE)[1]
    soname = re.search(r"\(SONAME\).*\[(.*)\]", subprocess.run([readelf, "-d", library], capture_output=True,
                                                              text=True, check=True).stdout)[1]
    if soname != f"libbaton-c.so.{number}":
        wrong.append(f"{library}: expected the name libbaton-c.so.{number}, found {soname}")
    print("\n".join(sorted(wrong)) or f"{len(found)} functions exported, all listed and declared")
    return 1 if wrong or not found else 0


sys.exit(main())
