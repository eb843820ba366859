"""Usage: results_test.py SCRIPTS, the folder of scripts/"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPTS = Path(sys.argv.pop())
sys.path.insert(0, str(SCRIPTS))
sys.dont_write_bytecode = True
import accuracy  # noqa: E402
import accuracy_training  # noqa: E402
import peers  # noqa: E402


def row(size, **samples):
    """One of all_reduce, as `baton bench --json` writes it, with these samples of each side."""
    return {"collective": "all_reduce", "asked_bytes": size, "bytes": size, "count": size // 4,
            "type": "f32", "op": "sum", "root": None, "bus_factor": 1, "lower_bound_us": 1.0,
            "sides": [{"name": name, "ours": name == "baton", "wrong": 0, "samples_us": us,
                       "time_us": us[0], "time_low_us": us[0], "time_high_us": us[-1]}
                      for name, us in samples.items()],
            "ratios": [{"ours": "baton", "against": name, "ratio": 1.5, "low": 1.0, "high": 2.0}
                       for name in samples if name != "baton"]}


def result(*rows):
    return {"mpi": "Open MPI v4", "processor": "a processor", "ranks": 2, "hosts": ["a", "a"],
            "rows": list(rows)}


class Accuracy(unittest.TestCase):
    def cells(self, hosts, size, **times):
        """Of all_reduce, by algorithm: predicted and measured."""
        return [{"hosts": hosts, "collective": "all_reduce", "algorithm": name, "bytes": size,
                 "predicted_us": predicted, "measured_us": measured, "error": predicted / measured - 1}
                for name, (predicted, measured) in times.items()]

    def test_a_pick_is_right_within_a_tenth_of_the_best(self):
        cells = (self.cells(4, 1 << 14, ring=(90, 109), tree=(95, 100))
                 + self.cells(4, 1 << 20, ring=(90, 111), tree=(95, 100)))
        right, cases, wrong = accuracy.right_picks(cells)
        self.assertEqual((right, cases), (1, 2))
        self.assertEqual(wrong, ["all_reduce of 1 MiB on 4 hosts: ring takes 1.11 times what tree does"])

    def test_a_row_sums_up(self):
        times = {f"a{i}": (100 - i, 100) for i in range(21)}  # errors of 0 to 20 %
        self.assertEqual(accuracy.row(8, "16 KiB", self.cells(8, 1 << 14, **times)),
                         "| 8 | 16 KiB | 21 | 10.0 % | 19.0 % | 1 of 1 |")
        self.assertEqual(accuracy.row(8, "16 KiB", self.cells(8, 1 << 14, ring=(90, 100))),
                         "| 8 | 16 KiB | 1 | 10.0 % | 10.0 % | 1 of 1 |")


class AccuracyOfTraining(unittest.TestCase):
    def cells(self, hosts, **times):
        """By layout: predicted and measured."""
        return [{"hosts": hosts, "rate": "1gbit", "emulated": True, "layout": name.replace("_", ", "),
                 "predicted_ms": predicted, "measured_ms": measured, "error": predicted / measured - 1}
                for name, (predicted, measured) in times.items()]

    def test_the_layout_that_is_picked_is_compared_with_the_fastest(self):
        cells = self.cells(2, dp=(90, 110), tp=(95, 100), pp_gpipe=(50, 60))
        choice, longer = accuracy_training.picked(cells)
        self.assertEqual(choice["layout"], "dp")  # schedules are not compared
        self.assertAlmostEqual(longer, 0.1)

    def test_a_row_sums_up(self):
        two, four = self.cells(2, dp=(90, 100), tp=(100, 100)), self.cells(4, dp=(80, 100), tp=(96, 80))
        self.assertEqual(accuracy_training.row("2", two),
                         "| 2 | 2 | 5.0 % | 9.5 % | 10.0 % | dp: 0.0 % longer than the fastest |")
        self.assertEqual(accuracy_training.row("all", two + four),
                         "| all | 4 | 15.0 % | 20.0 % | 20.0 % | 1 of 2 within 10 % |")

    def test_both_sides_of_a_layout(self):
        named = {layout.name(): layout for hosts in (2, 4) for layout in accuracy_training.layouts(hosts)}
        self.assertEqual(len(named), 10 + 16)
        for name, run in (("dp 2, stage 3", ["--parallel", "fsdp", "--stage", "3"]),
                          ("tp 2, sequence parallel", ["--sequence-parallel", "--parallel", "tp"]),
                          ("pp 4, gpipe", ["--schedule", "gpipe", "--parallel", "pp"]),
                          ("tp 2 x sp 2", ["--parallel", "tp-sp", "--tp", "2"]),
                          ("tp 2 x pp 2, 1f1b", ["--schedule", "1f1b", "--parallel", "dp", "--tp", "2", "--pp", "2"]),
                          ("dp 2 x tp 2, stage 3", ["--parallel", "fsdp", "--stage", "3", "--tp", "2"])):
            self.assertEqual(named[name].of_run()[2:], run, name)
        self.assertEqual(named["dp 2 x tp 2, stage 3"].of_prediction()[2:],
                         ["--stage", "3", "--context", "64", "--dp", "2", "--tp", "2"])
        for name, layout in named.items():
            self.assertIn(f"{layout.ranks()}", "2 4", name)


class Peers(unittest.TestCase):
    def test_a_ratio_is_the_median_over_rounds_of_the_ratios_of_medians(self):
        ours = {"baton": "baton over Open MPI"}.get
        runs = []
        for mine, theirs in [([1, 2, 9], [4]), ([2], [2, 2]), ([5], [40])]:
            runs += [(lambda side: ours(side, side), result(row(64, baton=mine, MPI_Allreduce=theirs))),
                     (lambda side: side + " of gloo", result(row(64, ring=[6])))]
        [merged] = peers.merged(runs)
        found = {ratio["against"]: (ratio["low"], ratio["ratio"], ratio["high"])
                 for ratio in merged["ratios"]}
        self.assertEqual(found, {"MPI_Allreduce": (1, 2, 8), "ring of gloo": (1.2, 3, 3)})
        times = {side["name"]: (side["time_low_us"], side["time_us"], side["time_high_us"])
                 for side in merged["sides"]}
        self.assertEqual(times, {"baton over Open MPI": (2, 2, 5), "MPI_Allreduce": (2, 3, 40),
                                 "ring of gloo": (6, 6, 6)})
        self.assertEqual(merged["lower_bound_us"], 1)

    def test_the_table_has_a_line_for_each_side(self):
        rows = peers.merged([(lambda side: "baton over Open MPI" if side == "baton" else side,
                              result(row(2000, baton=[2], MPI_Allreduce=[3])))])
        ours, theirs = [line.split() for line in peers.table(rows).splitlines()[2:]]
        self.assertEqual(ours, "all_reduce 2000 baton over Open MPI 2.00 1.00".split())
        self.assertEqual(theirs, "all_reduce 2000 MPI_Allreduce 3.00 0.67 1.50 1.50 1.50".split())

    def test_rounds_share_the_pairs(self):
        self.assertEqual([peers.share("20", 4), peers.share("6", 4)], ["5", "2"])


class Plot(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def plot(self, *contents, code=0):
        files = []
        for number, content in enumerate(contents):
            files.append(self.folder / f"run{number}.json")
            files[-1].write_text(content if isinstance(content, str) else json.dumps(content))
        done = subprocess.run([SCRIPTS / "plot", *files, "-o", self.folder / "out"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_a_picture_for_each_collective(self):
        other = row(64, baton=[1, 2], MPI_Bcast=[3, 4]) | {"collective": "broadcast"}
        done = self.plot(result(row(64, baton=[1, 2], MPI_Allreduce=[3, 4]),
                                row(128, baton=[1, 2], MPI_Allreduce=[3, 4]), other))
        out = self.folder / "out"
        files = [out / f"{name}.{kind}" for name in ("all_reduce", "broadcast")
                 for kind in ("png", "svg")]
        self.assertEqual(done.stdout.split(), [str(file) for file in files])
        for file in files:
            head = b"\x89PNG" if file.suffix == ".png" else b"<?xml"
            self.assertTrue(file.read_bytes().startswith(head))

    def test_results_of_several_files_are_in_one_picture(self):
        self.plot(result(row(64, baton=[1], MPI_Allreduce=[3])),
                  result(row(64, baton=[2], MPI_Allreduce=[4])))
        picture = (self.folder / "out/all_reduce.svg").read_text()
        for name in ["run0: baton", "run1: baton", "run0: MPI_Allreduce", "run1: MPI_Allreduce"]:
            self.assertIn(f"<!-- {name} -->", picture)

    def test_a_sweep_has_a_line_for_each_algorithm_and_shows_the_best(self):
        rows = [{"algorithm": algorithm, "ranks": 4, "asked_bytes": size, "time_us": us}
                for algorithm, times in {"ring": [9, 10], "tree": [2, 20]}.items()
                for size, us in zip([8, 1024], times)]
        sweep = {"sweep": "bytes", "collective": "all_reduce", "type": "f32", "parameters": "a net",
                 "rows": rows, "best": [{"from": 8, "algorithm": "tree"},
                                        {"from": 400, "algorithm": "ring"}]}
        for kind in ["bytes", "ranks"]:
            self.plot(sweep | {"sweep": kind})
            picture = (self.folder / "out/all_reduce-run0.svg").read_text()
            for text in ["ring", "tree", "a net"]:
                self.assertIn(f"<!-- {text} -->", picture)
        said = self.plot(sweep | {"rows": [{"algorithm": "ring"}]}, code=1).stderr
        self.assertIn("expected what `baton simulate --sweep --json` prints", said)

    def test_files_of_one_name_are_told_apart_by_their_folders(self):
        sweep = {"sweep": "bytes", "collective": "all_reduce", "type": "f32", "parameters": "a net",
                 "rows": [{"algorithm": "ring", "ranks": 4, "asked_bytes": 8, "time_us": 9}],
                 "best": [{"from": 8, "algorithm": "ring"}]}
        run = {"model": "mlp", "sizes": "mlp 2-32-1", "parallel": "none", "ranks": 1, "dtype": "f64",
               "loss": [0.5]}
        for content, names in [
                (sweep, [f"all_reduce-{folder}-run0.{kind}" for folder in "ab" for kind in ("png", "svg")]),
                (run, [f"loss-{folder}-run0.{kind}" for folder in "ab" for kind in ("png", "svg")]),
                (result(row(64, baton=[1])), ["all_reduce.png", "all_reduce.svg"])]:
            files = [self.folder / folder / "run0.json" for folder in "ab"]
            for file in files:
                file.parent.mkdir(exist_ok=True)
                file.write_text(json.dumps(content))
            out = self.folder / "out"
            done = subprocess.run([SCRIPTS / "plot", *files, "-o", out], capture_output=True, text=True)
            self.assertEqual(done.stdout.split(), [str(out / name) for name in names], done.stderr)
        picture = (out / "all_reduce.svg").read_text()
        for name in ["a-run0: baton", "b-run0: baton"]:
            self.assertIn(f"<!-- {name} -->", picture)

    def test_training_has_the_parallel_loss_on_top_of_that_of_one_rank(self):
        run = {"model": "mlp", "sizes": "mlp 2-32-1", "parallel": "dp", "ranks": 3, "dtype": "f64",
               "loss": [0.5, 0.25, 0.2], "reference_loss": [0.5, 0.25, 0.20001]}
        done = self.plot(run, run | {"parallel": "tp", "reference_loss": run["loss"]})
        out = self.folder / "out"
        self.assertEqual(done.stdout.split(), [str(out / f"loss-run{number}.{kind}")
                                               for number in (0, 1) for kind in ("png", "svg")])
        for number, name in enumerate(["dp on 3 ranks", "tp on 3 ranks"]):
            picture = (out / f"loss-run{number}.svg").read_text()
            self.assertLess(picture.rindex("<!-- 1 rank -->"), picture.rindex(f"<!-- {name} -->"))
            self.assertIn("<!-- relative difference -->", picture)
        alone = {key: run[key] for key in run if key != "reference_loss"}
        self.plot(alone | {"parallel": "none", "ranks": 1})
        self.assertNotIn("relative difference", (out / "loss-run0.svg").read_text())
        for wrong in [{"loss": []}, {"loss": [None]}, {"loss": 3}, {"reference_loss": [1]}]:
            said = self.plot(run | wrong, code=1).stderr
            self.assertIn("expected what `baton-train --json` prints", said)

    def test_errors_are_one_sentence(self):
        for sentence, content in [("expected a file of JSON, found", "{"),
                                  ("found no rows", {"rows": []}),
                                  ("found no rows", []),
                                  ("found another form", {"ranks": 2, "hosts": ["a"],
                                                          "rows": [{"algorithm": "ring"}]}),
                                  ("found another form", {"rows": [row(64, baton=[1])]})]:
            said = self.plot(content, code=1).stderr
            self.assertIn(sentence, said)
            self.assertEqual(said.count("\n"), 1, said)


if __name__ == "__main__":
    unittest.main()
