"""Measures what `baton simulate` predicts, on virtual hosts, and sums up how far it is off.

Usage: accuracy.py CLUSTER BATON HOSTS[,HOSTS...] [ARGUMENT...]

Each collective is a job of its own. Arguments go to `baton simulate COLLECTIVE`. Prints every cell
as it is measured, and last a table with a row for each number of hosts and each size.
"""

import json
import subprocess
import sys
from statistics import median, quantiles


def human(size):
    for unit in ("B", "KiB", "MiB"):
        if size < 1024 or unit == "MiB":
            return f"{size:g} {unit}"
        size /= 1024


def measured(command, hosts):
    """The cells of one job, as they come out of the program."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"accuracy: expected {' '.join(command)} to succeed, found exit code {done.returncode}")
    cells = json.loads(done.stdout)["rows"]
    for cell in cells:
        print(
            f"{hosts:>5} {cell['collective']:<15}{cell['algorithm']:<22}{human(cell['bytes']):>8}"
            f"{cell['predicted_us']:>14.1f}{cell['measured_us']:>14.1f}{cell['error'] * 100:>+9.1f} %",
            flush=True,
        )
    return [dict(cell, hosts=hosts) for cell in cells]


def right_picks(cells):
    """Of how many cases (hosts, collective, size), in how many the algorithm that is predicted to
    be the fastest takes at most 10 % more than the fastest; a sentence for each other case."""
    cases = {}
    for cell in cells:
        cases.setdefault((cell["hosts"], cell["collective"], cell["bytes"]), []).append(cell)
    wrong = []
    for (hosts, collective, size), case in cases.items():
        picked = min(case, key=lambda cell: cell["predicted_us"])
        best = min(case, key=lambda cell: cell["measured_us"])
        if picked["measured_us"] > 1.1 * best["measured_us"]:
            wrong.append(
                f"{collective} of {human(size)} on {hosts} hosts: {picked['algorithm']} takes "
                f"{picked['measured_us'] / best['measured_us']:.2f} times what {best['algorithm']} does"
            )
    return len(cases) - len(wrong), len(cases), wrong


def percentile_95(values):
    return quantiles(values, n=20, method="inclusive")[-1] if len(values) > 1 else values[0]


def row(hosts, size, cells):
    errors = [abs(cell["error"]) * 100 for cell in cells]
    right, cases, _ = right_picks(cells)
    return (
        f"| {hosts} | {size} | {len(cells)} | {median(errors):.1f} % | {percentile_95(errors):.1f} % "
        f"| {right} of {cases} |"
    )


def main():
    cluster, baton, hosts, *arguments = sys.argv[1:]
    listed = json.loads(subprocess.check_output([baton, "list", "--json"]))
    collectives = [name for name in dict.fromkeys(row["collective"] for row in listed)
                   if name != "barrier"]  # which has no size
    print(f"hosts {'collective':<15}{'algorithm':<22}{'bytes':>8}{'predicted us':>14}{'measured us':>14}"
          f"{'error':>11}")
    cells = []
    for number in map(int, hosts.split(",")):
        for collective in collectives:
            command = [cluster, "with", str(number), "200mbit", baton, "simulate", collective, "--json",
                       "--network", "virtual-cluster-200mbit", *arguments]
            cells += measured(command, number)
    print("\n| hosts | size | cells | median error | 95th percentile | right picks |")
    print("|---|---|---|---|---|---|")
    for number in dict.fromkeys(cell["hosts"] for cell in cells):
        of_number = [cell for cell in cells if cell["hosts"] == number]
        for size in sorted({cell["bytes"] for cell in of_number}):
            print(row(number, human(size), [c for c in of_number if c["bytes"] == size]))
        print(row(number, "all", of_number))
    print(row("all", "all", cells))
    for sentence in right_picks(cells)[2]:
        print(f"\nnot the fastest: {sentence}")


if __name__ == "__main__":
    main()
