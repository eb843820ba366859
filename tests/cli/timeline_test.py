"""Usage: timeline_test.py BATON EXAMPLES"""

import json
import os
import re
import sys
import tempfile
import unittest
from pathlib import Path

import traces
from command import CommandTest, run_tests


class Timeline(CommandTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def drawn(self, *arguments, ending="svg", **variables):
        file = self.folder / f"picture.{ending}"
        self.assertEqual(self.output("timeline", *arguments, "-o", str(file), **variables), "")
        return file.read_bytes().decode(errors="replace")

    def test_every_ending(self):
        begins = {"svg": "<svg ", "drawio": "<mxfile ", "json": '{"displayTimeUnit"',
                  "txt": "all_reduce by ring, 4 ranks, sum\n", "goal": "num_ranks 4\n",
                  "xml": '<algo name="ring"', "pdf": "%PDF-", "png": "\ufffdPNG"}
        help_text = self.output("timeline", "--help")
        for ending, begin in begins.items():
            with self.subTest(ending=ending):
                text = self.drawn("all_reduce", "--algorithm", "ring", ending=ending)
                self.assertTrue(text.startswith(begin), text[:50])
                self.assertIn(f".{ending} (", help_text)

    def test_a_walk_through_is_that_of_explain(self):
        for op in "sum", "max", "prod", "avg":
            its = ["all_reduce", "--algorithm", "ring", "--ranks", "2", "--count", "2", "--op", op]
            text = self.drawn(*its, ending="txt")
            self.assertEqual(text, self.output("explain", *its, "--format", "table"))
            self.assertTrue(text.startswith(f"all_reduce by ring, 2 ranks, {op}\n"), text)
        trace = str(self.folder / "max.trace")
        self.output("run", "all_reduce", "--algorithm", "ring", "--ranks", "2", "--bytes", "8", "--op", "max",
                    "--trace", trace)
        text = self.drawn("--from", trace, ending="txt")
        self.assertTrue(text.startswith("all_reduce by ring, 2 ranks, max\n"), text)

    def test_examples_of_help_work(self):
        examples = re.findall(r"^  baton (timeline .*) -o (\S+)$",
                              self.output("timeline", "--help").split("Examples:")[1], re.M)
        self.assertGreaterEqual(len(examples), 3)
        for example, file in examples:
            if "--from" in example:  # a recording that is not there
                continue
            self.output(*example.split(), "-o", str(self.folder / file))
            self.assertGreater((self.folder / file).stat().st_size, 1000)

    def test_sizes_types_hosts(self):
        svg = self.drawn("all_reduce", "--algorithm", "ring", "--ranks", "5", "--bytes", "1M",
                         "--dtype", "f64", "--op", "max", "--segment", "64K")
        for text in ("5 ranks · 1.0 MiB · f64 max · pieces of 64.0 KiB", "c3.1", "8 rounds"):
            self.assertIn(text, svg)
        self.assertIn("all_gather by linear",
                      self.drawn("all_gather", "--bytes", "1M", "--ranks", "3"))
        self.assertIn(">host 1<", self.drawn("all_reduce", "--algorithm", "hierarchical",
                                             "--hosts", "2x2"))
        self.assertIn(">mine &amp; yours<", self.drawn("barrier", "--title", "mine & yours"))

    def test_bytes_below_an_element_are_one(self):
        one = self.drawn("broadcast", "--bytes", "4")
        self.assertEqual(one.count('class="arrow"'), 3)
        self.assertEqual(self.drawn("broadcast", "--bytes", "2"), one)
        self.assertEqual(self.drawn("broadcast", "--bytes", "0").count('class="arrow"'), 0)

    def test_part_of_it(self):
        svg = self.drawn("all_reduce", "--algorithm", "ring", "--ranks", "4", "--ranks-shown",
                         "0-1,3", "--from-time", "1", "--to-time", "1.9")
        self.assertEqual(sorted(re.findall(r'data-from="(\d)" data-to="(\d)"', svg)),
                         [("0", "1"), ("3", "0")])
        self.assertIn('class="critical"', self.drawn("broadcast", "--critical-path"))

    def test_own_schedule(self):
        mine = self.folder / "mine.txt"
        mine.write_text(self.output("explain", "broadcast", "--algorithm", "binomial",
                                    "--format", "text"))
        self.assertEqual(self.drawn("--schedule", str(mine)).count('class="arrow"'), 3)

    def test_files_are_predicted_on_several_hosts(self):
        ring = ["all_reduce", "--algorithm", "ring", "--ranks", "4"]
        files = {f"--{form}": self.folder / f"ring.{form}" for form in ("schedule", "msccl", "goal")}
        files["--schedule"].write_text(self.output("explain", *ring, "--format", "text"))
        for form, ending in ("--msccl", "xml"), ("--goal", "goal"):
            files[form].write_text(self.drawn(*ring, ending=ending))
        for form, file in files.items():
            for hosts in [], ["--hosts", "2x2"]:
                with self.subTest(form=form, hosts=hosts):
                    its = [form, str(file), *hosts, "--network", "virtual-cluster-1gbit"]
                    self.assertIn(f"4 ranks on {2 if hosts else 4} hosts", self.drawn(*its))
                    events = json.loads(self.drawn(*its, ending="json"))["traceEvents"]
                    end = max(event["ts"] + event.get("dur", 0) for event in events if "ts" in event)
                    time = self.json("simulate", *its)["rows"][0]["time_ns"]
                    self.assertAlmostEqual(1000 * end, time, delta=100)  # before the first event
        self.refused("--hosts: expected the hosts of 4 ranks, found those of 6", "timeline", "--schedule",
                     str(files["--schedule"]), "--hosts", "3x2", "-o", str(self.folder / "x.svg"))

    def test_recording(self):
        trace = str(self.folder / "run.trace")
        self.output("run", "all_reduce", "--algorithm", "ring", "--ranks", "3", "--bytes", "4K",
                    "--iters", "2", "--trace", trace)
        svg = self.drawn("--from", trace)
        self.assertIn(">all_reduce by ring<", svg)
        self.assertEqual(svg.count('class="arrow"'), 12)
        self.assertIn(">measured; one clock<", svg)
        self.assertEqual(self.drawn("--from", trace, "--operation", "1").count('class="arrow"'), 12)
        every = self.drawn("--from", trace, "--operation", "all")
        calls = 1 + int(re.search(r">all_reduce by ring and (\d+) operations? more<", every)[1])
        self.assertEqual(every.count('class="arrow"'), 12 * calls)
        events = json.loads(self.drawn("--from", trace, ending="json"))["traceEvents"]
        self.assertEqual(len([e for e in events if e["ph"] == "s"]), 12 * calls)
        late = self.output("timeline", "--from", trace, "--stragglers")
        self.assertEqual(sum(map(int, re.findall(r"^  rank [012] entered last in (\d+) of ", late, re.M))),
                         sum(map(int, re.findall(r", (\d+) calls?:$", late, re.M))))
        self.assertRegex(late, r"(?m)^all_reduce, \d+ calls:$")
        self.refused(f"expected a number below {calls}, found 9999", "timeline", "--from", trace, "--operation", "9999",
                     "-o", str(self.folder / "x.svg"))
        self.refused("nowhere", "timeline", "--from", str(self.folder / "nowhere"), "-o",
                     str(self.folder / "x.svg"))

    def test_operations_that_lack_events_have_no_duration(self):
        # The root has 7 events of each broadcast, the others have one.
        for events, row in (700, r" 302 +100 +broadcast .* [\d.]+"), (6, r" 6 +0 +broadcast .* -"):
            trace = str(self.folder / f"{events}.trace")
            self.output("run", "broadcast", "--algorithm", "linear", "--ranks", "8", "--bytes", "8",
                        "--iters", "300", "--trace", trace, BATON_TRACE_EVENTS=str(events))
            with self.subTest(events=events):
                self.assertRegex(self.output("timeline", "--from", trace), rf"(?m)^ +0 +{row}$")
        self.refused("expected a recording with a complete operation, found 6 operations with missing steps",
                     "timeline", "--from", trace, "-o", str(self.folder / "x.svg"))

    def test_operations_of_which_a_part_lacks_have_no_duration(self):
        trace = self.folder / "run.trace"
        self.output("run", "all_reduce", "--algorithm", "ring", "--ranks", "4", "--bytes", "64",
                    "--iters", "3", "--trace", str(trace))
        parts = traces.parts(trace.read_bytes())
        whole, one = self.folder / "whole", self.folder / "one"
        whole.write_bytes(traces.written(parts[0] + parts[1] + parts[2]))
        one.write_bytes(traces.written(parts[3]))
        row = r"(?m)^ +0 +(\d+) +(\d+) +all_reduce .* ([\d.]+|-)$"
        [(calls, complete, median)] = re.findall(row, self.output("timeline", "--from", str(whole), str(one)))
        self.assertEqual(calls, complete)
        self.assertNotEqual(median, "-")
        text = self.output("timeline", "--from", str(whole))
        self.assertIn("# 4 ranks on 1 host, one clock, whole parts of 3 of 4 ranks\n", text)
        self.assertEqual(re.findall(row, text), [(calls, "0", "-")])
        # Neither where events and plans of a rank are damaged.
        one.write_bytes(traces.written(parts[3][:2]))
        done = self.start("timeline", "--from", str(whole), str(one))
        self.assertIn("rank 3: expected the end of its part", done.stderr)
        self.assertIn(", whole parts of 3 of 4 ranks\n", done.stdout)
        self.assertEqual(re.findall(row, done.stdout), [(calls, "0", "-")])

    def test_stragglers_are_those_of_whole_operations(self):
        none = "no collective of which all ranks' events were recorded\n"
        for events, expected in (100, None), (7, none):
            trace = str(self.folder / f"{events}.trace")
            self.output("run", "all_reduce", "--algorithm", "ring", "--ranks", "4", "--bytes", "64",
                        "--iters", "30", "--trace", trace, BATON_TRACE_EVENTS=str(events))
            complete = sum(map(int, re.findall(r"(?m)^ +\d+ +\d+ +(\d+) +all_reduce ",
                                               self.output("timeline", "--from", trace))))
            late = self.output("timeline", "--from", trace, "--stragglers")
            if expected:
                self.assertEqual((complete, late), (0, expected))
            else:
                self.assertIn(f"all_reduce, {complete} calls:\n", late)

    def test_prediction(self):
        svg = self.drawn("all_reduce", "--algorithm", "ring", "--bytes", "64K", "--network",
                         "virtual-cluster-1gbit")
        self.assertIn(">predicted: virtual-cluster-1gbit: ", svg)
        self.assertIn("4 ranks on 4 hosts · 64.0 KiB · f32 sum", svg)
        self.assertEqual(svg.count('class="arrow"'), 24)
        self.assertEqual(svg, self.drawn("all_reduce", "--algorithm", "ring", "--bytes", "64K",
                                         "--network", "virtual-cluster-1gbit"))

    def test_prediction_over_recording(self):
        trace = str(self.folder / "run.trace")
        self.output("run", "all_reduce", "--algorithm", "ring", "--ranks", "3", "--bytes", "4K",
                    "--iters", "2", "--trace", trace)
        svg = self.drawn("--from", trace, "--network", "shared-memory")
        self.assertEqual(svg.count('class="arrow"'), 24)
        self.assertIn("prediction and measurement differ by ", svg)
        self.assertRegex(svg, r"ends \d.* (earlier|later) than predicted")
        self.refused("expected one operation of the recording (--operation N), found ", "timeline", "--from", trace,
                     "--operation", "all", "--network", "shared-memory", "-o",
                     str(self.folder / "x.svg"))

    def test_prediction_over_a_recording_of_some_ranks(self):
        two, trace = self.folder / "two.trace", str(self.folder / "run.trace")
        self.output("run", "all_reduce", "--algorithm", "ring", "--ranks", "2", "--bytes", "4K",
                    "--iters", "1", "--trace", str(two))
        Path(trace).write_bytes(traces.moved(two.read_bytes(), 2, 4))
        its = ["--from", trace, "--network", "shared-memory"]
        arrows = r'data-from="(\d)" data-to="(\d)"'
        for shown in [], ["--ranks-shown", "2-3"]:
            svg = self.drawn(*its, *shown)
            predicted, measured = svg.split(">measured<")
            self.assertEqual(sorted(re.findall(arrows, predicted)), [("2", "3")] * 2 + [("3", "2")] * 2)
            self.assertEqual(sorted(re.findall(arrows, measured)), sorted(re.findall(arrows, predicted)))
            names = [f">rank {rank}<" for rank in ((2, 3) if shown else range(4))]
            self.assertEqual(re.findall(r">rank \d<", predicted), names)
            page = self.drawn(*its, *shown, ending="html")
            data = json.loads(re.search(r'id="timeline">(.*?)</script>', page, re.S)[1])
            rows = [{data["ranks"][rank]["number"] for rank in panel["rank"]} for panel in data["panels"]]
            self.assertEqual(rows, [{2, 3}, {2, 3}])
        self.assertIn("prediction and measurement differ by ", svg)

    def test_a_time_of_a_recording_may_lie_behind_its_prediction(self):
        trace = str(self.folder / "run.trace")
        self.output("run", "all_reduce", "--algorithm", "ring", "--ranks", "2", "--bytes", "8",
                    "--iters", "1", "--trace", trace)
        quick = self.folder / "quick.txt"
        quick.write_text("baton-network 1\nname quick\nacross\nlatency 1\nsend 0 1\nreceive 0 1\nwire 1K 1\n")
        its = ["--from", trace, "--network", str(quick), "--from-time", "0.1"]
        predicted, measured = self.drawn(*its).split(">measured<")
        self.assertEqual(predicted.count('class="arrow"'), 0)
        self.assertGreater(measured.count('class="arrow"'), 0)
        self.drawn(*its, ending="html")
        self.refused("expected a stretch of time within 0 to ", "timeline", *its[:-1], "1e9", "-o",
                     str(self.folder / "x.svg"))

    def test_no_rsvg_convert_is_one_sentence(self):
        for tool in ("png", "pdf"):
            self.refused("expected the program rsvg-convert", "timeline", "broadcast", "-o",
                         str(self.folder / f"x.{tool}"), PATH=str(self.folder))

    def test_options_that_a_form_does_not_have_are_refused(self):
        trace = str(self.folder / "run.trace")
        self.output("run", "all_reduce", "--algorithm", "ring", "--ranks", "3", "--bytes", "4K",
                    "--iters", "2", "--trace", trace)
        endings = "svg", "png", "pdf", "drawio", "json", "html", "txt", "goal", "xml"
        forms = {"--critical-path": endings[:3], "--ranks-shown 0,1": endings[:6], "--to-time 90": endings[:6],
                 "--from-time 0.1": endings[:6], "--network shared-memory": ("svg", "png", "pdf", "html")}
        for option, allowed in forms.items():
            name, *value = option.split()
            for ending in endings:
                file = self.folder / f"x.{ending}"
                with self.subTest(option=option, ending=ending):
                    subject = ["--from", trace]
                    if ending in allowed:
                        self.output("timeline", *subject, name, *value, "-o", str(file))
                        self.assertTrue(file.exists())
                    else:
                        beside = " with --from" if name == "--network" else ""
                        *most, last = ("." + its for its in allowed)
                        self.refused(f"{name}{beside}: expected {', '.join(most)} or {last}, found .{ending}",
                                     "timeline", *subject, name, *value, "-o", str(file))
                        self.assertFalse(file.exists())
                    file.unlink(missing_ok=True)
        split = ["all_to_all", "--split-assemble", "-o", str(self.folder / "x.svg")]
        for option in "--critical-path", "--ranks-shown 0", "--from-time 1", "--to-time 1":
            self.refused(f"--split-assemble excludes {option.split()[0]}", "timeline", *split, *option.split())
        self.refused("--network with --from: expected a timeline, found --split-assemble", "timeline", "--from",
                     trace, "--network", "shared-memory", *split[1:])

    def test_options_that_a_heat_map_does_not_have_are_refused(self):
        many = ["all_reduce", "--algorithm", "ring", "--ranks", "40"]
        file = str(self.folder / "x.svg")
        self.refused("--critical-path: expected a picture with arrows, found a heat map; show fewer ranks or less "
                     "time by --ranks-shown, --from-time and --to-time", "timeline", *many, "--critical-path",
                     "-o", file)
        self.assertIn('class="critical"', self.drawn(*many, "--critical-path", "--ranks-shown", "0-9"))
        trace = str(self.folder / "run.trace")
        self.output("run", "barrier", "--algorithm", "dissemination", "--ranks", "33", "--iters", "1",
                    "--trace", trace)
        self.refused("--network with --from: expected a picture with arrows, found a heat map", "timeline", "--from", trace,
                     "--network", "shared-memory", "-o", file)
        self.drawn("--from", trace, "--network", "shared-memory", "--ranks-shown", "0-9")
        self.drawn("--from", trace, "--network", "shared-memory", ending="html")

    def test_errors_are_one_sentence(self):
        svg = str(self.folder / "x.svg")
        ignored = [("--segment", "64"), ("--root", "1"), ("--op", "max")]
        endings = "one of .svg, .png, .pdf, .drawio, .json, .html, .txt, .goal, .xml, found"
        for sentence, *arguments in [
            (endings, "broadcast", "-o", "x.gif"),
            (endings, "broadcast", "-o", "x"),
            ("expected a collective (broadcast, reduce, ", "cast", "-o", svg),
            ("expected an algorithm of broadcast (linear, binomial, ", "broadcast", "--algorithm", "tree", "-o", svg),
            ("expected a collective (baton list shows them) or --schedule", "-o", svg),
            ("-o", "broadcast"),
            ("expected the hosts of 3 ranks, found those of 4", "broadcast", "--ranks", "3",
             "--hosts", "2x2", "-o", svg),
            ("expected ranks such as 0-7,9, found \"3-1\"", "broadcast", "--ranks-shown", "3-1",
             "-o", svg),
            ("expected ranks such as 0-7,9, found \"1,\"", "broadcast", "--ranks-shown", "1,", "-o",
             svg),
            ("expected ranks from 0 to 3 to show, found 4", "broadcast", "--ranks-shown", "0-4",
             "-o", svg),
            ("expected a stretch of time within 0 to ", "broadcast", "--from-time", "90", "-o",
             svg),
            *[(f'{option}: expected microseconds from 0 to 1e12, found "{time}"', "broadcast", option, time,
               "-o", svg) for option in ("--from-time", "--to-time")
              for time in ("-3", "nan", "inf", "1e300", "1e13", "2x", "")],
            ("--from excludes --rounds", "--from", "x", "--rounds", "-o", svg),
            ("--bytes: expected one size, found several", "broadcast", "--bytes", "1:4", "-o", svg),
            *[(f"{option} excludes --schedule", "--schedule", "x", option, value, "-o", svg)
              for option, value in ignored],
            *[(f"{option} excludes --from", "--from", "x", option, value)
              for option, value in [*ignored, ("--hosts", "2x2"), ("--dtype", "f64")]],
            ("found all_reduce", "all_reduce", "--split-assemble", "-o", svg),
            ("expected .svg, .png, .pdf or .drawio, found .json", "all_to_all", "--split-assemble",
             "-o", str(self.folder / "x.json")),
            ("expected a file to write, found", "broadcast", "-o",
             str(self.folder / "nowhere" / "x.svg")),
        ]:
            with self.subTest(arguments=arguments):
                self.refused(sentence, "timeline", *arguments)
                self.assertFalse(os.path.exists(svg))


if __name__ == "__main__":
    run_tests(Timeline, [sys.argv[1]])
