"""Runs nccl-tests on NCCL's interface of this library without a GPU: their host code, with stand-ins
for CUDA's runtime and for the kernels that prepare and check data. Prints a table: how each program
ended on each layout of ranks, how many results were checked, and how many elements were wrong.

    scripts/nccl-tests ../nccl-tests                     sources of github.com/NVIDIA/nccl-tests
    scripts/nccl-tests ../nccl-tests --only all_reduce sendrecv

Needs CUDA's compiler and headers. Programs and what they print lie in build/nccl-tests; the table is in
results.json there. Exit codes: 0 all passed, 1 something failed, 2 something to run with is missing.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
from processes import exit_code  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
TESTS = ROOT / "tests/dropin/nccl"
PLACE = BUILD / "nccl-tests"
STAND_INS = {"cudart": BUILD / "tests/support/cuda/libstand_in_cudart.so",
             "nccl": BUILD / "tests/dropin/nccl/libstand_in_nccl.so"}

# Processes, threads of each, devices of each thread; messages of processes go by UCX.
LAYOUTS = [(1, 1, 1), (1, 1, 3), (1, 2, 2), (1, 4, 1), (2, 1, 1), (2, 1, 2), (3, 1, 1)]
ALL = "-b 64 -e 64K -f 32 -n 1 -w 0 -c 1 -d all -r -1".split()
REDUCES = "-o all".split()  # programs that take an op; others would repeat the same
# Other ways to call, with these layouts.
WAYS = {"parallel initialisation": "-p 1", "blocking calls": "-z 1", "four calls in a group": "-m 4",
        "registered buffers": "-R 1", "symmetric buffers": "-R 2", "unaligned buffers": "-u 1",
        "times by events": "-I 1"}
WAYS_LAYOUTS = [(1, 2, 2), (2, 1, 2)]
# Programs that send what they receive in the same group. NCCL orders no messages of a group (nccl-tests,
# issues 190 and 356), so their threads have one device each, outside any group.
ONE_DEVICE = {"hypercube"}
LIMIT = 300  # seconds of one program


def give_up(sentence):
    print(f"nccl-tests: {sentence}", file=sys.stderr)
    sys.exit(2)


def tool(*names, needed=True):
    """The first of these programs on PATH."""
    path = os.environ.get("PATH", os.defpath) + ":/usr/local/cuda/bin"
    for name in names:
        if found := shutil.which(name, path=path):
            return found
    return give_up(f"expected {' or '.join(names)} on PATH, found none") if needed else None


def built(folder, mpi):
    """Their programs, by name: linked with the stand-ins, checked by our data."""
    nvcc = Path(tool("nvcc"))
    cuda = nvcc.resolve().parent.parent
    header = folder / "verifiable/verifiable.h"
    if not header.is_file():
        give_up(f"expected a folder with the sources of nccl-tests, found no {header}")
    made_of = PLACE / "sources"
    sources = f"{folder} {nvcc} {mpi}"
    if not made_of.is_file() or made_of.read_text() != sources:
        shutil.rmtree(PLACE, ignore_errors=True)
    data = PLACE / "verifiable/verifiable.o"
    libraries = PLACE / "lib"
    for made in data.parent, libraries:
        made.mkdir(parents=True, exist_ok=True)
    made_of.write_text(sources)
    for name, library in STAND_INS.items():
        for link in libraries / f"lib{name}.so", libraries / library.name:
            link.unlink(missing_ok=True)
            link.symlink_to(library)
    compiler = mpi[0] if mpi else tool("c++", "g++")
    code = exit_code([compiler, "-std=c++20", "-O2", "-fPIC", "-isystem", cuda / "include",
                      f"-I{header.parent}", f"-I{ROOT / 'tests'}", "-c", TESTS / "verifiable.cpp",
                      "-o", data],
                     PLACE / "data.log", LIMIT, os.environ)
    if code != 0:
        give_up(f"expected {TESTS / 'verifiable.cpp'} to compile, found {PLACE / 'data.log'}")
    print("nccl-tests: compiling", file=sys.stderr)
    # Their rules find our data made; nvcc does not add a runtime of its own.
    code = exit_code([tool("make"), "-C", folder / "src", "build", "-o", data, "-j", os.cpu_count(),
                      f"BUILDDIR={PLACE}", f"CUDA_HOME={cuda}", f"NVCC={nvcc}", f"CUDA_LIB={libraries}",
                      f"NCCL_HOME={PLACE}", f"CXX={compiler}", f"MPI={int(bool(mpi))}", "MPI_HOME=/usr",
                      "NVCC_GENCODE=-gencode=arch=compute_90,code=sm_90"],
                     PLACE / "compile.log", 3 * LIMIT, os.environ | {"NVCC_APPEND_FLAGS": "--cudart=none"})
    if code != 0:
        give_up(f"expected nccl-tests to compile, found {PLACE / 'compile.log'}")
    return {file.name.removesuffix("_perf"): file for file in sorted(PLACE.glob("*_perf"))}


class Table:
    def __init__(self, mpi):
        self.mpi, self.rows = mpi, []
        self.logs = PLACE / "logs"
        shutil.rmtree(self.logs, ignore_errors=True)
        self.logs.mkdir()

    def add(self, name, program, layout, options=(), note="", more=None, wrong_expected=False):
        """Runs a program; a row of the table."""
        processes, threads, devices = layout
        title = " ".join([name, " x ".join(map(str, layout)), *options, *(more or {})])
        log = self.logs / (re.sub(r"[^\w-]+", "-", title) + ".log")
        results = log.with_suffix(".json")
        environment = {key: value for key, value in os.environ.items() if not key.startswith("BATON_")}
        environment |= {"LD_LIBRARY_PATH": str(PLACE / "lib"), "BATON_TIMEOUT": "60",
                        "NCCL_DEBUG": "WARN", "STAND_IN_DEVICES": str(processes * threads * devices),
                        "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        command = [program, "-t", threads, "-g", devices, *ALL,
                   *(REDUCES if "reduce" in name else []), *options, "-J", results]
        if processes > 1:
            command = [*self.mpi[1], "-n", processes, *command]
        start = time.monotonic()
        code = exit_code(command, log, LIMIT, environment | (more or {}))
        checked, wrong = numbers(results)
        good = wrong > 0 if wrong_expected else code == 0 and wrong == 0 and checked > 0
        result = "passed" if good else "out of time" if code is None else "failed"
        if not checked and "is not a power of 2" in log.read_text(errors="replace"):
            result, note = "skipped", "for powers of 2"
        if result == "failed":
            note = note or f"exit code {code}, see {log}"
        row = {"program": name, "layout": " x ".join(map(str, layout)), "result": result,
               "checked": checked, "wrong": wrong, "seconds": round(time.monotonic() - start, 1),
               "note": note}
        self.rows.append(row)
        print(f"{name:15} {row['layout']:10} {result:12} {checked:8} {wrong:8} {row['seconds']:8}  "
              f"{note}".rstrip(), flush=True)

    def finish(self, version):
        count = {result: sum(row["result"] == result for row in self.rows)
                 for result in ("passed", "skipped", "failed", "out of time")}
        (PLACE / "results.json").write_text(
            json.dumps({"nccl-tests": version, "rows": self.rows}, indent=1) + "\n")
        print(f"nccl-tests {version}: {count['passed']} passed, {count['skipped']} skipped, "
              f"{count['failed'] + count['out of time']} failed or out of time")
        return 1 if count["failed"] + count["out of time"] else 0


def layouts_of(name, layouts, mpi):
    """Those that the program runs on, each once."""
    fitting = [(processes, threads * devices, 1) if name in ONE_DEVICE else (processes, threads, devices)
               for processes, threads, devices in layouts if mpi or processes == 1]
    return list(dict.fromkeys(fitting))


def numbers(file):
    """Results that a program checked, and elements that it found wrong."""
    try:
        results = json.loads(file.read_text())["results"]
    except (OSError, ValueError, KeyError):
        return 0, 0
    each = [side["nwrong"] for result in results
            for side in (result.get("out_of_place"), result.get("in_place"))
            if side and side.get("nwrong") is not None]
    return len(each), int(sum(each))


def main():
    parser = argparse.ArgumentParser(prog="nccl-tests", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="sources of nccl-tests")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these programs")
    arguments = parser.parse_args()
    for library in STAND_INS.values():
        if not library.is_file():
            give_up(f"expected {library}, found none; it needs tests, nvcc, NCCL's header and UCX")
    compiler = tool("mpicxx.openmpi", "mpicxx", needed=False)
    launcher = tool("mpirun.openmpi", "mpirun", needed=False)
    mpi = None
    if compiler and launcher:
        said = subprocess.run([launcher, "--version"], capture_output=True, text=True).stdout
        openmpi = re.search("Open MPI|OpenRTE|open-mpi", said)
        mpi = compiler, [launcher, *(["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
                                     if openmpi else [])]
    folder = arguments.folder.resolve()
    programs = built(folder, mpi)
    if unknown := set(arguments.only or []) - set(programs):
        give_up(f"expected programs of nccl-tests, {', '.join(programs)}, found {', '.join(unknown)}")
    found = re.search(r'NCCL_TESTS_VERSION "([^"]+)"', (folder / "src/common.h").read_text())
    table = Table(mpi)
    print("Layout: processes x threads of each x devices of each thread\n\n"
          f"{'program':15} {'layout':10} {'result':12} {'checked':>8} {'wrong':>8} {'seconds':>8}")
    if "all_reduce" in programs:
        table.add("all_reduce", programs["all_reduce"], (1, 1, 3), more={"STAND_IN_WRONG": "1"},
                  wrong_expected=True, note="wrong bits on purpose: they must be found")
    for name in arguments.only or programs:
        for layout in layouts_of(name, LAYOUTS, mpi):
            table.add(name, programs[name], layout)
        for way, options in WAYS.items():
            for layout in layouts_of(name, WAYS_LAYOUTS, mpi):
                table.add(name, programs[name], layout, options.split(), way)
    return table.finish(found.group(1) if found else "of unknown version")


if __name__ == "__main__":
    sys.exit(main())
