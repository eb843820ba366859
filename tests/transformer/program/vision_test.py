"""Usage: vision_test.py BATON-TRAIN, with tests/cli in PYTHONPATH: VGG16 on images"""

import json
import os
import random
import sys
import tempfile

from command import CommandTest, run_tests

FILES = [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]
FORMS = [["dp"], ["dp", "--ranks", "3", "--micro-batches", "2"], ["fsdp"],
         ["fsdp", "--ranks", "3", "--stage", "1"], ["fsdp", "--ranks", "4", "--stage", "2"],
         ["pp"], ["pp", "--ranks", "3", "--schedule", "gpipe", "--micro-batches", "5"],
         ["dp", "--pp", "2", "--ranks", "4", "--micro-batches", "3", "--split", "time"]]


def image(label, noise):
    """A bright plane or rows that tell the label, in noise."""
    pixels = bytearray(noise.randrange(64) for _ in range(3072))
    for row in range(8):
        at = (label % 3) * 1024 + (label // 3 * 8 + row) * 32
        pixels[at:at + 32] = bytes([255] * 32)
    return bytes([label]) + bytes(pixels)


class Vision(CommandTest):
    speaker = "baton-train: "

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        noise = random.Random(1)
        for name in FILES:
            with open(os.path.join(cls.folder.name, name), "wb") as file:
                file.write(b"".join(image(i % 10, noise) for i in range(40)))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def model(self, *arguments):
        return ["--model", "vgg16", "--images", self.folder.name, "--width", "0.0625", "--batch-size",
                "12", "--validation-samples", "20", *arguments]

    def test_every_form_trains_as_one_rank_does(self):
        short = self.model("--samples", "60", "--epochs", "2", "--dtype", "f64")
        alone = self.json(*short)
        for parallel in FORMS:
            with self.subTest(parallel=parallel):
                result = self.json(*short, "--parallel", *parallel, "--check")
                self.assertTrue(result["check"]["match"])
                self.assertGreater(result["check"]["weights"]["relative"], 0)
                self.assertEqual(result["reference_loss"], alone["loss"])
                self.assertEqual(result["validation_accuracy"], alone["validation_accuracy"])
                self.assertEqual(result["samples_per_epoch"], 60)

    def test_stages_are_cut_by_parameters_or_by_measured_time(self):
        how = self.model("--samples", "12", "--pooled", "7", "--parallel", "pp", "--ranks", "3", "--micro-batches", "3")
        parameters = self.json(*how)["pipeline"]
        self.assertEqual(parameters["first_layers"], [0, 13, 14])  # most are in the first linear layer
        timed = self.json(*how, "--split", "time")["pipeline"]
        seconds, first = timed["layer_seconds"], timed["first_layers"]
        self.assertEqual((len(seconds), len(first), first[0]), (16, 3, 0))

        def slowest(begins):
            return max(sum(seconds[a:b]) for a, b in zip(begins, [*begins[1:], 16]))
        self.assertGreater(min(seconds), 0)
        self.assertAlmostEqual(slowest(first), min(slowest([0, a, b]) for b in range(2, 16) for a in range(1, b)), 12)

    def test_it_learns_to_tell_images_apart(self):
        result = self.json(*self.model("--samples", "192", "--epochs", "30", "--optimizer", "adamw",
                                       "--dropout", "0", "--parallel", "dp"))
        self.assertLess(result["loss"][-1], 0.5 * result["loss"][0])
        self.assertGreater(result["validation_accuracy"][-1], 0.5)
        lines = self.output(*self.model("--samples", "24")).splitlines()
        self.assertRegex(lines[0], r"^# vgg16 of width 0.0625: \d+ parameters; batches of 12 images")
        self.assertRegex(lines[-2], r"^    1  2\.\d+ +2\.\d+ +\d+\.\d\d% +\d+\.\d$")

    def test_weights_go_from_one_layout_to_another(self):
        file = os.path.join(self.folder.name, "weights.safetensors")
        short = self.model("--samples", "24", "--dtype", "f64")
        written = self.json(*short, "--parallel", "fsdp", "--ranks", "3", "--save", file)
        read = self.json(*short, "--lr", "0", "--parallel", "dp", "--load", file, "--check")
        self.assertTrue(read["check"]["match"])
        self.assertAlmostEqual(read["validation_loss"][0], written["validation_loss"][0], 12)
        again = os.path.join(self.folder.name, "again.safetensors")
        for parallel in [["pp", "--ranks", "3"], ["fsdp", "--pp", "2", "--ranks", "4"]]:
            self.json(*short, "--lr", "0", "--parallel", *parallel, "--load", file, "--save", again)
            with open(file, "rb") as one, open(again, "rb") as other:
                self.assertEqual(one.read(), other.read())
        self.refused("weights.safetensors", *self.model("--width", "0.125"), "--load", file)
        self.json(*short, "--pooled", "7", "--save", file)
        with open(file, "rb") as weights:
            header = json.loads(weights.read(int.from_bytes(weights.read(8), "little")))
        self.assertEqual(header["features.0.weight"]["shape"], [4, 3, 3, 3])
        self.assertEqual(header["classifier.0.weight"]["shape"], [256, 32 * 7 * 7])  # torchvision's, / 16
        bias = header["classifier.6.bias"]
        self.assertEqual((bias["dtype"], bias["shape"]), ("F64", [10]))

    def test_a_pipeline_goes_on_from_every_checkpoint(self):
        how = self.model("--samples", "36", "--dtype", "f64")
        expected = self.json(*how, "--epochs", "2")["loss"]
        forms = [["none"], ["pp"], ["pp", "--ranks", "3", "--schedule", "gpipe"], ["mp"], ["dp"],
                 ["fsdp", "--pp", "2", "--ranks", "4"]]
        files = [os.path.join(self.folder.name, f"checkpoint-{i}") for i in range(len(forms))]
        for file, form in zip(files, forms):
            self.json(*how, "--parallel", *form, "--checkpoint", file)
        for i, form in enumerate(forms):
            with self.subTest(form=form):
                longer = [*how, "--epochs", "2", "--parallel", *form]
                whole = self.json(*longer)
                self.assertEqual(self.json(*longer, "--resume", files[i])["loss"], whole["loss"][1:])
                rest = self.json(*longer, "--resume", files[i - 1], "--check")
                self.assertTrue(rest["check"]["match"])
                self.assertAlmostEqual(rest["loss"][0], expected[1], 11)

    def test_momentum_is_an_optimizer_of_every_model(self):
        for model in ["mlp", "block"]:
            self.json("--model", model, "--optimizer", "momentum", "--weight-decay", "0.001",
                      "--epochs", "2", "--parallel", "fsdp", "--check", "--dtype", "f64")

    def test_what_cannot_be_done(self):
        torn = tempfile.TemporaryDirectory()
        for name in FILES:
            with open(os.path.join(torn.name, name), "wb") as file:
                file.write(bytes(3000))
        for ranks in ["1", "3"]:
            how = ["--parallel", "dp", "--ranks", ranks]
            self.refused("data_batch_1.bin, byte 0: expected", *self.model(*how), "--images", torn.name)
            self.refused("missing/data_batch_1.bin: expected a file to read",
                         *self.model(*how), "--images", f"{torn.name}/missing")
        for sentence, *arguments in [
                ("--model vgg16: expected none, dp, fsdp, pp or mp, for its layers are not cut, found tp",
                 "--parallel", "tp"),
                ("--model vgg16: expected none, dp, fsdp, pp or mp, for its layers are not cut, found --tp 2 --sp 1",
                 "--parallel", "fsdp", "--tp", "2"),
                ("--batch-size: expected a multiple of 5 (ranks of dp), found 12", "--parallel", "dp",
                 "--ranks", "5"),
                ("--seq: expected --model block or gpt2, found vgg16", "--seq", "4"),
                ("width", "--width", "0.3")]:
            with self.subTest(arguments=arguments):
                self.refused(sentence, *self.model(*arguments))
        self.refused("--model vgg16: expected --images FOLDER, found none; scripts/data images makes one",
                     "--model", "vgg16")
        self.refused("--images: expected --model vgg16, found mlp", "--images", "x")
        torn.cleanup()


if __name__ == "__main__":
    run_tests(Vision, sys.argv[1:])
