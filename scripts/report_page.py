"""The page of scripts/report: one file of HTML that needs no other."""

import base64
import html
import shlex

from pictures import counted, form
from report_pictures import NAMES

HEAD = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Training, measured</title>
<style>
body { font: 16px/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1, h2 { line-height: 1.2; }
h1, h2 { margin-top: 2.5rem; }
img { width: 100%; height: auto; }
div img { width: auto; }
div { overflow-x: auto; }
table { border-collapse: collapse; font-size: 14px; }
th, td { padding: 0.2rem 0.7rem; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
pre { background: #f5f5f5; padding: 0.7rem; font-size: 13px; white-space: pre-wrap; }
</style>
"""


def text(what):
    return html.escape(str(what))


def images(picture):
    """Each SVG as a part of the page; the picture's names stay its own."""
    for file in picture.files:
        if file.suffix == ".svg":
            data = base64.b64encode(file.read_bytes()).decode()
            shown = f'<img alt="{text(picture.title)}" src="data:image/svg+xml;base64,{data}">'
            yield f"<div>{shown}</div>" if picture.wide else shown


def table(heads, rows):
    lines = ["<tr>" + "".join(f"<{tag}>{text(cell)}</{tag}>" for cell in cells) + "</tr>"
             for tag, cells in [("th", heads), *(("td", row) for row in rows)]]
    return "<div><table>\n" + "\n".join(lines) + "\n</table></div>"


def times(runs):
    """A row for each run; losses beside one rank's."""
    rows = []
    alone = {run["model"]: run["loss"][-1] for run in runs if run["technique"] == "1 rank"}
    for run in runs:
        mean, loss = run["mean"], run["loss"][-1]
        apart = abs(loss - alone[run["model"]]) / abs(alone[run["model"]] or 1)
        rows.append([
            run["name"], form(run), f"{mean['all']:.3g}",
            *(f"{mean[part] / mean['all']:.0%}" for part in ["computation", "communication", "optimizer"]),
            f"{run['per_second']:,.0f} {run['item']}", f"{loss:.6g}", f"{apart:.1e}"])
    return table(["run", "form", "s per epoch", "computation", "communication", "optimizer", "items per s",
                  "last loss", "from one rank's"], rows)


def bubbles(runs):
    """A row for each run of a pipeline."""
    return table(["run", "micro-batches", "bubble", "at unit costs", "activations kept", "held at most"], [
        [run["name"], run["micro_batches"], f"{run['pipeline']['bubble']:.1%}",
         f"{run['pipeline']['unit_bubble']:.1%}",
         max(run["pipeline"]["peak"]), f"{run['held_bytes']['activations']['most'] / 1e6:.3g} MB"] for run in runs])


def commands(about):
    settings = " ".join(f"{name}={value}" for name, value in about["environment"].items())
    return "\n".join([f"export {settings}", *(
        f"{shlex.join(command)} > {name}.json" for name, command in (
            about["runs"] | about.get("calculator", {})).items()),
        *(shlex.join(command) for command in about.get("drawings", []))])


def part(about, runs, pictures):
    """Training, or pipelines: notes, pictures, numbers, commands."""
    pipelines = "drawings" in about
    cores, most = about["machine"]["cores"], max(run["ranks"] for run in runs)
    trained = {run["model"] for run in runs}
    notes = [f"Measured {about['date']} on {about['machine']['processor']}, {counted(cores, 'core')}, "
             f"{about['machine']['memory_bytes'] / 2**30:.1f} GiB of memory. Ranks are "
             f"{runs[0]['transport']} of one process, each with one thread of BLAS. Each form was run once."]
    if most > cores:
        notes.append(f"Up to {most} ranks share this machine's {counted(cores, 'core')}: times on more than "
                     f"{counted(cores, 'rank')} say nothing of a machine that has a core for each.")
    notes += [f"Pictures of {name} are left out: this baton-train did not list it as a model."
              for model, name in NAMES.items() if model not in trained and not pipelines]
    lines = [f"<h1>{'Pipelines' if pipelines else 'Training'}, measured</h1>", *(f"<p>{text(note)}</p>" for note in notes)]
    for picture in pictures:
        lines += [f"<h2>{text(picture.title)}</h2>", f"<p>{text(picture.text)}</p>", *images(picture),
                  f"<p>Runs: {text(', '.join(picture.runs))}.</p>"]
    swept = [run for run in runs if "bubble" in run.get("pipeline", {})] if pipelines else []
    lines += ["<h2>Numbers</h2>", "<p>Without the first epoch; losses are those of the last.</p>",
              times([run for run in runs if not pipelines or run["name"].startswith("compared-")]),
              *([bubbles(swept)] if swept else []),
              "<h2>Commands</h2>", "<p>From the root of the repository:</p>", f"<pre>{text(commands(about))}</pre>"]
    return "\n".join(lines)


def page(parts):
    """Of parts that are what part() takes."""
    return "\n".join([HEAD, *(part(*one) for one in parts), "</html>"]) + "\n"
