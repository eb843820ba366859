"""Usage: language_test.py BATON-TRAIN, with tests/cli in PYTHONPATH: GPT-2 on text"""

import itertools
import os
import re
import sys
import tempfile

from command import CommandTest, run_tests

WORDS = {"the": ["quick", "lazy", "old"], "animals": ["fox", "dog", "bear", "cat"],
         "verbs": ["sees", "jumps over", "follows"]}
FORMS = [["dp"], ["dp", "--ranks", "3"], ["fsdp"], ["fsdp", "--ranks", "3", "--stage", "1"],
         ["fsdp", "--ranks", "4", "--stage", "2", "--tp", "2", "--micro-batches", "2"],
         ["fsdp", "--ranks", "4", "--sp", "2", "--recompute"], ["tp"], ["tp", "--sequence-parallel"],
         ["sp"], ["tp-sp"],
         ["pp"], ["mp"], ["pp", "--schedule", "zb_h1", "--micro-batches", "3", "--cuts", "1"],
         ["dp", "--pp", "2", "--ranks", "4"], ["fsdp", "--pp", "2", "--ranks", "4"],
         ["fsdp", "--stage", "1", "--pp", "2", "--ranks", "4", "--schedule", "zb_h1"],
         ["pp", "--tp", "2", "--ranks", "4", "--sequence-parallel", "--split", "time"]]


class Language(CommandTest):
    speaker = "baton-train: "

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.text = os.path.join(cls.folder.name, "text.txt")
        sentences = [f"The {a} {b} {v} the {c} {d}.\n" for a, b, v, c, d in itertools.product(
            WORDS["the"], WORDS["animals"], WORDS["verbs"], WORDS["the"], WORDS["animals"])]
        with open(cls.text, "w") as file:
            file.write("".join(sentences))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def model(self, *arguments, text=None):
        return [*self.silent(text=text), "--prompt", "The quick", *arguments]

    def silent(self, *arguments, text=None):
        return ["--model", "gpt2", "--text", text or self.text, "--vocabulary", "320", "--seq", "16",
                "--batch-size", "12", *arguments]

    def test_every_form_trains_and_writes_as_one_rank_does(self):
        short = self.model("--steps", "6", "--dropout", "0.1", "--clip", "1", "--warmup", "2",
                           "--least-lr", "1e-4", "--write", "6", "--dtype", "f64")
        alone = self.json(*short)
        self.assertEqual(len(alone["loss"]), 1)
        for parallel in FORMS:
            with self.subTest(parallel=parallel):
                result = self.json(*short, "--parallel", *parallel, "--check")
                self.assertTrue(result["check"]["match"])
                for what in ["outputs", "weights"]:
                    self.assertGreater(result["check"][what]["relative"], 0)
                self.assertEqual(result["reference_loss"], alone["loss"])
                self.assertEqual(result["written"], alone["written"])
                self.assertAlmostEqual(result["validation_loss"][0], alone["validation_loss"][0], 10)
                self.assertEqual(result["tokens_per_epoch"], 6 * 12 * 16)

    def test_emulated_computations_send_what_real_ones_send(self):
        short = self.silent("--steps", "3")
        for parallel in (["dp"], ["fsdp"], ["tp"], ["sp"], ["pp"]):
            with self.subTest(parallel=parallel):
                real = self.json(*short, "--write", "0", "--parallel", *parallel)
                emulated = self.json(*short, "--parallel", *parallel, "--emulate-gflops", "1000")
                self.assertEqual(emulated["last_step_sent"], real["last_step_sent"])
                self.assertEqual(emulated["emulated"], {"gflops": 1000.0, "optimizer_ns": 1.0})
                self.assertEqual(emulated["loss"], [0])
                self.assertEqual(len(emulated["step_seconds"]), 3)
                self.assertNotIn("validation_loss", emulated)
        # The optimizer of each step: 100 ns for each of the parameters.
        slow = self.json(*short, "--emulate-gflops", "1e6", "--emulate-optimizer-ns", "100")
        parameters = int(re.search(r"(\d+) parameters", slow["sizes"]).group(1))
        self.assertGreater(sum(slow["step_seconds"]), 0.9 * 3 * parameters * 100e-9)
        text = self.output(*short, "--emulate-gflops", "1000")
        for part in ("computations are emulated, at 1000 Gflop/s", "a step took"):
            self.assertIn(part, text)
        self.refused("--check: expected no --emulate-gflops", *short, "--emulate-gflops", "1", "--check")
        self.refused("--emulate-optimizer-ns: expected --emulate-gflops", *short, "--emulate-optimizer-ns", "1")

    def test_a_recorded_step_beside_its_prediction(self):
        predict = ["--predict", "--model", "gpt2", "--preset", "tiny", "--vocabulary", "320", "--context", "16",
                   "--batch-size", "12", "--network", "shared-memory", "--gflops", "10", "--emulated"]
        for parallel, layout in ((["dp"], ["--dp", "2"]), (["fsdp"], ["--dp", "2", "--stage", "3"]),
                                 (["tp"], ["--tp", "2"]), (["sp"], ["--sp", "2"]),
                                 (["pp", "--micro-batches", "3"], ["--pp", "2", "--micro-batches", "3"])):
            with self.subTest(parallel=parallel):
                trace = os.path.join(self.folder.name, "step.trace")
                self.output(*self.silent("--steps", "2", "--emulate-gflops", "10", "--parallel", *parallel),
                            BATON_TRACE=trace)
                picture = os.path.join(self.folder.name, "step.svg")
                step = self.json(*predict, *layout, "--measured", trace, "-o", picture)
                joined = step["measured"]
                self.assertEqual([item["rank"] for item in joined["items"] if item["name"] == "optimizer"], [0, 1])
                self.assertAlmostEqual(joined["step_ms"], max(item["measured"]["end_ms"] for item in joined["items"]))
                self.assertGreater(sum("bytes" in item for item in joined["items"]), 0)
                self.assertEqual(joined["missing"], 0)
                with open(picture) as file:
                    drawn = file.read()
                for part in ("predicted", "measured", "optimizer"):
                    self.assertIn(part, drawn)
                text = self.output(*predict, *layout, "--measured", trace)
                self.assertIn("the last recorded step beside it", text)
                os.remove(trace)
        self.refused("no-such-file", *predict, "--dp", "2", "--measured", "no-such-file")

    def test_a_pipeline_runs_by_a_schedule_of_ones_own(self):
        mine = os.path.join(self.folder.name, "mine.csv")
        with open(mine, "w") as file:
            file.write("0F0,0F1,,0I0,0W0,0I1,0W1\n,1F0,1B0,,1F1,1B1\n")
        short = self.model("--steps", "2", "--dtype", "f64", "--write", "0", "--parallel", "pp")
        result = self.json(*short, "--schedule", mine, "--check-weights")
        self.assertTrue(result["check"]["match"])
        self.assertEqual(result["micro_batches"], 2)
        pipeline = result["pipeline"]
        self.assertEqual((pipeline["stages"], pipeline["peak"], pipeline["messages"]), (2, [2, 1], 4))
        self.assertTrue(0 < pipeline["bubble"] < 1)
        text = self.output(*short, "--schedule", mine)
        self.assertIn("mine.csv: 2 stages, 2 micro-batches, a bubble of", text)
        with open(mine, "w") as file:
            file.write("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n")
        self.refused("ranks wait for each other: rank 0 waits for rank 1 to compute 1B0", *short,
                     "--schedule", mine)
        with open(mine, "w") as file:
            file.write("0F0,0B0\n1F0,1B0\n2F0,2B0\n")
        self.refused("expected 2 ranks along pp, found 3", *short, "--schedule", mine)
        self.refused("expected the 1 of", *short, "--schedule", mine, "--micro-batches", "2")

    def test_pipelines_that_cannot_be(self):
        short = self.model("--steps", "1")
        for sentence, arguments in [
                ("split: expected at least 1 partition and at most 2, one for each layer, found 3",
                 ["pp", "--ranks", "3"]),
                ("--micro-batches: expected at most the 12 samples of a rank, found 13",
                 ["pp", "--micro-batches", "13"]),
                ("expected one stage per rank, found 2", ["pp", "--stages-per-rank", "2"]),
                ("--cuts: expected the first layers of 2 stages but the first, found 2",
                 ["pp", "--cuts", "1,2"]),
                ("--schedule: expected --parallel pp or mp", ["dp", "--schedule", "gpipe"]),
                ("gradients that are divided at once",
                 ["fsdp", "--stage", "2", "--pp", "2", "--ranks", "4", "--schedule", "zb_h1"])]:
            with self.subTest(sentence=sentence):
                self.refused(sentence, *short, "--parallel", *arguments)

    def test_it_learns_to_write_what_it_has_read(self):
        result = self.json(*self.model("--epochs", "6", "--parallel", "dp", "--lr", "0.005",
                                       "--temperature", "0", "--write", "12"))
        self.assertLess(result["loss"][-1], 0.4 * result["loss"][0])
        self.assertLess(result["validation_loss"][-1], 1.5)
        sentence = (r"The (quick|lazy|old) (fox|dog|bear|cat) (sees|jumps over|follows) "
                    r"the (quick|lazy|old) (fox|dog|bear|cat)\.")
        self.assertRegex(result["written"], sentence)
        lines = self.output(*self.model("--steps", "2")).splitlines()
        self.assertRegex(lines[0], r"^# gpt2 of 2 layers, d_model 64, 4 heads, 320 tokens: \d+ parameters")
        self.assertRegex(lines[-2], r"^# in training, a rank held at most \d+\.\d\d MB at once; "
                                    r"by purpose, each at most: activations \d+\.\d\d, parameters \d+\.\d\d, gradients ")
        self.assertRegex(lines[-1], "^# it writes: The quick")

    def test_weights_go_from_one_layout_to_another(self):
        file = os.path.join(self.folder.name, "weights.safetensors")
        short = self.model("--steps", "3", "--dtype", "f64")
        written = self.json(*short, "--parallel", "fsdp", "--ranks", "3", "--save", file)
        again = os.path.join(self.folder.name, "again.safetensors")
        for parallel in [["dp"], ["fsdp", "--ranks", "4", "--tp", "2"], ["sp"], ["pp"],
                         ["fsdp", "--ranks", "4", "--pp", "2"]]:
            read = self.json(*short, "--steps", "1", "--lr", "0", "--weight-decay", "0", "--load", file,
                             "--parallel", *parallel, "--check", "--save", again)
            with open(file, "rb") as one, open(again, "rb") as other:
                self.assertEqual(one.read(), other.read())
            self.assertTrue(read["check"]["match"])
            self.assertAlmostEqual(read["validation_loss"][0], written["validation_loss"][-1], 12)
            self.assertEqual(read["written"], written["written"])
        torn = os.path.join(self.folder.name, "torn.safetensors")
        with open(file, "rb") as whole, open(torn, "wb") as part:
            part.write(whole.read()[:-10])
        for ranks in ["1", "3"]:
            how = ["--parallel", "dp", "--ranks", ranks]
            self.refused("torn.safetensors", *self.model(*how), "--load", torn)
            self.refused("tensor \"wte.weight\": expected shape [320, 32], found [320, 64]",
                         *self.model(*how, "--d-model", "32"), "--load", file)
        for parallel in ["none", "pp"]:
            done = self.start(*self.model("--steps", "1", "--save", "/missing/file", "--parallel", parallel))
            self.assertEqual(done.returncode, 2)
            self.assertIn("/missing/file", done.stderr)

    def test_a_checkpoint_goes_on_where_training_was(self):
        file = os.path.join(self.folder.name, "training.checkpoint")
        how = self.model("--epochs", "2", "--samples", "60", "--dtype", "f64", "--dropout", "0.1", "--clip",
                         "1", "--warmup", "4", "--least-lr", "1e-4")
        self.json(*how, "--checkpoint", file, "--checkpoint-steps", "3")
        self.refused("expected a step before 10, found 10", *how, "--resume", file)
        longer = [*how, "--epochs", "4"]
        same = ["--warmup", "0", "--lr", "0.001", "--least-lr", "0.001"]  # not by the number of steps
        whole = self.json(*longer, *same)
        self.json(*how, *same, "--checkpoint", file)
        for parallel in [["none"], ["fsdp", "--ranks", "4", "--tp", "2"], ["sp"]]:
            rest = self.json(*longer, *same, "--resume", file,
                             "--parallel", *parallel, *(["--check"] if parallel != ["none"] else []))
            self.assertEqual(rest["first_epoch"], 3)
            if parallel == ["none"]:  # bit for bit
                self.assertEqual(rest["loss"], whole["loss"][2:])
                self.assertEqual(rest["validation_loss"], whole["validation_loss"][2:])
                self.assertEqual(rest["written"], whole["written"])
            for found, expected in zip(rest["loss"], whole["loss"][2:]):
                self.assertAlmostEqual(found, expected, 11)
        self.json(*longer, *same, "--steps", "7", "--checkpoint", file)  # within the second epoch
        rest = self.json(*longer, *same, "--resume", file)
        self.assertEqual(rest["first_epoch"], 2)
        self.assertEqual(rest["loss"][1:], whole["loss"][2:])
        self.assertEqual(rest["validation_loss"], whole["validation_loss"][1:])
        self.refused("expected batch_size 6, found 12", *longer, "--batch-size", "6", "--resume", file)
        self.refused("expected seed 9, found 1", *longer, "--seed", "9", "--resume", file)
        with open(file, "r+b") as torn:
            torn.truncate(os.path.getsize(file) - 8)
        self.refused("training.checkpoint", *longer, "--resume", file)
        self.refused("missing: expected a file", *longer, "--resume", f"{self.folder.name}/missing")

    def test_a_pipeline_goes_on_from_every_checkpoint(self):
        how = self.model("--samples", "60", "--dtype", "f64", "--dropout", "0.1", "--clip", "1", "--write", "6")
        longer = [*how, "--epochs", "2"]
        expected = self.json(*longer)
        forms = [["none"], ["pp"], ["mp"], ["tp"], ["dp", "--ranks", "3"],
                 ["pp", "--schedule", "zb_h1", "--tp", "2", "--ranks", "4"],
                 ["dp", "--pp", "2", "--ranks", "4", "--schedule", "gpipe"],
                 *(["fsdp", "--stage", stage, "--pp", "2", "--ranks", "4"] for stage in "123")]
        files = [os.path.join(self.folder.name, f"checkpoint-{i}") for i in range(len(forms))]
        for i, form in enumerate(forms):
            self.json(*how, "--epochs", "1", "--parallel", *form, "--checkpoint", files[i])
        for i, form in enumerate(forms):
            with self.subTest(form=form):
                whole = self.json(*longer, "--parallel", *form)
                same = self.json(*longer, "--parallel", *form, "--resume", files[i])
                for what in ["loss", "validation_loss"]:  # bit for bit
                    self.assertEqual(same[what], whole[what][1:])
                for other in {(3 * i + 1) % len(forms), (i + 5) % len(forms)}:
                    rest = self.json(*longer, "--parallel", *form, "--resume", files[other], "--check")
                    self.assertTrue(rest["check"]["match"])
                    self.assertAlmostEqual(rest["loss"][0], expected["loss"][1], 11)
                    self.assertEqual(rest["written"], expected["written"])
        self.refused("expected seed 9, found 1", *longer, "--seed", "9", "--resume", files[1], "--parallel", "pp")
        self.refused("missing: expected a file", *longer, "--resume", f"{self.folder.name}/missing",
                     "--parallel", "pp")
        self.refused("optimizer: expected Sgd, found \"AdamW\"", *longer, "--resume", files[0], "--parallel", "pp",
                     "--optimizer", "momentum")

    def test_a_step_sends_what_the_calculator_says(self):
        calculated = self.json("--analyze", "--model", "gpt2", "--preset", "tiny", "--vocabulary", "320",
                               "--context", "16", "--ranks", "4")
        sent = {row["stage"]: row["bytes"] for row in calculated["sent"] if "stage" in row}
        rings = {f"BATON_{name}": "ring" for name in ["ALL_REDUCE", "ALL_GATHER", "REDUCE_SCATTER"]}
        for stage in range(4):
            form = ["fsdp", "--stage", str(stage)] if stage else ["dp"]
            # A step's order is known from the second on.
            found = self.json(*self.model("--steps", "2", "--ranks", "4", "--parallel", *form), **rings)
            self.assertEqual(found["last_step_sent"]["bytes"], sent[stage] + 16, stage)  # 16: the loss
        self.assertEqual(self.json(*self.model("--steps", "1"))["last_step_sent"], {"bytes": 0, "messages": 0})

    def test_a_recorded_pipeline_is_drawn(self):
        for schedule in "gpipe", "1f1b", "zb_h1":
            name = os.path.join(self.folder.name, schedule)
            self.output(*self.model("--steps", "2", "--parallel", "pp", "--schedule", schedule, "--micro-batches",
                                    "3", "--write", "0"), BATON_TRACE=f"{name}-2.trace")
            self.output("plot", "timeline", f"{name}=2", "-o", f"{name}.svg")
            with open(f"{name}.svg") as picture:
                computed = re.findall(r"rank (\d+) computes (\S+)", picture.read())
            ways = "FIW" if schedule == "zb_h1" else "FB"
            expected = [(str(rank), f"{rank}{way}{m}") for rank in range(2) for way in ways for m in range(3)]
            self.assertEqual(sorted(its for its in computed if its[1] != "optimizer"), sorted(expected))

    def test_presets_and_sizes(self):
        lines = self.output(*self.model("--preset", "mini", "--layers", "1", "--d-model", "32",
                                        "--steps", "1", "--write", "0")).splitlines()
        self.assertRegex(lines[0], "^# gpt2 of 1 layers, d_model 32, 8 heads")
        self.assertNotIn("writes", lines[-1])

    def test_recomputation_holds_less(self):
        held = [self.json(*self.model("--steps", "2", "--layers", "4", *more))["held_bytes"]["activations"]
                for more in [[], ["--recompute"]]]
        self.assertLess(held[1]["most"], 0.7 * held[0]["most"])

    def test_data_that_cannot_be_used(self):
        wrong = os.path.join(self.folder.name, "wrong.txt")
        with open(wrong, "wb") as file:
            file.write(b"some words \xff and more")
        short = os.path.join(self.folder.name, "short.txt")
        with open(short, "w") as file:
            file.write("The fox sees the dog.\n" * 2)
        for ranks in ["1", "3"]:
            how = ["--parallel", "dp", "--ranks", ranks]
            for sentence, file in [("wrong.txt, byte 11: expected UTF-8", wrong),
                                   ("missing.txt: expected a file to read, found No such file",
                                    os.path.join(self.folder.name, "missing.txt"))]:
                with self.subTest(ranks=ranks, file=file):
                    self.refused(sentence, *self.model(*how, text=file))
            self.refused("short.txt: text: expected one of which SentencePiece learns 320 tokens",
                         *self.model(*how, text=short))
            self.refused("for validation: expected at least 401 tokens, a sequence of 400 and the next",
                         *self.model(*how, "--seq", "400", "--validation", "0.01"))
        self.refused("--batch-size: expected a multiple of 3 (ranks of dp), found 8",
                     *self.model("--parallel", "dp", "--ranks", "3", "--batch-size", "8"))
        self.refused("--micro-batches: expected at most the 4 samples of a rank, found 5",
                     *self.model("--parallel", "fsdp", "--ranks", "3", "--micro-batches", "5"))
        self.refused("--vocabulary: expected a multiple of 2 (ranks of tp), found 321",
                     *self.model("--parallel", "tp", "--vocabulary", "321"))
        self.refused("GPT-2: expected tiny, mini or small, found \"huge\"", *self.model("--preset", "huge"))


if __name__ == "__main__":
    run_tests(Language, sys.argv[1:])
