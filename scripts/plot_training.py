"""Draws what `baton-train plot` is asked for; the program starts it.

Usage: plot_training.py split_time|throughput OUTPUT NAME RANKS FILE ...
         of each run its name, its number of ranks, and what `baton-train --json` printed"""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
import pictures  # noqa: E402

pictures.PROGRAM = "baton-train"
from pictures import STYLE, about, counted, give_up, pyplot, save_as, titled  # noqa: E402
from training_pictures import draw_speeds, draw_split_time, measured  # noqa: E402


def read(arguments):
    """Runs by (name, ranks)."""
    runs = {}
    for name, ranks, file in zip(*[iter(arguments)] * 3):
        run = measured(file)
        if run["ranks"] != int(ranks):
            give_up(f"{file}: expected a run on {counted(int(ranks), 'rank')}, found {run['ranks']}")
        runs[name, run["ranks"]] = run
    for what in "sizes", "item":
        if len(found := {run[what]: key for key, run in runs.items()}) > 1:
            (one, first), (other, second), *_ = found.items()
            give_up(f"expected the same {what} in all runs, found \"{one}\" in {first[0]}-{first[1]} and "
                    f"\"{other}\" in {second[0]}-{second[1]}")
    return runs


def below(runs):
    """What all runs have in common, and what their times are of."""
    lines = list(dict.fromkeys(about(run) for run in runs.values()))
    return lines[0] if len(lines) == 1 else next(iter(runs.values()))["sizes"]


def split_time(axes, runs):
    draw_split_time(axes, {f"{name} on {counted(ranks, 'rank')}": run for (name, ranks), run in runs.items()})
    titled(axes, "Where the time goes", below(runs))


def throughput(axes, runs):
    by_name = {}
    for (name, _), run in runs.items():
        by_name.setdefault(name, []).append(run)
    draw_speeds(axes, next((run for (_, ranks), run in runs.items() if ranks == 1), None), by_name, None)
    titled(axes, "Throughput", below(runs))


def main():
    kind, output, *arguments = sys.argv[1:]
    runs = read(arguments)
    with pyplot.rc_context(STYLE | {"axes.axisbelow": True}):
        wide = max(9, 1.1 * len(runs) + 3) if kind == "split_time" else 9
        figure, axes = pyplot.subplots(figsize=(wide, 5.4), layout="constrained")
        {"split_time": split_time, "throughput": throughput}[kind](axes, runs)
        alone = all(len(run["epoch_seconds"]) == 1 for run in runs.values())
        figure.supxlabel("of one epoch" if alone else "without the first epoch", fontsize=8, color="#666666", x=0.99,
                         ha="right")
        try:
            save_as(figure, Path(output))
        except OSError as error:
            give_up(f"-o: expected a file to write to, found {error}")


main()
