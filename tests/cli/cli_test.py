"""Usage: cli_test.py BATON EXAMPLES"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from command import CommandTest, run_tests

COLLECTIVES = ["broadcast", "reduce", "all_reduce", "gather", "scatter", "all_gather",
               "reduce_scatter", "all_to_all", "scan", "exscan", "barrier"]


class Cli(CommandTest):
    def file(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False) as file:
            file.write(text)
        self.addCleanup(Path(file.name).unlink)
        return file.name

    # --- help, list ---------------------------------------------------------------------------

    def test_version(self):
        self.assertRegex(self.output("--version"), r"^baton \d+\.\d+\.\d+\n$")

    def test_results_that_cannot_be_written(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([*self.command, "list"], stdout=full, stderr=subprocess.PIPE,
                                  text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot write the results", done.stderr)

    def test_help_teaches(self):
        self.assertIn("Examples:", self.output("--help"))
        for subcommand in ["list", "run", "bench", "verify", "explain", "simulate", "calibrate",
                           "timeline", "tune"]:
            self.assertIn("Example", self.output(subcommand, "--help"))
        run = self.output("run", "--help")
        for variable in ["BATON_TIMEOUT", "BATON_ALL_REDUCE", "BATON_CHECK"]:
            self.assertIn(variable, run)

    def test_examples_of_help_work(self):
        for subcommand in ["explain", "list"]:
            examples = re.findall(r"^  baton (.*?)(?: >.*)?$",
                                  self.output(subcommand, "--help").split("Examples:")[1], re.M)
            self.assertGreaterEqual(len(examples), 2)
            for example in examples:
                self.assertNotEqual(self.output(*example.split()), "")

    def test_list(self):
        text, rows = self.output("list"), self.json("list")
        self.assertEqual(sorted({row["collective"] for row in rows}), sorted(COLLECTIVES))
        self.assertEqual(text.count("source "), len(rows))
        for row in rows:
            for field in ["rounds", "elements_sent", "source"]:
                self.assertNotEqual(row[field], "", row)
            self.assertRegex(text, rf"\n  {row['algorithm']} +rounds {re.escape(row['rounds'])};")
        self.assertRegex(text, r"neighbor_exchange .*\n +domain needs an even number of ranks")
        self.assertEqual({row["collective"] for row in self.json("list", "scan")}, {"scan"})

    # --- tune ---------------------------------------------------------------------------------

    def test_tune(self):
        table = self.file("")
        self.assertEqual(self.output("tune", "all_reduce", "--ranks", "2", "--bytes", "8:1K",
                                     "--repeats", "1", "--output", table), "")
        text = Path(table).read_text()
        self.assertRegex(text, r"^baton-table 1\ntransport thread\nmachine .+\nhosts 1x2\n"
                               r"all_reduce +0 +\w+ +\d+")
        run = ["run", "all_reduce", "--ranks", "2", "--bytes", "8", "--iters", "1"]
        first = text.split("hosts 1x2\n")[1].split()[2]
        self.assertEqual(self.json(*run, BATON_TABLE=table)["rows"][0]["algorithm"], first)
        printed = self.output("tune", "barrier", "--hosts", "2x2", "--repeats", "1")
        self.assertRegex(printed, r"hosts 2x2\nbarrier +0 +\w+ +0\n$")
        self.refused("expected a table for hosts 1x3 over thread, found one for hosts 1x2 over "
                     "thread", "run", "all_reduce", "--ranks", "3", BATON_TABLE=table)
        self.refused("expected a file to write, found", "tune", "barrier", "--repeats", "1",
                     "--output", "/no/such/folder/table")

    # --- run ----------------------------------------------------------------------------------

    def check_rows(self, result, ranks):
        self.assertEqual(result["ranks"], ranks)
        self.assertEqual(result["wrong"], 0)
        self.assertGreater(len(result["rows"]), 0)
        for row in result["rows"]:
            self.assertEqual(row["wrong"], 0)
            self.assertGreater(row["checked"], 0)
            self.assertGreater(row["time_us"], 0)

    def test_run_every_algorithm(self):
        algorithms = {(row["collective"], row["algorithm"]) for row in self.json("list")}
        result = self.json("run", "all", "--algorithm", "all", "--hosts", "3x2", "--bytes", "1000",
                           "--iters", "2")
        self.check_rows(result, 6)
        ran = {(row["collective"], row["algorithm"]) for row in result["rows"]}
        self.assertEqual(ran, algorithms)

    def test_run_types_and_operations(self):
        for dtype, op in [("i8", "avg"), ("u8", "prod"), ("i32", "logical_xor"), ("u32", "bit_and"),
                          ("i64", "min"), ("u64", "sum"), ("f16", "sum"), ("bf16", "avg"),
                          ("f32", "prod"), ("f64", "max"), ("f64", "sum"), ("f16", "prod"),
                          ("f8e4m3", "sum"), ("f8e4m3", "prod"), ("f8e5m2", "avg"),
                          ("f8e5m2", "max")]:
            for place in [[], ["--in-place"]]:
                with self.subTest(dtype=dtype, op=op, place=place):
                    self.check_rows(self.json("run", "all", "--algorithm", "all", "--ranks", "3",
                                              "--bytes", "777", "--iters", "1", "--dtype", dtype,
                                              "--op", op, "--root", "2", *place), 3)

    def test_run_options(self):
        self.check_rows(self.json("run", "all_reduce", "--algorithm", "ring", "--segment", "64",
                                  "--bytes", "1K:4K", "--delays", "7", "--check", "--iters", "3",
                                  "--warmup", "0"), 4)
        self.check_rows(self.json("run", "--ranks", "1", "--bytes", "0"), 1)
        rows = self.json("run", "--bytes", "8:64", "--iters", "5")["rows"]
        self.assertEqual([row["bytes"] for row in rows], [8, 16, 32, 64])
        self.assertEqual({row["iterations"] for row in rows}, {5})

    def test_bandwidths_are_those_of_nccl_tests(self):
        factors = {"all_reduce": 1.5, "all_gather": 0.75, "reduce_scatter": 0.75,
                   "all_to_all": 0.75, "gather": 0.75, "scatter": 0.75, "broadcast": 1,
                   "reduce": 1, "scan": 1, "exscan": 1}
        for row in self.json("run", "all", "--bytes", "64K", "--iters", "2")["rows"]:
            if row["collective"] == "barrier":
                continue
            self.assertEqual(row["bytes"], 65536)
            shared = row["collective"] in ("gather", "scatter", "all_gather", "reduce_scatter",
                                           "all_to_all")
            self.assertEqual(row["count"], 4096 if shared else 16384)
            self.assertAlmostEqual(row["algbw_GBps"] / (65536 / row["time_us"] / 1e3), 1, 3)
            self.assertAlmostEqual(row["busbw_GBps"] / row["algbw_GBps"],
                                   factors[row["collective"]], 3)

    def test_table(self):
        text = self.output("run", "all", "--algorithm", "all", "--bytes", "256", "--iters", "1",
                           "--prove", "4")
        lines = text.splitlines()
        self.assertTrue(all(line.startswith(("# ", "  ")) for line in lines))
        self.assertRegex(lines[2], r"collective +algorithm +segment +size +count +type +redop +time"
                                   r" +algbw +busbw +#wrong$")
        self.assertRegex(lines[-1], r"^# \d+ algorithms proved for P = 1\.\.4 by \d+ proofs, "
                                    r"0 failures; \d+ results checked on 4 ranks, 0 wrong$")

    def test_progress(self):
        done = self.start("run", "--bytes", "8", "--iters", "1", "--progress")
        self.assertIn("[0/1] all_reduce of 8 B f32 by ", done.stderr)
        self.assertNotIn("[0/1]", done.stdout)

    def test_options_from_the_environment(self):
        rows = self.json("run", "--bytes", "64", BATON_ALL_REDUCE="tree:16")["rows"]
        self.assertEqual((rows[0]["algorithm"], rows[0]["segment_bytes"]), ("tree", 16))

    # --- workloads ----------------------------------------------------------------------------

    def test_gpt2_small(self):
        result = self.json("run", "--workload", "gpt2-small", "--ranks", "1", "--dtype", "u8",
                           "--iters", "1")
        self.check_rows(result, 1)
        self.assertEqual(result["rows"][0]["count"], 124_439_808)
        self.assertEqual(result["rows"][0]["collective"], "all_reduce")

    def test_workload(self):
        file = self.file("baton-workload 1\n"
                         "a all_reduce [10, 2*P] f32 max times 3  # a comment\n"
                         "b all_reduce [20, P*0] f32\n")
        self.refused(f"{file}:3: expected an extent like 2048, 2048/P or 2048*P", "run",
                     "--workload", file)
        file = self.file("baton-workload 1\n"
                         "a all_reduce [10, 2*P] f32 max times 3  # a comment\n"
                         "b all_reduce [80] f32 max\n"
                         "group heads\n"
                         "c all_to_all [2, 12/P, 8, 3] bf16 scatter 2 gather 1\n"
                         "d all_to_all [2, 12, 8/P, 3] bf16 scatter 1 gather -2\n"
                         "e all_gather [4, 3, 2] i64 gather 1\n")
        stem = Path(file).stem
        result = self.json("run", "--workload", file, "--algorithm", "all", "--iters", "1")
        self.check_rows(result, 4)
        self.assertEqual({row["workload"] for row in result["rows"]}, {stem, f"{stem} heads"})
        reduce = [row for row in result["rows"] if row["collective"] == "all_reduce"]
        self.assertEqual({row["count"] for row in reduce}, {4 * 80})
        self.assertEqual({row["op"] for row in reduce}, {"max"})
        exchange = [row for row in result["rows"] if row["collective"] == "all_to_all"]
        self.assertEqual({row["bytes"] for row in exchange}, {2 * 2 * 3 * 8 * 3 + 2 * 2 * 12 * 2 * 3})
        each = self.json("run", "--workload", file, "--algorithm", "all", "--iters", "1", "--each")
        self.assertGreater(len(each["rows"]), len(result["rows"]))
        everything = self.json("run", "all", "--workload", file, "--iters", "1")
        self.check_rows(everything, 4)
        self.assertEqual({row["collective"] for row in everything["rows"]}, set(COLLECTIVES))

    def test_root_of_a_workload(self):
        file = self.file("baton-workload 1\nw broadcast [256] f32 root 2\n")
        for given, root in ([], 2), (["--root", "1"], 1), (["--root", "0"], 0):
            row, = self.json("run", "--workload", file, "--iters", "1", *given)["rows"]
            self.assertEqual(row["root"], root)

    def test_workload_errors(self):
        for line, sentence in [
                ("a all_reduse [1] f32", ":2: expected a collective (broadcast,"),
                ("a all_reduce 17 f32", ":2: expected a shape like [768, 2304], found 17"),
                ("a all_reduce [1, x] f32", ":2: expected an extent like"),
                ("a all_reduce [7/P] f32", ":2: expected an extent that divides by 4 ranks"),
                ("a all_reduce [1] f33", ":2: datatype"),
                ("a all_reduce [1] f32 sum times 0", ":2: expected a number of times"),
                ("a all_reduce [1] f32 plus", ":2: "),
                ("a all_reduce [1] f32 bit_or", ":2: all_reduce: expected an operation"),
                ("a all_reduce [4] f32 scatter 0", ":2: expected dimensions for an all_to_all"),
                ("a all_to_all [4, 6] f32 scatter 1 gather 0", "to divide by 4 ranks, found 6"),
                ("a all_to_all [4, 6] f32 scatter 0 gather 2", "expected a gather dimension"),
                ("a all_reduce", ":2: expected a shape like [768, 2304], found the end")]:
            file = self.file(f"baton-workload 1\n{line}\n")
            with self.subTest(line=line):
                self.refused(sentence, "run", "--workload", file)
        self.refused('expected "baton-workload 1"', "run", "--workload", self.file("hello\n"))
        self.refused("one of gpt2-small, ulysses-32-heads, found", "run", "--workload", "bert")
        self.refused("ulysses-32-heads:7: expected an extent that divides by 3 ranks", "run",
                     "--workload", "ulysses-32-heads", "--ranks", "3")

    # --- schedules of one's own ---------------------------------------------------------------

    def test_own_schedule(self):
        file = str(self.examples / "there_and_back.txt")
        self.assertIn("4 messages in 4 rounds, 0 failures\n",
                      self.output("verify", "--schedule", file))
        self.assertEqual(self.json("verify", "--schedule", file)["findings"], [])
        result = self.json("run", "--schedule", file, "--dtype", "f16")
        self.check_rows(result, 3)
        self.assertEqual(result["findings"], [])
        self.assertIn("after round 1   60 63 66 69   60 63 66 69   60 63 66 69",
                      self.output("explain", "--schedule", file))
        self.refused("expected a schedule for 5 ranks, found one for 3", "run", "--schedule", file,
                     "--ranks", "5")

    def test_flawed_schedules_are_named(self):
        text = (self.examples / "there_and_back.txt").read_text()
        for old, new, flaw in [("send 2 output[0:4]", "send 2 input[0:4]", "contribution"),
                               ("  send 1 input[0:4]\n", "", "unmatched"),
                               ("output[0:4] = input[0:4]\n  send 0",
                                "output[0:4] = input[0:4] left\n  send 0", None)]:
            self.assertIn(old, text)
            file = self.file(text.replace(old, new))
            with self.subTest(flaw=flaw):
                if flaw is None:  # a sum commutes
                    self.output("verify", "--schedule", file)
                    continue
                self.assertIn(f"{flaw}: ", self.output("verify", "--schedule", file, code=1))
                self.assertIn(flaw, [f["flaw"] for f in self.json(
                    "verify", "--schedule", file, code=1)["findings"]])
                self.assertIn(f"{flaw}: ", self.output("run", "--schedule", file, code=1))
                self.assertEqual(self.json("run", "--schedule", file, code=1)["findings"],
                                 self.json("verify", "--schedule", file, code=1)["findings"])
        self.refused(".txt:9: expected", "verify", "--schedule",
                     self.file(text.replace("algorithm ", "algorithms ")))
        self.refused("expected a file that can be read", "run", "--schedule", "/nowhere")

    def test_what_explain_prints_verify_reads(self):
        for arguments in [["all_reduce", "--algorithm", "double_tree", "--ranks", "5"],
                          ["all_gather", "--algorithm", "bruck", "--ranks", "6", "--in-place"],
                          ["scatter", "--algorithm", "binomial", "--root", "2", "--count", "3"],
                          ["broadcast", "--algorithm", "circulant", "--segment", "1"],
                          ["reduce_scatter", "--segment", "2", "--count", "5"],
                          ["barrier"]]:
            with self.subTest(arguments=arguments):
                file = self.file(self.output("explain", *arguments, "--format", "text"))
                self.assertIn("0 failures", self.output("verify", "--schedule", file))
                self.check_rows(self.json("run", "--schedule", file, "--iters", "1"),
                                self.json("verify", "--schedule", file)["ranks"])

    # --- explain, verify ----------------------------------------------------------------------

    def test_walk_throughs(self):
        self.assertIn("before          10       20       30       40\n"
                      "after round 0   10       20       30       20\n"
                      "after round 1   20       20       20       20\n",
                      self.output("explain", "broadcast", "--algorithm", "binomial", "--root", "1",
                                  "--count", "1", "--format", "table"))
        gathered = self.output("explain", "all_gather", "--ranks", "3", "--count", "2", "--values",
                               "0", "10", "1", "11", "2", "12")
        self.assertIn("0 10  1 11  2 12    0 10  1 11  2 12    0 10  1 11  2 12\n", gathered)
        accumulated = self.output("explain", "all_reduce", "--count", "1", "--values", "1", "2",
                                  "3", "4", "--every-step", "--format", "table")
        for partial in [3, 6, 10]:
            self.assertRegex(accumulated, rf"rank 0: fold .*: {partial} ")
        scattered = self.output("explain", "scatter", "--values", "-1", "2.5", "3", "4")
        self.assertRegex(scattered, r"after round \d +-1 +2.5 +3 +4\n$")
        one = self.json("explain", "all_reduce", "--algorithm", "ring", "--rank", "2")
        self.assertEqual([rank["rank"] for rank in one["ranks"]], [2])
        self.assertIn("round 0: ", one["ranks"][0]["words"])
        self.assertIn("after round 0 ", one["walk_through"])

    def test_programs_are_explained_without_a_walk_through(self):
        file = self.file("num_ranks 2\nrank 0 {\nl1: send 8b to 1 tag 0\n}\n"
                         "rank 1 {\nl1: recv 8b from 0 tag 0\n}\n")
        its = self.json("explain", "--goal", file)
        self.assertIsNone(its["walk_through"])
        self.assertEqual(its["collective"], "program")
        self.assertEqual("".join(rank["words"] + "\n" for rank in its["ranks"]),
                         self.output("explain", "--goal", file))

    def test_verify(self):
        text = self.output("verify", "--max-ranks", "4")
        algorithms = len(self.json("list"))
        self.assertRegex(text.splitlines()[-1], rf"^# {algorithms} algorithms for P = 1\.\.4: \d+ "
                                                r"proofs over \d+ messages, 0 failures$")
        one = self.json("verify", "--collective", "scan", "--ranks", "5", "--threads", "1")
        self.assertEqual([a["algorithm"] for a in one["algorithms"]], ["recursive_doubling"])
        self.assertGreater(one["proofs"], 10)
        self.assertEqual(one["failures"], 0)
        fused = self.json("verify", "--collective", "scan", "--ranks", "5", "--fused")
        self.assertEqual(fused["proofs"], 2 * one["proofs"])
        self.assertEqual(fused["failures"], 0)

    def test_fused_groups(self):
        chain = ["explain", "broadcast", "--algorithm", "chain", "--count", "8", "--segment", "2",
                 "--format", "text"]
        file = self.file(self.output(*chain))
        self.assertIn("12 messages in 3 fused groups, 0 failures\n",
                      self.output("verify", "--schedule", file, "--grouped"))
        pipeline = self.output(*chain, "--fused", "--window", "1")
        file = self.file(pipeline)
        self.assertEqual(self.json("verify", "--schedule", file, "--in-groups")["groups"], 6)
        self.assertIn("12 messages in 6 rounds, 0 failures\n",
                      self.output("verify", "--schedule", file))
        together = re.sub(r"round \d+\n", "", pipeline)
        self.assertIn("fused_group: step 2 of rank 1 (send output[0:2] to 2) waits for step 0 of "
                      "rank 1 (recv output[0:2] from 0), but both are in fused group 0\n",
                      self.output("verify", "--schedule", self.file(together), "--in-groups",
                                  code=1))
        self.refused("--in-groups requires --schedule", "verify", "--in-groups")
        self.refused("--window requires --fused", "explain", "all_reduce", "--window", "1")

    # --- status -------------------------------------------------------------------------------

    def test_last_operations_are_those_of_one_job(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        file = Path(folder.name) / "last.trace"
        jobs = [subprocess.Popen([*self.command, "run", "all_reduce", "--ranks", "2", "--bytes", "8", "--iters",
                                  "1000000000"], stdout=subprocess.DEVNULL) for _ in range(2)]
        try:
            numbers = [str(job.pid) for job in jobs]
            until = time.monotonic() + 120
            while any(self.start("status", number).returncode for number in numbers) and time.monotonic() < until:
                time.sleep(0.1)
            said = self.refused("status: -o expects the ranks of one job, found 2; name a process of one, such as",
                                "status", *numbers, "-o", str(file))
            for number in numbers:
                self.assertIn(number, said)
            self.assertFalse(file.exists())
            self.output("status", numbers[0], "-o", str(file))
            self.assertIn("# 2 ranks on 1 host", self.output("timeline", "--from", str(file)))
        finally:
            for job in jobs:
                job.kill()
                job.wait()

    # --- errors -------------------------------------------------------------------------------

    def test_errors_are_one_sentence(self):
        for sentence, *arguments in [
                ("explain, simulate, calibrate, timeline, tune, status), found none",),
                ('found "lost"', "lost"),
                ("bench: expected processes of MPI", "bench"),
                ('--device: expected cuda, found "rocm"', "bench", "--device", "rocm"),
                ("--ranks requires --device", "bench", "--ranks", "2"),
                ("--through excludes --device", "bench", "--device", "cuda", "--through", "api"),
                ("--lost", "run", "--lost"),
                ("expected a collective (broadcast, reduce, all_reduce, gather,", "run", "bcast"),
                ("expected a collective (broadcast,", "list", "bcast"),
                ("expected a collective (broadcast,", "explain", "bcast"),
                ("expected a collective (broadcast,", "verify", "--collective", "bcast"),
                ("expected an algorithm of all_reduce (gather_broadcast, recursive_doubling, ring,",
                 "run", "all_reduce", "--algorithm", "rings"),
                ("neighbor_exchange", "run", "all", "--algorithm", "rings"),
                ("expected an algorithm of scan (recursive_doubling), found", "verify",
                 "--collective", "scan", "--algorithm", "ring"),
                ("expected an algorithm of scan (", "explain", "scan", "--algorithm", "ring"),
                ("all_gather: algorithm neighbor_exchange needs an even number of ranks, found 5",
                 "run", "all_gather", "--algorithm", "neighbor_exchange", "--ranks", "5"),
                ("needs an even number of ranks, found 5", "explain", "all_gather", "--algorithm",
                 "neighbor_exchange", "--ranks", "5"),
                ("--ranks: expected a whole number from 1 to 4096, found \"0\"", "run", "--ranks", "0"),
                ("--ranks: expected a whole number", "run", "--ranks", "four"),
                ("--iters: expected a whole number", "run", "--iters", "-1"),
                ("--delays: expected a whole number of at least 1, found \"0\"", "run", "--delays", "0"),
                *[(f"{option} excludes --schedule", "explain", "--schedule", "x", option, value)
                  for option, value in [("--segment", "1"), ("--root", "1"), ("--hosts", "2x2")]],
                ("--bytes: expected bytes like 8, 128K or 64M, found \"1Q\"", "run", "--bytes", "1Q"),
                ("--bytes: expected FIRST:LAST", "run", "--bytes", "8:4"),
                ("--segment: expected bytes", "run", "--segment", "x"),
                ("f16, bf16, f32, f64", "run", "--dtype", "f8"),
                ("sum, avg, prod", "run", "--op", "plus"),
                ("defined on f32, found bit_or", "run", "--op", "bit_or"),
                ("reduce: expected a root from 0 to 3, found 4", "run", "reduce", "--root", "4"),
                ("expected a root from 0 to 3, found 4", "explain", "scatter", "--root", "4"),
                ("expected a rank from 0 to 3, found 4", "explain", "scatter", "--rank", "4"),
                ("expected the same number of values for each of 4 ranks, found 3", "explain",
                 "all_reduce", "--values", "1", "2", "3"),
                ("expects 4 values of rank 0, found 1", "explain", "all_reduce", "--values", "1",
                 "2", "3", "4"),
                ("--bytes", "run", "--bytes", "8", "--workload", "gpt2-small")]:
            with self.subTest(arguments=arguments):
                self.refused(sentence, *arguments)
        self.refused("BATON_WINDOW: expected a whole number of at least 1", "run", "--bytes", "8",
                     BATON_WINDOW="0")


if __name__ == "__main__":
    Cli.examples = Path(sys.argv[2])
    run_tests(Cli, [sys.argv[1]])
