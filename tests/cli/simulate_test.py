"""`baton simulate`: one prediction, all algorithms, sweeps with their crossover points, errors.

Usage: simulate_test.py PROGRAM
"""

import sys
import tempfile
from pathlib import Path

from command import CommandTest, run_tests

# 1000 ns on the way, 100 to send, 200 to take, 1 a byte on the wire.
NETWORK = """baton-network 1
name plain
across
latency 1000
send 0 100
receive 0 200
wire 1K 1024
"""


class Simulate(CommandTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "plain.txt"
        self.file.write_text(NETWORK)

    def simulate(self, *arguments):
        return self.json("simulate", *arguments, "--network", str(self.file))

    def test_one_algorithm(self):
        found = self.simulate("broadcast", "--algorithm", "binomial", "--ranks", "8", "--bytes",
                              "100", "--per-host", "1", "--segment", "0")
        self.assertEqual((found["collective"], found["ranks"], found["hosts"]), ("broadcast", 8, 8))
        [row] = found["rows"]
        # Three messages one after the other, each 1400 and what it is long; no rank sends two at once.
        self.assertEqual(row["time_ns"], 3 * 1400)
        self.assertEqual(row["finish_ns"]["max"], row["time_ns"])
        self.assertEqual(row["messages"], 7)
        self.assertEqual(row["host_link_bytes"][0], {"sent": 300, "received": 0})
        self.assertEqual(row["host_link_bytes"][7], {"sent": 0, "received": 100})
        self.assertEqual(row["critical_path"]["messages"], 3)
        self.assertEqual(row["critical_path"]["ranks"], [0, 4, 6, 7])

    def test_messages_of_the_critical_path(self):
        for ranks in 2, 3, 4, 8:  # 2 (P - 1) follow each other
            for network in str(self.file), "shared-memory", "virtual-cluster-1gbit":
                for size in "64", "1M":
                    with self.subTest(ranks=ranks, network=network, size=size):
                        [row] = self.json("simulate", "all_reduce", "--algorithm", "ring", "--ranks",
                                          str(ranks), "--bytes", size, "--segment", "0", "--network",
                                          network)["rows"]
                        self.assertEqual(row["critical_path"]["messages"], 2 * (ranks - 1))

    def test_computations_of_the_critical_path(self):
        goal = self.file.with_name("two.goal")
        goal.write_text("num_ranks 2\nrank 0 {\nl1: calc 500\nl2: send 8b to 1\nl2 requires l1\n}\n"
                        "rank 1 {\nl1: recv 8b from 0\nl2: calc 700\nl2 requires l1\n}\n")
        its = ["--goal", str(goal), "--network", str(self.file)]
        [row] = self.json("simulate", *its)["rows"]
        path = {key: row["critical_path"][key] for key in ("messages", "folds", "copies", "computations")}
        self.assertEqual(path, {"messages": 1, "folds": 0, "copies": 0, "computations": 2})
        self.assertIn("critical path  1 message, 2 computations, by ranks 0 > 1\n",
                      self.output("simulate", *its))

    def test_times_as_people_read_them(self):
        for latency, time in (999_400, "999 us"), (999_600, "0.9996 ms"):
            self.file.write_text(f"baton-network 1\nname far\nacross\nlatency {latency}\n")
            self.assertIn(f"\ntime           {time}\n",
                          self.output("simulate", "broadcast", "--algorithm", "linear", "--ranks", "2",
                                      "--bytes", "1", "--network", str(self.file)))

    def test_hosts(self):
        one = self.simulate("all_to_all", "--algorithm", "pairwise", "--ranks", "4")
        two = self.simulate("all_to_all", "--algorithm", "pairwise", "--ranks", "4", "--hosts", "2x2")
        self.assertEqual((one["hosts"], two["hosts"]), (1, 2))
        self.assertEqual(one["rows"][0]["most_host_link_bytes"]["sent"], 0)
        self.assertEqual(two["rows"][0]["most_host_link_bytes"]["sent"], 4 * (256 << 10))
        self.assertLess(one["rows"][0]["time_ns"], two["rows"][0]["time_ns"])

    def test_number_of_ranks(self):
        for arguments, ranks, hosts in [
                ([], 8, 1),
                (["--hosts", "2x2"], 4, 2),
                (["--hosts", "0,1,1"], 3, 2),
                (["--ranks", "4", "--hosts", "2x2"], 4, 2),
                (["--ranks", "3"], 3, 1)]:
            with self.subTest(arguments=arguments):
                found = self.simulate("all_gather", "--algorithm", "ring", *arguments)
                self.assertEqual((found["ranks"], found["hosts"]), (ranks, hosts))
        sweep = self.simulate("all_gather", "--algorithm", "ring", "--sweep", "bytes=8:16", "--hosts", "2x2")
        self.assertEqual([row["ranks"] for row in sweep["rows"]], [4, 4])

    def test_all_algorithms_best_first(self):
        rows = self.simulate("all_gather", "--algorithm", "all", "--ranks", "6")["rows"]
        self.assertIn("neighbor_exchange", [row["algorithm"] for row in rows])
        times = [row["time_ns"] for row in rows]
        self.assertEqual(times, sorted(times))
        text = self.output("simulate", "all_gather", "--algorithm", "all", "--ranks", "6",
                           "--network", str(self.file))
        for row in rows:
            self.assertIn(f"\n{row['algorithm']} ", text)

    def test_segments(self):
        arguments = ["broadcast", "--algorithm", "chain", "--ranks", "4", "--bytes", "1M"]
        whole, pieces, best = (self.simulate(*arguments, "--segment", s)["rows"][0]
                               for s in ["0", "64K", "best"])
        self.assertEqual((whole["messages"], pieces["messages"]), (3, 48))
        self.assertLess(pieces["time_ns"], whole["time_ns"])
        self.assertLessEqual(best["time_ns"], whole["time_ns"])
        self.assertGreater(best["segment_bytes"], 0)
        narrow = self.simulate(*arguments, "--segment", "16K", "--window", "1")["rows"][0]
        wide = self.simulate(*arguments, "--segment", "16K", "--window", "2")["rows"][0]
        self.assertLessEqual(wide["time_ns"], narrow["time_ns"])

    def test_sweep_over_bytes(self):
        found = self.simulate("all_reduce", "--sweep", "bytes=8:1M", "--ranks", "8")
        self.assertEqual(found["sweep"], "bytes")
        sizes = sorted({row["asked_bytes"] for row in found["rows"]})
        self.assertEqual(sizes, [8 << i for i in range(18)])
        for size in sizes:
            times = {row["algorithm"]: row["time_us"] for row in found["rows"]
                     if row["asked_bytes"] == size}
            winner = [w["algorithm"] for w in found["best"] if w["from"] <= size][-1]
            self.assertEqual(times[winner], min(times.values()), f"{size} B")
        self.assertGreater(len(found["best"]), 1)
        text = self.output("simulate", "all_reduce", "--sweep", "bytes=8:1M", "--ranks", "8",
                           "--network", str(self.file))
        for winner in found["best"]:
            self.assertIn(f"{winner['algorithm']} from ", text)

    def test_sweep_over_ranks(self):
        found = self.simulate("all_reduce", "--sweep", "ranks=2:32", "--algorithm", "ring", "--bytes",
                              "1K")
        self.assertEqual([row["ranks"] for row in found["rows"]], [2, 4, 8, 16, 32])
        times = [row["time_us"] for row in found["rows"]]
        self.assertEqual(times, sorted(times))
        self.assertEqual(found["best"], [{"from": 2, "algorithm": "ring"}])

    def test_own_schedule(self):
        file = Path(self.file).with_name("ring.txt")
        file.write_text(self.output("explain", "all_reduce", "--algorithm", "ring", "--ranks", "4",
                                    "--count", "256", "--format", "text"))
        [own] = self.simulate("--schedule", str(file))["rows"]
        [ours] = self.simulate("all_reduce", "--algorithm", "ring", "--ranks", "4", "--bytes", "1K",
                               "--segment", "0")["rows"]
        self.assertEqual(own["time_ns"], ours["time_ns"])

    def test_thousands_of_ranks(self):
        [row] = self.simulate("all_reduce", "--algorithm", "circulant", "--ranks", "4096", "--bytes",
                              "16K", "--segment", "0")["rows"]
        self.assertEqual(row["messages"], 4096 * 24)
        self.assertIsNone(row["critical_path"])

    def test_calls_in_a_row(self):
        arguments = ["all_reduce", "--algorithm", "ring", "--ranks", "4", "--segment", "0"]
        [one], [ten] = (self.simulate(*arguments, "--calls", calls)["rows"] for calls in ["1", "10"])
        for field in ["events", "simulating_seconds", "seconds", "events_per_second"]:  # of all calls
            del one[field], ten[field]
        self.assertEqual(one, ten)  # everybody waits for everybody
        for algorithm in "ring", "all":
            arguments[2] = algorithm
            one, ten = (self.output("simulate", *arguments, "--network", str(self.file), "--calls", calls)
                        .split("\nsimulated ")[0] for calls in ["1", "10"])
            lines = [line for line in one.splitlines() if line.startswith(("ring", "time", "ranks", "mess"))]
            self.assertNotEqual(lines, [])
            for line in lines:
                self.assertIn(line, ten.splitlines())

    def test_measured_beside_predicted(self):
        found = self.simulate("all", "--algorithm", "all", "--ranks", "3", "--bytes", "1K:64K",
                              "--factor", "64", "--measure", "3")
        self.assertEqual((found["ranks"], found["runs"]), (3, 3))
        cells = {(row["collective"], row["algorithm"], row["bytes"]) for row in found["rows"]}
        self.assertEqual(len(cells), len(found["rows"]))
        self.assertGreater(len(cells), 60)
        for row in found["rows"]:
            self.assertEqual(len(row["samples_us"]), 3)
            self.assertGreater(row["measured_us"], 0)
            expected = row["predicted_us"] / row["measured_us"]
            # Numbers are printed with six digits.
            self.assertAlmostEqual(row["error"], expected - 1, delta=1e-5 * max(1, expected))
        self.assertEqual(found["picks"], len({cell[::2] for cell in cells}))
        self.assertLessEqual(found["good_picks"], found["picks"])
        self.assertLessEqual(found["median_error"], found["error_95"])

    def test_errors_are_one_sentence(self):
        bad = self.file.with_name("bad.txt")
        bad.write_text(NETWORK + "speed 3\n")
        for sentence, *arguments in [
                ("expected a collective (broadcast, reduce, ", "nothing"),
                ("expected an algorithm of all_reduce (gather_broadcast, ", "--algorithm", "x"),
                ("all_gather: algorithm neighbor_exchange needs an even number of ranks, found 5",
                 "all_gather", "--algorithm", "neighbor_exchange", "--ranks", "5"),
                ("network: expected a file or one of infiniband-100g, nvlink, ", "--network", "x"),
                (f"{bad}:8: expected latency, post, ", "--network", str(bad)),
                ("--hosts: expected the hosts of 8 ranks, found those of 4", "--ranks", "8", "--hosts",
                 "2x2"),
                ("expected a root from 0 to 7, found 8", "--root", "8"),
                ("--sweep: expected ranks=FIRST:LAST or bytes=FIRST:LAST, found \"x\"", "--sweep",
                 "x"),
                ("--sweep: expected ranks=FIRST:LAST with 1 <= FIRST", "--sweep", "ranks=4:2"),
                ("--sweep: expected --per-host for several", "--sweep", "ranks=2:4", "--hosts",
                 "2x2"),
                ("--segment: expected bytes", "--segment", "x"),
                ("--bytes: expected one size, unless with --measure, found several", "--bytes", "8:64M"),
                ("--factor requires --measure", "--sweep", "bytes=8:64M", "--factor", "4"),
                ("--calls excludes --measure", "--measure", "1", "--calls", "10"),
                ("--per-host excludes --measure", "--measure", "1", "--per-host", "2"),
                ("--segment excludes --schedule", "--schedule", "x", "--segment", "16K"),
                ("--root excludes --schedule", "--schedule", "x", "--root", "1"),
                ("simulate: expected at least ", "all_to_all", "--algorithm", "pairwise", "--ranks",
                 "1000000")]:
            with self.subTest(arguments=arguments):
                self.refused(sentence, "simulate", *arguments)


if __name__ == "__main__":
    run_tests(Simulate, [sys.argv[1]])
