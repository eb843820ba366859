"""Usage: mpirun_test.py EXAMPLES BATON MPIRUN FLAG..."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from command import CommandTest, run_tests


class UnderMpirun(CommandTest):
    def check_rows(self, result):
        self.assertEqual((result["ranks"], result["wrong"]), (3, 0))
        for row in result["rows"]:
            self.assertEqual(row["wrong"], 0)
            self.assertGreater(row["checked"], 0)

    def test_every_algorithm_beside_the_built_in(self):
        result = self.json("run", "all", "--algorithm", "all", "--bytes", "4K", "--iters", "2")
        self.check_rows(result)
        self.assertNotEqual(result["transport"], "threads")
        for row in result["rows"]:
            self.assertGreater(row["built_in_us"], 0, row)
            self.assertAlmostEqual(row["ratio"] * row["time_us"] / row["built_in_us"], 1, 3)

    def test_types_and_operations(self):
        for dtype, op, built_in in [("i8", "prod", True), ("u64", "bit_xor", True),
                                    ("f64", "avg", True), ("i32", "avg", True),
                                    ("bf16", "avg", False), ("f8e4m3", "sum", False),
                                    ("i64", "logical_and", True)]:
            result = self.json("run", "all", "--bytes", "600", "--iters", "1", "--dtype", dtype,
                               "--op", op, "--root", "1", "--in-place")
            self.check_rows(result)
            for row in result["rows"]:
                if row["op"] is not None:
                    self.assertEqual(row["built_in_us"] is not None, built_in, row)

    def test_tensors(self):
        workload = Path(__file__).with_name("tensors.txt")
        result = self.json("run", "--workload", str(workload), "--algorithm", "all", "--iters", "2")
        self.check_rows(result)
        self.assertEqual({row["collective"] for row in result["rows"]}, {"all_to_all", "all_gather"})
        self.assertTrue(all(row["built_in_us"] > 0 for row in result["rows"]))

    def test_own_schedule(self):
        file = str(self.examples / "there_and_back.txt")
        self.check_rows(self.json("run", "--schedule", file, "--prove", "3"))

    def test_the_rest_is_printed_once(self):
        self.assertEqual(self.output("--version").count("baton"), 1)
        self.assertEqual(self.output("list", "scan").count("recursive_doubling"), 1)
        self.assertIn(", 0 failures", self.output("verify", "--max-ranks", "2"))

    def test_what_calibrate_writes_simulate_reads(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "here.txt"
            self.output("calibrate", "-o", str(file), "--sample-ms", "1")
            text = file.read_text()
            self.assertTrue(text.startswith("baton-network 1\nname here\nsource baton calibrate, 3 "))
            program = [self.command[-1], "simulate", "all_reduce", "--algorithm", "ring", "--ranks",
                       "3", "--bytes", "1M", "--network", str(file), "--json"]
            done = subprocess.run(program, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            found = json.loads(done.stdout)
            self.assertEqual((found["network"], found["hosts"]), ("here", 1))
            # 8/3 MiB pass each rank, at 1 to 100 GB/s or more slowly where the machine is busy.
            self.assertGreater(found["rows"][0]["time_ns"], 25_000)

    def test_errors_are_one_sentence_on_all_ranks_together(self):
        for sentence, *arguments in [
                ("expected a collective (", "run", "bcast"),
                ("found none", ),
                ("neighbor_exchange needs an even number of ranks, found 3", "run", "all_gather",
                 "--algorithm", "neighbor_exchange", "--bytes", "64"),
                ("--ranks: expected the 3 ranks of the launcher, found 4", "run", "--ranks", "4"),
                ("--delays: expected ranks that are threads", "run", "--delays", "1")]:
            with self.subTest(arguments=arguments):
                self.assertNotIn("MPI_ABORT", self.refused(sentence, *arguments))


if __name__ == "__main__":
    UnderMpirun.examples = Path(sys.argv[1])
    run_tests(UnderMpirun, [*sys.argv[3:], sys.argv[2]])
