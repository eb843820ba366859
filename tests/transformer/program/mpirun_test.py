"""Usage: mpirun_test.py BATON-TRAIN MPIRUN FLAG..., for 4 ranks

PYTHONPATH has tests/cli and tests/faults.
"""

import os
import sys
import tempfile

from command import CommandTest, run_tests
from processes import Mounts, Skipped
from train_test import FORMS, SMALL


class UnderMpirun(CommandTest):
    speaker = "baton-train: "

    def test_every_form_trains_as_one_rank_does(self):
        for model, forms in FORMS.items():
            for parallel in forms:
                if {"pp", "mp", "--pp"} & set(parallel) and "--schedule" not in parallel:
                    continue  # it takes long to launch
                with self.subTest(model=model, parallel=parallel):
                    result = self.json("--model", model, *SMALL[model], "--parallel", *parallel,
                                       "--dtype", "f64", "--check")
                    self.assertEqual(result["ranks"], 4)
                    self.assertNotEqual(result["transport"], "threads")
                    self.assertTrue(result["check"]["match"])

    def test_a_pipeline_goes_on_from_checkpoints(self):
        with tempfile.TemporaryDirectory() as folder:
            how = ["--model", "block", *SMALL["block"], "--layers", "4", "--dtype", "f64"]
            forms = [["pp"], ["fsdp", "--pp", "2"], ["dp"]]
            files = [os.path.join(folder, str(i)) for i in range(len(forms))]
            for file, form in zip(files, forms):
                self.json(*how, "--epochs", "5", "--parallel", *form, "--checkpoint", file)
            for i, form in enumerate(forms):
                rest = self.json(*how, "--parallel", *form, "--resume", files[i - 1], "--check",
                                 "--tolerance", "1e-10")
                self.assertTrue(rest["check"]["match"])
                self.assertEqual((rest["first_epoch"], len(rest["loss"])), (6, 5))
            self.assertNotIn("MPI_ABORT", self.refused("expected seed 2, found 1", *how, "--parallel", "pp", "--seed",
                                                       "2", "--resume", files[0]))

    def test_a_checkpoint_on_a_full_disk_leaves_the_one_that_was_there(self):
        outside = self.command
        with tempfile.TemporaryDirectory() as folder:
            try:
                mounts = Mounts({folder: "256k"})
            except Skipped as why:
                self.skipTest(str(why))
            self.addCleanup(mounts.end)
            self.addCleanup(setattr, self, "command", outside)
            self.command = [*mounts.prefix, *outside]
            file = os.path.join(folder, "checkpoint")
            how = ["--model", "block", *SMALL["block"], "--layers", "2", "--parallel", "fsdp", "--checkpoint", file]
            self.json(*how, "--epochs", "2")
            mounts.fill_up(folder)
            done = self.start(*how, "--epochs", "4", "--resume", file)
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            sentence = f"{self.speaker}{file}: expected a file to write, found No space left on device\n"
            self.assertEqual(done.stderr.count(sentence), 1, done.stderr)
            self.assertNotIn("MPI_ABORT", done.stderr)
            self.assertEqual({path.name for path in mounts.seen(folder).iterdir()}, {"checkpoint", "filler"})
            mounts.empty(folder)
            self.assertEqual(self.json(*how, "--epochs", "4", "--resume", file)["first_epoch"], 3)

    def test_ranks_that_wait_for_another_too_long_say_so_and_end_all(self):
        with tempfile.TemporaryDirectory() as folder:
            pipe = os.path.join(folder, "data_batch_1.bin")
            os.mkfifo(pipe)  # the first rank waits for its other end, the others for the first rank
            for arguments in ["--checkpoint", pipe], ["--resume", pipe], ["--model", "vgg16", "--images", folder]:
                with self.subTest(arguments=arguments):
                    done = self.start("--parallel", "dp", "--epochs", "1", *arguments, BATON_TIMEOUT="2")
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertRegex(done.stderr, rf"(?m)^{self.speaker}rank [123]: .*2 s")

    def test_every_rank_has_cores(self):
        result = self.json("--parallel", "dp", "--epochs", "1", "--cores-per-rank", "1")
        usable = len({core for cores in result["cores"] for core in cores})
        self.assertEqual([len(cores) for cores in result["cores"]], [1] * 4)
        self.assertEqual(result["cores_shared"], usable < 4)
        self.assertNotIn("MPI_ABORT", self.refused("--cores-per-rank: expected at most the", "--parallel", "dp",
                                                   "--cores-per-rank", "4096"))

    def test_lines_are_printed_once(self):
        text = self.output("--parallel", "dp", "--epochs", "2")
        self.assertEqual([line.split()[0] for line in text.splitlines()], ["#", "#", "epoch", "1", "2"])

    def test_the_calculator_speaks_once(self):
        self.assertEqual(self.json("--analyze", "--model", "gpt2", "--ranks", "8")["ranks"], 8)

    def test_a_loss_that_is_not_finite_ends_all_ranks(self):
        done = self.start("--parallel", "dp", "--lr", "1e30")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count("expected a loss that is a finite number"), 1)
        self.assertNotIn("MPI_ABORT", done.stderr)

    def test_errors_are_one_sentence_on_all_ranks_together(self):
        for sentence, *arguments in [
                ("--ranks: expected the 4 ranks of the launcher, found 3", "--parallel", "dp", "--ranks", "3"),
                ("--parallel none: expected 1 rank, found 4", ),
                ("--hidden: expected a multiple of 4 (ranks of tp), found 30", "--parallel", "tp",
                 "--hidden", "30"),
                ("--model: expected mlp|block", "--model", "gpt"),
                ("missing.txt: expected a file to read", "--model", "gpt2", "--text", "/missing.txt",
                 "--parallel", "dp")]:
            with self.subTest(arguments=arguments):
                self.assertNotIn("MPI_ABORT", self.refused(sentence, *arguments))


if __name__ == "__main__":
    run_tests(UnderMpirun, [*sys.argv[2:], sys.argv[1]])
