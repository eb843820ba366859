"""A shared library exports the names that its public headers declare, and no others.

Usage: exports.py NM LIBRARY ARCHIVE... --headers PATH... --compiler WORD...

ARCHIVEs are the static libraries that LIBRARY is made of; PATHs are headers or folders of headers.
A name is declared if each of its parts is a word of the headers' code: "baton", "transformer",
"View" and "slice" of baton::transformer::View::slice. Prints a line for each name that is exported
without being declared, and for each declared name of an archive that is not exported. The exit code
is 1 if there is any.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

def names(nm, library, *which):
    """Names of the symbols of a library that `which`, options of nm, selects."""
    done = subprocess.run([nm, *which, library], capture_output=True, text=True, check=True)
    symbols = (line.split(maxsplit=2) for line in done.stdout.splitlines())
    return {symbol[-1].split("@")[0] for symbol in symbols if len(symbol) > 1}


def parts(symbol):
    """["baton", "View", "slice"] of "int baton::View<float>::slice(int) const"."""
    symbol = re.sub(r"\[abi:\w+\]", "", symbol.replace("(anonymous namespace)", "{}"))
    symbol = re.sub(r"\boperator(<=>|<<|>>|<=|>=|->|<|>|\(\))", "operator", symbol)
    while symbol != (symbol := re.sub(r"<[^<>]*>", "", symbol)):
        pass
    symbol = re.sub(r"\boperator\b.*", "operator", symbol.partition("(")[0])
    return [part.lstrip("~") for part in symbol.split()[-1].split("::")]


def words(compiler, headers):
    """Words of the headers' own code, macros expanded; none of those that the headers hide."""
    files = [os.path.realpath(file) for header in map(Path, headers)
             for file in (sorted(header.rglob("*.hpp")) if header.is_dir() else [header])]
    source = "".join(f'#include "{file}"\n' for file in files)
    done = subprocess.run([*compiler, "-std=c++20", "-E", "-x", "c++", "-"], input=source,
                          check=True, capture_output=True, text=True)
    own, code = False, ""
    for line in done.stdout.splitlines():
        if marker := re.match(r'# \d+ "(.*?)"', line):
            own = os.path.realpath(marker[1]) in files
        elif own:
            code += line + "\n"
    code = re.sub(r'"[^"\n]*"', '""', code)
    # BATON_HIDDEN is the only attribute of types with a string.
    hidden = re.findall(r'\b(?:struct|class) \[\[gnu::visibility\(""\)\]\] (\w+)', code)
    hidden += re.findall(r"\bnamespace baton::(\w+)", code)
    return set(re.findall(r"\w+", code)) - set(hidden)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nm")
    parser.add_argument("library")
    parser.add_argument("archives", nargs="*")
    parser.add_argument("--headers", nargs="+", required=True)
    parser.add_argument("--compiler", nargs=argparse.REMAINDER, required=True)
    given = parser.parse_args()
    declared = words(given.compiler, given.headers)

    def public(symbol):
        return "{" not in symbol and set(parts(symbol)) <= declared

    exported = names(given.nm, given.library, "-DC", "--defined-only")
    wrong = [f"{given.library}: expected no name that its headers do not declare, found {symbol}"
             for symbol in sorted(exported) if not public(symbol)]
    if not any(symbol.startswith("baton::") for symbol in exported):
        wrong.append(f"{given.library}: expected names of baton, found none")
    for archive in given.archives:
        defined = names(given.nm, archive, "-C", "--defined-only", "--extern-only")
        wrong += [f"{archive}: expected {symbol} to be exported, as a public header declares it, "
                  f"found it hidden" for symbol in sorted(defined - exported)
                  if symbol.startswith("baton::") and public(symbol)]
    print("\n".join(wrong) or f"{len(exported)} names exported, all declared")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
