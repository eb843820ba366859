"""What pictures of measurements share: colours, axes, titles, files, and sentences of errors."""

import json
import sys
from pathlib import Path

PROGRAM = Path(sys.argv[0]).stem


def give_up(sentence):
    sys.exit(f"{PROGRAM}: {sentence}")


try:
    import matplotlib
except ImportError:
    give_up("expected python3-matplotlib, found none; scripts/setup installs it")

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator  # noqa: E402

# Colour-blind safe (Okabe & Ito); ours come first, in blue.
OURS = ["#0072b2", "#56b4e9", "#009e73"]
OTHERS = ["#d55e00", "#cc79a7", "#e69f00", "#7f3f98", "#8c6d31", "#4d4d4d", "#999933"]
MARKERS = "osD^vP*X<>"
STYLE = {
    "font.size": 10, "axes.titlesize": 12, "axes.grid": True, "grid.color": "#dddddd",
    "grid.linewidth": 0.6, "axes.spines.top": False, "axes.spines.right": False,
    "legend.edgecolor": "none", "legend.framealpha": 0.8, "legend.fontsize": 9, "svg.hashsalt": "baton",
}


def read_json(file):
    try:
        return json.loads(Path(file).read_text())
    except (OSError, UnicodeDecodeError, ValueError) as error:
        give_up(f"{file}: expected a file of JSON, found {error}")


def check_training(run, file):
    """A run of `baton-train --json`, or one sentence."""
    if not isinstance(run, dict) or not {"loss", "parallel", "ranks", "sizes", "dtype"} <= set(run):
        give_up(f"{file}: expected what `baton-train --json` prints, found another form")
    curves = [run["loss"], run.get("reference_loss", run["loss"])]
    if any(not isinstance(curve, list) or not curve or len(curve) != len(curves[0]) or
           not all(isinstance(loss, (int, float)) for loss in curve) for curve in curves):
        give_up(f"{file}: expected what `baton-train --json` prints, with losses, found another form")


def in_bytes(size):
    for unit, name in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")]:
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size:g} B"


def in_time(us):
    for unit, name in [(1e6, "s"), (1e3, "ms"), (1, "µs")]:
        if us >= unit * 0.9999:
            return f"{us / unit:g} {name}"
    return f"{us * 1e3:g} ns"


def counted(n, what):
    return f"{n} {what}{'' if n == 1 else 's'}"


def technique(run):
    """How a run of `baton-train --json` is shared among ranks."""
    stage = f", stage {run['stage']}" if "stage" in run else ""
    schedule = f", {run['pipeline']['schedule']}" if run["parallel"] == "pp" and "pipeline" in run else ""
    positions = ", sequence parallel" if run.get("sequence_parallel") else ""
    return "1 rank" if run["parallel"] == "none" else run["parallel"] + schedule + stage + positions


def form(run):
    how = technique(run)
    name, comma, rest = how.partition(",")
    return how if run["parallel"] == "none" else f"{name} on {run['ranks']} ranks{comma}{rest}"


def about(run):
    """One line: sizes, type, optimizer, transport."""
    return ", ".join(str(part) for part in [
        run["sizes"], run["dtype"], run.get("optimizer"), run.get("transport")] if part)


def titled(axes, title, below):
    axes.set_title(f"{title}\n", loc="left", fontweight="bold")
    axes.text(0, 1.015, below, transform=axes.transAxes, fontsize=9, color="#444444")


def ranks_axis(axes, ranks):
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(ranks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda ranks, _: f"{ranks:g}"))
    axes.set_xlabel("ranks")


def draw_losses(curves, reference, title, below, stem):
    """Losses over epochs by name, on top of those of one rank if there are any; below, how far they are
    from these."""
    figure, all_axes = pyplot.subplots(
        2 if reference else 1, 1, figsize=(9, 7.6 if reference else 5.6), sharex=True,
        squeeze=False, layout="constrained", height_ratios=[3, 1] if reference else [1])
    upper, lower = all_axes[0][0], all_axes[-1][0]
    if reference:
        epochs = range(1, len(reference) + 1)
        upper.plot(epochs, reference, label="1 rank", color=OURS[1], linewidth=5, alpha=0.6)
    alone = len(curves) == 1
    colours = ["black"] if alone else [OURS[0], OURS[2], *OTHERS]
    any_apart = False
    for number, (name, losses) in enumerate(curves.items()):
        style = {"color": colours[number % len(colours)], "label": name}
        # Where several coincide, each is seen in its turn.
        dashes = (0, (4, 3)) if alone else (4 * number, (4, 4 * len(curves) - 4))
        epochs = range(1, len(losses) + 1)
        upper.plot(epochs, losses, linewidth=1.3 if alone else 2,
                   linestyle=dashes if reference else "-", **style)
        if reference:
            apart = [abs(a - b) / abs(b) if b else abs(a) for a, b in zip(losses, reference)]
            any_apart |= any(apart)
            lower.plot(epochs, apart, marker=MARKERS[number % len(MARKERS)], markersize=3, linewidth=1,
                       **style)
    if reference:
        if any_apart:
            lower.set_yscale("log", nonpositive="mask")
        else:
            lower.set_ylim(-1e-16, 1e-16)
        lower.set_ylabel("relative difference\n(no point: none)")
    every = [loss for losses in [*curves.values(), reference or []] for loss in losses]
    if min(every) > 0 and max(every) >= 10 * min(every):
        upper.set_yscale("log")
    upper.set_ylabel("loss, mean of the epoch")
    handles, labels = upper.get_legend_handles_labels()
    if reference and not alone:
        handles[1:] = lower.get_legend_handles_labels()[0]  # which have no gaps
    upper.legend(handles, labels, loc="upper right")
    lower.set_xlabel("epoch")
    lower.xaxis.set_major_locator(MaxNLocator(integer=True))
    titled(upper, title, below)
    return save(figure, stem)


def save_as(figure, file):
    """Writes the figure in the format of the file's ending."""
    figure.savefig(file, dpi=150, metadata={"Date": None} if file.suffix == ".svg" else None)


def save(figure, stem):
    """Writes the figure as PNG and SVG, and closes it."""
    written = [stem.with_name(f"{stem.name}.{suffix}") for suffix in ["png", "svg"]]
    for file in written:
        save_as(figure, file)
    pyplot.close(figure)
    return written
