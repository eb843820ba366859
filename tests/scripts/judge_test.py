"""Usage: judge_test.py SCRIPTS, the folder of scripts/"""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPTS = Path(sys.argv.pop())
TARGETS = SCRIPTS.parent / "tests/bench"


def row(collective, size, *ratios, bound=None, time=(1, 1, 1), through=("api",)):
    """A row of `baton bench --json`: `ratios` has (against, median, low, high)."""
    ours = [{"name": f"baton {way}", "ours": True, "through": way, "time_us": time[0],
             "time_low_us": time[1], "time_high_us": time[2]} for way in through]
    theirs = [{"name": against, "ours": False, "through": None, "time_us": 1, "time_low_us": 1,
               "time_high_us": 1} for against, *_ in ratios]
    return {"collective": collective, "asked_bytes": size, "lower_bound_us": bound,
            "sides": ours + theirs,
            "ratios": [{"ours": side["name"], "against": against, "ratio": median, "low": low,
                        "high": high} for side in ours for against, median, low, high in ratios]}


class Judge(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.targets, self.result = (Path(folder.name, name) for name in ("f", "result.json"))

    def start(self, targets, rows, *arguments, code=0, ranks=2, hosts=("a", "a")):
        self.targets.write_text(targets)
        self.result.write_text(json.dumps({"ranks": ranks, "hosts": hosts, "rows": rows}))
        done = subprocess.run([SCRIPTS / "judge", self.targets, self.result, *arguments],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def judged(self, targets, *rows):
        """The lines of the table, without its head and its end."""
        return self.start(targets, rows).stdout.splitlines()[2:-1]

    def refused(self, sentence, *arguments, **how):
        done = self.start(*arguments, code=2, **how)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn(sentence, done.stderr)

    def test_files_are_read_with_comments_units_and_several_ranges(self):
        text = self.start("# a comment\nwhere 2 ranks, here\nranks 2 3\nhosts 1\n\n"
                          "8:4K broadcast ratio 0.8  # small\n"
                          "1M reduce_scatter ratio MPI_Reduce_scatter 1.15\n"
                          "16M all share 92%\n"
                          "8:16K,1M,4M:16M all geometric_mean 1.3\n", []).stdout
        self.assertTrue(text.startswith("# required: 2 ranks, here; reached: "))
        for line in [r"8:4K +broadcast +ratio +- +0\.80 +- +- +-  not measured",
                     r"1M +reduce_scatter +ratio to MPI_Reduce_scatter +- +1\.15 ",
                     r"16M +all +share of the limit +- +0\.92 ",
                     r"8:16K,1M,4M:16M +all +geometric mean of ratios +- +1\.30 "]:
            self.assertRegex(text, re.compile(rf"^  {line}", re.M))
        self.assertTrue(text.endswith("\n# 0 of 4 reached\n"))

    def test_what_is_wrong_with_a_file_is_said_with_its_line(self):
        for text, sentence in [
                ("\n8 broadcast rat 1", "f:2: expected ratio, share or geometric_mean, found"),
                ("8 broadcast ratio fast", 'f:1: expected the number required, found "fast"'),
                ("8 broadcast ratio 1 2", 'f:1: expected the end of the line, found "2"'),
                ("4K:8 broadcast ratio 1", "f:1: expected sizes FIRST:LAST"),
                ("8Q broadcast ratio 1", 'f:1: expected a size such as 4K, found "8Q"'),
                ("ranks 2.5\n8 all ratio 1", 'f:1: expected a whole number, found "2.5"'),
                ("8 bcast ratio 1", "f:1: expected a collective (broadcast, reduce,"),
                ("ranks 2", "f: expected lines that require something, found none")]:
            with self.subTest(text=text):
                self.refused(sentence, text, [])

    def test_targets_are_for_some_numbers_of_ranks_and_hosts(self):
        text = "ranks 2 3\nhosts 1\n8 all ratio 1\n"
        self.start(text, [], ranks=3, hosts=["a"] * 3)
        self.refused("f: expected 2 or 3 ranks, found 4", text, [], ranks=4)
        self.refused("f: expected 1 hosts, found 2", text, [], hosts=["a", "b"])

    def test_files_that_cannot_be_used_are_one_sentence(self):
        for arguments, sentence in [
                (["/nowhere"], 'expected a file that can be read, found "/nowhere"'),
                ([self.targets, "/nowhere"], 'expected a file that can be read, found "/nowhere"'),
                ([self.targets, self.targets], "expected a file of JSON, found")]:
            self.targets.write_text("8 all ratio 1\n")
            done = subprocess.run([SCRIPTS / "judge", *arguments], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(sentence, done.stderr)

    def test_the_lower_bound_at_every_size_is_at_most_0_03_below_the_number(self):
        rows = [row("broadcast", 8, ("MPI_Bcast", 1.2, 0.775, 1.3)),
                row("broadcast", 64, ("MPI_Bcast", 0.79, 0.772, 0.8)),
                row("broadcast", 1 << 20, ("MPI_Bcast", 0.5, 0.4, 0.6)),
                row("reduce_scatter", 8, ("MPI_Reduce_scatter_block", 4, 3.9, 4.1),
                    ("MPI_Reduce_scatter", 0.9, 0.8, 1))]
        for target, verdict in [
                ("8:4K broadcast ratio 0.8", "0.79   0.77   0.80  reached; least, of 2 sizes, at 64 B"),
                ("8:4K broadcast ratio 0.81", "  not reached; least, of 2 sizes, at 64 B"),
                ("8:1M broadcast ratio 0.8", "  not reached; least, of 3 sizes, at 1.0 MiB"),
                ("8,64:4K broadcast ratio 0.8", "  reached; least, of 2 sizes, at 64 B"),
                ("8,128:4K broadcast ratio 0.8", "1.20   0.78   1.30  reached"),
                ("8 reduce_scatter ratio 3.9", "4.00   3.90   4.10  reached"),
                ("8 reduce_scatter ratio MPI_Reduce_scatter 1", "  not reached"),
                ("16 broadcast ratio 0.1", "  not measured"),
                # of medians, and of bounds
                ("8:64 broadcast geometric_mean 0.8", "0.97   0.77   1.02  reached")]:
            with self.subTest(target=target):
                [line] = self.judged(target, *rows)
                self.assertTrue(line.endswith(verdict), line)

    def test_shares_of_the_limit_are_judged_likewise(self):
        [line] = self.judged("8 all_reduce share 92%", row(
            "all_reduce", 8, ("MPI_Allreduce", 1, 1, 1), bound=0.95, time=(1, 0.98, 1.05)))
        self.assertRegex(line, r" 0\.92 +0\.95 +0\.90 +0\.97  reached$")
        [line] = self.judged("8 all_reduce share 92%", row("all_reduce", 8, ("MPI_Allreduce", 1, 1, 1)))
        self.assertRegex(line, r" 0\.92 +0\.00 +0\.00 +0\.00  not reached$")  # there is no limit

    def test_each_way_to_our_collectives_is_judged_for_itself(self):
        lines = self.judged("8 all_reduce ratio 1", row(
            "all_reduce", 8, ("MPI_Allreduce", 1, 1, 1), through=("api", "drop-in")))
        self.assertEqual([line.split()[3] for line in lines], ["api", "drop-in"])

    def test_strict_fails_unless_all_are_reached(self):
        rows = [row("broadcast", 8, ("MPI_Bcast", 1, 1, 1))]
        self.start("8 broadcast ratio 1", rows, "--strict")
        done = self.start("8 broadcast ratio 1\n8 scan ratio 1", rows, "--strict", code=1)
        self.assertTrue(done.stdout.endswith("# 1 of 2 reached\n"))

    def test_the_targets_that_come_with_the_sources_are_read(self):
        files = sorted(TARGETS.glob("targets-*.txt"))
        self.assertGreaterEqual(len(files), 3)
        for file in files:
            subprocess.run([SCRIPTS / "judge", file], check=True)
            # none is for 3 ranks on one host
            self.refused(f"f: expected ", file.read_text(), [], ranks=3, hosts=["a"] * 3)


if __name__ == "__main__":
    unittest.main()
