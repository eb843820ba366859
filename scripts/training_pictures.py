"""Pictures of training runs that scripts/report and `baton-train plot` share. A run is what measured()
returns."""

from matplotlib.ticker import FuncFormatter

from pictures import MARKERS, OTHERS, OURS, check_training, counted, give_up, ranks_axis, read_json, technique

PARTS = {"computation": OURS[0], "communication": OTHERS[0], "optimizer": OTHERS[2]}
LINES = [OURS[0], OURS[1], OURS[2], OTHERS[2], OTHERS[0], OTHERS[1]]


def measured(file):
    """What `baton-train --json` printed, with seconds and items per second of its epochs but the first, if
    there are more."""
    result = read_json(file)
    try:
        check_training(result, file)
        item = "tokens" if "tokens_per_epoch" in result else "samples"
        epochs, items = result["epoch_seconds"][1:] or result["epoch_seconds"], result[f"{item}_per_epoch"]
        mean = {part: sum(epoch[part] for epoch in epochs) / len(epochs) for part in ["all", *PARTS]}
        if min(mean.values()) < 0:
            raise ValueError
        return result | {
            "technique": technique(result), "item": item, "mean": mean,
            "times": [epoch["all"] for epoch in epochs], "per_second": items / mean["all"],
            "speeds": [items / epoch["all"] for epoch in epochs]}
    except (ArithmeticError, KeyError, TypeError, ValueError):
        give_up(f"{file}: expected what `baton-train --json` prints, found another form")


def bar(axes, at, height, what, **style):
    """A bar, with `what` in its id in SVG."""
    [patch] = axes.bar(at, height, **style)
    patch.set_gid(f"bar {what}".replace(",", "").replace(" ", "-"))


def above(axes, at, height, text, **style):
    axes.annotate(text, (at, height), (0, 4), textcoords="offset points", ha="center", va="bottom", **style)


def number(value):
    """To 3 digits."""
    return f"{value:,.0f}" if value >= 100 or value == 0 else f"{value:#.3g}"


def seconds(value):
    return f"{number(value)} s" if value >= 0.1 else f"{number(1e3 * value)} ms"


def bars_by_name(axes, highest, names):
    axes.set_xticks(range(len(names)), [name.replace(" on ", "\non ") for name in names])
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.set_ylim(0, 1.15 * highest)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.grid(False, axis="x")


def draw_split_time(axes, runs):
    """Runs by name: a stack of computation, communication and optimizer for each."""
    highest = max(run["mean"]["all"] for run in runs.values())
    for at, (name, run) in enumerate(runs.items()):
        under = 0
        for part, colour in PARTS.items():
            value = run["mean"][part]
            bar(axes, at, value, f"{part} {name}", bottom=under, width=0.72, color=colour,
                label=part if at == 0 else None)
            if value > 0.06 * highest:
                axes.annotate(f"{seconds(value)} ({value / run['mean']['all']:.0%})",
                              (at, under + value / 2), ha="center", va="center", fontsize=8,
                              color="black" if part == "optimizer" else "white")
            under += value
        above(axes, at, under, seconds(run["mean"]["all"]))
    bars_by_name(axes, highest, list(runs))
    axes.set_ylabel("seconds of an epoch, mean of ranks")
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], loc="center left", bbox_to_anchor=(1, 0.5))


def draw_speeds(axes, alone, by_name, cores):
    """Items per second over ranks, a line for each name; beside them, one rank's `alone`, if there is one,
    times the cores in use, at most `cores`, if they are known."""
    every = [run for runs in by_name.values() for run in runs]
    ranks = sorted({run["ranks"] for run in every} | ({1} if alone else set()))
    if alone:
        axes.plot(ranks, [alone["per_second"] * min(n, cores or n) for n in ranks], color="#777777", linestyle="--",
                  label=f"one rank's, times {'cores in use' if cores else 'ranks'}", linewidth=1)
    for index, (name, runs) in enumerate(by_name.items()):
        points = {1: alone["per_second"]} if alone else {}
        points |= {run["ranks"]: run["per_second"] for run in runs}
        [line] = axes.plot(*zip(*sorted(points.items())), label=name, marker=MARKERS[index % len(MARKERS)],
                           markersize=6, color=LINES[index % len(LINES)], linewidth=1.8)
        line.set_gid(f"line {name}".replace(",", "").replace(" ", "-"))
    if cores and ranks[-1] > cores:
        axes.axvspan(cores * 1.05, ranks[-1] * 1.1, color="#eeeeee", linewidth=0, zorder=0)
        axes.text(ranks[-1] * 1.09, 0.01, f"ranks share {counted(cores, 'core')}",
                  transform=axes.get_xaxis_transform(), ha="right", va="bottom", fontsize=9, color="#555555")
    ranks_axis(axes, ranks)
    axes.set_xlim(0.92 * ranks[0], ranks[-1] * 1.1)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.set_ylabel(f"{every[0]['item']} per second, of all ranks together")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
