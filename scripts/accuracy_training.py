"""Measures the steps of training that `baton-train --predict` predicts, on virtual hosts, and sums up how far
predictions are off.

Usage: accuracy_training.py CLUSTER BATON BATON-TRAIN TEXT FOLDER [--hosts N,...] [--rates RATE,...] [--steps N]
                            [--only 'LAYOUT;...'] [--calibrate] [--json FILE]

Each number of hosts and rate has a network of its own, which `baton calibrate` measures and FOLDER keeps. Each
layout is a job of its own.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from statistics import median

from accuracy import percentile_95

MODEL = ["--model", "gpt2", "--layers", "4", "--d-model", "256", "--heads", "4", "--vocabulary", "512", "--seq", "64",
         "--batch-size", "16"]
GFLOPS = "60"  # of ranks that sleep in place of computing
MOST_TAKEN = 0.04  # of a processor's time, by the machine beneath, in a run that counts
ATTEMPTS = 4
RUN = 8000  # ms of a run, about; but FEWEST steps at least, of which UNCOUNTED do not count
FEWEST, UNCOUNTED = 5, 2


class Layout:
    """A division of a step among ranks, and what the two sides of a comparison call it."""

    def __init__(self, stage=0, micro_batches=1, schedule="", sequence_parallel=False, **axes):
        self.axes, self.stage, self.micro_batches = axes, stage, micro_batches
        self.schedule, self.sequence_parallel = schedule, sequence_parallel

    def ranks(self):
        product = 1
        for size in self.axes.values():
            product *= size
        return product

    def name(self):
        text = " x ".join(f"{axis} {size}" for axis, size in self.axes.items())
        if self.stage:
            text += f", stage {self.stage}"
        if self.sequence_parallel:
            text += ", sequence parallel"
        return text + (f", {self.schedule}" if self.schedule else "")

    def common(self):
        arguments = ["--micro-batches", str(self.micro_batches)]
        if self.schedule:
            arguments += ["--schedule", self.schedule]
        return arguments + (["--sequence-parallel"] if self.sequence_parallel else [])

    def of_prediction(self):
        arguments = self.common() + ["--stage", str(self.stage), "--context", "64"]
        for axis, size in self.axes.items():
            arguments += ["--" + axis, str(size)]
        return arguments

    def of_run(self):
        axes = set(self.axes)
        if self.stage:
            form = "fsdp"
        elif axes == {"tp", "sp"}:
            form = "tp-sp"
        elif len(axes) == 1:
            form = next(iter(axes))
        else:
            form = "dp"
        arguments = ["--parallel", form] + (["--stage", str(self.stage)] if self.stage else [])
        others = {"dp": ("tp", "sp", "pp"), "fsdp": ("tp", "sp", "pp"), "tp-sp": ("tp",)}.get(form, ())
        for axis in others:
            if axis in self.axes:
                arguments += ["--" + axis, str(self.axes[axis])]
        return self.common() + arguments


def layouts(hosts):
    """One rank on each host."""
    all_of_them = [Layout(dp=hosts, stage=stage) for stage in range(4)]
    all_of_them += [Layout(tp=hosts), Layout(tp=hosts, sequence_parallel=True), Layout(sp=hosts)]
    all_of_them += [Layout(pp=hosts, micro_batches=8, schedule=schedule) for schedule in ("1f1b", "gpipe", "zb_h1")]
    if hosts == 4:
        all_of_them += [Layout(dp=2, tp=2), Layout(dp=2, tp=2, stage=3), Layout(dp=2, sp=2), Layout(tp=2, sp=2),
                        Layout(dp=2, pp=2, micro_batches=4, schedule="1f1b"),
                        Layout(tp=2, pp=2, micro_batches=4, schedule="1f1b")]
    return all_of_them


def answer(command):
    """What a command prints, as JSON."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"accuracy: expected {' '.join(command)} to succeed, found exit code {done.returncode}: "
                 f"{done.stderr[-500:]}")
    return json.loads(done.stdout)


def processor_time_taken():
    """Seconds that the machine beneath has not given to this one's processors, so far."""
    with open("/proc/stat", encoding="ascii") as stat:
        return int(stat.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


class Bench:
    """Predicts and measures cells: a number of hosts, a rate, a layout, computed or emulated."""

    def __init__(self, given):
        self.given = given
        self.networks = {}

    def network(self, hosts, rate):
        file = os.path.join(self.given.folder, f"virtual-cluster-{hosts}x{rate}.txt")
        if (hosts, rate) not in self.networks and (self.given.calibrate or not os.path.exists(file)):
            print(f"calibrating {hosts} hosts at {rate}", file=sys.stderr, flush=True)
            subprocess.run([self.given.cluster, "with", str(hosts), rate, self.given.baton, "calibrate",
                            "--processors", str(os.cpu_count()), "-o", file], check=True, stdout=subprocess.DEVNULL)
        self.networks[hosts, rate] = file
        return file

    def predicted(self, hosts, rate, layout, emulated):
        speed = ["--gflops", GFLOPS, "--emulated"] if emulated else ["--at-once", str(hosts)]
        return answer([self.given.train, "--predict", *MODEL, *layout.of_prediction(), *speed, "--network",
                       self.network(hosts, rate), "--json"])["step_ms"]

    def measured(self, hosts, rate, layout, emulated, predicted):
        """Milliseconds of the median step; repeated where the machine beneath took processors away."""
        number = max(FEWEST, min(self.given.steps, int(RUN / predicted)))
        command = [self.given.cluster, "with", str(hosts), rate, self.given.train, *MODEL, *layout.of_run(), "--text",
                   self.given.text, "--steps", str(number), "--json"]
        command += ["--emulate-gflops", GFLOPS] if emulated else ["--write", "0", "--validation-samples", "1"]
        runs = []  # the part that was taken, and the median
        while len(runs) < ATTEMPTS and not any(taken <= MOST_TAKEN for taken, _ in runs):
            before, begin = processor_time_taken(), time.monotonic()
            steps = answer(command)["step_seconds"][UNCOUNTED:]
            taken = (processor_time_taken() - before) / (time.monotonic() - begin)
            runs.append((taken, 1e3 * median(steps)))
        return min(runs)[1]

    def cell(self, hosts, rate, layout, emulated):
        predicted = self.predicted(hosts, rate, layout, emulated)
        measured = self.measured(hosts, rate, layout, emulated, predicted)
        cell = {"hosts": hosts, "rate": rate, "emulated": emulated, "layout": layout.name(), "predicted_ms": predicted,
                "measured_ms": measured, "error": predicted / measured - 1}
        print(f"{hosts:>5}  {rate:<8}  {'emulated' if emulated else 'computed':<9} {cell['layout']:<26}"
              f"{predicted:>13.1f}{measured:>13.1f}{100 * cell['error']:>+9.1f} %", flush=True)
        return cell


def picked(cells):
    """The layout predicted to be the fastest, and how much longer than the fastest it takes. Of pipelines, those
    by 1F1B count: schedules are not compared."""
    cells = [cell for cell in cells if not cell["layout"].endswith(("gpipe", "zb_h1"))]
    choice = min(cells, key=lambda cell: cell["predicted_ms"])
    best = min(cells, key=lambda cell: cell["measured_ms"])
    return choice, choice["measured_ms"] / best["measured_ms"] - 1


def row(name, cells):
    errors = [abs(cell["error"]) * 100 for cell in cells]
    text = f"| {name} | {len(cells)} | {median(errors):.1f} % | {percentile_95(errors):.1f} % | {max(errors):.1f} % |"
    groups = {}
    for cell in cells:
        groups.setdefault((cell["hosts"], cell["rate"], cell["emulated"]), []).append(cell)
    if len(groups) > 1:
        right = sum(picked(group)[1] <= 0.1 for group in groups.values())
        return text + f" {right} of {len(groups)} within 10 % |"
    choice, longer = picked(cells)
    return text + f" {choice['layout']}: {100 * longer:.1f} % longer than the fastest |"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    for name in ("cluster", "baton", "train", "text", "folder"):
        parser.add_argument(name)
    numbers = lambda text: [int(number) for number in text.split(",")]
    parser.add_argument("--hosts", type=numbers, default=[2, 4])
    parser.add_argument("--rates", type=lambda text: text.split(","), default=["1gbit", "100mbit"])
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--only", type=lambda text: text.split(";"))
    parser.add_argument("--calibrate", action="store_true")
    parser.add_argument("--json")
    given = parser.parse_args()
    if given.steps < FEWEST:
        sys.exit(f"accuracy: --steps: expected at least {FEWEST}, found {given.steps}")
    os.makedirs(given.folder, exist_ok=True)
    bench, cells = Bench(given), []
    print(f"hosts  {'rate':<8}  {'ranks':<9} {'layout':<26}{'predicted ms':>13}{'measured ms':>13}{'error':>11}")
    for hosts in given.hosts:
        for rate in given.rates:
            # Ranks that outnumber processors would wait for them, not for each other.
            kinds = [True, False] if hosts <= os.cpu_count() else [True]
            for emulated in kinds:
                for layout in layouts(hosts):
                    if not given.only or layout.name() in given.only:
                        cells.append(bench.cell(hosts, rate, layout, emulated))
    if not cells:
        sys.exit(f"accuracy: expected layouts of the table, found {given.only}")
    print("\n| hosts | layouts | median error | 95th percentile | largest | predicted to be the fastest |")
    print("|---|---|---|---|---|---|")
    for hosts, rate, emulated in dict.fromkeys((cell["hosts"], cell["rate"], cell["emulated"]) for cell in cells):
        its = [cell for cell in cells if (cell["hosts"], cell["rate"], cell["emulated"]) == (hosts, rate, emulated)]
        print(row(f"{hosts} at {rate}, {'emulated' if emulated else 'computed'}", its))
    print(row("all", cells))
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(cells, file, indent=1)


if __name__ == "__main__":
    main()
