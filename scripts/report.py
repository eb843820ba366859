"""Does what scripts/report does once all is there.

Usage: report.py measure FOLDER PROGRAM TEXT IMAGES [--quick]
         trains by the program, on these data; writes JSON to FOLDER, report.json last
       report.py measure-pipelines FOLDER PROGRAM TEXT [--quick]
         the same for pipelines, with their timelines; pipelines.json last
       report.py draw FOLDER
         writes pictures and index.html beside it
Paths are those from the root of the repository, where the program runs."""

import datetime
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
import report_page  # noqa: E402
import report_pictures  # noqa: E402
import report_pipelines  # noqa: E402
from pictures import STYLE, give_up, pyplot, read_json  # noqa: E402
from training_pictures import measured  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
INDEX, PIPELINES = "report.json", "pipelines.json"

FORMS = [("dp",), ("fsdp", "--stage", "1"), ("fsdp", "--stage", "2"), ("fsdp", "--stage", "3"), ("tp",), ("sp",)]
MOST_RANKS = 4
EXCERPT = 200_000  # bytes of the text, for --quick
MODEL = {False: ["--preset", "mini"], True: ["--preset", "tiny"]}
SIZES = ["--batch-size", "8"]
LENGTH = {False: ["--samples", "96", "--epochs", "8"], True: ["--samples", "32", "--epochs", "4"]}
VGG16 = {False: ["--width", "0.5", "--batch-size", "32", "--samples", "512", "--epochs", "5"],
         True: ["--width", "0.125", "--batch-size", "8", "--samples", "16", "--epochs", "3"]}


def gpt2_runs(text, quick):
    """Arguments of baton-train by name."""
    what = ["--model", "gpt2", "--text", text, *MODEL[quick], "--seq", "64", *SIZES, *LENGTH[quick],
            "--validation-samples", "8", "--write", "0"]
    runs = {"gpt2-1": what}
    for ranks in (2, MOST_RANKS):
        for parallel in FORMS + [("tp-sp",)] * (ranks == MOST_RANKS):
            name = "-".join(["gpt2", parallel[0] + "".join(parallel[2:]), str(ranks)])
            runs[name] = [*what, "--parallel", *parallel, "--ranks", str(ranks)]
    return runs


def vgg16_runs(images, quick):
    what = ["--model", "vgg16", "--images", images, *VGG16[quick], "--validation-samples", "16"]
    return {"vgg16-1": what} | {f"vgg16-dp-{ranks}": [*what, "--parallel", "dp", "--ranks", str(ranks)]
                                for ranks in (2, MOST_RANKS)}


def calculator(quick):
    return ["--analyze", "--model", "gpt2", *MODEL[quick], "--vocabulary", "512", "--context", "64", *SIZES,
            "--ranks", str(MOST_RANKS)]


def trained_models(program):
    text = subprocess.run([program, "--help"], cwd=ROOT, text=True, check=True, capture_output=True).stdout
    found = re.search(r"--model (\S+)", text)
    return found[1].split("|") if found else []


def started(command):
    """What the command prints."""
    done = subprocess.run(command, cwd=ROOT, text=True, env=os.environ | ENVIRONMENT, capture_output=True)
    if done.returncode != 0:
        give_up(f"{shlex.join(command)}: expected exit code 0, found {done.returncode}: "
                f"{done.stderr.strip() or done.stdout.strip()[-300:]}")
    return done.stdout


def run(name, program, arguments, folder, before=()):
    """Keeps what the program prints; returns the command."""
    command = [*before, program, *arguments, "--json"]
    (folder / f"{name}.json").write_text(started(command))
    return command


def run_all(runs, program, folder, before=lambda name: ()):
    """Returns commands by name."""
    commands = {}
    for number, (name, arguments) in enumerate(runs.items(), 1):
        print(f"report: {number} of {len(runs)}: {name}", file=sys.stderr, flush=True)
        commands[name] = run(name, program, arguments, folder, before(name))
    return commands


def machine():
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {"processor": names[0] if names else platform.machine(), "cores": len(os.sched_getaffinity(0)),
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")}


def from_root(file):
    return os.path.relpath(file, ROOT) if ROOT in file.parents else str(file)


def excerpt(file, folder):
    text = (ROOT / file).read_bytes()[:EXCERPT]
    file = folder.resolve() / "text.txt"
    file.write_bytes(text[:text.rindex(b"\n") + 1])
    return from_root(file)


def circumstances():
    return {"date": datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
            "machine": machine(), "environment": ENVIRONMENT}


def measure(folder, program, text, images, quick):
    (folder / INDEX).unlink(missing_ok=True)  # until all is measured
    runs = gpt2_runs(excerpt(text, folder) if quick else text, quick)
    if "vgg16" in trained_models(program):
        runs |= vgg16_runs(images, quick)
    about = circumstances() | {
        "runs": run_all(runs, program, folder),
        "calculator": {"gpt2-calculator": run("gpt2-calculator", program, calculator(quick), folder)}}
    (folder / INDEX).write_text(json.dumps(about, indent=1) + "\n")


def measure_pipelines(folder, program, text, quick):
    (folder / PIPELINES).unlink(missing_ok=True)
    text = excerpt(text, folder) if quick else text
    where = from_root(folder.resolve())
    recorded = report_pipelines.timeline_runs(text, quick)
    runs = report_pipelines.compared_runs(text, quick) | report_pipelines.swept_runs(text, quick) | recorded
    commands = run_all(runs, program, folder, lambda name: ["env", f"BATON_TRACE={where}/{name}.trace"]
                       if name in recorded else [])
    drawings = [[program, *arguments] for arguments in report_pipelines.drawings(where)]
    for command in drawings:
        started(command)
    about = circumstances() | {"runs": commands, "drawings": drawings}
    (folder / PIPELINES).write_text(json.dumps(about, indent=1) + "\n")


def run_named(folder, name):
    """A run with its name, and with what pictures of memory need."""
    file = folder / f"{name}.json"
    run = measured(file)
    if len(run["epoch_seconds"]) < 2:
        give_up(f"{file}: expected at least 2 epochs, of which the first is left out, found 1")
    try:
        if min(run["held_bytes"][part][when] for part in [*report_pictures.HELD, *report_pictures.PEAKS]
               for when in ["now", "most"]) >= 0:
            return run | {"name": name, "model": run["model"]}
    except (KeyError, TypeError):
        pass
    give_up(f"{file}: expected what `baton-train --json` prints, found another form")


def read_index(folder, index, own, subject):
    about = read_json(folder / index)
    if not isinstance(about, dict) or not {"date", "machine", "environment", "runs", own} <= set(about):
        give_up(f"{folder / index}: expected what `scripts/report {subject}` writes, found another form")
    return about, [run_named(folder, name) for name in about["runs"]]


def draw(folder):
    """One page of what was measured in the folder."""
    parts = []
    with pyplot.rc_context(STYLE | {"axes.axisbelow": True}):
        if (folder / INDEX).exists() or not (folder / PIPELINES).exists():
            about, runs = read_index(folder, INDEX, "calculator", "training")
            calculated = {name: read_json(folder / f"{name}.json") for name in about["calculator"]}
            parts.append((about, runs,
                          report_pictures.draw_all(runs, calculated, about["machine"]["cores"], folder)))
        if (folder / PIPELINES).exists():
            about, runs = read_index(folder, PIPELINES, "drawings", "pipeline")
            for run in runs:
                report_pipelines.check(run, folder)
            parts.append((about, runs, report_pipelines.draw_all(runs, about["machine"]["cores"], folder)))
    page = folder / "index.html"
    page.write_text(report_page.page(parts))
    for _, _, pictures in parts:
        for picture in pictures:
            print(*picture.files, sep="\n")
    print(page)


def main():
    task, folder, *more = sys.argv[1:]
    if task == "draw":
        draw(Path(folder))
    elif task == "measure-pipelines":
        program, text, *quick = more
        measure_pipelines(Path(folder), program, text, bool(quick))
    else:
        program, text, images, *quick = more
        measure(Path(folder), program, text, images, bool(quick))


main()
