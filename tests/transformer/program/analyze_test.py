"""Usage: analyze_test.py BATON-TRAIN, with tests/cli in PYTHONPATH"""

import re
import sys

from command import CommandTest, run_tests

BOUNDARIES = ["one boundary, one way", "pipeline"]


class Analyze(CommandTest):
    speaker = "baton-train: "

    def analyzed(self, *arguments):
        return self.json("--analyze", *arguments)

    def test_the_figures_of_zero(self):
        # Rajbhandari, Rasley, Ruwase, He: ZeRO (2020), figure 1.
        held = self.analyzed("--parameters", "7.5e9", "--ranks", "64", "--dtype", "f16")["held"]
        for row, published in zip(held, [120, 31.4, 16.6, 1.88], strict=True):
            self.assertAlmostEqual(row["GB"], published, delta=0.05 if published > 2 else 0.005)
            self.assertEqual(row["bytes"], row["parameters"] + row["gradients"] + row["optimizer"])
        self.assertEqual([row["stage"] for row in held], [0, 1, 2, 3])

    def test_seconds_at_a_bandwidth(self):
        # 2 B of 1e10 elements, 7/8 of it: 17.5 GB a pass, at 12.5 GB/s 1.4 s.
        result = self.analyzed("--parameters", "1e10", "--ranks", "8", "--dtype", "f16",
                               "--bandwidth", "100")
        self.assertEqual(result["gigabits_per_second"], 100)
        for row, passes in zip(result["sent"], [2, 2, 2, 3], strict=True):
            self.assertEqual(row["bytes"], passes * 17_500_000_000)
            self.assertAlmostEqual(row["seconds"], passes * 1.4)
        for row, expected in zip(result["held"], [160, 55, 37.5, 20], strict=True):
            self.assertAlmostEqual(row["GB"], expected)
            self.assertNotIn("seconds", row)

    def test_optimizers_and_types(self):
        for optimizer, dtype, gradients, expected in [
                ("sgd", "f32", "f32", (4, 4, 0)), ("momentum", "f32", "f32", (4, 4, 4)),
                ("adamw", "f32", "f32", (4, 4, 8)), ("adamw", "f64", "f64", (8, 8, 16)),
                ("sgd", "bf16", "bf16", (2, 2, 4)), ("momentum", "f16", "f16", (2, 2, 8)),
                ("adamw", "bf16", "f32", (2, 4, 12))]:
            with self.subTest(optimizer=optimizer, dtype=dtype):
                how = ["--parameters", "1000", "--ranks", "4", "--optimizer", optimizer, "--dtype", dtype]
                result = self.analyzed(*how, "--gradient-dtype", gradients)
                found = [result["held"][0][of] for of in ["parameters", "gradients", "optimizer"]]
                self.assertEqual(found, [1000 * bytes for bytes in expected])
                if gradients == dtype:
                    self.assertEqual(self.analyzed(*how), result)

    def test_gpt2_and_its_boundaries(self):
        how = ["--model", "gpt2", "--ranks", "3", "--batch-size", "8", "--bandwidth", "1"]
        result = self.analyzed(*how)
        self.assertEqual(result["parameters"], 124_439_808)
        self.assertEqual(result["activations"], [8, 1024, 768])
        boundary, pipeline = result["sent"][4:]
        self.assertEqual([boundary["form"], pipeline["form"]], BOUNDARIES)
        self.assertEqual(boundary["bytes"], 8 * 1024 * 768 * 4)
        self.assertAlmostEqual(boundary["seconds"], 8 * 1024 * 768 * 32 / 1e9)
        self.assertEqual(pipeline["bytes"], 2 * boundary["bytes"])
        for ranks, times in [("1", 0), ("2", 1), ("5", 2)]:
            sent = self.analyzed(*how, "--ranks", ranks)["sent"]
            self.assertEqual(sent[5]["bytes"], times * sent[4]["bytes"])
        mini = self.analyzed(*how, "--preset", "mini", "--seq", "128", "--dtype", "bf16")
        self.assertEqual(mini["activations"], [8, 128, 256])
        self.assertEqual(mini["sent"][4]["bytes"], 8 * 128 * 256 * 2)
        other = self.analyzed("--parameters", "5", "--ranks", "2", "--batch-size", "2", "--seq", "3",
                              "--d-model", "7")
        self.assertEqual(other["sent"][4]["bytes"], 2 * 3 * 7 * 4)
        self.assertNotIn("seconds", other["sent"][4])

    def test_activations(self):
        how = ["--model", "gpt2", "--preset", "mini", "--ranks", "2", "--seq", "100", "--bandwidth", "1"]
        for batch, micro, samples in [("8", "1", 4), ("7", "1", 4), ("8", "2", 2), ("9", "2", 3)]:
            for dtype, bytes, wide in [("f32", 4, 4), ("bf16", 2, 4), ("f64", 8, 8)]:
                blocks, head = self.analyzed(*how, "--batch-size", batch, "--micro-batches", micro,
                                             "--dtype", dtype)["held"][4:]
                rows = samples * 100
                self.assertEqual(blocks["bytes"], 4 * rows * (16 * 256 * bytes + 12 * wide))
                self.assertEqual(head["bytes"], rows * ((2 * 256 + 50257) * bytes + 2 * wide))
        self.assertEqual(len(self.analyzed("--model", "gpt2", "--ranks", "2")["held"]), 4)
        same = self.analyzed("--parameters", "8", "--ranks", "2", "--seq", "100", "--d-model", "256",
                             "--batch-size", "8", "--layers", "4", "--heads", "8")["held"][4:]
        self.assertEqual([row["bytes"] for row in same], [4 * 400 * (16 * 256 + 12) * 4])

    def test_units_of_gpt2_are_divided_each_by_itself(self):
        held = self.analyzed("--model", "gpt2", "--preset", "tiny", "--ranks", "7")["held"]
        block, embedding = 12 * 64**2 + 13 * 64, (50257 + 1024 + 2) * 64
        self.assertEqual(held[0]["bytes"], 16 * (2 * block + embedding))
        self.assertEqual(held[3]["bytes"], 16 * (2 * -(-block // 7) + -(-embedding // 7)))

    def test_gpt2_with_another_vocabulary_and_context(self):
        how = ["--model", "gpt2", "--preset", "tiny", "--vocabulary", "500", "--context", "30", "--ranks", "2",
               "--batch-size", "4"]
        result = self.analyzed(*how)
        self.assertEqual(result["parameters"], 2 * (12 * 64**2 + 13 * 64) + (500 + 30 + 2) * 64)
        self.assertEqual(result["activations"], [4, 30, 64])
        self.assertEqual(result["held"][5]["bytes"], 2 * 30 * (4 * (2 * 64 + 500) + 4 * 2))
        self.refused("--seq: expected at most 30 positions, found 31", "--analyze", *how, "--seq", "31")

    def test_one_rank_holds_everything_and_sends_nothing(self):
        result = self.analyzed("--parameters", "7", "--ranks", "1")
        self.assertEqual({row["bytes"] for row in result["held"]}, {7 * 16})
        self.assertEqual({row["bytes"] for row in result["sent"]}, {0})

    def test_bytes_are_exact_where_ranks_do_not_divide(self):
        result = self.analyzed("--parameters", "10", "--ranks", "4")  # shards of 2, 3, 2, 3
        self.assertEqual([row["bytes"] for row in result["held"]],
                         [160, 10 * 8 + 3 * 8, 10 * 4 + 3 * 12, 3 * 16])
        # All-reduce: all but chunks of 2 in both passes. Shards are 2, 3, 2, 3: whoever leaves out its
        # own of 2 in a reduce-scatter leaves out the next, of 3, in a gather; at stage 3, two gathers
        # leave out a shard of 2, the reduce-scatter one of 3.
        self.assertEqual([row["bytes"] for row in result["sent"]],
                         [4 * 16, 4 * (8 + 7), 4 * (8 + 7), 4 * (7 + 8 + 8)])

    def test_large_sizes(self):
        result = self.analyzed("--parameters", "1e13", "--ranks", "999999", "--dtype", "f64",
                               "--micro-batches", "10000")
        self.assertEqual(result["held"][0]["bytes"], 32 * 10**13)
        self.assertEqual(result["held"][3]["bytes"], 32 * -(-10**13 // 999999))
        # Nobody sends more than all but the two smallest shards of its neighbours.
        pass_ = 8 * (10**13 - 10**13 // 999999)
        self.assertEqual(result["sent"][3]["bytes"], 3 * 10000 * pass_)

    def test_a_table_has_the_numbers_of_json_and_their_formulas(self):
        how = ["--model", "gpt2", "--preset", "tiny", "--ranks", "3", "--batch-size", "2"]
        for more in [], ["--bandwidth", "10"]:
            text = self.output("--analyze", *how, *more)
            result = self.analyzed(*how, *more)
            lines = [line for line in text.splitlines() if not line.startswith("#")]
            self.assertEqual(len(result["held"]), 6)
            self.assertEqual(len(lines), 2 + len(result["held"]) + len(result["sent"]))
            self.assertEqual("seconds" in text, bool(more))
            for row in result["held"] + result["sent"]:
                line = next(line for line in lines if line.startswith(row["form"]) and
                            line.endswith(row["formula"]))
                self.assertIn(str(row["bytes"]), line.split())

    def test_formulas_give_the_numbers(self):
        result = self.analyzed("--parameters", "640", "--ranks", "8", "--dtype", "bf16", "--optimizer",
                               "momentum", "--gradient-dtype", "f32", "--batch-size", "3", "--seq", "5",
                               "--d-model", "2", "--micro-batches", "4", "--layers", "3", "--heads", "2")
        self.assertEqual(result["micro_batches"], 4)
        self.assertEqual(len(result["held"]), 5)
        values = {"n": 640, "P": 8, "b": 3, "s": 5, "d": 2}
        for row in result["held"] + result["sent"]:
            formula = re.sub(r"ceil\((\w)/(\w|\(.*?\))\)", r"(-(-\1//\2))", row["formula"].split(":")[0])
            product = re.sub(r"(?<=[\w)]) (?=[\w(])", " * ", formula)
            self.assertEqual(eval(product, values), row["bytes"], row["formula"])

    def test_refusals_are_one_sentence(self):
        some = ["--parameters", "8", "--ranks", "2"]
        whole = "--parameters: expected a whole number from 1 to 1e13, 7500000000 or 7.5e9 for example, found "
        for sentence, *arguments in [
                ("--parameters: expected a number of parameters, or --model gpt2, found neither",
                 "--ranks", "2"),
                ("--ranks: expected a number of ranks, found none", "--parameters", "8"),
                ("--ranks: expected a whole number from 1 to 1000000, found \"0\"", *some, "--ranks", "0"),
                (whole + "\"7.5\"", *some, "--parameters", "7.5"),
                (whole + "\"7.5B\"", *some, "--parameters", "7.5B"),
                (whole + "\"0\"", *some, "--parameters", "0"),
                (whole + "\"-4\"", *some, "--parameters=-4"),
                (whole + "\"2e13\"", *some, "--parameters", "2e13"),
                (whole + "\"nan\"", *some, "--parameters", "nan"),
                ("--model: expected gpt2, found \"mlp\"", *some, "--model", "mlp"),
                ("--parameters: expected no --model, found gpt2", *some, "--model", "gpt2"),
                ("--d-model: expected no --model, found gpt2", "--model", "gpt2", "--ranks", "2",
                 "--batch-size", "2", "--d-model", "8"),
                ("--preset: expected --model gpt2, found none", *some, "--preset", "mini"),
                ("--vocabulary: expected --model gpt2, found none", *some, "--vocabulary", "9"),
                ("--context: expected a whole number from 1 to 2147483647, found \"0\"", "--model", "gpt2",
                 "--ranks", "2", "--context", "0"),
                ("GPT-2: expected tiny, mini or small, found \"huge\"", "--model", "gpt2", "--preset",
                 "huge", "--ranks", "2"),
                ("--optimizer: expected sgd|momentum|adamw, found \"lamb\"", *some, "--optimizer", "lamb"),
                ("--dtype: expected f32|f64|bf16|f16, found \"i8\"", *some, "--dtype", "i8"),
                ("--bandwidth: expected a number of at least 1e-06, found \"0\"", *some, "--bandwidth", "0"),
                ("--seq: expected --batch-size, found none", *some, "--seq", "4"),
                ("--batch-size: expected --seq and --d-model with it, found neither", *some,
                 "--batch-size", "4"),
                ("--batch-size: expected --seq and --d-model with it, found --seq alone", *some,
                 "--batch-size", "4", "--seq", "2"),
                ("--seq: expected at most 1024 positions, found 1025", "--model", "gpt2", "--ranks", "2",
                 "--batch-size", "2", "--seq", "1025"),
                ("--layers: expected --heads with it, found none", *some, "--batch-size", "2", "--seq", "4",
                 "--d-model", "8", "--layers", "3"),
                ("--heads: expected --layers with it, found none", *some, "--heads", "3"),
                ("--layers: expected no --model, found gpt2", "--model", "gpt2", "--ranks", "2", "--layers", "3"),
                ("d_model: expected a multiple of 3 (heads), found 8", *some, "--batch-size", "2", "--seq",
                 "4", "--d-model", "8", "--layers", "3", "--heads", "3"),
                ("analysis: expected activations of 0 to 10000000000000 elements, found "
                 "[2147483647, 2147483647, 2147483647]", *some, "--batch-size", "2147483647", "--seq",
                 "2147483647", "--d-model", "2147483647"),
                ("--check", *some, "--check")]:
            with self.subTest(arguments=arguments):
                self.refused(sentence, "--analyze", *arguments)

    def test_help(self):
        text = self.output("--analyze", "--help")
        for example in re.findall(r"^  baton-train (.*?)(?:  .*)?$", text, re.M):
            self.output(*example.split())
        self.assertIn("--analyze", self.output("--help"))


if __name__ == "__main__":
    run_tests(Analyze, sys.argv[1:])
