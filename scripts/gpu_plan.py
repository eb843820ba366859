"""What `gpu-check` runs of a build folder. `gpu-check --prepare` keeps it in BUILD/gpu-check-plan.json, so
that BUILD, copied to any path, can be run on a machine without meson, ninja and compilers.

A plan names files relative to BUILD, and a launcher of MPI by its name alone:
- `tests`, `benchmarks`: of meson's suite `device`, each with `name`, `cmd`, `env`
- `launcher`: None without NCCL and MPI; `program`; `library`, of NCCL's interface, and `block`, None if not
  built
- `files`: all that must be there, libraries included
- with --prepare also `made`, `architectures`, `versions`, `nccl_tests`, and `sources`, a hash of them
"""

import hashlib
import json
import os
import re
import shutil
from pathlib import Path

import gpus

FIRST = ["memory/cuda_device", "transformer/cuda_operations"]  # seconds each; the sanitizers watch them
NCCL = "communicator/nccl_stream on "  # tests that are there if there are NCCL and MPI
# Beside the tests' programs: what `baton bench --device` becomes, what transformer.py times, NCCL's interface.
DEVICE_BENCH, BLOCK, INTERFACE = "baton-bench-device", "cuda_block_bench", "libbaton-nccl-abi.so"
LIBRARIES = "libraries"  # in BUILD: copies of what programs need
# The machine's own: the C library and the compiler's, and CUDA's.
OF_MACHINE = re.compile(r"linux-vdso|ld-linux|lib(c|m|dl|rt|pthread|resolv|util|gcc_s|stdc\+\+)\.so"
                        r"|lib(cu|nv|nccl)")


SOURCES = ["meson.build", "algorithms", "include", "lib", "tests", "transformer"]


def hash_of(root):
    """Of the sources; None where they are not."""
    if not all((root / name).exists() for name in SOURCES):
        return None
    files = sorted(file for name in SOURCES for file in [root / name, *(root / name).rglob("*")]
                   if file.is_file() and "__pycache__" not in file.parts)
    found = hashlib.sha256()
    for file in files:
        found.update(f"{file.relative_to(root)} {file.stat().st_size}\n".encode())
        found.update(file.read_bytes())
    return found.hexdigest()


def file_of(build):
    return build / "gpu-check-plan.json"


def portable(word, build):
    """The word; of a file in BUILD, its path there."""
    return os.path.relpath(word, build) if word.startswith(f"{build}/") else word


def located(word, build):
    return str(build / word) if (build / word).is_file() else word


def described(test, build):
    command = [portable(word, build) for word in test["cmd"]]
    if command[0].startswith("/"):
        command[0] = Path(command[0]).name
    return {"name": test["name"], "cmd": command,
            "env": {name: portable(value, build) for name, value in test["env"].items()}}


def of_build(build, tests, benchmarks, targets):
    """From what meson says of them."""
    tests, benchmarks = ([test for test in group
                          if any(suite.rpartition(":")[2] == "device" for suite in test["suite"])]
                         for group in (tests, benchmarks))
    tests.sort(key=lambda test: test["name"] not in FIRST)
    files = {target["id"]: portable(target["filename"][0], build) for target in targets}
    named = {Path(file).name: file for file in files.values()}
    needed = {files[name] for test in tests + benchmarks for name in test["depends"]}
    needed |= {named.get(name) for name in (DEVICE_BENCH, BLOCK, INTERFACE)} - {None}
    tests, benchmarks = ([described(test, build) for test in group] for group in (tests, benchmarks))
    return {"tests": tests, "benchmarks": benchmarks,
            "launcher": next((test["cmd"][0] for test in tests if test["name"].startswith(NCCL)), None),
            "program": "baton", "library": named.get(INTERFACE), "block": named.get(BLOCK),
            "files": sorted(needed | {"baton"})}


def in_place(plan, build):
    """The plan with paths of BUILD as it lies here."""
    def test_in_place(test):
        env = {name: str(build / value) if name in gpus.PATHS else value for name, value in test["env"].items()}
        return test | {"cmd": [located(word, build) for word in test["cmd"]], "env": env}

    files = {name: plan[name] and str(build / plan[name]) for name in ("program", "library", "block")}
    return plan | files | {"tests": [test_in_place(test) for test in plan["tests"]],
                           "benchmarks": [test_in_place(test) for test in plan["benchmarks"]],
                           "launcher": plan["launcher"] and located(plan["launcher"], build)}


def read(build):
    """The plan that --prepare left, and which of its files are missing; None without one."""
    if not file_of(build).exists():
        return None, []
    plan = json.loads(file_of(build).read_text())
    return plan, [file for file in plan["files"] if not (build / file).exists()]


def write(plan, build, environment, bundle):
    """Adds the libraries that the files need: those in BUILD to `files`; copies of others to BUILD/libraries,
    but for the machine's and the bundle's."""
    copies = build / LIBRARIES
    shutil.rmtree(copies, ignore_errors=True)
    copies.mkdir()
    files = set()
    for file in plan["files"]:
        said = gpus.said_by(["ldd", build / file], env=environment)
        found = re.findall(r"^\s*(\S+) => (/.*) \(0x", said, re.MULTILINE)
        for name, path in [(file, str(build / file)), *found]:
            path, real = Path(os.path.normpath(path)), Path(path).resolve()
            if path.is_relative_to(build):  # a link and what it leads to
                files |= {os.path.relpath(path, build), os.path.relpath(real, build)}
            elif not OF_MACHINE.match(name) and not (bundle and real.is_relative_to(bundle)):
                shutil.copyfile(real, copies / name)
                files.add(f"{LIBRARIES}/{name}")
    plan = plan | {"files": sorted(files)}
    file_of(build).write_text(json.dumps(plan, indent=1) + "\n")
    return plan
