"""The pictures of scripts/report training. A run is what report.run_named() returns."""

from dataclasses import dataclass, field
from pathlib import Path

from pictures import OTHERS, OURS, about, draw_losses, form, give_up, pyplot, save, titled
from training_pictures import above, bar, bars_by_name, draw_speeds, draw_split_time, number

HELD = {"parameters": OURS[0], "gradients": OURS[1], "optimizer": OTHERS[2]}
PEAKS = {"activations": OURS[2], "gathered": OTHERS[1]}
TECHNIQUES = ["dp", "fsdp, stage 1", "fsdp, stage 2", "fsdp, stage 3", "tp", "sp"]
STAGES = {"dp": "all replicated", "fsdp, stage 1": "stage 1:\noptimizer", "fsdp, stage 2": "stage 2:\nand gradients",
          "fsdp, stage 3": "stage 3:\neverything"}
NAMES = {"gpt2": "GPT-2", "vgg16": "VGG16"}


@dataclass
class Picture:
    title: str
    text: str  # what it shows
    files: list[Path]
    runs: list[str] = field(default_factory=list)  # names
    wide: bool = False  # shown in its own size, to be scrolled


def find(runs, model, technique, folder, ranks=None):
    """Runs by number of ranks, at least one."""
    found = sorted((run for run in runs if (run["model"], run["technique"]) == (model, technique)
                    and ranks in (None, run["ranks"])), key=lambda run: run["ranks"])
    if not found:
        where = f" on {ranks} ranks" if ranks and technique != "1 rank" else ""
        give_up(f"{folder}: expected a run of {model} in the form {technique}{where}, found none")
    return found


def same_sizes(runs, model, folder):
    if len({run["sizes"] for run in runs}) > 1:
        give_up(f"{folder}: expected the same sizes in all runs of {model}, found "
                + " and ".join(sorted({run["sizes"] for run in runs})[:2]))


def draw_bars(model, runs, names, stem):
    """Time of an epoch and items per second, a bar for each run; returns the files."""
    figure, all_axes = pyplot.subplots(1, 2, figsize=(max(9, 2.2 * len(runs)), 4.8), layout="constrained")
    item = runs[0]["item"]
    sides = [("time of an epoch", "seconds, mean of ranks", "times", [run["mean"]["all"] for run in runs]),
             (f"{item} per second", "of all ranks together", "speeds", [run["per_second"] for run in runs])]
    for axes, (title, below, samples, values) in zip(all_axes, sides):
        for at, (run, value) in enumerate(zip(runs, values)):
            low, high = min(run[samples]), max(run[samples])
            bar(axes, at, value, f"{title} {form(run)}", width=0.6, color=OURS[0 if run["ranks"] > 1 else 1])
            axes.errorbar(at, value, [[max(value - low, 0)], [max(high - value, 0)]], color="#333333", linewidth=1,
                          capsize=3)
            above(axes, at, max(high, value), number(value))
        bars_by_name(axes, max(max(run[samples]) for run in runs), names)
        titled(axes, f"{NAMES[model]}: {title}", below)
    figure.supxlabel("without the first epoch; thin lines: least and greatest epoch", fontsize=8, color="#666666",
                     x=0.99, ha="right")
    return save(figure, stem)


def draw_one_and_several(model, runs, folder):
    return Picture(
        f"{NAMES[model]} on one rank and on several", f"{about(runs[0])}. On several ranks, by data parallelism (dp).",
        draw_bars(model, runs, [form(run) for run in runs], folder / f"{model}-one-and-several"),
        [run["name"] for run in runs])


def draw_time(model, runs, folder):
    figure, axes = pyplot.subplots(figsize=(9, 5.2), layout="constrained")
    draw_split_time(axes, {form(run): run for run in runs})
    titled(axes, f"{NAMES[model]}: where the time goes", about(runs[0]))
    return Picture(
        f"{NAMES[model]}: computation, communication, optimizer",
        "Communication is the time in which a rank starts, advances and awaits messages; what travels while it "
        "computes is not in it. Mean of ranks and of all epochs but the first.",
        save(figure, folder / f"{model}-time"), [run["name"] for run in runs])


def draw_throughput(model, alone, by_technique, cores, folder):
    figure, axes = pyplot.subplots(figsize=(9, 5.8), layout="constrained")
    draw_speeds(axes, alone, by_technique, cores)
    titled(axes, f"{NAMES[model]}: throughput", about(alone))
    return Picture(
        f"{NAMES[model]}: throughput of each technique",
        "The batch is the same on any number of ranks. dp: each rank has other samples; fsdp: they also share the "
        "optimizer's state (stage 1), gradients (2), parameters (3); tp: parts of the weights; sp: parts of the "
        "positions.", save(figure, folder / f"{model}-throughput"),
        [alone["name"], *(run["name"] for runs in by_technique.values() for run in runs)])


def draw_loss(model, alone, forms, folder):
    files = draw_losses({form(run): run["loss"] for run in forms}, alone["loss"], f"{NAMES[model]}: loss in each form",
                        about(alone), folder / f"{model}-loss")
    return Picture(f"{NAMES[model]}: loss", "Each form on top of one rank's. Below, how far they are apart: sums "
                   "are rounded in another order, and training lets such differences grow.", files, [run["name"] for run in [alone, *forms]])


def draw_memory(model, runs, calculated, calculator, folder):
    """Two panels: what is held between steps, and at most, each beside the calculator's."""
    megabytes = 1e-6
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 5.4), layout="constrained", width_ratios=[6, 5])
    rows = {row.get("stage"): row for row in calculated["held"] if "stage" in row}
    kept = sum(row["bytes"] for row in calculated["held"] if row["form"].startswith("activations")) * megabytes
    for at, run in enumerate(runs):
        measured, row = run["held_bytes"], rows[run.get("stage", 0)]
        for shift, source, hatch in [(-0.2, {part: measured[part]["now"] for part in HELD}, None), (0.2, row, "///")]:
            under = 0
            for part, colour in HELD.items():
                side = "calculator" if hatch else "measured"
                value = source[part] * megabytes
                bar(left, at + shift, value, f"{part} {side} {run['technique']}", bottom=under, width=0.36,
                    color=colour, hatch=hatch, edgecolor="white", linewidth=0.8,
                    label=part if at == 0 and not hatch else None)
                under += value
            above(left, at + shift, under, number(under), fontsize=8)
        bars = {"activations": measured["activations"]["most"] * megabytes, "calculator": kept,
                "gathered": measured["gathered"]["most"] * megabytes}
        for shift, (part, value) in zip([-0.3, 0, 0.3], bars.items()):
            bar(right, at + shift, value, f"{part} most {run['technique']}", width=0.28,
                color=PEAKS.get(part, PEAKS["activations"]), hatch="///" if part == "calculator" else None,
                edgecolor="white", linewidth=0.8, label=part if at == 0 and part != "calculator" else None)
            if value > 0:
                above(right, at + shift, value, number(value), fontsize=8)
    name, of = NAMES[model], "megabytes (10⁶ bytes) of the rank that holds the most"
    for axes, title in [(left, f"{name}: held between steps"), (right, f"{name}: at most, in a step")]:
        axes.set_xticks(range(len(runs)), [STAGES[run["technique"]] for run in runs], fontsize=9)
        axes.grid(False, axis="x")
        axes.set_ylim(0, 1.15 * axes.dataLim.y1 if axes is left else 1.4 * axes.dataLim.y1)
        axes.bar(0, 0, color="#bbbbbb", hatch="///", edgecolor="white", label="calculator's")
        axes.legend(loc="upper right" if axes is left else "upper left")
        titled(axes, title, of)
    ranks = runs[0]["ranks"]
    return Picture(
        f"{NAMES[model]}: memory of a rank by stage, on {ranks} ranks",
        f"{about(runs[0])}. Left, solid: what the allocator counted after the last step; hatched: the calculator's. "
        "Right: the most at any time of activations with all that is temporary, and of layers that were gathered; "
        "the calculator knows the activations that are kept from forward to backward, and no gathered layers.",
        save(figure, folder / f"{model}-memory"), [*(run["name"] for run in runs), calculator])


def draw_all(runs, calculated, cores, folder):
    """All pictures, in their order."""
    pictures = []
    for model in NAMES:
        its = [run for run in runs if run["model"] == model]
        if model != "gpt2" and not its:
            continue
        same_sizes(its, model, folder)
        [alone] = find(its, model, "1 rank", folder)[:1]
        replicated = find(its, model, "dp", folder)
        if model == "gpt2":
            pictures.append(draw_one_and_several(model, [alone, *replicated], folder))
        pictures.append(draw_time(model, [alone, *replicated], folder))
        if model != "gpt2":
            continue
        by_technique = {name: find(its, model, name, folder) for name in TECHNIQUES}
        most = max(run["ranks"] for run in its)
        pictures.append(draw_throughput(model, alone, by_technique, cores, folder))
        pictures.append(draw_loss(model, alone, [run for run in its if run["ranks"] == most], folder))
        stages = [find(its, model, name, folder, most)[0] for name in STAGES]
        [[calculator, result]] = calculated.items()
        try:
            if result["ranks"] != most:
                give_up(f"{folder / calculator}.json: expected {most} ranks, found {result['ranks']}")
            pictures.append(draw_memory(model, stages, result, calculator, folder))
        except (KeyError, TypeError):
            give_up(f"{folder / calculator}.json: expected what `baton-train --analyze --json` prints, found "
                    "another form")
    return pictures
