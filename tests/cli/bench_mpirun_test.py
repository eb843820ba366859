"""Usage: bench_mpirun_test.py STAND_IN ALGORITHMS.so BATON MPIRUN FLAG..., on 3 ranks"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from command import CommandTest, run_tests

FIVE = ["broadcast", "all_reduce", "all_gather", "reduce_scatter", "all_to_all"]
JUDGE = Path(__file__).resolve().parents[2] / "scripts/judge"
QUICK = ["--pairs", "4", "--large-pairs", "3", "--sample-ms", "1"]


class BenchUnderMpirun(CommandTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def bench(self, *arguments, code=0, **variables):
        """The table's rows as lists of words, and what --json wrote."""
        file = self.folder / "bench.json"
        text = self.output("bench", *QUICK, *arguments, "--json", str(file), code=code, **variables)
        rows = [line.split() for line in text.splitlines() if line.startswith("  ")]
        return rows, json.loads(file.read_text())

    def test_the_five_by_default(self):
        rows, result = self.bench("--bytes", "8:64", "--factor", "8")
        self.assertEqual((result["ranks"], result["wrong"], len(result["hosts"])), (3, 0, 3))
        self.assertIn("MPI", result["mpi"])
        for key in ["baton", "compiler", "processor"]:
            self.assertNotEqual(result[key], "")
        found = [(row["collective"], row["count"]) for row in result["rows"]]
        self.assertEqual({row["asked_bytes"] for row in result["rows"]}, {8, 64})
        # 8 bytes are less than an element per rank, 64 bytes are 5 of them
        self.assertEqual(found, [(c, n) for c in FIVE
                                 for n in ([2, 16] if c in FIVE[:2] else [1, 5])])
        self.assertEqual(len(rows), 12)  # reduce_scatter has two built-ins
        self.assertEqual([row[0] for row in rows[6:10]], ["reduce_scatter"] * 4)
        self.assertEqual([row[8] for row in rows[6:8]],
                         ["MPI_Reduce_scatter_block", "MPI_Reduce_scatter"])

    def test_the_last_word_counts_so_that_scripts_may_have_defaults(self):
        _, result = self.bench("broadcast", "--bytes", "8:64", "--bytes", "16M", "--pairs", "1",
                               "--large-pairs", "2", "--sample-ms", "2")
        [row] = result["rows"]
        self.assertEqual([len(side["samples_us"]) for side in row["sides"]], [2, 2])

    def test_numbers_follow_from_the_samples(self):
        _, result = self.bench("reduce_scatter", "all_reduce", "--bytes", "16M", "--factor", "8")
        messages = result["messages"]["within_host"]
        for row in result["rows"]:
            sides = {side["name"]: side for side in row["sides"]}
            for side in sides.values():
                self.assertEqual(len(side["samples_us"]), 3)  # 16 MiB is large
                self.assertAlmostEqual(
                    side["time_us"] / statistics.median(side["samples_us"]), 1, 3)
            self.assertEqual(sides["baton"]["checked"], 3)
            [exchange] = row["exchanges"]  # of blocks: a third of the size, on 3 ranks
            self.assertEqual((exchange["bytes"], exchange["across_hosts"]), (16777212 // 3, False)
                             if row["collective"] == "reduce_scatter" else ((16 << 20) // 3, False))
            rounds = 2 * messages["latency_us"]
            busiest = row["bytes"] * row["bus_factor"] / exchange["bytes"]
            self.assertAlmostEqual(
                row["lower_bound_us"] / (rounds + busiest * statistics.median(exchange["samples_us"])),
                1, 3)
            share = row["lower_bound_us"] / sides["baton"]["time_us"]
            self.assertAlmostEqual(sides["baton"]["limit_share"] / share, 1, 3)
            self.assertEqual(len(row["ratios"]), len(sides) - 1)
            for ratio in row["ratios"]:
                pairs = [b / a for a, b in zip(sides[ratio["ours"]]["samples_us"],
                                               sides[ratio["against"]]["samples_us"])]
                self.assertAlmostEqual(ratio["ratio"] / statistics.median(pairs), 1, 3)
                self.assertAlmostEqual(ratio["low"] / min(pairs), 1, 3)
                self.assertAlmostEqual(ratio["high"] / max(pairs), 1, 3)
                self.assertEqual(ratio["coverage"], 0.75)
        self.assertIsNone(result["messages"]["across_hosts"])
        self.assertGreater(messages["latency_us"], 0)
        sizes = [exchange["bytes"] for exchange in messages["exchanges"]]
        self.assertEqual(sizes, [64 << 10, 256 << 10, 1 << 20, 4 << 20])

    def test_all_collectives_types_and_roots(self):
        for arguments in [["--dtype", "i32", "--op", "max", "--root", "2"], ["--op", "avg"]]:
            rows, result = self.bench("all", "--bytes", "1K", *arguments)
            self.assertEqual(len(result["rows"]), 11)
            self.assertEqual(len(rows), 12)
            self.assertEqual(result["wrong"], 0)

    def test_choices_and_environment_are_recorded(self):
        _, result = self.bench("all_reduce", "--bytes", "4K", "--algorithm", "ring", "--segment",
                               "256", BATON_WINDOW="3", OMPI_MCA_coll_tuned_priority="31")
        ours = result["rows"][0]["sides"][0]
        self.assertEqual((ours["algorithm"], ours["segment_bytes"]), ("ring", 256))
        self.assertEqual(result["environment"]["ours"], ["BATON_WINDOW=3"])
        self.assertIn("OMPI_MCA_coll_tuned_priority=31", result["environment"]["built_in"])
        self.assertFalse([v for v in result["environment"]["built_in"] if "jobid" in v])

    def test_registry(self):
        mine = ["all_reduce", "--bytes", "4K", "--algorithm", "there_and_back"]
        self.refused("expected an algorithm of all_reduce (", "bench", *mine)
        _, result = self.bench(*mine, "--registry", self.algorithms)
        self.assertEqual(result["rows"][0]["sides"][0]["algorithm"], "there_and_back")
        self.assertEqual(result["wrong"], 0)

    def loaded(self):
        """The environment with the stand-in for a drop-in, before all that is preloaded anyway."""
        return {"LD_PRELOAD": ":".join([self.stand_in, os.environ.get("LD_PRELOAD", "")])}

    def test_drop_in(self):
        counts = self.folder / "counts"
        loaded = self.loaded() | {"STAND_IN_COUNTS": str(counts)}
        _, result = self.bench("all_reduce", "--bytes", "64", **loaded)
        self.assertEqual(counts.read_text(), "0")  # built-ins go by their PMPI_ names
        self.assertEqual(result["drop_in"], self.stand_in)
        self.assertEqual([s["name"] for s in result["rows"][0]["sides"]],
                         ["baton", "MPI_Allreduce"])
        _, result = self.bench("all_reduce", "--bytes", "64", "--through", "both", **loaded)
        self.assertGreater(int(counts.read_text()), 0)
        row = result["rows"][0]
        self.assertEqual([s["name"] for s in row["sides"]],
                         ["baton", "drop-in MPI_Allreduce", "MPI_Allreduce"])
        self.assertEqual([(r["ours"], r["against"]) for r in row["ratios"]],
                         [("baton", "MPI_Allreduce"), ("drop-in MPI_Allreduce", "MPI_Allreduce")])
        rows, _ = self.bench("all_reduce", "--bytes", "64", "--through", "drop-in", **loaded)
        self.assertEqual([row[3] for row in rows], ["drop-in"])

    def test_wrong_results_are_found(self):
        _, result = self.bench("all_reduce", "--bytes", "64", "--through", "drop-in", code=1,
                               **self.loaded(), STAND_IN_WRONG="1")
        self.assertGreater(result["wrong"], 0)

    def test_judge_reads_what_is_written(self):
        targets = self.folder / "targets.txt"
        targets.write_text("where anywhere\nranks 3\n8:64 broadcast ratio 0\n"
                           "64 broadcast ratio 1e6\n1K broadcast ratio 0\n")
        self.bench("broadcast", "--bytes", "8:64", "--factor", "8")
        judge = [JUDGE, targets, self.folder / "bench.json"]
        said = subprocess.run(judge, stdout=subprocess.PIPE, text=True, check=True).stdout
        for verdict in [r"0\.00 .* reached; least, of 2 sizes", r"1000000\.00 .*  not reached$",
                        r"^  1K .*  not measured$", r"^# 1 of 3 reached$"]:
            self.assertRegex(said, re.compile(verdict, re.M))

    def test_errors_are_one_sentence(self):
        for sentence, *arguments in [
                ("--through: expected api, drop-in or both, found \"foo\"", "--through", "foo"),
                ("found no symbol baton_pmpi_version", "--through", "drop-in"),
                ("expected a collective (", "bcast"),
                ("--factor: expected a whole number from 2", "--factor", "1"),
                ("--json: /nowhere/x: expected a file to write, found No such", "--json", "/nowhere/x"),
                ("--registry /nowhere.so: expected a shared object, found /nowhere.so: cannot open",
                 "--registry", "/nowhere.so"),
                ("--registry: expected --through api or both, which use it, found drop-in",
                 "--registry", self.algorithms, "--through", "drop-in"),
                ("--registry excludes --device", "--registry", self.algorithms, "--device", "cuda"),
                ("--device: expected cuda, found \"rocm\"", "--device", "rocm"),
                ("--ranks: expected ranks that are threads, found processes of MPI",
                 "--device", "cuda", "--ranks", "2")]:
            with self.subTest(arguments=arguments):
                self.refused(sentence, "bench", *arguments)


if __name__ == "__main__":
    BenchUnderMpirun.stand_in, BenchUnderMpirun.algorithms = sys.argv[1:3]
    run_tests(BenchUnderMpirun, [*sys.argv[4:], sys.argv[3]])
