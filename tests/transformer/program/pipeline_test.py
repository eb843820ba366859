"""Usage: pipeline_test.py BATON-TRAIN, with tests/cli in PYTHONPATH"""

import os
import re
import sys
import tempfile

from command import CommandTest, run_tests


class Pipeline(CommandTest):
    speaker = "baton-train: "

    def test_every_algorithm_is_proved(self):
        text = self.output("pipeline", "verify")
        for name in ["naive", "gpipe", "1f1b", "interleaved_1f1b", "zb_h1"]:
            self.assertRegex(text, rf"(?m)^{name} +\d+ schedules proved$")
        self.assertIn("128 schedules", text)  # of 8 ranks, 16 micro-batches

    def test_one_algorithm(self):
        self.assertEqual(self.output("pipeline", "verify", "gpipe", "--max-ranks", "3"),
                         "gpipe              48 schedules proved\n")
        self.assertEqual(
            self.output("pipeline", "verify", "1f1b", "--ranks", "4", "--micro-batches", "8"),
            "1f1b: right: 4 ranks, 4 stages, 8 micro-batches; bubble 0.2727, peak 4 3 2 1, "
            "48 messages\n")

    def test_explained(self):
        text = self.output("pipeline", "explain", "zb_h1", "--ranks", "2", "--micro-batches", "2")
        self.assertEqual(text.splitlines()[:2], ["rank 0  0F0 0F1 .   0I0 0W0 0I1 0W1",
                                                 "rank 1  .   1F0 1I0 1F1 1I1 1W0 1W1"])
        self.assertIn("bubble    0.1429 = 1 - 3 m / (2 m + p - 1 + max(m, p))", text)
        text = self.output("pipeline", "explain", "gpipe", "--ranks", "2", "--micro-batches", "1")
        self.assertEqual(text.splitlines()[0], "rank 0  0F0 .   .   .   0B0 -")

    def test_drawn(self):
        with tempfile.TemporaryDirectory() as folder:
            for ending in ("svg", "html", "drawio", "json"):
                file = os.path.join(folder, "picture." + ending)
                text = self.output("pipeline", "draw", "1f1b", "--ranks", "4", "--micro-batches", "8", "-o", file)
                self.assertEqual(text, f"{file}: 33 ms, bubble 0.2727\n")  # (m + p - 1) * 3 ms
                with open(file) as drawn:
                    self.assertIn("3B7", drawn.read())
            svg = os.path.join(folder, "zb.svg")
            result = self.json("pipeline", "draw", "zb_h1", "--ranks", "3", "--micro-batches", "4", "--network",
                               "infiniband-100g", "--forward-ms", "2", "--critical-path", "-o", svg)
            self.assertGreater(result["ms"], (3 * 4 + 2) * 2)
            self.assertLess(result["ms"], (3 * 4 + 2) * 2 * 1.2)
            with open(svg) as drawn:
                text = drawn.read()
            for part in ("zb_h1, 4 micro-batches", "backward by input", "backward by weights", "critical"):
                self.assertIn(part, text)

    def test_draw_refuses(self):
        self.refused('ends with one of .svg', "pipeline", "draw", "gpipe", "-o", "x.gif")
        self.refused("pipeline draw: expected an algorithm or --file", "pipeline", "draw", "-o", "x.svg")
        self.refused("nowhere", "pipeline", "draw", "gpipe", "--network", "nowhere", "-o", "x.svg")
        self.refused("--forward-ms", "pipeline", "draw", "gpipe", "--forward-ms", "0", "-o", "x.svg")

    def test_json(self):
        result = self.json("pipeline", "explain", "1f1b", "--ranks", "3", "--micro-batches", "6")
        self.assertEqual((result["bubble"], result["peak"], result["messages"], result["units"]),
                         (0.25, [3, 2, 1], 24, 24))

    def test_a_file_is_written_read_and_proved(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "mine.csv")
            self.output("pipeline", "explain", "interleaved_1f1b", "--ranks", "2",
                        "--micro-batches", "4", "--stages-per-rank", "2", "-o", file)
            self.assertRegex(self.output("pipeline", "verify", "--file", file),
                             r"right: 2 ranks, 4 stages, 4 micro-batches; bubble 0.1111, ")
            with open(file) as lines:
                text = lines.read()
            with open(file, "w") as out:
                out.write(text.replace("3B2", "3I2"))
            wrong = self.output("pipeline", "verify", "--file", file, code=1)
            self.assertIn("wrong (missing): no rank computes the gradient by the weights of stage 3 "
                          "for micro-batch 2", wrong)
            with open(file, "w") as out:
                out.write("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n")
            wrong = self.output("pipeline", "explain", "--file", file, code=1)
            self.assertIn("wrong (deadlock): ranks wait for each other: rank 0 waits for rank 1 to "
                          "compute 1B0", wrong)

    def test_refusals(self):
        self.refused("pipeline: expected naive, gpipe, 1f1b, interleaved_1f1b, zb_h1, found \"two\"",
                     "pipeline", "verify", "two")
        self.refused("expected a multiple of 4 micro-batches, the number of ranks, found 6",
                     "pipeline", "explain", "interleaved_1f1b", "--micro-batches", "6")
        self.refused("none.csv: expected a file that can be read, found none", "pipeline",
                     "verify", "--file", "none.csv")
        self.refused("--file: expected no --ranks with it", "pipeline", "verify", "--file", "x",
                     "--ranks", "2")
        self.refused("expected an algorithm or --file, found neither", "pipeline", "explain")
        self.refused("expected a whole number from 1 to 4096, found \"0\"", "pipeline", "explain",
                     "gpipe", "--ranks", "0")
        self.refused("A subcommand is required", "pipeline")

    def test_help(self):
        text = self.output("pipeline", "--help")
        for word in ["verify", "explain", "PyTorch"]:
            self.assertIn(word, text)
        self.assertTrue(all(len(line) <= 100 for line in text.splitlines()), text)
        self.assertTrue(re.search(r"--stages-per-rank", self.output("pipeline", "verify", "--help")))


run_tests(Pipeline, sys.argv[1:])
