"""Usage: predict_test.py BATON-TRAIN, with tests/cli in PYTHONPATH"""

import os
import sys
import tempfile

from command import CommandTest, run_tests

SMALL = ["--predict", "--model", "gpt2", "--preset", "tiny", "--seq", "64", "--network", "infiniband-100g"]
GIVEN = ["--block-forward-ms", "1", "--block-backward-ms", "2", "--head-ms", "0.5", "--optimizer-ns", "0"]


class Predict(CommandTest):
    speaker = "baton-train: "

    def test_one_rank_takes_its_times(self):
        step = self.json(*SMALL, *GIVEN, "--micro-batches", "3")
        self.assertAlmostEqual(step["step_ms"], 3 * (2 * 3 + 1.5), places=3)
        self.assertEqual((step["bubble"], step["exposed_ms"], step["messages"]), (0, 0, 0))
        self.assertAlmostEqual(step["tokens_per_second"], 3 * 64 / (step["step_ms"] * 1e-3), places=3)

    def test_every_form(self):
        alone = 2 * 3 + 1.5
        for form in (["--dp", "3"], ["--dp", "4", "--stage", "1"], ["--dp", "4", "--stage", "3"], ["--tp", "4"],
                     ["--tp", "2", "--sequence-parallel"], ["--sp", "4"], ["--tp", "2", "--sp", "2"]):
            step = self.json(*SMALL, *GIVEN, *form)
            self.assertGreater(step["step_ms"], alone, form)
            self.assertGreater(step["exposed_ms"], 0, form)
            self.assertGreater(step["messages"], 0, form)
        pipeline = self.json(*SMALL, *GIVEN, "--pp", "2", "--micro-batches", "8")
        self.assertGreater(pipeline["bubble"], 1 / 9)
        self.assertLess(pipeline["step_ms"], 8 * alone)

    def test_text_and_picture(self):
        with tempfile.TemporaryDirectory() as folder:
            for ending in ("svg", "html"):
                file = os.path.join(folder, "step." + ending)
                text = self.output(*SMALL, *GIVEN, "--dp", "2", "--pp", "2", "--micro-batches", "4", "-o", file)
                with open(file) as picture:
                    drawn = picture.read()
                for part in ("1B3", "optimizer", "dp 2 x pp 2"):
                    self.assertIn(part, drawn)
            for word in ("step  ", "tokens", "bubble", "exposed", "hidden", "memory", "GB of a rank"):
                self.assertIn(word, text)

    def test_hosts(self):
        apart = self.json(*SMALL, *GIVEN, "--tp", "4")
        together = self.json(*SMALL, *GIVEN, "--tp", "4", "--ranks-per-host", "4")
        self.assertNotEqual(apart["step_ms"], together["step_ms"])
        self.assertEqual(together, self.json(*SMALL, *GIVEN, "--tp", "4", "--ranks-per-host", "0"))

    def test_the_speed_of_this_machine(self):
        self.refused("--at-once: expected times that are measured", *SMALL, *GIVEN, "--at-once", "2")
        for layout in (["--dp", "2"], ["--tp", "2", "--sequence-parallel"], ["--sp", "2"], ["--pp", "2"]):
            step = self.json(*SMALL, *layout, "--at-once", "2")
            self.assertGreater(step["step_ms"], 0)

    def test_algorithms_are_the_librarys_or_the_networks(self):
        def form(*arguments):
            return self.json(*SMALL, *GIVEN, "--dp", "4", *arguments)
        self.assertEqual(form(), form("--choose-by", "library"))
        self.assertNotEqual(form()["messages"], form("--choose-by", "network")["messages"])
        many = [*SMALL, *GIVEN, "--dp", "65"]
        self.assertEqual(self.json(*many), self.json(*many, "--choose-by", "network"))
        self.refused("--choose-by", *SMALL, *GIVEN, "--choose-by", "chance")

    def test_cuts(self):
        deep = [*SMALL, *GIVEN, "--layers", "4", "--pp", "2", "--micro-batches", "2"]
        self.assertGreater(self.json(*deep, "--cuts", "1")["step_ms"], self.json(*deep, "--cuts", "2")["step_ms"])
        self.refused("expected the first layers of 2 stages but the first, found 2", *deep, "--cuts", "1", "2")

    def test_emulated_ranks_leave_processors_to_messages(self):
        cluster = ["--predict", "--model", "gpt2", "--preset", "tiny", "--network", "virtual-cluster-1gbit", *GIVEN,
                   "--dp", "4"]
        self.assertLess(self.json(*cluster, "--emulated")["step_ms"], self.json(*cluster)["step_ms"])

    def test_sweep(self):
        rows = self.json(*SMALL, "--sweep", "--gflops", "10", "--ranks", "4", "--batch-size", "16", "--best", "3")
        self.assertEqual([("step_ms" in row) for row in rows], [True] * 3 + [False] * (len(rows) - 3))
        times = [row["step_ms"] for row in rows[:3]]
        self.assertEqual(times, sorted(times))
        names = [row["layout"] for row in rows]
        self.assertIn("dp 4, stage 3", names)
        self.assertIn("dp 2 x pp 2", names)
        least, most = min(row["bytes_per_rank"] for row in rows), max(row["bytes_per_rank"] for row in rows)
        limit = str((least + most) / 2 * 1e-9)
        fewer = self.json(*SMALL, "--sweep", "--gflops", "10", "--ranks", "4", "--batch-size", "16", "--best", "1",
                          "--memory-limit", limit)
        self.assertLess(len(fewer), len(rows))
        self.assertTrue(all(row["bytes_per_rank"] <= float(limit) * 1e9 for row in fewer))
        text = self.output(*SMALL, "--sweep", "--gflops", "10", "--ranks", "2", "--best", "1")
        self.assertIn("tokens/s", text)

    def test_refuses(self):
        for sentence, *arguments in (
                ("expected heads that 3 ranks of tp x sp divide, found 4", "--tp", "3"),
                ("expected at most 2 stages, one for each layer, found 4", "--pp", "4"),
                ("dp x tp x sp x pp = 2, found 3", "--tp", "2", "--ranks", "3"),
                ("expected dp x tp x sp x pp of at most 65536, found more", "--ranks", "8", "--tp", "65536", "--sp",
                 "65536"),
                ("expected dp x tp x sp x pp of at most 65536, found more", "--dp", "65536", "--tp", "65536", "--sp",
                 "65536", "--pp", "65536"),
                ("--memory-limit: expected --sweep", "--memory-limit", "1"),
                ("--sweep: expected --ranks", "--sweep"),
                ("--tp: expected none with --sweep", "--sweep", "--ranks", "4", "--tp", "2"),
                ("--block-forward-ms: expected one layout, found --sweep", "--sweep", "--ranks", "4"),
                ("--seq: expected at most", "--seq", "100000"),
                ("ends with one of .svg", "-o", "x.gif")):
            self.refused(sentence, *SMALL, *GIVEN, *arguments)
        self.refused("within 1e-06 GB", *SMALL, "--gflops", "10", "--sweep", "--ranks", "4", "--memory-limit", "1e-6")
        self.refused("--model", "--predict", "--network", "infiniband-100g")
        self.refused("nowhere", "--predict", "--model", "gpt2", "--preset", "tiny", "--network", "nowhere")


run_tests(Predict, sys.argv[1:])
