"""Times a transformer block, forward and backward in f32, against PyTorch's: on one rank, and on two by
tensor parallelism and by Ulysses, where PyTorch's ranks send by gloo. Each rank has one thread. Both
sides take turns, step by step, while the other sleeps. Medians, and quartiles of the ratios of
neighbouring steps. Then what part of our steps goes into communication that computation does not hide,
beside the time that the budget's bytes need at the bandwidth between both ranks.

With --device cuda: attention and the block on a GPU, in f32, tf32 and bf16, where ours runs on 1, 2 and 4
ranks that share the GPU, and PyTorch, which then has its own kernels of attention, on one."""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import torch  # noqa: F401: the other side needs it
except ImportError:
    sys.exit("bench-transformer: expected python3-torch, found none; "
             "please run scripts/setup python3-torch")

PEER = Path(__file__).with_name("torch_block.py")
# name, form, ranks, batch, seq, required: PyTorch's time / ours
COMPARISONS = [
    ("block on one rank", "whole", 1, 4, 512, 1.0),
    ("tensor parallel on two", "tp", 2, 4, 512, 1.2),
    ("Ulysses on two", "sp", 2, 1, 2048, 1.8),
]
# On a GPU: form, ranks; each with batch, seq, model and heads of ON_GPU.
GPU_COMPARISONS = [("forward", 1), ("attention", 1), ("whole", 1), ("tp", 2), ("sp", 2), ("tp", 4), ("sp", 4),
                   ("train", 1), ("train", 2)]
GPU_TYPES = ["f32", "tf32", "bf16"]
ON_GPU = ["--batch", "4", "--seq", "2048", "--d-model", "2048", "--heads", "16", "--d-ff", "8192", "--causal",
          "--steps", "5"]

ENVIRONMENT = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1",
                            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def sizes(batch, seq, options):
    return ["--batch", str(batch), "--seq", str(seq), "--d-model", str(options.d_model),
            "--heads", str(options.heads), "--d-ff", str(options.d_ff)]


class Side:
    """Processes that do a step for each line; `times` are those of the slowest."""

    def __init__(self, commands):
        self.processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                           text=True, bufsize=1, env=ENVIRONMENT)
                          for command in commands]
        self.times = []

    def step(self):
        for process in self.processes:
            process.stdin.write("\n")
        lines = [process.stdout.readline() for process in self.processes]
        if not all(lines):
            sys.exit(f"bench-transformer: {self.processes[0].args[0]} ended before its time")
        self.times.append(max(map(float, lines)))

    def end(self):
        for process in self.processes:
            process.stdin.close()
        for process in self.processes:
            process.wait()


def launcher(ranks):
    mpirun = shutil.which("mpirun.openmpi") or "mpirun"
    # PyTorch's ranks are not bound to cores either.
    return [mpirun, "--bind-to", "none", "-n", str(ranks)] if ranks > 1 else []


def compare(program, options, form, ranks, batch, seq):
    arguments = [form, *sizes(batch, seq, options)]
    with tempfile.TemporaryDirectory() as folder:
        ours = Side([[*launcher(ranks), program, *arguments]])
        theirs = Side([[sys.executable, str(PEER), *arguments, "--rank", str(rank), "--ranks",
                        str(ranks), "--store", f"{folder}/store"] for rank in range(ranks)])
        result = in_turns(ours, theirs, options.repeats)
        ours.end(), theirs.end()
        return result


def in_turns(ours, theirs, repeats):
    for side in (ours, theirs):  # the first steps load libraries and touch memory
        side.step(), side.step()
        side.times.clear()
    for _ in range(repeats):
        ours.step(), theirs.step()
    ratios = sorted(t / o for o, t in zip(ours.times, theirs.times))
    return {"ours": ours.times[:], "PyTorch": theirs.times[:],
            "ratio": statistics.median(ratios),
            "quartiles": [ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]]}


def compare_on_gpu(program, repeats, only):
    """Prints as it goes; all results by name."""
    results, peers = {}, {}

    def peer(form, kind):
        """PyTorch's side, which is started once for all that it is compared with."""
        form = "whole" if form in ("tp", "sp") else form
        if (form, kind) not in peers:
            peers[form, kind] = Side([[sys.executable, str(PEER), form, "--device", "cuda", "--type", kind,
                                       *ON_GPU]])
        return peers[form, kind]

    print(f"{'':10} {'ranks':>5} {'type':>5} {'ours ms':>8} {'PyTorch ms':>10} {'ratio':>6}   quartiles")
    for form, ranks in GPU_COMPARISONS:
        if only not in (None, form):
            continue
        sides = {kind: (Side([[program, form, "--ranks", str(ranks), "--type", kind, *ON_GPU]]),
                        peer(form, kind)) for kind in GPU_TYPES}
        for kind, (ours, theirs) in sides.items():
            result = results[f"{form} on {ranks}, {kind}"] = in_turns(ours, theirs, repeats)
            ours.end()
            low, high = result["quartiles"]
            print(f"{form:10} {ranks:5} {kind:>5} {1e3 * statistics.median(result['ours']):8.3f} "
                  f"{1e3 * statistics.median(result['PyTorch']):10.3f} {result['ratio']:6.2f}   "
                  f"{low:.2f} to {high:.2f}", flush=True)
    for side in peers.values():
        side.end()
    return results


def share(program, options, form, ranks, batch, seq):
    """What exchanges take of a step of ours, and what the budget comes to."""
    command = [*launcher(ranks), program, form, *sizes(batch, seq, options),
               "--share", str(options.repeats)]
    line = subprocess.run(command, check=True, capture_output=True, text=True,
                          env=ENVIRONMENT).stdout
    names = ("step", "exchanges", "bytes", "messages", "bandwidth")
    return dict(zip(names, map(float, line.split())))


def memory(program, options, batch, seq):
    """MiB of both."""
    arguments = ["memory", *sizes(batch, seq, options)]
    return [float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            for command in ([program, *arguments], [sys.executable, str(PEER), *arguments])]


def main():
    parser = argparse.ArgumentParser(prog="bench-transformer", description=__doc__)
    parser.add_argument("program", help=argparse.SUPPRESS)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--only", choices=["whole", "tp", "sp", "memory", "train", "forward", "attention"])
    parser.add_argument("--repeats", type=int, default=10, help="steps of each side")
    parser.add_argument("--d-model", type=int, default=1024)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--d-ff", type=int, default=4096)
    parser.add_argument("--json", help="file for all times")
    options = parser.parse_args()

    if options.device == "cuda":
        results = compare_on_gpu(options.program, options.repeats, options.only)
    else:
        results = compare_on_cpu(options)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1) + "\n")


def compare_on_cpu(options):
    """Prints as it goes; all results by name."""
    results = {}
    print(f"{'':24} {'batch':>5} {'seq':>5} {'ours s':>8} {'PyTorch s':>9} {'ratio':>6}"
          f"   quartiles      required")
    for name, form, ranks, batch, seq, required in COMPARISONS:
        if options.only not in (None, form):
            continue
        result = results[name] = compare(options.program, options, form, ranks, batch, seq)
        low, high = result["quartiles"]
        print(f"{name:24} {batch:5} {seq:5} {statistics.median(result['ours']):8.3f} "
              f"{statistics.median(result['PyTorch']):9.3f} {result['ratio']:6.2f}   "
              f"{low:.2f} to {high:.2f}   {required:.1f}", flush=True)
    shared = [row for row in COMPARISONS if row[2] > 1 and options.only in (None, row[1])]
    if shared:
        print(f"\n{'communication of ours':24} {'step ms':>8} {'its ms':>7} {'share':>6}"
              f"   {'budget MiB':>10} {'messages':>8} {'at GB/s':>7} {'ms':>6}")
    for name, form, ranks, batch, seq, _ in shared:
        part = results[name]["share"] = share(options.program, options, form, ranks, batch, seq)
        print(f"{name:24} {1e3 * part['step']:8.0f} {1e3 * part['exchanges']:7.1f} "
              f"{100 * part['exchanges'] / part['step']:5.1f}%   {part['bytes'] / 2**20:10.1f} "
              f"{part['messages']:8.0f} {part['bandwidth'] / 1e9:7.2f} "
              f"{1e3 * part['bytes'] / part['bandwidth']:6.1f}", flush=True)
    if options.only in (None, "memory"):
        print()
        ours, theirs = results["memory MiB"] = memory(options.program, options, 1, 2048)
        print(f"{'memory of attention, MiB':24} {1:5} {2048:5} {ours:8.1f} {theirs:9.1f} "
              f"{theirs / max(ours, 0.1):6.0f}")
    return results


main()
