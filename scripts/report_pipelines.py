"""The runs and pictures of scripts/report pipeline. A run is what report.run_named() returns."""

from matplotlib.ticker import MaxNLocator, PercentFormatter

from pictures import MARKERS, OTHERS, OURS, about, counted, give_up, pyplot, save, titled
from report_pictures import NAMES, Picture, draw_bars, find, same_sizes
from training_pictures import number

RANKS = 2  # of all but timelines
SEQUENCES = 2  # of a micro-batch
MICRO_BATCHES = {False: [1, 2, 3, 4, 6, 8, 12, 16], True: [1, 2, 4]}
PRESET = {False: "mini", True: "tiny"}
COMPARED = {"gpipe": [], "1f1b": [], "zb_h1": [], "interleaved_1f1b": ["--stages-per-rank", "2"]}
COMPARED_SAMPLES = {False: ["--samples", "96", "--epochs", "8"], True: ["--samples", "32", "--epochs", "3"]}
STEPS = {False: 4, True: 2}  # of an epoch, where micro-batches vary
SWEPT = {"gpipe": OURS[0], "1f1b": OTHERS[0], "zb_h1": OURS[2]}
TIMELINES = {"naive": [], **COMPARED}
TIMELINE_RANKS, TIMELINE_MICRO_BATCHES = 3, 6


def gpt2(text, quick, layers):
    return ["--model", "gpt2", "--text", text, "--preset", PRESET[quick], "--layers", str(layers), "--seq", "64",
            "--validation-samples", "2", "--write", "0"]


def pipelined(schedule, ranks, micro_batches, *more):
    return ["--parallel", "pp", "--schedule", schedule, "--ranks", str(ranks), "--micro-batches", str(micro_batches),
            *more]


def compared_runs(text, quick):
    """One rank, model parallelism and pipelines on the same samples: arguments of baton-train by name."""
    most = 8
    what = [*gpt2(text, quick, 4), "--batch-size", str(most * SEQUENCES), *COMPARED_SAMPLES[quick],
            "--cores-per-rank", "1"]
    return {"compared-1": what,
            f"compared-mp-{RANKS}": [*what, "--parallel", "mp", "--ranks", str(RANKS)]} | {
        f"compared-{schedule}-{RANKS}": [*what, *pipelined(schedule, RANKS, most, *more)]
        for schedule, more in COMPARED.items()}


def swept_runs(text, quick):
    """Micro-batches of one size, more and more of them."""
    return {f"micro-batches-{schedule}-{m}": [
        *gpt2(text, quick, 4), "--batch-size", str(m * SEQUENCES), "--samples", str(STEPS[quick] * m * SEQUENCES),
        "--epochs", "3", "--cores-per-rank", "1", *pipelined(schedule, RANKS, m)]
        for schedule in SWEPT for m in MICRO_BATCHES[quick]}


def timeline_runs(text, quick):
    return {f"timeline-{schedule}-{TIMELINE_RANKS}": [
        *gpt2(text, quick, 6), "--batch-size", str(TIMELINE_MICRO_BATCHES), "--samples",
        str(3 * TIMELINE_MICRO_BATCHES), "--epochs", "2",
        *pipelined(schedule, TIMELINE_RANKS, TIMELINE_MICRO_BATCHES, *more)] for schedule, more in TIMELINES.items()}


def drawings(folder):
    """Arguments of baton-train that draw timelines: planned, and as recorded."""
    made = []
    for schedule, more in TIMELINES.items():
        for suffix in "png", "svg":
            planned, recorded = (f"{folder}/timeline-{schedule}-{how}.{suffix}" for how in ["planned", "recorded"])
            made += [["pipeline", "draw", schedule, "--ranks", str(TIMELINE_RANKS), "--micro-batches",
                      str(TIMELINE_MICRO_BATCHES), *more, "-o", planned],
                     ["plot", "timeline", f"{folder}/timeline-{schedule}={TIMELINE_RANKS}", "-o", recorded]]
    return made


def unit_bubble(schedule, m, p=RANKS):
    """The formula: the part of the time in which ranks wait."""
    return 1 - 3 * m / (2 * m + p - 1 + max(m, p)) if schedule == "zb_h1" else (p - 1) / (m + p - 1)


def check(run, folder):
    """A pipeline's run has its bubble and peaks, or one sentence."""
    try:
        pipeline = run["pipeline"] if run["parallel"] in ("pp", "mp") else None
        if pipeline is None or (min(*pipeline["peak"], run["micro_batches"]) > 0 and
                                max(pipeline["bubble"], pipeline["unit_bubble"]) <= 1):
            return
    except (KeyError, TypeError, ValueError):
        pass
    give_up(f"{folder / run['name']}.json: expected what `baton-train --parallel pp --json` prints, found another "
            "form")


def micro_batches(run):
    return run["micro_batches"]


def draw_compared(model, runs, folder):
    forms = {"1 rank": "1 rank", "mp": "model\nparallel"} | {f"pp, {name}": name.replace("_1", "\n1")
                                                            for name in COMPARED}
    shown = [find(runs, model, technique, folder)[0] for technique in forms]
    same_sizes(shown, model, folder)
    m = micro_batches(shown[-1])
    return Picture(
        f"{NAMES[model]}: model parallelism and pipelines on {RANKS} ranks",
        f"{about(shown[0])}. Model parallelism: one rank computes at a time, with the whole batch. The pipelines cut "
        f"the batch in {m} micro-batches; interleaved, with two stages on each rank. Each rank is pinned to a core.",
        draw_bars(model, shown, list(forms.values()), folder / f"{model}-pipelines"), [run["name"] for run in shown])


def swept(model, runs, folder):
    """Runs by schedule, in the order of their micro-batches."""
    found = {name: sorted(find(runs, model, f"pp, {name}", folder, RANKS), key=micro_batches) for name in SWEPT}
    counts = {name: [micro_batches(run) for run in its] for name, its in found.items()}
    first, *others = counts
    for name in others:
        if counts[name] != counts[first]:
            give_up(f"{folder}: expected micro-batches {counts[first]} with {name}, as with {first}, found "
                    f"{counts[name]}")
    for name, its in found.items():
        for run in its:
            formula, counted_ = unit_bubble(name, micro_batches(run)), run["pipeline"]["unit_bubble"]
            if abs(formula - counted_) > 1e-9:
                give_up(f"{folder / run['name']}.json: expected a unit_bubble of {formula:g}, found {counted_:g}")
    return found


def over_micro_batches(axes, counts):
    axes.set_xticks(counts)
    axes.set_xlim(min(counts) - 0.5, max(counts) + 0.5)
    axes.set_xlabel("micro-batches of a step")


def line(axes, name, what, points, **style):
    """A line of a schedule, with `what` in its id in SVG."""
    [drawn] = axes.plot(*zip(*points), color=SWEPT[name], **style)
    drawn.set_gid(f"line-{name}-{what}")


def draw_bubble(model, by_schedule, folder):
    figure, axes = pyplot.subplots(figsize=(9, 6), layout="constrained")
    runs = [run for its in by_schedule.values() for run in its]
    counts = [micro_batches(run) for run in next(iter(by_schedule.values()))]
    every = range(min(counts), max(counts) + 1)
    for at, (name, its) in enumerate(by_schedule.items()):
        line(axes, name, "measured", [(micro_batches(run), run["pipeline"]["bubble"]) for run in its], 
             label=f"{name}, measured", linestyle="none", marker=MARKERS[at], markersize=7, zorder=3)
    formulas = {"gpipe": "gpipe and 1f1b: (p-1) / (m+p-1)",
                "zb_h1": "zb_h1: 1 - 3m / (2m+p-1+max(m,p))"}
    for name, label in formulas.items():
        line(axes, name, "formula", [(m, unit_bubble(name, m)) for m in every], label=label, linestyle="--",
             linewidth=1.5)
    over_micro_batches(axes, counts)
    axes.set_ylim(bottom=min(0, *(run["pipeline"]["bubble"] for run in runs)))
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_ylabel("part of forward and backward in which ranks wait")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.11), ncol=2)
    titled(axes, f"{NAMES[model]}: bubble on {RANKS} ranks", f"micro-batches of {SEQUENCES} sequences of 64; "
           f"p = {RANKS} ranks, m micro-batches")
    return Picture(
        f"{NAMES[model]}: the bubble, measured and by formula",
        "Formulas count forward, the gradient by the input and the gradient by the weights as one unit of time each, "
        "with equal stages and messages that take no time. Measured: all steps of a run, mean of ranks.",
        save(figure, folder / f"{model}-bubble"), [run["name"] for run in runs])


def draw_peaks(model, by_schedule, folder):
    figure, all_axes = pyplot.subplots(1, 2, figsize=(9, 4.8), layout="constrained")
    shown = {name: by_schedule[name] for name in ["gpipe", "1f1b"]}
    sides = [("kept by the schedule", "micro-batches, of the rank that keeps the most",
              lambda run: max(run["pipeline"]["peak"]), str),
             ("at most, in training", "megabytes (10⁶ bytes), of the rank that holds the most",
              lambda run: run["held_bytes"]["activations"]["most"] / 1e6, number)]
    for axes, (title, below, value, says) in zip(all_axes, sides):
        for at, (name, its) in enumerate(shown.items()):
            line(axes, name, "most", [(micro_batches(run), value(run)) for run in its], label=name,
                 marker=MARKERS[at], markersize=6, linewidth=1.8)
            axes.annotate(says(value(its[-1])), (micro_batches(its[-1]), value(its[-1])), (0, 6),
                          textcoords="offset points", ha="right", va="bottom", fontsize=9, color=SWEPT[name])
        over_micro_batches(axes, [micro_batches(run) for run in next(iter(shown.values()))])
        axes.set_ylim(0, 1.12 * axes.dataLim.y1)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend(loc="upper left")
        titled(axes, f"Activations {title}", below)
    return Picture(
        f"{NAMES[model]}: activations of GPipe and of 1F1B on {RANKS} ranks",
        "Left: counted in the schedule, which `baton-train pipeline explain` prints. Right: what the allocator "
        f"counted, with all that is temporary. A micro-batch has {SEQUENCES} sequences, so a batch grows with their "
        "number.", save(figure, folder / f"{model}-pipeline-activations"),
        [run["name"] for its in shown.values() for run in its])


def draw_timelines(cores, folder):
    pictures = []
    sharing = f" The recorded ranks share {counted(cores, 'core')}." if cores < TIMELINE_RANKS else ""
    for schedule, more in TIMELINES.items():
        files = [folder / f"timeline-{schedule}-{how}.{suffix}" for how in ["planned", "recorded"]
                 for suffix in ["png", "svg"]]
        for file in files:
            if not file.is_file():
                give_up(f"{file}: expected a timeline, found none; scripts/report pipeline measures again")
        stages = f" and {more[1]} stages per rank" if more else ""
        pictures.append(Picture(
            f"{schedule}: a step on {TIMELINE_RANKS} ranks",
            f"{TIMELINE_MICRO_BATCHES} micro-batches{stages}. Above: predicted, backward taking twice forward's time "
            f"and messages none. Below: the last step of a training, as recorded.{sharing}",
            files, [f"timeline-{schedule}-{TIMELINE_RANKS}"], wide=True))
    return pictures


def draw_all(runs, cores, folder):
    """All pictures, in their order."""
    model = "gpt2"
    compared = [run for run in runs if run["name"].startswith("compared-")]
    by_schedule = swept(model, [run for run in runs if run["name"].startswith("micro-batches-")], folder)
    return [draw_compared(model, compared, folder), draw_bubble(model, by_schedule, folder),
            draw_peaks(model, by_schedule, folder), *draw_timelines(cores, folder)]
