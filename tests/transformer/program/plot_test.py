"""Usage: plot_test.py BATON-TRAIN, with tests/cli in PYTHONPATH: pictures of runs that were kept"""

import json
import os
import re
import sys
import tempfile
from pathlib import Path

from command import CommandTest, run_tests


class Plot(CommandTest):
    speaker = "baton-train: "

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def keep(self, name, ranks, parts=(2, 1, 1), epochs=3, **more):
        """A run made up for it: an epoch of 100 seconds, and others of these."""
        seconds = [dict(zip(["computation", "communication", "optimizer"], parts), all=sum(parts))] * epochs
        seconds = [{what: 25 * value for what, value in seconds[0].items()}, *seconds[1:]]
        run = {"model": "mlp", "sizes": "an mlp", "parallel": "dp", "ranks": ranks, "dtype": "f32",
               "transport": "threads", "loss": [1] * epochs, "epoch_seconds": seconds,
               "samples_per_epoch": 1000 * ranks, **more}
        (Path(self.folder.name) / f"{name}-{ranks}.json").write_text(json.dumps(run))

    def at(self, name):
        return os.path.join(self.folder.name, name)

    def drawn(self, *arguments):
        """The texts and the marked shapes of the picture."""
        file = self.at("picture.svg")
        self.assertEqual(self.output("plot", *arguments, "-o", file), "")
        text = Path(file).read_text()
        return re.findall("<!-- (.*?) -->", text), re.findall('id="((?:bar|line)-.*?)"', text)

    def test_time_is_split_for_each_run(self):
        self.keep("dp", 1, (4, 0, 0))
        self.keep("dp", 2, (2, 1, 1))
        self.keep("other", 4, (1, 5, 2))
        texts, shapes = self.drawn("split_time", f"{self.at('dp')}=1,2", f"{self.at('other')}=4")
        parts = ["computation", "communication", "optimizer"]
        self.assertEqual(shapes, [f"bar-{part}-{run}" for run in ["dp-on-1-rank", "dp-on-2-ranks", "other-on-4-ranks"]
                                  for part in parts])
        for text in ["on 1 rank", "on 2 ranks", "other", "4.00 s", "8.00 s", "2.00 s (50%)", "5.00 s (62%)", *parts,
                     "without the first epoch"]:
            self.assertIn(text, texts)

    def test_throughput_has_a_line_for_each_name(self):
        for ranks in 1, 2, 4:
            self.keep("dp", ranks)
        self.keep("tp", 4)
        texts, shapes = self.drawn("throughput", f"{self.at('dp')}=1,2,4", f"{self.at('tp')}=4")
        self.assertEqual(shapes, ["line-dp", "line-tp"])
        for text in ["dp", "tp", "one rank's, times ranks", "samples per second, of all ranks together"]:
            self.assertIn(text, texts)
        self.assertNotIn("one rank's, times ranks", self.drawn("throughput", f"{self.at('tp')}=4")[0])

    def test_runs_that_were_kept_are_drawn_in_every_format(self):
        for ranks in "1", "2":
            parallel = ["--parallel", "dp"] if ranks == "2" else []
            (Path(self.at(f"real-{ranks}.json"))).write_text(
                self.output("--epochs", "1", "--json", "--ranks", ranks, *parallel))
        for ending, begin in [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")]:
            for kind in "split_time", "throughput":
                file = self.at(f"real.{ending}")
                self.output("plot", kind, f"{self.at('real')}=1,2", "-o", file)
                self.assertTrue(Path(file).read_bytes().startswith(begin))
        self.assertIn("of one epoch", self.drawn("split_time", f"{self.at('real')}=2")[0])

    def test_the_last_step_of_a_recording_is_drawn(self):
        model = ["--model", "block", "--d-model", "16", "--d-ff", "32", "--heads", "4", "--seq", "8", "--layers", "2"]
        for ranks, *form in [(1,), (2, "--parallel", "dp"), (3, "--parallel", "fsdp"), (4, "--parallel", "tp"),
                             (2, "--parallel", "sp", "--micro-batches", "2")]:
            with self.subTest(form=form):
                trace = self.at(f"recorded-{ranks}.trace")
                self.output(*model, "--ranks", str(ranks), *form, "--epochs", "3", BATON_TRACE=trace)
                picture = self.at("step.svg")
                self.assertEqual(self.output("plot", "timeline", f"{self.at('recorded')}={ranks}", "-o", picture), "")
                text = Path(picture).read_text()
                self.assertIn(f"recorded on {ranks} rank{'s' if ranks > 1 else ''}: a step", text)
                computed = re.findall(r"rank (\d+) computes (\S+)", text)
                micro_batches = range(2 if "--micro-batches" in form else 1)
                expected = [f"{unit}{way}{m}" for m in micro_batches for unit in (0, 1) for way in "FB"]
                for rank in range(ranks):
                    names = [name for its, name in computed if int(its) == rank]
                    self.assertEqual(sorted(name for name in names if name != "optimizer"), sorted(expected))
                    self.assertIn("optimizer", names)
                for what in ["forward", "backward", "optimizer", *(["message"] if ranks > 1 else [])]:
                    self.assertIn(f">{what}", text)
        page = self.at("training.html")
        self.output("plot", "timeline", f"{self.at('recorded')}=2", "-o", page)
        self.assertIn("0B1", Path(page).read_text())
        os.rename(self.at("recorded-2.trace"), self.at("recorded-5.trace"))
        Path(self.at("text-2.trace")).write_text("no trace")
        for sentence, run in [("recorded-5.trace: expected a run on 5 ranks, found 2", "recorded=5"),
                              ("text-2.trace", "text=2"),
                              ("plot timeline: expected one run, found 2", "recorded=3,4")]:
            self.refused(sentence, "plot", "timeline", self.at(run), "-o", self.at("x.svg"))

    def test_what_cannot_be_drawn_is_one_sentence(self):
        self.keep("dp", 2)
        self.keep("other", 2, sizes="a block")
        self.keep("tokens", 2, tokens_per_epoch=5)
        self.keep("wrong", 2)
        os.rename(self.at("wrong-2.json"), self.at("wrong-3.json"))
        Path(self.at("torn-2.json")).write_text("{")
        Path(self.at("list-2.json")).write_text("[]")
        Path(self.at("empty-2.json")).write_text("{}")
        dp, picture = f"{self.at('dp')}=2", ["-o", self.at("x.svg")]
        missing = f"plot: expected the run \"{self.at('dp')}\" on 9 ranks in the file {self.at('dp')}-9.json, found none"
        for sentence, *arguments in [
                (missing, "split_time", f"{self.at('dp')}=2,9", *picture),
                (f"{self.at('dp')}-2.trace, found none", "timeline", dp, *picture),
                *((f"plot: expected runs as NAME=RANKS,..., such as dp=1,2,4, found \"{wrong}\"", "throughput", wrong,
                   *picture) for wrong in ["dp", "=2", "dp=", "dp=2,", "dp=two", "dp=0", "dp=1.5", "dp=-1"]),
                ("KIND: expected split_time|throughput|timeline, found \"pie\"", "pie", dp, *picture),
                ("-o: expected a file that ends with .svg, .png or .pdf, found \"x.gif\"", "split_time", dp, "-o", "x.gif"),
                ("-o: expected a file that ends with .svg, .png or .pdf, found \"x.html\"", "split_time", dp, "-o",
                 "x.html"),
                ("-o: expected a file to write to, found", "split_time", dp, "-o", "/missing/x.svg"),
                ("wrong-3.json: expected a run on 3 ranks, found 2", "split_time", f"{self.at('wrong')}=3", *picture),
                ("torn-2.json: expected a file of JSON, found", "split_time", f"{self.at('torn')}=2", *picture),
                *((f"{name}-2.json: expected what `baton-train --json` prints", "split_time", f"{self.at(name)}=2",
                   *picture) for name in ["list", "empty"]),
                ("expected the same sizes in all runs, found \"an mlp\" in dp-2 and \"a block\" in other-2",
                 "throughput", dp, f"{self.at('other')}=2", *picture),
                ("expected the same item in all runs, found \"samples\" in dp-2", "throughput", dp,
                 f"{self.at('tokens')}=2", *picture),
                ("--output", "split_time", dp), ("RUNS", "split_time", *picture), ("KIND",)]:
            with self.subTest(arguments=arguments):
                done = self.start("plot", *arguments)
                self.assertIn(done.returncode, [1, 2])
                self.assertEqual(done.stdout, "")
                self.assertIn(sentence, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertTrue(done.stderr.startswith(self.speaker), done.stderr)

    def test_help(self):
        text = self.output("plot", "--help")
        for word in ["NAME-RANKS.json", "split_time|throughput|timeline", "-o,--output", "Examples:"]:
            self.assertIn(word, text)


if __name__ == "__main__":
    run_tests(Plot, sys.argv[1:])
