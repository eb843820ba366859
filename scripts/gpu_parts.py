"""The parts of `gpu-check`, and the functions that run them: each takes the Check, its own name, a plan
(gpu_plan.py) in place, and the command's arguments."""

import contextlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import gpu_plan
import gpus
from gpus import with_added

ROOT = Path(__file__).resolve().parents[1]
RANKS = [2, 4, 8]  # of `baton bench --device cuda`
# Processes take turns on a GPU that they share: few, and of few sizes.
RANKS_BESIDE_NCCL = [2, 4]
FORMS = ["whole", "attention", "train", "forward", "tp", "sp"]  # of transformer.py
# Of nccl-tests, with options beyond those that all have.
NCCL_TESTS = {"all_reduce": ["-d", "all", "-o", "all"], "reduce_scatter": ["-d", "all", "-o", "all"],
              "reduce": ["-d", "all", "-o", "all"], "all_gather": [], "broadcast": [], "alltoall": [],
              "gather": [], "scatter": [], "sendrecv": [], "hypercube": []}
NCCL_TESTS_RANKS = 2
# Of many launches, whose kernels have no shared memory: racecheck takes minutes, and can find nothing.
RACELESS = re.compile(r"folds |all |divisions")


def compile_nccl_tests(check, architectures, sources):
    code = [f"-gencode=arch=compute_{number},code=sm_{number}" for number in architectures]
    code.append(f"-gencode=arch=compute_{architectures[-1]},code=compute_{architectures[-1]}")  # for later GPUs
    return check.run("nccl-tests: compile",
                     ["make", "-C", sources, "-j", os.cpu_count(), "MPI=1", "MPI_HOME=/usr", "CXX=mpicxx",
                      f"BUILDDIR={check.build / 'nccl-tests'}", f"NVCC_GENCODE={' '.join(code)}"])


def part_of(test):
    """The part that runs the test."""
    if test["name"].startswith(gpu_plan.NCCL):
        return "tests-nccl"
    folder = test["name"].partition("/")[0]
    return f"tests-{folder}" if folder in ("memory", "transformer") else "tests-streams"


def run_tests(check, part, plan, _):
    chosen = [test for test in plan["tests"] if part_of(test) == part]
    if check.dry_run and not chosen:
        print("PROGRAM  # each of these tests")
    elif not chosen:
        check.row(part, "skipped", note="not built")
    for test in chosen:
        check.run(f"test: {test['name']}", test["cmd"], more=test["env"])


def sanitize(check, part, plan, _):
    """Each case of doctest programs by itself, so that what does not fit is known by name."""
    watched = [test for test in plan["tests"] if test["name"] in gpu_plan.FIRST]
    if check.dry_run:
        for program in [test["cmd"][0] for test in watched] or ["PROGRAM"]:
            print(f"compute-sanitizer --tool {part} {program} --test-case=CASE  # each case")
        return
    if gpu_plan.FIRST[0] not in [test["name"] for test in watched]:
        check.row(part, "failed", note=f"expected a test {gpu_plan.FIRST[0]}, found none")
    sanitizer = shutil.which("compute-sanitizer", path=check.environment["PATH"])
    if not sanitizer:
        check.row(part, "skipped", note="CUDA's compute-sanitizer is not installed")
        return
    cases = []
    for test in watched:
        listed = gpus.said_by([*test["cmd"], "--list-test-cases"],
                              env=with_added(check.environment, test["env"]))
        lines = [line for line in listed.splitlines() if line and not line.startswith(("[", "="))]
        if not lines:
            check.row(part, "failed", note=f"{test['cmd'][0]} lists no cases")
        cases += [(test, line) for line in lines if part != "racecheck" or not RACELESS.match(line)]
    for index, (test, case) in enumerate(cases):
        pattern = case.replace(",", "\\,")
        check.run(f"{part}: {case}",
                  [sanitizer, "--tool", part, "--error-exitcode", "9", *test["cmd"],
                   f"--test-case={pattern}"],
                  seconds=check.left() / (1 if index == len(cases) - 1 else 2), more=test["env"])


def kernels(check, part, plan, _):
    if not plan["benchmarks"] and not check.dry_run:
        check.row(part, "skipped", note="not built")
    for test in plan["benchmarks"]:
        check.run(f"benchmark: {test['name']}", test["cmd"], more=test["env"], show=True)


def mpirun(launcher, ranks):
    return [launcher, "-n", ranks, "--oversubscribe", "--mca", "mpi_yield_when_idle", 1]


def collectives(check, _, plan, __):
    for ranks in RANKS:
        check.run(f"benchmark: {ranks} ranks",
                  [plan["program"], "bench", "--device", "cuda", "--ranks", ranks, "--bytes", "8:64M",
                   "--factor", 8, "--json", check.logs / f"bench-{ranks}.json"], show=True)


def collectives_beside_nccl(check, part, plan, _):
    if not plan["launcher"]:
        check.row(part, "skipped", note="not built: it needs NCCL and MPI")
        return
    for ranks in RANKS_BESIDE_NCCL:
        check.run(f"benchmark: {ranks} ranks beside NCCL",
                  [*mpirun(plan["launcher"], ranks), plan["program"], "bench", "--device", "cuda",
                   "--bytes", "8:16M", "--factor", 128, "--pairs", 6,
                   "--json", check.logs / f"bench-nccl-{ranks}.json"], show=True)


def has_torch(check, python):
    search = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
    with contextlib.suppress(OSError):
        return subprocess.run([python, "-c", search], env=check.environment).returncode == 0
    return False


def transformer(check, part, plan, arguments):
    if not plan["block"]:
        check.row(part, "skipped", note="not built: it needs cuBLASLt and a BLAS")
    elif not check.dry_run and not has_torch(check, arguments.python):
        check.row(part, "skipped", note=f"expected PyTorch of {arguments.python}, found none")
    else:
        for form in FORMS:
            check.run(f"transformer: {form}",
                      [arguments.python, ROOT / "scripts/transformer.py", plan["block"], "--device", "cuda",
                       "--only", form, "--repeats", 5, "--json", check.logs / f"transformer-{form}.json"],
                      show=True)


def nccl_interface(check, part, plan, arguments):
    """NCCL's interface under nccl-tests' own programs, if their sources are at hand, and under
    PyTorch's ProcessGroupNCCL. All ranks share the first GPU, which NCCL itself refuses."""
    if not plan["library"]:
        check.row(part, "skipped", note="not built: it needs NCCL's header and UCX")
        return
    preloaded = {"LD_PRELOAD": plan["library"], "NCCL_TESTS_DEVICE": "0"}
    if plan["launcher"] and (plan["nccl_tests"] or arguments.nccl_tests):
        made = plan["nccl_tests"] or compile_nccl_tests(check, plan["architectures"], arguments.nccl_tests)
        for name, options in NCCL_TESTS.items() if made else []:
            check.run(f"nccl-tests: {name}",
                      [*mpirun(plan["launcher"], NCCL_TESTS_RANKS),
                       *(word for pair in preloaded.items() for word in ("-x", "=".join(pair))),
                       check.build / f"nccl-tests/{name}_perf", "-b", 8, "-e", "1M", "-f", 16, "-g", 1,
                       "-n", 2, "-w", 1, "-c", 1, *options])
    else:
        check.row("nccl-tests", "skipped", note="expected --nccl-tests FOLDER and MPI")
    check.run("ProcessGroupNCCL", [arguments.python, ROOT / "tests/dropin/nccl/torch_ranks.py", 2],
              more=preloaded)


# Each part with the seconds that it may take, what it does, and the function that runs it; first what
# teaches most. Processes that share a GPU slow each other down, so one runs at a time.
PARTS = {
    "build": (175, "configures and compiles, unless --prepare has", None),
    "tests-memory": (10, "tests of device memory: copies, folds, packing", run_tests),
    "tests-streams": (90, "tests of communicators on streams, with 64 ranks on one hardware queue", run_tests),
    "tests-transformer": (95, "tests of the transformer's kernels and block", run_tests),
    "tests-nccl": (50, "tests of messages by NCCL, ranks of mpirun", run_tests),
    "memcheck": (20, "compute-sanitizer's memcheck on the kernels' tests, case by case", sanitize),
    "kernels": (10, "kernels' bandwidth as a share of a plain copy's (bench/cuda_memory)", kernels),
    "collectives": (15, f"baton bench --device cuda on {', '.join(map(str, RANKS))} ranks that are threads",
                    collectives),
    "beside-nccl": (25, f"the same beside NCCL on {', '.join(map(str, RANKS_BESIDE_NCCL))} ranks of mpirun",
                    collectives_beside_nccl),
    "transformer": (120, "a transformer block beside PyTorch's (transformer.py --device cuda)", transformer),
    "racecheck": (20, "compute-sanitizer's racecheck on the kernels' tests, case by case", sanitize),
    "nccl-interface": (35, "nccl-tests and PyTorch's ProcessGroupNCCL on NCCL's interface", nccl_interface),
}
