"""Runs tests on mutants of sources; `mutate` starts it.

For each mutant it builds and runs one test after the other until one fails: first those of the file's
room, those named like the file in front, then the others of the same tree (lib or transformer), those
that killed most in front. A test that takes several times as long as usual fails.
"""

import argparse
import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from mutants import mutants
from targets import tests_of

OPTIONS = ["-Dauto_features=disabled", "-Dtests=enabled", "-Dtransformer=enabled", "-Doptimization=1",
           "-Ddebug=false", "-Db_lundef=false", "-Dcpp_link_args=-fuse-ld=mold"]
MEMORY = 12 << 30  # bytes of address space; a mutant may allocate without end


def limited():
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(command, seconds, folder=None, environment=None):
    """Exit code, or None after so many seconds; ends all that the command started."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, cwd=folder, preexec_fn=limited,
                          env=dict(os.environ, **environment) if environment else None) as process:
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def copy_tree(root, tree):
    """Makes `tree` equal to the files of the working tree; touches only those that differ."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "-co", "--exclude-standard"],
                            capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, listed):
        source, target = root / name, tree / name
        if not source.is_file():
            target.unlink(missing_ok=True)
        elif not target.is_file() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
            target.chmod(source.stat().st_mode)


class Tests:
    """The tests of a build folder."""

    def __init__(self, build, suites, slowest):
        self.build, self.slowest = build, slowest
        self.tests = tests_of(build, suites)
        # Of each without a mutant: the digest of its programs, and the time that it takes.
        self.kept = build.parent / "tests.json"
        self.usual = json.loads(self.kept.read_text()) if self.kept.is_file() else {}
        self.digests = {}
        self.kills = Counter()

    def ninja(self, targets):
        return not targets or run(["ninja", "-C", str(self.build), *targets], 1800) == 0

    def digest(self, name):
        """Of the programs that a test runs. Those that a mutant leaves as they are need no run."""
        digest = hashlib.sha256()
        for target in self.tests[name]["targets"]:
            digest.update((self.build / target).read_bytes())
        return digest.hexdigest()

    def passes(self, name, limit):
        test = self.tests[name]
        return run(test["cmd"], limit, test["workdir"] or self.build, test["env"]) in (0, 77)

    def measure(self, names):
        """Builds these tests and runs those that are not known yet; none may fail."""
        names = [name for name in names if name not in self.digests]
        if not self.ninja({target for name in names for target in self.tests[name]["targets"]}):
            sys.exit(f"expected {self.build} to build, found that it does not; see: ninja -C {self.build}")
        for name in names:
            self.digests[name] = self.digest(name)
            if self.usual.get(name, {}).get("digest") == self.digests[name]:
                continue
            begin = time.monotonic()
            if not self.passes(name, 600):
                sys.exit(f"expected test '{name}' to pass without a mutant, found that it fails")
            seconds = round(time.monotonic() - begin, 2)
            self.usual[name] = {"digest": self.digests[name], "seconds": seconds}
            self.kept.write_text(json.dumps(self.usual, indent=1))

    def fails(self, name):
        """Whether a test that was built with a mutant notices it."""
        if self.tests[name]["targets"] and self.digest(name) == self.digests[name]:
            return False
        usual = self.usual[name]["seconds"]
        return not self.passes(name, 15 + min(8 * usual, 20 + 2 * usual))

    def order(self, file):
        """The tests for mutants of a file; see above."""
        parts = Path(file).with_suffix("").parts
        parts = parts if parts[0] == "transformer" else parts[1:]
        stem = parts[-1]
        names = [name for name in self.tests
                 if name.startswith("transformer/") == (parts[0] == "transformer")]

        def shared(name):
            words = name.partition(" ")[0].split("/")
            return next((i for i, pair in enumerate(zip(words, parts[:-1])) if pair[0] != pair[1]),
                        min(len(words), len(parts) - 1))

        def rank(name):
            last = name.partition(" ")[0].split("/")[-1]
            named = last.startswith(stem) or stem.startswith(last)
            seconds = self.usual.get(name, {}).get("seconds", 0)
            return (-shared(name), not (shared(name) and named), -self.kills[name] / (seconds + 1), seconds,
                    name)

        usual = [name for name in names
                 if shared(name) or self.usual.get(name, {}).get("seconds", 0) <= self.slowest]
        return sorted(usual, key=rank)


def killer(tests, file):
    """What killed the mutant that is in the tree: a test, 'compiler' or None."""
    for name in tests.order(file):
        if not tests.ninja(tests.tests[name]["targets"]):
            return "compiler"
        if tests.fails(name):
            tests.kills[name] += 1
            return name
    return None


def sources(root, names):
    for name in names:
        path = (root / name).resolve()
        if not path.exists():
            sys.exit(f"expected a source or a folder, found '{name}'")
        files = sorted(path.rglob("*.[ch]pp")) if path.is_dir() else [path]
        yield from (file.relative_to(root).as_posix() for file in files)


def arguments():
    parser = argparse.ArgumentParser(prog="mutate", description="Mutation testing.")
    parser.add_argument("root", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("files", nargs="+", metavar="FILE", help="a source or a folder")
    parser.add_argument("--sample", type=int, metavar="N", help="only N mutants of all, drawn by chance")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of the choice of the sample")
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    parser.add_argument("--again", action="store_true", help="run survivors again, with the tests of now")
    parser.add_argument("--suite", action="append", help="of tests; unit by default")
    parser.add_argument("--slowest", type=float, default=float("inf"), metavar="SECONDS",
                        help="leave out slower tests of other rooms; --again takes them later")
    parser.add_argument("--option", action="append", default=[], metavar="OPTION",
                        help="of the build, as --option=-Dmpi=enabled; give it a --folder of its own")
    parser.add_argument("--folder", default="build-mutate", help="build folder, relative to the root")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results there")
    return parser.parse_args()


def described(root, file, mutant):
    source = (root / file).read_text()
    line = source.count("\n", 0, mutant.begin) + 1
    old = " ".join(source[mutant.begin:mutant.end].split())
    return {"file": file, "line": line, "kind": mutant.kind, "old": old, "new": mutant.text}


def key(root, file, mutant):
    """Names a mutant as long as its source stays the same."""
    text = mutant.apply((root / file).read_text())
    return file + " " + hashlib.sha256(text.encode()).hexdigest()


def sample(args):
    files = dict.fromkeys(sources(args.root, args.files))
    every = [(file, mutant) for file in files for mutant in mutants((args.root / file).read_text())]
    if args.sample is not None and args.sample < len(every):
        chosen = sorted(random.Random(args.seed).sample(range(len(every)), args.sample))
        every = [every[i] for i in chosen]
    return every


def main():
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # after restoring the source
    every = sample(args)
    if args.list:
        for file, mutant in every:
            print("{file}:{line}: {kind}: {old} -> {new}".format(**described(args.root, file, mutant)))
        return print(f"{len(every)} mutants")
    folder = args.root / args.folder
    tree, build = folder / "tree", folder / "build"
    kept = folder / "results.json"
    results = json.loads(kept.read_text()) if kept.is_file() else {}
    copy_tree(args.root, tree)
    if not (build / "build.ninja").is_file():
        subprocess.run(["meson", "setup", build, tree, *OPTIONS, *args.option], check=True,
                       stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", build, "build.ninja"], check=True, stdout=subprocess.DEVNULL)
    tests = Tests(build, set(args.suite or ["unit"]), args.slowest)
    found = []
    for file, mutant in every:
        name = key(args.root, file, mutant)
        if name not in results or (args.again and results[name]["killer"] is None):
            tests.measure(tests.order(file))
            original = (args.root / file).read_text()
            try:
                (tree / file).write_text(mutant.apply(original))
                begin = time.monotonic()
                result = {**described(args.root, file, mutant), "killer": killer(tests, file)}
                result["seconds"] = round(time.monotonic() - begin, 1)
            finally:
                (tree / file).write_text(original)
            results[name] = result
            kept.with_suffix(".new").write_text(json.dumps(results, indent=1))
            kept.with_suffix(".new").replace(kept)
            print("{file}:{line}: {kind}: {old} -> {new}: {0}".format(
                f"killed by {result['killer']}" if result["killer"] else "SURVIVED", **result), flush=True)
        found.append(results[name])
    report(found)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")


def report(found):
    """A table by folder, and the survivors."""
    rooms = {}
    for result in found:
        outcome = {"compiler": "not compiled", None: "survived"}.get(result["killer"], "killed")
        rooms.setdefault(os.path.dirname(result["file"]), Counter())[outcome] += 1
    print(f"{'room':30} {'mutants':>8} {'killed':>8} {'survived':>9} {'not compiled':>13}")
    for name, count in sorted(rooms.items()):
        print(f"{name:30} {sum(count.values()):8} {count['killed']:8} {count['survived']:9} "
              f"{count['not compiled']:13}")
    for result in found:
        if result["killer"] is None:
            print("survived: {file}:{line}: {kind}: {old} -> {new}".format(**result))


if __name__ == "__main__":
    main()
