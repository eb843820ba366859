"""Usage: report_test.py SCRIPTS [BATON-TRAIN]: the folder of scripts/, and the program, if it knows text"""

import itertools
import json
import random
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = Path(sys.argv.pop()).resolve() if len(sys.argv) > 2 else None
SCRIPTS = Path(sys.argv.pop())
PURPOSES = ["parameters", "gradients", "optimizer", "activations", "gathered"]


def run(model="gpt2", parallel="none", ranks=1, **more):
    """As `baton-train --json` prints it: epochs of 4 and 2 seconds after one of 100."""
    seconds = [{"all": all_, "computation": 0.5 * all_, "communication": 0.3 * all_, "optimizer": 0.2 * all_}
               for all_ in [100, 4, 2]]
    held = {purpose: {"now": 10**6 * at, "most": 2 * 10**6 * at} for at, purpose in enumerate(PURPOSES, 1)}
    return {"model": model, "sizes": f"{model} of 1 layer", "parallel": parallel, "ranks": ranks, "dtype": "f32",
            "transport": "threads", "loss": [3, 2, 1], "epoch_seconds": seconds, "held_bytes": held,
            "tokens_per_epoch" if model == "gpt2" else "samples_per_epoch": 1234, **more}


def runs():
    forms = [{"parallel": "dp"}, *({"parallel": "fsdp", "stage": stage} for stage in (1, 2, 3)),
             {"parallel": "tp"}, {"parallel": "sp"}]
    made = {"one": run()}
    for ranks, form in itertools.product((2, 4), forms):
        made["-".join(map(str, [*form.values(), ranks]))] = run(ranks=ranks, **form)
    return made


CALCULATED = {"ranks": 4, "held": [
    *({"form": f"form {stage}", "stage": stage, "parameters": 10**6, "gradients": 2 * 10**6,
       "optimizer": 3 * 10**6, "bytes": 6 * 10**6} for stage in range(4)),
    {"form": "activations of blocks", "bytes": 7 * 10**6}, {"form": "activations of the head", "bytes": 10**6}]}
PICTURES = ["one-and-several", "time", "throughput", "loss", "memory"]


def write_words(file):
    """A text to train on; returns what chose it."""
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghijklmnop", k=chance.randint(2, 9))) for _ in range(2000)]
    file.write_text("\n".join(" ".join(chance.choices(words, k=12)) for _ in range(2000)))
    return chance


class Drawn(unittest.TestCase):
    """Pictures and page of a folder of runs."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, made, calculated=CALCULATED, **more):
        index = {"date": "2001-02-03T04:05+00:00", "environment": {"OMP_NUM_THREADS": "1"},
                 "machine": {"processor": "a <fast> processor", "cores": 2, "memory_bytes": 3 << 30},
                 "runs": {name: ["build/baton-train", "--of", name] for name in made},
                 "calculator": {"calculator": ["build/baton-train", "--analyze"]}} | more
        for name, content in (made | {"calculator": calculated, "report": index}).items():
            (self.folder / f"{name}.json").write_text(json.dumps(content))

    def draw(self, code=0):
        done = subprocess.run([SCRIPTS / "report", "training", "--from", self.folder], text=True,
                              capture_output=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def refused(self, sentence):
        said = self.draw(code=1).stderr
        self.assertIn(sentence, said)
        self.assertEqual(said.count("\n"), 1, said)

    def page(self):
        """Without the pictures' content."""
        text = (self.folder / "index.html").read_text()
        return re.sub("(?<=;base64,)[A-Za-z0-9+/=]+", "", text)

    def texts(self, picture):
        return re.findall("<!-- (.*?) -->", (self.folder / f"{picture}.svg").read_text())

    def ids(self, picture, what="bar"):
        return re.findall(f'id="({what}-.*?)"', (self.folder / f"{picture}.svg").read_text())


class Report(Drawn):
    def test_pictures_have_all_bars_lines_and_names(self):
        self.write(runs())
        files = [self.folder / f"gpt2-{name}.{kind}" for name in PICTURES for kind in ("png", "svg")]
        self.assertEqual(self.draw().stdout.split(), [str(file) for file in [*files, self.folder / "index.html"]])
        for file in files:
            self.assertTrue(file.read_bytes().startswith(b"\x89PNG" if file.suffix == ".png" else b"<?xml"))

        texts = self.texts("gpt2-one-and-several")
        self.assertEqual(len(self.ids("gpt2-one-and-several")), 2 * 3)
        self.assertEqual([texts.count("3.00"), texts.count("411")], [3, 3])  # without the first epoch
        for text in ["1 rank", "on 2 ranks", "on 4 ranks", "GPT-2: tokens per second"]:
            self.assertIn(text, texts)

        self.assertEqual(len(self.ids("gpt2-time")), 3 * 3)
        for text in ["computation", "communication", "optimizer"]:
            self.assertEqual(self.texts("gpt2-time").count(text), 1)
        self.assertEqual(self.texts("gpt2-time").count("0.900 s (30%)"), 3)

        self.assertEqual(self.ids("gpt2-throughput", "line"), ["line-dp", "line-fsdp-stage-1", "line-fsdp-stage-2",
                                                               "line-fsdp-stage-3", "line-tp", "line-sp"])
        self.assertIn("ranks share 2 cores", self.texts("gpt2-throughput"))

        texts = self.texts("gpt2-loss")
        for text in ["1 rank", "dp on 4 ranks", "fsdp on 4 ranks, stage 3", "tp on 4 ranks", "sp on 4 ranks"]:
            self.assertEqual(texts.count(text), 1)

        texts = self.texts("gpt2-memory")
        bars = self.ids("gpt2-memory")
        self.assertEqual(len([bar for bar in bars if "measured" in bar]), 4 * 3)
        self.assertEqual(len([bar for bar in bars if "calculator" in bar]), 4 * 3 + 4)
        self.assertEqual(len([bar for bar in bars if "most" in bar]), 4 * 3)
        # Held by both; activations, those of the calculator, gathered.
        self.assertEqual([texts.count(text) for text in ["6.00", "8.00", "10.0"]], [8, 8, 4])

    def test_the_page_has_all_pictures_commands_and_the_machine(self):
        self.write(runs())
        self.draw()
        page = self.page()
        self.assertEqual(page.count("src=\"data:image/svg+xml;base64,"), len(PICTURES))
        self.assertEqual(page.count(" src="), len(PICTURES))
        self.assertNotRegex(page, "https?:")
        for text in ["Measured 2001-02-03T04:05+00:00 on a &lt;fast&gt; processor, 2 cores, 3.0 GiB of memory",
                     "Up to 4 ranks share this machine&#x27;s 2 cores", "Pictures of VGG16 are left out",
                     "export OMP_NUM_THREADS=1", "build/baton-train --analyze &gt; calculator.json",
                     "411 tokens"]:
            self.assertIn(text, page)
        for name in runs():
            self.assertIn(f"build/baton-train --of {name} &gt; {name}.json", page)

    def test_a_machine_with_a_core_for_each_rank(self):
        self.write(runs(), machine={"processor": "p", "cores": 4, "memory_bytes": 1 << 30})
        self.draw()
        self.assertNotIn("Up to 4 ranks share", self.page())
        self.assertFalse([text for text in self.texts("gpt2-throughput") if "share" in text])

    def test_vgg16_has_its_picture_where_it_was_trained(self):
        vgg16 = {f"vgg16-{ranks}": run("vgg16", "dp" if ranks > 1 else "none", ranks) for ranks in (1, 2, 4)}
        self.write(runs() | vgg16)
        self.assertIn("vgg16-time.svg", self.draw().stdout)
        self.assertEqual(len(self.ids("vgg16-time")), 3 * 3)
        self.assertIn("VGG16: where the time goes", self.texts("vgg16-time"))
        page = self.page()
        self.assertNotIn("left out", page)
        self.assertIn("411 samples", page)

    def test_losses_that_are_apart_are_shown(self):
        made = runs()
        made["tp-4"]["loss"] = [3, 2, 1.5]
        self.write(made)
        self.draw()
        self.assertIn("relative difference", self.texts("gpt2-loss"))
        self.assertIn("5.0e-01", self.page())

    def test_pictures_are_the_same_each_time(self):
        self.write(runs())
        self.draw()
        first = {file: file.read_bytes() for file in self.folder.glob("*.svg")}
        self.draw()
        self.assertEqual(first, {file: file.read_bytes() for file in self.folder.glob("*.svg")})

    def test_missing_data_is_refused(self):
        self.refused("report.json: expected a file of JSON, found")
        for missing, form in [(["one"], "1 rank"), (["fsdp-2-4"], "fsdp, stage 2 on 4 ranks"),
                              (["tp-2", "tp-4"], "tp")]:
            self.write({name: content for name, content in runs().items() if name not in missing})
            self.refused(f"expected a run of gpt2 in the form {form}, found none")
        self.write(runs())
        (self.folder / "sp-2.json").unlink()
        self.refused("sp-2.json: expected a file of JSON, found")
        self.write(runs())
        (self.folder / "calculator.json").unlink()
        self.refused("calculator.json: expected a file of JSON, found")

    def test_other_data_is_refused(self):
        made = runs()
        form = "tp-2.json: expected what `baton-train --json` prints"
        tp = made["tp-2"]
        for wrong, sentence in [
                ([], form), ({}, form), (tp | {"epoch_seconds": [{}, {}]}, form), (tp | {"held_bytes": {}}, form),
                (tp | {"tokens_per_epoch": None}, form), (tp | {"loss": []}, form),
                (tp | {"epoch_seconds": tp["epoch_seconds"][:1]},
                 "tp-2.json: expected at least 2 epochs, of which the first is left out, found 1"),
                (tp | {"sizes": "others"}, "expected the same sizes in all runs of gpt2, found")]:
            with self.subTest(wrong=wrong):
                self.write(made | {"tp-2": wrong})
                self.refused(sentence)
        form = "calculator.json: expected what `baton-train --analyze --json` prints"
        for wrong, sentence in [([], form), ({"ranks": 4, "held": CALCULATED["held"][1:]}, form),
                                (CALCULATED | {"ranks": 2}, "calculator.json: expected 4 ranks, found 2")]:
            self.write(made, wrong)
            self.refused(sentence)
        (self.folder / "report.json").write_text("[]")
        self.refused("report.json: expected what `scripts/report training` writes, found another form")

    def test_arguments(self):
        for sentence, *arguments in [
                ("report: expected training or pipeline, found ''",),
                ("report: expected training or pipeline, found 'x'", "x"),
                ("expected -o FOLDER, --from FOLDER or --quick, found '--fast'", "training", "--fast"),
                ("-o: expected a folder, found none", "training", "-o"),
                ("--from: expected a folder, found none", "training", "--from"),
                ("--from: expected no --quick, found it", "training", "--quick", "--from", self.folder),
                ("-o: expected a folder to write to, found '/dev/null/x'", "training", "-o", "/dev/null/x")]:
            with self.subTest(arguments=arguments):
                done = subprocess.run([SCRIPTS / "report", *arguments], text=True, capture_output=True)
                self.assertEqual(done.returncode, 2)
                self.assertIn(sentence, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for arguments in ["--help"], ["training", "--help"]:
            done = subprocess.run([SCRIPTS / "report", *arguments], text=True, capture_output=True)
            self.assertIn("scripts/report training --from FOLDER", done.stdout)
            self.assertIn("scripts/report pipeline [-o FOLDER]", done.stdout)
            self.assertTrue(done.stdout.endswith("each with one thread of BLAS.\n"))

    @unittest.skipIf(PROGRAM is None, "built without text")
    def test_measured_runs_are_drawn(self):
        chance = write_words(self.folder / "words.txt")
        for file in [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]:
            (self.folder / file).write_bytes(b"".join(
                bytes([image % 10]) + chance.randbytes(3072) for image in range(16)))
        done = subprocess.run(["/usr/bin/python3", SCRIPTS / "report.py", "measure", self.folder, PROGRAM,
                               self.folder / "words.txt", self.folder, "--quick"], text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.draw()
        # Parameters, gradients and optimizer: the allocator counted what the calculator says.
        held = {row["stage"]: row for row in json.loads((self.folder / "gpt2-calculator.json").read_text())["held"]
                if "stage" in row}
        for stage, name in enumerate(["dp", "fsdp1", "fsdp2", "fsdp3"]):
            counted = json.loads((self.folder / f"gpt2-{name}-4.json").read_text())["held_bytes"]
            for purpose in PURPOSES[:3]:
                self.assertEqual(counted[purpose]["now"], held[stage][purpose], (name, purpose))
        shown = subprocess.run([PROGRAM, "--help"], text=True, capture_output=True).stdout
        self.assertEqual("vgg16" in shown, (self.folder / "vgg16-time.svg").exists())


if __name__ == "__main__":
    unittest.main()
