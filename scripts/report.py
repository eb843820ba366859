"""Does what scripts/report does once all is there.

Usage: report.py measure FOLDER PROGRAM TEXT IMAGES [--quick]
         trains by the program, on these data; writes JSON to FOLDER, report.json last
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
from pictures import STYLE, give_up, pyplot, read_json  # noqa: E402
from training_pictures import measured  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
INDEX = "report.json"

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


def run(name, program, arguments, folder):
    """Keeps what the program prints; returns the command."""
    command = [program, *arguments, "--json"]
    done = subprocess.run(command, cwd=ROOT, text=True, env=os.environ | ENVIRONMENT, capture_output=True)
    if done.returncode != 0:
        give_up(f"{shlex.join(command)}: expected exit code 0, found {done.returncode}: "
                f"{done.stderr.strip() or done.stdout.strip()[-300:]}")
    (folder / f"{name}.json").write_text(done.stdout)
    return command


def machine():
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {"processor": names[0] if names else platform.machine(), "cores": len(os.sched_getaffinity(0)),
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")}


def excerpt(file, folder):
    text = (ROOT / file).read_bytes()[:EXCERPT]
    file = folder.resolve() / "text.txt"
    file.write_bytes(text[:text.rindex(b"\n") + 1])
    return os.path.relpath(file, ROOT) if ROOT in file.parents else str(file)


def measure(folder, program, text, images, quick):
    (folder / INDEX).unlink(missing_ok=True)  # until all is measured
    runs = gpt2_runs(excerpt(text, folder) if quick else text, quick)
    if "vgg16" in trained_models(program):
        runs |= vgg16_runs(images, quick)
    commands = {}
    for number, (name, arguments) in enumerate(runs.items(), 1):
        print(f"report: {number} of {len(runs)}: {name}", file=sys.stderr, flush=True)
        commands[name] = run(name, program, arguments, folder)
    about = {"date": datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
             "machine": machine(), "environment": ENVIRONMENT, "runs": commands,
             "calculator": {"gpt2-calculator": run("gpt2-calculator", program, calculator(quick), folder)}}
    (folder / INDEX).write_text(json.dumps(about, indent=1) + "\n")


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


def draw(folder):
    about = read_json(folder / INDEX)
    if not isinstance(about, dict) or not {"date", "machine", "environment", "runs", "calculator"} <= set(about):
        give_up(f"{folder / INDEX}: expected what `scripts/report training` writes, found another form")
    runs = [run_named(folder, name) for name in about["runs"]]
    calculated = {name: read_json(folder / f"{name}.json") for name in about["calculator"]}
    with pyplot.rc_context(STYLE | {"axes.axisbelow": True}):
        pictures = report_pictures.draw_all(runs, calculated, about["machine"]["cores"], folder)
    page = folder / "index.html"
    page.write_text(report_page.page(about, runs, pictures))
    for picture in pictures:
        print(*picture.files, sep="\n")
    print(page)


def main():
    task, folder, *more = sys.argv[1:]
    if task == "draw":
        draw(Path(folder))
    else:
        program, text, images, *quick = more
        measure(Path(folder), program, text, images, bool(quick))


main()
