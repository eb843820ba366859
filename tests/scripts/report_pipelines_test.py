"""Usage: report_pipelines_test.py SCRIPTS [BATON-TRAIN]: the folder of scripts/, and the program, if it knows text"""

import itertools
import json
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
from report_test import PICTURES, PROGRAM, SCRIPTS, Drawn, run, runs, write_words  # noqa: E402

SCHEDULES = ["naive", "gpipe", "1f1b", "zb_h1", "interleaved_1f1b"]


def unit_bubble(schedule, m):
    """On 2 ranks."""
    return 1 - 3 * m / (2 * m + 1 + max(m, 2)) if schedule == "zb_h1" else 1 / (m + 1)


def pipeline(schedule, m, ranks=2, **more):
    """A run of m micro-batches that waits for 0.01 more of the time than the formula says."""
    about = {"schedule": schedule, "unit_bubble": unit_bubble(schedule, m), "bubble": unit_bubble(schedule, m) + 0.01,
             "peak": [m, m] if schedule == "gpipe" else [1, min(m, 13)]}  # no tick is 13
    made = run(parallel="pp", ranks=ranks, pipeline=about, micro_batches=m, **more)
    made["held_bytes"]["activations"]["most"] = max(about["peak"]) * 1_500_000
    return made


def pipelines():
    swept = {f"micro-batches-{schedule}-{m}": pipeline(schedule, m, sizes=f"batches of {m}")
             for schedule in ["gpipe", "1f1b", "zb_h1"] for m in [1, 2, 3, 16]}
    compared = {f"compared-{schedule}-2": pipeline(schedule, 8) for schedule in SCHEDULES[1:]}
    return {"compared-1": run(), "compared-mp-2": pipeline("naive", 1) | {"parallel": "mp"}, **compared, **swept,
            **{f"timeline-{schedule}-3": pipeline(schedule, 6, ranks=3) for schedule in SCHEDULES}}


class Pipelines(Drawn):
    def write_pipelines(self, made, **more):
        self.write(made, drawings=[["build/baton-train", "pipeline", "draw", "naive"]], **more)
        (self.folder / "report.json").rename(self.folder / "pipelines.json")
        for schedule, how, kind in itertools.product(SCHEDULES, ["planned", "recorded"], ["png", "svg"]):
            (self.folder / f"timeline-{schedule}-{how}.{kind}").write_text("<svg/>")

    def test_pictures_have_all_bars_lines_and_names(self):
        self.write_pipelines(pipelines())
        said = self.draw().stdout.split()
        names = [*(f"gpt2-{name}" for name in ["pipelines", "bubble", "pipeline-activations"]),
                 *(f"timeline-{schedule}-{how}" for schedule in SCHEDULES for how in ["planned", "recorded"])]
        self.assertEqual(sorted(said), sorted([*(str(self.folder / f"{name}.{kind}") for name in names
                                                 for kind in ["png", "svg"]), str(self.folder / "index.html")]))

        self.assertEqual(len(self.ids("gpt2-pipelines")), 2 * 6)
        for text in ["1 rank", "model", "parallel", "gpipe", "1f1b", "zb_h1", "interleaved", "GPT-2: time of an epoch"]:
            self.assertIn(text, self.texts("gpt2-pipelines"))

        self.assertEqual(sorted(self.ids("gpt2-bubble", "line")), [
            "line-1f1b-measured", "line-gpipe-formula", "line-gpipe-measured", "line-zb_h1-formula",
            "line-zb_h1-measured"])
        for text in ["gpipe and 1f1b: (p-1) / (m+p-1)", "16", "micro-batches of a step"]:
            self.assertIn(text, self.texts("gpt2-bubble"))

        texts = self.texts("gpt2-pipeline-activations")
        self.assertEqual(self.ids("gpt2-pipeline-activations", "line"), [
            "line-gpipe-most", "line-1f1b-most"] * 2)
        self.assertIn("24.0", texts)  # 16 micro-batches of 1.5 MB
        self.assertIn("13", texts)
        self.assertIn("19.5", texts)

    def test_the_page_has_pipelines_after_training(self):
        self.write_pipelines(pipelines())
        self.draw()
        page = self.page()
        self.assertEqual(page.count("<h1>"), 1)
        self.assertEqual(page.count(" src="), 3 + 2 * len(SCHEDULES))
        for text in ["Pipelines, measured", "build/baton-train pipeline draw naive", "pp on 2 ranks, zb_h1",
                     "<td>micro-batches-1f1b-16</td><td>16</td><td>6.9%</td><td>5.9%</td><td>13</td><td>19.5 MB</td>",
                     "The recorded ranks share 2 cores"]:
            self.assertIn(text, page)
        self.write(runs())
        self.draw()
        page = self.page()
        self.assertLess(page.index("<h1>Training, measured"), page.index("<h1>Pipelines, measured"))
        self.assertEqual(page.count(" src="), len(PICTURES) + 3 + 2 * len(SCHEDULES))

    def test_missing_and_other_data_is_refused(self):
        made = pipelines()
        self.write_pipelines({name: content for name, content in made.items() if name != "compared-zb_h1-2"})
        self.refused("expected a run of gpt2 in the form pp, zb_h1, found none")
        self.write_pipelines({name: content for name, content in made.items() if name != "micro-batches-1f1b-3"})
        self.refused("expected micro-batches [1, 2, 3, 16] with 1f1b, as with gpipe, found [1, 2, 16]")
        run = made["micro-batches-1f1b-3"]
        form = "micro-batches-1f1b-3.json: expected what `baton-train --parallel pp --json` prints"
        for wrong, sentence in [({"peak": []}, form), ({"peak": [0, 1]}, form), ({"bubble": None}, form),
                                ({"unit_bubble": 0.3}, "expected a unit_bubble of 0.25, found 0.3")]:
            with self.subTest(wrong=wrong):
                self.write_pipelines(made | {"micro-batches-1f1b-3": run | {"pipeline": run["pipeline"] | wrong}})
                self.refused(sentence)
        self.write_pipelines(made)
        (self.folder / "timeline-gpipe-recorded.svg").unlink()
        self.refused("timeline-gpipe-recorded.svg: expected a timeline, found none")
        (self.folder / "pipelines.json").write_text("{}")
        self.refused("pipelines.json: expected what `scripts/report pipeline` writes, found another form")

    @unittest.skipIf(PROGRAM is None, "built without text")
    def test_measured_runs_are_drawn(self):
        write_words(self.folder / "words.txt")
        done = subprocess.run(["/usr/bin/python3", SCRIPTS / "report.py", "measure-pipelines", self.folder, PROGRAM,
                               self.folder / "words.txt", "--quick"], text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("gpt2-bubble.svg", self.draw().stdout)
        for schedule in SCHEDULES:  # the last action of a step, at both
            last = "0W5" if schedule == "zb_h1" else "0B5"
            self.assertIn(last, (self.folder / f"timeline-{schedule}-planned.svg").read_text())
            self.assertIn(last, (self.folder / f"timeline-{schedule}-recorded.svg").read_text())
        for form in ["mp", "gpipe", "1f1b", "zb_h1", "interleaved_1f1b"]:  # train as one rank does
            losses = [json.loads((self.folder / f"compared-{name}.json").read_text())["loss"]
                      for name in ["1", f"{form}-2"]]
            for one, other in zip(*losses):
                self.assertAlmostEqual(one, other, delta=1e-4 * one)


if __name__ == "__main__":
    unittest.main()
