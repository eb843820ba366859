"""Has faults again and again, on threads and in a job of processes, and prints a table."""

import argparse
import copy
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "faults"))
import process_faults  # noqa: E402


def parsed():
    names = ["threads", "processes", *process_faults.FAULTS]
    parser = argparse.ArgumentParser(
        prog="soak", description="Has faults again and again: on threads, in every algorithm on 2 to 9 ranks "
        "at every step, and in jobs of processes over UCX and shared memory. Ctrl-C or SIGTERM ends it: the "
        "table so far is printed. Exit code 1 if one did not end as promised.")
    parser.add_argument("--hours", type=float, default=1, help="how long; 1 unless given")
    parser.add_argument("--ranks", type=int, default=8, help="of the job; 8 unless given")
    parser.add_argument("--seed", type=int, default=1, help="of the cases' order and the ranks that are hit")
    parser.add_argument("--only", nargs="+", choices=names, metavar="WHAT", default=["threads", "processes"],
                        help="some of: " + ", ".join(f'"{name}"' for name in names))
    parser.add_argument("--over", nargs="+", choices=["ucx", "shm"], default=["ucx", "shm"],
                        help="transports of the jobs; both unless given")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="the build folder")
    parser.add_argument("--json", type=Path, metavar="FILE", help="writes the counts to a file, too")
    return parser.parse_args(), parser.error


class Ended(BaseException):
    """By a signal; no problem of the fault that is under way."""


def end_by_signals():
    """SIGINT and SIGTERM raise Ended, once."""
    def ended(number, _):
        for each in [signal.SIGINT, signal.SIGTERM]:
            signal.signal(each, signal.SIG_IGN)
        raise Ended(signal.Signals(number).name)
    for each in [signal.SIGINT, signal.SIGTERM]:
        signal.signal(each, ended)


class Threads:
    """The program `soak` in several parts, beside the job."""

    def __init__(self, folder, seconds, parts, seed):
        self.running = [subprocess.Popen([folder / "soak", *map(str, [seconds, part, parts, seed])],
                                         text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                        for part in range(parts)]

    def end(self):
        for process in self.running:
            process.terminate()

    def counts(self):
        """Waits; {kind: {count: number}} and the problems."""
        kinds, problems = {}, []
        for process in self.running:
            out, errors = process.communicate()
            problems += errors.splitlines()
            if process.returncode not in [0, 1]:
                problems.append(f"soak ended with code {process.returncode}")
                continue
            for kind, counts in json.loads(out).items():
                for name, number in counts.items():
                    own = kinds.setdefault(kind, {})
                    own[name] = own.get(name, 0) + number
        return kinds, problems


def run_processes(totals, folder, ranks, seed, end):
    """Has the faults of {(fault, transport): totals} in turn until the time is over, each once at least."""
    chance = random.Random(seed)
    while True:
        for (name, over), total in totals.items():
            if time.monotonic() > end and (total["times"] or total["problems"] or total["skipped"]):
                continue
            course = process_faults.Course(folder, over, ranks, chance, ranks)
            outcome = process_faults.run(name, course)
            total["times"] += outcome.happened
            total["survivors"] += outcome.survivors
            total["deaf"] += outcome.deaf
            total["seconds"] += outcome.seconds
            total["problems"] += outcome.problems
            total["skipped"] = outcome.skipped
            for problem in outcome.problems:
                print(f"soak: {name} over {over}: {problem}", file=sys.stderr, flush=True)
        if time.monotonic() > end:
            return


def print_threads(kinds):
    print(f"{'fault on threads':<26}{'cases':>12}{'happened':>12}{'right':>12}{'problems':>12}")
    for kind, counts in kinds.items():
        row = [counts[name] for name in ["cases", "happened", "right", "wrong"]]
        print(f"{kind:<26}" + "".join(f"{number:>12}" for number in row))


def print_processes(totals):
    print(f"{'fault of processes':<34}{'times':>8}{'survivors':>12}{'deaf':>6}"
          f"{'seconds until the sentence':>30}{'problems':>10}")
    for (fault, over), total in totals.items():
        name = f"{fault}, {over}"
        seconds = sorted(total["seconds"])
        told = f"{statistics.median(seconds):.1f}, at most {seconds[-1]:.1f}" if seconds else "-"
        if total["skipped"] and not total["times"]:
            print(f"{name:<34}skipped: {total['skipped']}")
        else:
            print(f"{name:<34}{total['times']:>8}{total['survivors']:>12}{total['deaf']:>6}{told:>30}"
                  f"{len(total['problems']):>10}")


def main():
    options, refuse = parsed()
    folder = options.build / "tests" / "faults"
    seconds = options.hours * 3600
    begin = time.monotonic()
    names = [name for name in process_faults.FAULTS if name in options.only or "processes" in options.only]
    parts = 2 * (os.cpu_count() or 2)  # they wait most of the time
    threads = Threads(folder, seconds, parts, options.seed) if "threads" in options.only else None
    none = {"times": 0, "survivors": 0, "deaf": 0, "seconds": [], "problems": [], "skipped": ""}
    totals = {(name, over): copy.deepcopy(none)
              for over in options.over for name in process_faults.faults_of(over) if name in names}
    if not totals and not threads:
        refuse(f"expected a fault that jobs over {' and '.join(options.over)} can have, found "
               + " and ".join(f'"{name}"' for name in options.only))
    kinds, problems = {}, []
    try:
        end_by_signals()
        if totals:
            run_processes(totals, folder, options.ranks, options.seed, begin + seconds)
        if threads:
            kinds, problems = threads.counts()
    except Ended as how:
        print(f"soak: ended by {how}", file=sys.stderr)
        if threads:
            threads.end()
            kinds, problems = threads.counts()
    for problem in problems:
        print(f"soak: {problem}", file=sys.stderr)
    if kinds:
        print_threads(kinds)
    if totals:
        print_processes(totals)
    found = len(problems) + sum(len(total["problems"]) for total in totals.values())
    print(f"{(time.monotonic() - begin) / 3600:.2f} hours, {found} problems")
    if options.json:
        processes = {f"{name}, {over}": total for (name, over), total in totals.items()}
        counts = {"threads": kinds, "thread_problems": problems, "processes": processes}
        options.json.write_text(json.dumps(counts, indent=1) + "\n")
    return 1 if found else 0


sys.exit(main())
