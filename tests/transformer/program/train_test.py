"""Usage: train_test.py BATON-TRAIN, with tests/cli in PYTHONPATH"""

import math
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from command import CommandTest, run_tests

FORMS = {"mlp": [["dp"], ["dp", "--no-overlap"], ["fsdp"], ["tp"],
                 ["pp", "--tp", "2"], ["mp", "--tp", "2", "--cuts", "2"],
                 ["dp", "--pp", "2", "--schedule", "gpipe", "--micro-batches", "3"],
                 ["fsdp", "--stage", "1", "--pp", "2", "--schedule", "zb_h1"]],
         "block": [["dp"], ["fsdp"], ["fsdp", "--stage", "1", "--tp", "2"], ["tp"],
                   ["tp", "--sequence-parallel"], ["sp"], ["tp-sp"], ["tp-sp", "--sequence-parallel"],
                   ["pp", "--layers", "4"], ["mp", "--layers", "5", "--micro-batches", "3"],
                   ["pp", "--layers", "4", "--tp", "2", "--sequence-parallel", "--schedule", "interleaved_1f1b",
                    "--stages-per-rank", "2", "--micro-batches", "4"],
                   ["pp", "--layers", "2", "--sp", "2", "--schedule", "zb_h1"],
                   ["dp", "--pp", "2", "--layers", "3", "--split", "time"],
                   ["fsdp", "--pp", "2", "--layers", "3"],
                   ["fsdp", "--stage", "2", "--pp", "2", "--layers", "2", "--schedule", "gpipe"]]}


def layers_of(parallel):
    """What a run on one rank needs to be the same model."""
    return parallel[(at := parallel.index("--layers")):at + 2] if "--layers" in parallel else []


SMALL = {"mlp": [], "block": ["--d-model", "16", "--d-ff", "32", "--heads", "4", "--seq", "8",
                              "--optimizer", "adamw", "--epochs", "10"]}


class Train(CommandTest):
    speaker = "baton-train: "

    def trained(self, *arguments, epochs=None, **how):
        result = self.json(*arguments, "--check", **how)
        self.assertTrue(result["check"]["match"])
        self.assertEqual(len(result["loss"]), epochs or result["epochs"])
        self.assertEqual(len(result["reference_loss"]), epochs or result["epochs"])
        return result

    def test_every_form_trains_as_one_rank_does(self):
        for model, forms in FORMS.items():
            for parallel in forms:
                for dtype in ["f32", "f64"]:
                    with self.subTest(model=model, parallel=parallel, dtype=dtype):
                        result = self.trained("--model", model, "--parallel", *parallel, "--ranks", "4",
                                              "--dtype", dtype, *SMALL[model])
                        self.assertEqual((result["ranks"], result["transport"]), (4, "threads"))
                        self.assertLess(result["loss"][-1], result["loss"][0])
                        for what in ["loss", "outputs", "gradients", "weights"]:
                            difference = result["check"][what]["relative"]
                            self.assertLess(difference, {"f32": 1e-3, "f64": 1e-12}[dtype])
                        # Sums in another order: whoever finds no difference compares nothing.
                        compared = "weights" if "fsdp" in parallel else "gradients"
                        for what in [compared, "outputs"]:
                            self.assertGreater(result["check"][what]["relative"], 0)

    def test_bf16_with_f32_masters(self):
        for parallel in [["dp"], ["fsdp", "--stage", "2"], ["tp"]]:
            how = ["--parallel", *parallel, "--epochs", "3", "--dtype", "bf16"]
            result = self.trained(*how)
            self.assertEqual((result["dtype"], result["check"]["tolerance"]), ("bf16", 1.6e-2))
            self.assertLess(result["loss"][-1], result["loss"][0])
            # An input of ReLU that rounds to the other side of 0 has another gradient.
            block = self.trained("--model", "block", *SMALL["block"], *how, "--tolerance", "0.2")
            for what in ["loss", "outputs"]:
                self.assertLess(block["check"][what]["relative"], 1.6e-2)
        held = self.json("--dtype", "bf16", "--optimizer", "adamw", "--epochs", "1")["held_bytes"]
        self.assertEqual(held["optimizer"]["now"], 6 * held["parameters"]["now"])

    def test_batches_micro_batches_and_adamw(self):
        for parallel in ["dp", "tp"]:
            result = self.trained("--parallel", parallel, "--ranks", "3", "--hidden", "33", "--samples",
                                  "50", "--batch-size", "7", "--micro-batches", "2", "--epochs", "5",
                                  "--optimizer", "adamw", "--lr", "0.01", "--dtype", "f64")
            self.assertEqual((result["batch_size"], result["samples"]), (7, 50))

    def test_a_deep_block_with_dropout_and_grouped_heads(self):
        deep = self.trained("--model", "block", *SMALL["block"], "--parallel", "tp-sp", "--ranks", "8",
                            "--heads", "8", "--kv-heads", "2", "--dropout", "0.2", "--layers", "2", "--causal",
                     "--activation", "gelu", "--micro-batches", "3", "--batch-size", "5", "--dtype", "f64")
        self.assertRegex(deep["check"]["weights"]["where"], r"^block[01]\.")
        self.trained("--model", "block", *SMALL["block"], "--parallel", "dp", "--ranks", "3",
                     "--dropout", "0.2", "--micro-batches", "2", "--dtype", "f64")

    def test_each_step_has_dropout_of_its_own(self):
        still = ["--model", "block", *SMALL["block"], "--lr", "0", "--epochs", "3", "--dropout"]
        self.assertEqual(len(set(self.json(*still, "0")["loss"])), 1)
        self.assertEqual(len(set(self.json(*still, "0.3")["loss"])), 3)

    def test_gradients_that_are_nothing_but_rounding_are_no_difference(self):
        for parallel in ["tp", "dp"]:  # with one position, those of k_proj and q_proj are zero
            how = ["--model", "block", *SMALL["block"], "--seq", "1", "--parallel", parallel, "--dtype", "f64"]
            self.trained(*how, "--optimizer", "sgd")
            self.trained(*how, "--tolerance", "1e-10")  # AdamW moves weights by rate · rounding / 1e-8

    def test_sizes_that_no_memory_holds(self):
        for samples in ["1073741824", "2147483647"]:
            done = self.start("--model", "block", "--samples", samples, "--seq", "1073741824",
                              "--d-model", "4", "--heads", "1")
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, r"^baton-train: expected memory for a tensor of \[\d.*found none\n$")

    def test_a_batch_is_no_larger_than_its_samples(self):
        how = ["--parallel", "sp", "--samples", "2", *SMALL["block"]]
        self.assertEqual(self.budget(*how, "--batch-size", "100"), self.budget(*how))

    def test_output_that_cannot_be_written(self):
        for how in [[], ["--json"]]:
            with open("/dev/full", "w") as full:
                done = subprocess.run([*self.command, "--epochs", "1", *how], stdout=full,
                                      stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual(done.returncode, 2)
            self.assertIn("cannot write the results to standard output", done.stderr)

    def test_more_ranks_than_samples(self):
        for model in ["mlp", "block"]:
            how = ["--model", model, *SMALL[model], "--parallel", "dp", "--ranks", "5", "--samples", "3",
                   "--dtype", "f64"]
            self.trained(*how)
            done = self.start(*how, "--optimizer", "sgd", "--lr", "1e200")
            self.assertIn("expected a loss that is a finite number", done.stderr)

    def test_losses_depend_on_the_seed_only(self):
        alone = self.json("--seed", "5")["loss"]
        self.assertEqual(self.json("--seed", "5")["loss"], alone)
        self.assertNotEqual(self.json("--seed", "6")["loss"], alone)
        self.assertEqual(self.trained("--seed", "5", "--parallel", "tp")["reference_loss"], alone)

    def test_a_line_for_each_epoch(self):
        lines = self.output("--epochs", "3", "--parallel", "dp", "--check").splitlines()
        self.assertRegex(lines[0], "^# mlp 2-32-1 on 256 points")
        self.assertRegex(lines[1], "^# dp 2 ranks of threads")
        self.assertEqual([line.split()[0] for line in lines[3:6]], ["1", "2", "3"])
        self.assertEqual(lines[-1], "# equal within the tolerance")
        losses = [float(line.split()[1]) for line in lines[3:6]]
        self.assertEqual([f"{x:.6g}" for x in losses],
                         [f"{x:.6g}" for x in self.json("--epochs", "3", "--parallel", "dp")["loss"]])

    def test_the_tolerance_is_the_block_s_promise_unless_told_otherwise(self):
        for dtype, promise in [("f32", 1e-5), ("f64", 1e-12)]:
            check = self.trained("--dtype", dtype, "--parallel", "tp")["check"]
            self.assertEqual(check["tolerance"], promise)
            self.assertTrue(check["match"])

    def test_outputs_or_weights_alone_are_checked(self):
        for model, forms in FORMS.items():
            for parallel in forms:
                how = ["--model", model, *SMALL[model], "--epochs", "3", "--parallel", *parallel, "--ranks", "4"]
                with self.subTest(model=model, parallel=parallel):
                    output = self.json(*how, "--check-output")["check"]
                    self.assertEqual(output.keys(), {"tolerance", "match", "loss", "outputs"})
                    weights = self.json(*how, "--check-weights")["check"]
                    self.assertEqual(weights.keys(), {"tolerance", "match", "weights"})
                    self.assertGreater(max(output["outputs"]["relative"], weights["weights"]["relative"]), 0)
                    self.assertTrue(output["match"] and weights["match"])
                    both = self.json(*how, "--check-weights", "--check-output")["check"]
                    self.assertEqual(both, output | weights)
        lines = self.output("--parallel", "tp", "--epochs", "1", "--check-weights").splitlines()
        self.assertEqual([line.split()[1] for line in lines if line.startswith("#   ")], ["weights"])

    def test_evaluation_in_every_form(self):
        for model, forms in FORMS.items():
            alone = self.json("--model", model, *SMALL[model], "--dtype", "f64")["validation_loss"]
            self.assertLess(alone[-1], alone[0] if model == "mlp" else 3)
            for parallel in forms:
                # Of three samples that are not trained on, some ranks have none.
                for samples in [[], ["--validation-samples", "3"]]:
                    with self.subTest(model=model, parallel=parallel, samples=samples):
                        how = ["--model", model, *SMALL[model], "--dtype", "f64", *samples]
                        deep = layers_of(parallel)
                        expected = self.json(*how, *deep)["validation_loss"] if samples or deep else alone
                        found = self.json(*how, "--parallel", *parallel, "--ranks", "4")["validation_loss"]
                        self.assertEqual(len(found), len(expected))
                        for a, b in zip(found, expected):
                            self.assertAlmostEqual(a, b, 12)
        # No dropout.
        still = ["--model", "block", *SMALL["block"], "--lr", "0", "--epochs", "3", "--dropout", "0.3"]
        self.assertEqual(len(set(self.json(*still)["validation_loss"])), 1)

    def allowed(self, process):
        """The cores of each thread of a process."""
        sets = []
        for status in Path(f"/proc/{process.pid}/task").glob("*/status"):
            try:
                sets.append(re.search(r"^Cpus_allowed_list:\s*(\S+)$", status.read_text(), re.M)[1])
            except OSError:
                pass  # it has ended
        return sets

    def test_ranks_have_cores_of_their_own_where_there_are_enough(self):
        usable = sorted(os.sched_getaffinity(0))
        for ranks in 1, 2, 3, 4, 5, 7, 8:
            parallel = ["--parallel", "dp"] if ranks > 1 else []
            result = self.json("--ranks", str(ranks), *parallel, "--epochs", "1", "--cores-per-rank", "1")
            self.assertEqual(result["cores"], [[usable[rank % len(usable)]] for rank in range(ranks)])
            self.assertEqual(result["cores_shared"], ranks > len(usable))
        self.assertNotIn("cores", self.json("--epochs", "1"))
        every = str(len(usable))
        alone = self.json("--epochs", "1", "--cores-per-rank", every)
        self.assertEqual((alone["cores"], alone["cores_shared"]), ([usable], False))
        lines = self.output("--parallel", "dp", "--epochs", "1", "--cores-per-rank", every).splitlines()
        self.assertRegex(lines[2], r"^# cores of ranks: (\S+) \| \1; round-robin, for there are too few$")
        too_many = str(len(usable) + 1)
        self.refused(f"--cores-per-rank: expected at most the {every} core", "--cores-per-rank", too_many)
        self.refused(f"that rank 0 may use, found {too_many}", "--parallel", "dp", "--cores-per-rank", too_many)
        for wrong in ["0", "-1", "x", "1.5", "4097"]:
            self.refused("--cores-per-rank: expected a whole number from 1 to 4096", "--cores-per-rank", wrong)

    def test_threads_run_on_the_cores_of_their_rank(self):
        usable = sorted(os.sched_getaffinity(0))
        endless = subprocess.Popen(
            [*self.command, "--model", "block", "--parallel", "dp", "--epochs", "1000000", "--cores-per-rank", "1"],
            stdout=subprocess.DEVNULL)
        try:
            while not {str(core) for core in usable[:2]} <= set(self.allowed(endless)):
                self.assertIsNone(endless.poll())
        finally:
            endless.kill()
            endless.wait()

    def test_what_is_beyond_the_tolerance_is_found(self):
        how = ["--parallel", "tp", "--ranks", "4", "--check", "--tolerance", "1e-12"]
        self.assertFalse(self.json(*how, code=1)["check"]["match"])
        self.assertRegex(self.output(*how, code=1), r"# NOT equal within the tolerance\n$")

    def test_a_loss_that_is_not_finite_ends_it(self):
        for parallel in ["none", "dp", "tp", "fsdp"]:
            done = self.start("--parallel", parallel, "--lr", "1e30")
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"^baton-train: step [23]: expected a loss that is a finite number, "
                                          r"found (inf|-?nan); the first that is not one is "
                                          r"(the output of layer (fc1|gelu|fc2)|the loss)\n$")
        result = self.json("--lr", "1e30", "--check", code=1)
        self.assertIn("expected a loss", result["stopped"])
        self.assertLess(len(result["loss"]), result["epochs"])
        self.assertFalse(result["check"]["match"])

    def test_gradients_that_are_not_finite_leave_the_checkpoint(self):
        with tempfile.TemporaryDirectory() as folder:
            for parallel in ["none", "dp", "tp", "fsdp", "pp"]:
                with self.subTest(parallel=parallel):
                    file = Path(folder) / parallel
                    how = ["--parallel", parallel, "--checkpoint", str(file)]
                    done = self.start(*how, "--lr", "1e15", "--checkpoint-steps", "1")
                    self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                    self.assertRegex(done.stderr, r"^baton-train: step 2: expected gradients that are finite numbers, "
                                                  r"found others, at a loss of \d\S+; weights are those before it\n$")
                    content = file.read_bytes()
                    data = 8 + int.from_bytes(content[:8], "little")
                    values = struct.unpack(f"<{(len(content) - data) // 4}f", content[data:])
                    self.assertEqual(len(values), 96)
                    self.assertTrue(all(math.isfinite(value) for value in values))
                    # A step that is beyond f32.
                    for more in [], ["--checkpoint-steps", "1"]:
                        done = self.start(*how, "--lr", "1e38", "--noise", "1e4", *more)
                        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                        self.assertEqual(done.stderr, "baton-train: step 1: expected weights that are finite numbers "
                                                      f"afterwards, found others; {file} is not written\n")
                    self.assertEqual(file.read_bytes(), content)

    def test_progress_on_a_terminal(self):
        terminal, stderr = pty.openpty()
        subprocess.run([*self.command, "--epochs", "3", "--json"], stdout=subprocess.DEVNULL,
                       stderr=stderr, check=True, timeout=60)
        os.close(stderr)
        said = os.read(terminal, 1 << 16).decode()
        os.close(terminal)
        self.assertIn("[2/3] epoch 2 of 3", said)
        self.assertTrue(said.endswith("\r\033[K"), said)

    def test_stages_are_cut_as_told(self):
        how = ["--model", "block", *SMALL["block"], "--layers", "6", "--epochs", "1", "--parallel", "pp", "--ranks", "3"]
        for more, first in [([], [0, 2, 4]), (["--split", "parameters"], [0, 2, 4]), (["--cuts", "1,5"], [0, 1, 5])]:
            pipeline = self.json(*how, *more)["pipeline"]
            self.assertEqual(pipeline["first_layers"], first)
            self.assertNotIn("layer_seconds", pipeline)
        self.assertIn("# layers of stages: 0 | 1-4 | 5\n", self.output(*how, "--cuts", "1,5"))
        held, whole = (self.json(*how, *more)["held_bytes"]["parameters"]["now"]
                       for more in [[], ["--parallel", "none", "--ranks", "1"]])
        self.assertEqual(3 * held, whole)  # two blocks of six
        pipeline = self.json(*how, "--split", "time")["pipeline"]
        self.assertEqual((len(pipeline["layer_seconds"]), len(pipeline["first_layers"])), (6, 3))

    def test_a_pipeline_of_layers_goes_on_from_every_checkpoint(self):
        with tempfile.TemporaryDirectory() as folder:
            for model, layers in [("mlp", []), ("block", ["--layers", "3", "--dropout", "0.1"])]:
                how = ["--model", model, *SMALL[model], *layers, "--dtype", "f64", "--optimizer", "adamw"]
                forms = [["none"], ["pp"], ["tp"], ["fsdp", "--pp", "2", "--ranks", "4"], ["pp", "--ranks", "3"]]
                files = [os.path.join(folder, f"{model}-{i}") for i in range(len(forms))]
                for file, form in zip(files, forms):
                    self.json(*how, "--epochs", "2", "--parallel", *form, "--checkpoint", file)
                for i, form in enumerate(forms):
                    with self.subTest(model=model, form=form):
                        longer = [*how, "--epochs", "4", "--parallel", *form]
                        whole = self.json(*longer)["loss"]
                        self.assertEqual(self.json(*longer, "--resume", files[i])["loss"], whole[2:])
                        self.trained(*longer, "--resume", files[i - 1], "--tolerance", "1e-10", epochs=2)

    def test_refusals_are_one_sentence(self):
        for sentence, *arguments in [
                ("--model: expected mlp|block|gpt2|vgg16, found \"rnn\"", "--model", "rnn"),
                ("--parallel: expected none|dp|fsdp|tp|sp|tp-sp|pp|mp, found \"ddp\"", "--parallel", "ddp"),
                ("split: expected at least 1 partition and at most 3, one for each layer, found 4", "--parallel",
                 "pp", "--ranks", "4"),
                ("split: expected partitions to begin with layers that rise from 1 to 1, found 2 after 0",
                 "--model", "block", "--layers", "2", "--parallel", "mp", "--cuts", "2"),
                ("--split: expected no --cuts, found them", "--parallel", "pp", "--split", "time", "--cuts", "1"),
                ("--split: expected --parallel pp or mp, or --pp of at least 2, found dp", "--parallel", "dp",
                 "--split", "time"),
                ("--schedule: expected 2 ranks or more along pp, found 1", "--parallel", "pp", "--ranks", "2", "--tp", "2",
                 "--schedule", "gpipe"),
                ("--stages-per-rank: expected 2 ranks or more along pp, found 1", "--parallel", "pp", "--ranks", "1",
                 "--stages-per-rank", "2"),
                ("--cuts: expected 2 ranks or more along pp, found 1", "--parallel", "mp", "--ranks", "1", "--cuts", "1"),
                ("--split: expected 2 ranks or more along pp, found 1", "--parallel", "pp", "--ranks", "1", "--split",
                 "time"),
                ("--split: expected parameters|time, found \"even\"", "--parallel", "pp", "--split", "even"),
                ("--budget: expected no pipeline, found one", "--model", "block", "--layers", "2", "--parallel", "pp",
                 "--budget"),
                ("--budget: expected no --parallel fsdp, whose messages baton-train --analyze adds up, found it",
                 "--model", "block", "--parallel", "fsdp", "--stage", "2", "--budget"),
                ("--ranks: expected a whole number from 1 to 4096, found \"0\"", "--ranks", "0"),
                ("--lr: expected a number of at least 0, found \"-1\"", "--lr", "-1"),
                ("--dropout: expected a number within [0, 1), found \"1\"", "--dropout", "1"),
                ("--parallel none: expected 1 rank, found 3", "--ranks", "3"),
                ("--model mlp: expected none, dp, fsdp, tp, pp or mp, for it has no positions, found sp", "--parallel", "sp"),
                ("--sequence-parallel: expected --parallel tp or tp-sp, or --tp, found sp", "--model", "block",
                 "--parallel", "sp", "--sequence-parallel"),
                ("--hidden: expected a multiple of 3 (ranks of tp), found 32", "--parallel", "tp",
                 "--ranks", "3"),
                ("--ranks: expected a multiple of 3 (--tp), found 4", "--model", "block",
                 "--parallel", "tp-sp", "--ranks", "4", "--tp", "3"),
                ("--heads: expected a multiple of 4 (ranks of tp x sp), found 2", "--model", "block",
                 "--parallel", "sp", "--ranks", "4", "--heads", "2"),
                ("--seq: expected a multiple of 2 (ranks of sp), found 31", "--model", "block",
                 "--parallel", "sp", "--seq", "31"),
                ("--d-ff: expected a multiple of 2 (ranks of tp), found 31", "--model", "block",
                 "--parallel", "tp", "--d-ff", "31"),
                ("ranks of sp: expected a multiple of 3 (--kv-heads on each rank of tp), found 4",
                 "--model", "block", "--parallel", "sp", "--ranks", "4", "--heads", "12", "--d-model",
                 "24", "--kv-heads", "3"),
                ("block: d_model: expected a multiple of 7 (heads), found 64", "--model", "block",
                 "--heads", "7"),
                ("--budget: expected --model block, found mlp", "--budget"),
                ("--noise: expected --model mlp, found block", "--model", "block", "--noise", "0.1"),
                ("--causal: expected --model block, found mlp", "--causal"),
                ("--tp: expected --parallel dp, fsdp, tp-sp, pp or mp, found tp", "--parallel", "tp", "--tp", "2"),
                ("--sp: expected --parallel dp, fsdp, pp or mp, found tp", "--parallel", "tp", "--sp", "2"),
                ("--no-overlap: expected --parallel dp, found tp", "--parallel", "tp", "--no-overlap"),
                ("--stage: expected --parallel fsdp, found dp", "--parallel", "dp", "--stage", "2"),
                ("--stage: expected 1|2|3, found \"4\"", "--parallel", "fsdp", "--stage", "4"),
                ("--ranks: expected a multiple of 4 (--tp x --sp), found 6", "--model", "block",
                 "--parallel", "fsdp", "--ranks", "6", "--tp", "2", "--sp", "2"),
                ("--model gpt2: expected --text FILE, found none; scripts/data text makes one", "--model",
                 "gpt2"),
                ("--prompt: expected --model gpt2, found mlp", "--prompt", "x"),
                ("--prompt: expected some text, found none", "--model", "gpt2", "--text", "x", "--prompt", ""),
                ("--seq: expected --model block or gpt2, found mlp", "--seq", "4"),
                ("--weight-decay: expected --optimizer adamw or momentum, found sgd", "--weight-decay", "0.1"),
                ("--tolerance: expected --check, --check-output or --check-weights, found none", "--tolerance", "0.1"),
                ("--budget: expected no --cores-per-rank, found it", "--model", "block", "--budget",
                 "--cores-per-rank", "1"),
                ("--epoch", "--epoch", "3")]:
            with self.subTest(arguments=arguments):
                self.refused(sentence, *arguments)

    def test_refusals_of_the_environment_are_nothing_but_a_sentence(self):
        for sentence, variables in [
                ("BATON_TIMEOUT: expected seconds of at least 0, found \"soon\"", {"BATON_TIMEOUT": "soon"}),
                ("BATON_ALL_REDUCE: expected algorithm[:segment] with a segment like 131072 or 128K, "
                 "found \"ring:x\"", {"BATON_ALL_REDUCE": "ring:x"}),
                ("expected an algorithm", {"BATON_ALL_REDUCE": "no"})]:
            for more in [], ["--check"], ["--json"]:
                with self.subTest(variables=variables, more=more):
                    self.refused(sentence, "--parallel", "dp", "--ranks", "3", *more, **variables)

    def budget(self, *arguments):
        """The lines of a budget as (layer, direction, messages, bytes, bytes / A)."""
        lines = self.output("--model", "block", "--budget", *arguments).splitlines()
        self.assertRegex(lines[0], r"^# what rank 0 of \d+ sends in a step; A = \d+ B")
        columns = {name: lines[1].index(name) for name in ["direction", "operator"]}
        rows = []
        for line in lines[2:]:
            numbers = re.search(r" (\d+) +(\d+) +(\d+\.\d+)", line)
            rows.append((line[:columns["direction"]].strip(),
                         line[columns["direction"]:columns["operator"]].strip(),
                         int(numbers[1]), int(numbers[2]), float(numbers[3])))
        return rows

    def test_a_budget_adds_up_and_is_the_formula(self):
        large = ["--ranks", "4", "--d-model", "256", "--seq", "128"]  # so that bandwidth decides
        for forward, backward, *form in [(3, 3, "tp"), (3, 3, "tp", "--sequence-parallel"),
                                         (0.75, 0.75, "sp"), (0, 0, "dp")]:
            with self.subTest(form=form):
                rows = self.budget("--parallel", *form, *large, "--layers", "2")
                sums = {row[1]: row for row in rows if row[0] == "all layers"}
                for direction, expected in [("forward", forward), ("backward", backward)]:
                    self.assertAlmostEqual(sums[direction][4], 2 * expected, 2)
                    for column in [2, 3]:
                        self.assertEqual(sums[direction][column], sum(
                            row[column] for row in rows
                            if row[1] == direction and row[0].startswith("block")))
                self.assertEqual([row[0] for row in rows[-2:]], ["gradients", "loss"])
                self.assertEqual(rows[-2][3] > 0, form != ["tp"])
                self.assertGreater(rows[-1][2], 0)

    def test_time_and_memory_in_json(self):
        result = self.json("--parallel", "fsdp", "--ranks", "2", "--epochs", "3")
        self.assertEqual(len(result["epoch_seconds"]), 3)
        for epoch in result["epoch_seconds"]:
            parts = [epoch[what] for what in ["computation", "communication", "optimizer"]]
            self.assertAlmostEqual(sum(parts), epoch["all"])
            self.assertGreater(min(parts), 0)
        self.assertEqual(result["samples_per_epoch"], 256)
        later = sum(epoch["all"] for epoch in result["epoch_seconds"][1:])
        self.assertAlmostEqual(result["samples_per_second"], 2 * 256 / later)
        cut = self.json("--epochs", "3", "--batch-size", "64", "--steps", "9")  # 4 + 4 + 1
        later = sum(epoch["all"] for epoch in cut["epoch_seconds"][1:])
        self.assertAlmostEqual(cut["samples_per_second"], 5 * 64 / later)
        self.assertEqual(cut["samples_per_epoch"], 256)
        # fc1 [32, 2] and fc2 [1, 32] of 4 B, each divided between 2 ranks; SGD keeps nothing.
        held = result["held_bytes"]
        for what, bytes in {"parameters": 192, "gradients": 192, "optimizer": 0, "gathered": 0}.items():
            self.assertEqual(held[what]["now"], bytes)
        self.assertEqual(held["gathered"]["most"], 96 * 4)
        whole = self.json("--parallel", "dp", "--ranks", "2", "--epochs", "1")["held_bytes"]
        self.assertEqual((whole["parameters"]["now"], whole["gradients"]["now"]), (384, 384))

    def test_the_learning_rate_rises_and_falls(self):
        still = self.json("--lr", "0", "--epochs", "6")["loss"]
        self.assertEqual(len(set(still)), 1)
        # Of six steps the first two rise; the rest fall to 0, so the last moves least.
        scheduled = self.json("--warmup", "2", "--least-lr", "0", "--epochs", "6")["loss"]
        fixed = self.json("--epochs", "6")["loss"]
        self.assertEqual(scheduled[0], fixed[0])
        self.assertGreater(scheduled[1], fixed[1])  # half the rate
        self.assertLess(scheduled[4] - scheduled[5], fixed[4] - fixed[5])
        clipped = self.json("--clip", "1e-6", "--epochs", "6")["loss"]
        self.assertLess(max(clipped) - min(clipped), 1e-6)
        self.assertEqual(len(self.json("--epochs", "6", "--steps", "2")["loss"]), 2)

    def test_help(self):
        text = self.output("--help")
        for word in ["Examples:", "--parallel", "none|dp|fsdp|tp|sp|tp-sp", "Exit code"]:
            self.assertIn(word, text)
        self.assertRegex(self.output("--version"), r"^baton-train \d+\.\d+\.\d+\n$")
        for example in re.findall(r"^  baton-train (.*?)(?:  .*| >.*)?$", text, re.M):
            if "--text" not in example and not example.startswith("plot"):
                self.output(*example.split())


if __name__ == "__main__":
    run_tests(Train, sys.argv[1:])
