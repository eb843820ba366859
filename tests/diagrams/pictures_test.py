"""Usage: pictures_test.py SAMPLE BATON"""

import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

import checkers

sample, baton = sys.argv[1:3]

SUBJECTS = [("broadcast", "binomial", 8, 64), ("all_reduce", "ring", 4, 4096),
            ("all_reduce", "ring", 5, 7), ("all_reduce", "double_tree", 8, 100),
            ("all_reduce", "hierarchical", 8, 64), ("all_gather", "bruck", 5, 3),
            ("reduce_scatter", "recursive_halving", 8, 2), ("all_to_all", "pairwise", 4, 16),
            ("all_to_all", "bruck", 5, 2), ("gather", "binomial", 7, 3),
            ("barrier", "dissemination", 5, 1), ("scan", "recursive_doubling", 6, 5)]


def drawn(form, kind, subject, *options):
    done = subprocess.run([sample, form, kind, *map(str, subject), *options], capture_output=True,
                          text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return done.stdout


def sends(subject):
    """The messages of the schedules, as the text of schedules has them: (from, to, step)."""
    text = subprocess.run([baton, "explain", subject[0], "--algorithm", subject[1], "--ranks",
                           str(subject[2]), "--count", str(subject[3]), "--format", "text",
                           *(["--hosts", ",".join(str(r // 2) for r in range(subject[2]))]
                             if subject[1] == "hierarchical" else [])],
                          capture_output=True, text=True, check=True).stdout
    found, rank = [], None
    for line in text.splitlines():
        if head := re.fullmatch(r"rank (\d+)", line):
            rank = int(head[1])
        elif send := re.match(r" *(\d+): send (\d+) ", line):
            found.append((rank, int(send[2]), int(send[1])))
    return found


def xmllint(text):
    return subprocess.run(["xmllint", "--noout", "--nonet", "-"], input=text.encode(),
                          capture_output=True).returncode == 0


class Pictures(unittest.TestCase):
    def for_each_subject(self, check):
        for subject in SUBJECTS:
            for kind in ("rounds", "predicted"):
                with self.subTest(subject=subject, kind=kind):
                    check(subject, kind)

    def test_svg_has_an_arrow_for_each_message_and_none_besides(self):
        def check(subject, kind):
            svg = drawn("svg", kind, subject)
            self.assertTrue(xmllint(svg))
            self.assertEqual(sorted((a, b, s) for a, b, s, _ in checkers.arrows(svg)),
                             sorted(sends(subject)))
            self.assertTrue(checkers.labels(svg))

        self.for_each_subject(check)

    def test_svg_labels_every_message_where_there_is_room(self):
        svg = drawn("svg", "rounds", ("all_reduce", "ring", 4, 4))
        self.assertEqual(len(checkers.labels(svg)), 24)
        self.assertEqual(sum(text.endswith(" +=") for text in checkers.labels(svg)), 12)

    def test_svg_says_what_it_shows(self):
        svg = drawn("svg", "predicted", ("all_reduce", "ring", 4, 4096), "critical")
        texts = [text.text for text in ElementTree.fromstring(svg).iter(checkers.SVG + "text")]
        for text in ("all_reduce by ring", "4 ranks · 16.0 KiB", "predicted", "rank 3",
                     "critical path", "24 messages, 96.0 KiB in all"):
            self.assertIn(text, texts)
        self.assertIn('class="critical"', svg)
        self.assertIn('class="arrow on-path"', svg)
        self.assertNotIn('class="arrow on-path"', drawn("svg", "predicted", SUBJECTS[1]))

    def test_critical_path_of_some_ranks_has_no_message_to_or_from_others(self):
        subject = ("broadcast", "chain", 4, 64)
        whole = drawn("svg", "predicted", subject, "critical")
        self.assertEqual(checkers.critical_path(whole)[0], {(0, 1), (1, 2), (2, 3)})
        for ranks, steps in (("0,3", set()), ("0,1,3", {(0, 1)}), ("1,2,3", {(1, 2), (2, 3)})):
            with self.subTest(ranks=ranks):
                found, _ = checkers.critical_path(
                    drawn("svg", "predicted", subject, "critical", "ranks=" + ranks))
                self.assertEqual(found, steps)
        _, times = checkers.critical_path(drawn("svg", "predicted", subject, "critical", "ranks=3"))
        self.assertGreater(min(times), 1100)  # of the row's 78 to 1170 pixels: rank 3 waits before

    def test_svg_of_a_part(self):
        svg = drawn("svg", "rounds", ("all_reduce", "ring", 4, 4), "ranks=0,1", "from=1000",
                    "to=1900")
        self.assertEqual([arrow[:2] for arrow in checkers.arrows(svg)], [(0, 1)])
        self.assertIn("23 messages not shown", svg)

    def test_svg_of_many_ranks_or_messages_is_a_heat_map_and_says_so(self):
        svg = drawn("svg", "predicted", ("all_gather", "ring", 40, 4))
        self.assertIn("a heat map, since there are more than 32 ranks", svg)
        self.assertEqual(checkers.arrows(svg), [])
        self.assertIn("share of time at work", svg)
        self.assertIn("since ranks have more than 200 messages each",
                      drawn("svg", "rounds", ("all_reduce", "ring", 102, 102), "ranks=0,1,2"))
        for ranks, mean in ((97, "1 or 2"), (192, "2"), (250, "2 or 3")):
            self.assertIn(f"a row is the mean of {mean} ranks",
                          drawn("svg", "predicted", ("barrier", "dissemination", ranks, 1)))

    def test_labels_of_a_heat_map_name_the_first_rank_of_their_row(self):
        for ranks in (97, 100, 127, 128, 160, 191, 192, 193, 250, 300):
            with self.subTest(ranks=ranks):
                svg = drawn("svg", "rounds", ("barrier", "dissemination", ranks, 1))
                rows = sorted(set(map(float, re.findall(r"M[\d.]+ ([\d.]+)H", svg))))
                self.assertEqual(len(rows), 96)
                labels = [text for text in ElementTree.fromstring(svg).iter(checkers.SVG + "text")
                          if text.get("class") == "rank"]
                self.assertGreaterEqual(len(labels), 16)
                for label in labels:
                    y = float(label.get("y")) - 4.3
                    row = next(i for i in range(96) if abs(rows[i] - y) < .2)
                    rank = int(label.text.removeprefix("rank "))
                    of_row = [r for r in range(ranks) if r * len(rows) // ranks == row]
                    self.assertEqual(rank, of_row[0])

    def test_prediction_over_recording(self):
        svg = drawn("svg", "compared", ("all_reduce", "ring", 4, 4096))
        groups = [g for g in ElementTree.fromstring(svg).iter(checkers.SVG + "g")
                  if g.get("class") == "arrow"]
        self.assertEqual(len(groups), 2 * 24)
        texts = "".join(ElementTree.fromstring(svg).itertext())
        self.assertRegex(texts, r"prediction and measurement differ by \d+ ns \(median step\), "
                                r"700 ns at most")
        self.assertIn("ends 700 ns later than predicted", texts)
        self.assertIn("ends 0 ns later than predicted", texts)

    def test_drawio_has_an_edge_for_each_message(self):
        def check(subject, kind):
            text = drawn("drawio", kind, subject)
            self.assertTrue(xmllint(text))
            self.assertEqual(Counter(edge[1:] for edge in checkers.drawio_edges(text)),
                             Counter((f"rank{a}", f"rank{b}") for a, b, _ in sends(subject)))

        self.for_each_subject(check)
        self.assertIn("c0 +=", [edge[0] for edge in checkers.drawio_edges(
            drawn("drawio", "rounds", ("all_reduce", "ring", 4, 4)))])

    def test_chrome_trace_nests_and_pairs(self):
        def check(subject, kind):
            _, arrows = checkers.trace(drawn("json", kind, subject))
            self.assertEqual(Counter(arrows.values()),
                             Counter((a, b) for a, b, _ in sends(subject)))

        self.for_each_subject(check)

    def test_chrome_trace_names_ranks_of_one_length_and_says_when_it_is_capped(self):
        subject = ("all_reduce", "recursive_doubling", 12, 64)
        text = drawn("json", "predicted", subject)
        self.assertIn('"name":"rank 03"', text)
        self.assertIn('"capped":false', text)
        capped, arrows = checkers.trace(drawn("json", "predicted", subject, "most=100"))
        self.assertRegex(capped["otherData"]["capped"], r"the first 25 of \d+ events; choose")
        self.assertLess(len([e for e in capped["traceEvents"] if e["ph"] != "M"]), 102)
        _, part = checkers.trace(drawn("json", "predicted", subject, "ranks=0,1"))
        self.assertEqual(set(part.values()), {(0, 1), (1, 0)})

    def test_goal(self):
        def check(subject, kind):
            self.assertEqual(checkers.goal(drawn("goal", kind, subject)), len(sends(subject)))

        self.for_each_subject(check)
        self.assertRegex(drawn("goal", "predicted", SUBJECTS[1]), r"calc [1-9]")

    def test_msccl_computes_the_collective(self):
        def everything(memory, ranks, chunk, place):
            return memory[place] == Counter({(r, chunk): 1 for r in range(ranks)})

        for algorithm in ("ring", "recursive_doubling", "double_tree", "circulant", "one_shot"):
            with self.subTest(algorithm=algorithm):
                text = drawn("xml", "rounds", ("all_reduce", algorithm, 4, 8))
                self.assertTrue(xmllint(text))
                memory = checkers.msccl(text)
                outputs = [place for place in memory if place[1] == "o"]
                self.assertTrue(outputs)
                for place in outputs:
                    self.assertTrue(everything(memory, 4, place[2], place))
        for algorithm in ("pairwise", "bruck"):
            memory = checkers.msccl(drawn("xml", "rounds", ("all_to_all", algorithm, 5, 2)))
            chunks = 1 + max(c for _, b, c in memory if b == "o")
            each = chunks // 5
            for (rank, buffer, chunk), value in memory.items():
                if buffer == "o":
                    self.assertEqual(value, {(chunk // each, rank * each + chunk % each): 1})
        with self.assertRaisesRegex(RuntimeError, "MSCCL has no barrier"):
            drawn("xml", "rounds", ("barrier", "dissemination", 4, 1))
        with self.assertRaisesRegex(RuntimeError, "choose a count that divides"):
            drawn("xml", "rounds", ("all_reduce", "ring", 3, 10007))

    def test_split_and_assemble(self):
        for form in ("split.svg", "split.drawio"):
            text = drawn(form, "rounds", ("all_to_all", "pairwise", 4, 1))
            self.assertTrue(xmllint(text))
            if form == "split.svg":
                links = re.findall(r'data-from="cut(\d)\.(\d)" data-to="there(\d)\.(\d)"', text)
            else:
                links = re.findall(r'source="cut(\d)\.(\d)" target="there(\d)\.(\d)"', text)
                self.assertEqual(sorted(edge[0] for edge in checkers.drawio_edges(text)),
                                 sorted(f"{a}>{b}" for a in "0123" for b in "0123"))
            self.assertEqual(sorted(links), sorted((a, b, b, a) for a in "0123" for b in "0123"))
        self.assertEqual(drawn("split.svg", "rounds", ("all_gather", "ring", 4, 1)).count(
            'class="link"'), 16)
        self.assertEqual(drawn("split.svg", "rounds", ("scatter", "linear", 4, 1)).count(
            'class="link"'), 4)
        with self.assertRaisesRegex(RuntimeError, "found all_reduce"):
            drawn("split.svg", "rounds", ("all_reduce", "ring", 4, 4))

    def program(self, form, *options):
        """A picture of a program that computes."""
        with tempfile.TemporaryDirectory() as folder:
            text, picture = Path(folder, "program.txt"), Path(folder, "picture." + form)
            text.write_text(checkers.PROGRAM)
            done = subprocess.run([baton, "timeline", "--schedule", text, "-o", picture, *options],
                                  capture_output=True, text=True)
            return picture.read_text() if done.returncode == 0 else done.stderr

    def test_svg_of_a_program_has_a_bar_with_a_name_in_a_colour_for_each_computation(self):
        for options in ((), ("--network", "shared-memory")):
            svg = self.program("svg", *options)
            self.assertTrue(xmllint(svg))
            root = ElementTree.fromstring(svg)
            bars = [rect for rect in root.iter(checkers.SVG + "rect") if rect.get("class") == "compute"]
            done = [bar for bar in bars if bar.find(checkers.SVG + "title") is not None]
            self.assertEqual(len(done), len(checkers.COMPUTED))
            self.assertEqual(len({bar.get("fill") for bar in done}), len(checkers.CLASSES))
            texts = [text.text for text in root.iter(checkers.SVG + "text")]
            for text in checkers.CLASSES:
                self.assertIn(text, texts)
            self.assertEqual(sorted(checkers.labels(svg)), ["0F0", "1B0"])
            self.assertEqual([arrow[:2] for arrow in checkers.arrows(svg)], [(0, 1), (1, 0)])
        names = [text.text for text in root.iter(checkers.SVG + "text") if text.get("class") == "work"]
        self.assertEqual(sorted(names), checkers.COMPUTED)
        self.assertIn("program by zero_bubble", texts)
        self.assertEqual(len({text.get("y") for text in root.iter(checkers.SVG + "text")
                              if text.get("class") == "work"}), 2)

    def test_other_forms_of_a_program(self):
        drawio = self.program("drawio", "--network", "shared-memory")
        self.assertEqual(len(checkers.drawio_edges(drawio)), 2)
        for name in checkers.COMPUTED:
            self.assertIn(f'value="{name}"', drawio)
        trace = self.program("json", "--network", "shared-memory")
        checkers.trace(trace)
        work = [item for item in checkers.json.loads(trace)["traceEvents"]
                if item["ph"] == "X" and item["name"] in checkers.COMPUTED]
        self.assertEqual(sorted(item["name"] for item in work), checkers.COMPUTED)
        self.assertEqual({item["cat"] for item in work},
                         {"forward", "backward", "backward_input", "backward_weight", "optimizer"})
        for options in ((), ("--network", "shared-memory")):
            goal = self.program("goal", *options)
            self.assertEqual(sorted(map(int, re.findall(r"calc (\d+)", goal))),
                             [30000, 30000, 40000, 40000, 40000, 40000, 80000])
        self.assertIn("found a program of computations", self.program("xml"))
        self.assertIn("found a program of computations", self.program("txt"))

    def test_titles_that_are_no_text(self):
        title = b"a <!-- b <script> &\xff ]]> \xc0\xaf\xed\xa0\x80\xef\xbf\xbf\x01 \xc3"
        with tempfile.TemporaryDirectory() as folder:
            for ending in ("svg", "drawio"):
                picture = Path(folder, "p." + ending)
                subprocess.run([baton, "timeline", "broadcast", "--title", title, "-o", picture], check=True)
                text = picture.read_text(encoding="utf-8")
                self.assertTrue(xmllint(text))
                found = {value for item in ElementTree.fromstring(text).iter()
                         for value in (item.text, item.get("value")) if value}
                self.assertTrue(any(value.startswith("a <!-- b <script> &\ufffd ]]> \ufffd") for value in found))

    def test_the_same_bytes_each_time(self):
        for form in ("svg", "drawio", "json", "goal", "xml", "split.svg", "split.drawio"):
            subject = ("all_to_all", "pairwise", 4, 16)
            self.assertEqual(drawn(form, "predicted", subject), drawn(form, "predicted", subject))

    def test_chromium_draws_it(self):
        with tempfile.TemporaryDirectory() as folder:
            svg, png = Path(folder, "p.svg"), Path(folder, "p.png")
            svg.write_text(drawn("svg", "predicted", SUBJECTS[1]))
            subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu",
                            f"--user-data-dir={folder}/profile", f"--screenshot={png}",
                            "--window-size=1200,520", svg.as_uri()],
                           check=True, capture_output=True, timeout=200)
            checkers.not_blank(png.read_bytes())

    def test_rsvg_convert_draws_it(self):
        with tempfile.TemporaryDirectory() as folder:
            png, pdf = Path(folder, "p.png"), Path(folder, "p.pdf")
            for file in (png, pdf):
                subprocess.run([baton, "timeline", "all_reduce", "-o", file], check=True)
            checkers.not_blank(png.read_bytes())
            self.assertTrue(pdf.read_bytes().startswith(b"%PDF-"))


class Checkers(unittest.TestCase):
    """What is broken is found."""

    def refused(self, check, text, *changes):
        check(text)
        for old, new in changes:
            with self.subTest(old=old, new=new):
                changed = re.sub(old, new, text, count=1)
                self.assertNotEqual(changed, text)
                with self.assertRaises((ValueError, ElementTree.ParseError)):
                    check(changed)

    def test_svg(self):
        svg = drawn("svg", "rounds", SUBJECTS[1])
        self.refused(checkers.arrows, svg, ("</svg>", ""), (r'data-recv="\d+"', 'data-recv="99"'
                     ' data-recv="1"'), (r'data-end="\d+"', 'data-end="0"'),
                     (r'class="head"', 'class="neck"'), (r'data-send="\d+"', 'data-send="3"'))
        self.refused(checkers.labels, svg,
                     (r'(class="labels">\n<rect x="[\d.]+" y="[\d.]+" width=)"[\d.]+"',
                      r'\1"9000"'))
        self.assertFalse(xmllint("<svg><g></svg>"))

    def test_drawio(self):
        self.refused(checkers.drawio_edges, drawn("drawio", "rounds", SUBJECTS[1]),
                     ('source="sent0"', 'source="nobody"'), ('id="sent1"', 'id="sent0"'),
                     ('parent="rank0"', 'parent="rank77"'), ("<mxCell id=\"0\"/>", ""))

    def test_trace(self):
        self.refused(checkers.trace, drawn("json", "predicted", SUBJECTS[1]),
                     (r'("arrival"[^}]*"dur":)[\d.]+', r'\g<1>99.000'), (r'"ph":"f"', '"ph":"g"'),
                     (r'"id":2', '"id":1'), (r'"bp":"e",', ''), (r'"ts":(\d+)\.\d\d\d', r'"ts":\1'),
                     ('"injection"', '"something"'), (r'rank 0"', 'rank 00"'),
                     (r'("ph":"s"[^}]*"ts":)[\d.]+', r'\g<1>900000.000'), (r'\]\}', ']'))

    def test_goal(self):
        self.refused(checkers.goal, drawn("goal", "rounds", SUBJECTS[1]),
                     ("num_ranks 4", "num_ranks 5"), (r"requires l\d+", "requires l999"),
                     (r"tag \d+", "tag 12345"), (r"l2:", "l1:"), (r"\d+b to", "7b to"),
                     (r"\}\n", ""), ("send", "sent"))

    def test_msccl(self):
        text = drawn("xml", "rounds", ("all_reduce", "ring", 4, 4))
        self.refused(checkers.msccl, text, ('hasdep="1"', 'hasdep="0"'), ('type="s"', 'type="x"'),
                     ('type="r"', 'type="nop"'), ('ngpus="4"', 'ngpus="3"'), ('cnt="1"', 'cnt="2"'),
                     ('coll="allreduce"', ""), (r'<step s="0"', '<step s="1"'))
        good = checkers.msccl(text)
        changed = checkers.msccl(re.sub('type="re"', 'type="cpy"', text, count=1))
        self.assertNotEqual(good, changed)

    def test_blank(self):
        with tempfile.TemporaryDirectory() as folder:
            blank = '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="90"/>'
            png = subprocess.run(["rsvg-convert", "-b", "white"], input=blank.encode(),
                                 capture_output=True, check=True, cwd=folder).stdout
        with self.assertRaises(ValueError):
            checkers.not_blank(png)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
