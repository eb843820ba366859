"""Pages: headless Chromium opens them, and a script uses them as a reader would.

Usage: page_test.py BATON [unittest arguments]
"""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import checkers

baton = sys.argv.pop(1)

# Appended to a page: acts like a user, and leaves answers in the document.
ACTOR = """
<script>
const answers = {};
const frame = async () => {  // headless, nobody may ask for frames
  await new Promise((resolve) => setTimeout(resolve, 30));
  if (scheduled) scheduled = false, paint();
};
const key = (name, target = document.body) => target.dispatchEvent(
  new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
const pointer = (type, x, y, more = {}) => {
  const box = chart.getBoundingClientRect();
  chart.dispatchEvent(new PointerEvent(type, { clientX: box.left + x, clientY: box.top + y, bubbles: true, ...more }));
};
const type = (text) => { byId("search").value = text, byId("search").dispatchEvent(new Event("input")); };
const ink = () => {  // pixels that are neither background nor rows
  const pixels = new Uint32Array(chart.getContext("2d").getImageData(0, 0, chart.width, chart.height).data.buffer);
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) || 0) + 1);
  return pixels.length - [...counts.values()].sort((a, b) => b - a).slice(0, 2).reduce((a, b) => a + b, 0);
};
(async () => {
  try {
    await frame();
    @act@
  } catch (error) {
    answers.error = String(error.stack || error);
  }
  const box = document.createElement("pre");
  box.id = "answers", box.textContent = JSON.stringify(answers);
  document.body.append(box);
})();
</script>
"""


def chromium(folder, *arguments):
    return subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1200,800",
                           f"--user-data-dir={folder}/profile", *map(str, arguments)],
                          check=True, capture_output=True, text=True, timeout=200).stdout


class Page(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.page = Path(self.folder.name, "t.html")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, *arguments):
        subprocess.run([baton, "timeline", *map(str, arguments), "-o", self.page], check=True)
        return self.page.read_text()

    def act(self, script):
        """The answers of a script that uses the page."""
        page = self.page.read_text()
        acted = Path(self.folder.name, "acted.html")
        acted.write_text(page.replace("</body>", ACTOR.replace("@act@", script) + "</body>"))
        dom = chromium(self.folder.name, "--virtual-time-budget=20000", "--dump-dom", acted.as_uri())
        found = re.search(r'<pre id="answers">(.*?)</pre>', dom, re.S)
        self.assertTrue(found, dom[-2000:])
        answers = json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
        self.assertNotIn("error", answers)
        return answers

    def data(self):
        text = re.search(r'<script type="application/json" id="timeline">(.*?)</script>',
                         self.page.read_text(), re.S)[1]
        return json.loads(text)

    def test_needs_no_network(self):
        text = self.write("all_reduce", "--ranks", 4, "--count", 8)
        self.assertNotIn("<!--data-->", text)
        self.assertEqual(re.findall(r'(?:src|href)\s*=|https?://|@import|url\(', text), [])

    def test_has_every_event_and_message(self):
        self.write("all_reduce", "--algorithm", "ring", "--ranks", 5, "--count", 25)
        panel, = self.data()["panels"]
        # 2 (P - 1) messages of each rank, a receive for each, and P - 1 folds.
        self.assertEqual(len(panel["messages"]), 2 * 5 * 8)
        self.assertEqual(len(panel["rank"]), 5 * (8 + 8 + 4))
        for send, recv in zip(panel["messages"][::2], panel["messages"][1::2]):
            self.assertEqual((panel["kind"][send], panel["kind"][recv]), (0, 1))
            self.assertEqual((panel["rank"][send] + 1) % 5, panel["rank"][recv])
            self.assertEqual(panel["bytes"][send], panel["bytes"][recv])

    def test_a_title_is_no_part_of_the_page(self):
        title = "a <!-- b <script> c </script>"
        self.write("all_reduce", "--ranks", 4, "--count", 8, "--title", title)
        self.assertEqual(self.data()["title"], title)
        found = self.act("""answers.title = data.title, answers.ink = ink();""")
        self.assertEqual(found["title"], title)
        self.assertGreater(found["ink"], 1000)

    def test_the_same_bytes_each_time(self):
        first = self.write("all_to_all", "--ranks", 4, "--bytes", "64K", "--network", "shared-memory")
        self.assertEqual(first, self.write("all_to_all", "--ranks", 4, "--bytes", "64K", "--network",
                                           "shared-memory"))

    def test_a_program_has_bars_with_names_and_a_legend_of_colours(self):
        program = Path(self.folder.name, "program.txt")
        program.write_text(checkers.PROGRAM)
        self.write("--schedule", program, "--network", "shared-memory")
        data = self.data()
        self.assertEqual([its["name"] for its in data["classes"]], checkers.CLASSES)
        colours = {its["colour"] for its in data["classes"]}
        self.assertEqual(len(colours), len(checkers.CLASSES))
        panel, = data["panels"]
        names = [data["chunks"][panel["chunk"][e]] for e, kind in enumerate(panel["kind"])
                 if data["kinds"][kind] == "compute"]
        self.assertEqual(sorted(name["text"] for name in names), checkers.COMPUTED)
        self.assertEqual({name["colour"] for name in names}, colours)
        found = self.act("""
          answers.legend = [...byId("classes").children].map((its) => its.textContent);
          const compute = KINDS.indexOf("compute"), panel = panels[0];
          const e = panel.kind.indexOf(compute);
          answers.text = workText(panel, e), answers.colour = colourOf(panel, e), answers.ink = ink();
        """)
        self.assertEqual(found["legend"], checkers.CLASSES)
        self.assertIn("compute 0F0", found["text"])
        self.assertIn(found["colour"], colours)
        self.assertGreater(found["ink"], 10000)

    def test_is_drawn(self):
        self.write("all_reduce", "--algorithm", "ring", "--ranks", 4, "--bytes", "1M", "--network",
                   "shared-memory")
        for dark in (False, True):
            page, png = Path(self.folder.name, "shown.html"), Path(self.folder.name, "t.png")
            page.write_text(self.page.read_text().replace("</body>", "<script>setTheme(%s)</script></body>" %
                                                          str(dark).lower()))
            chromium(self.folder.name, f"--screenshot={png}", page.as_uri())
            checkers.not_blank(png.read_bytes())

    def test_zoom_pan_and_fit(self):
        self.write("all_reduce", "--algorithm", "ring", "--ranks", 4, "--bytes", "1M", "--network",
                   "shared-memory")
        found = self.act("""
          const look = () => [view.from, view.to];
          answers.whole = look(), answers.duration = duration;
          key("+"), await frame(), answers.near = look();
          key("ArrowRight"), answers.right = look();
          const at = timeOf(500);
          const box = chart.getBoundingClientRect();
          chart.dispatchEvent(new WheelEvent("wheel", { deltaY: -300, clientX: box.left + 500, clientY: box.top + 60,
            bubbles: true, cancelable: true }));
          answers.moved = Math.abs(timeOf(500) - at) / (view.to - view.from), answers.wheel = look();
          pointer("pointerdown", 400, 100), pointer("pointermove", 300, 100), pointer("pointerup", 300, 100);
          answers.dragged = look();
          answers.after = (answers.dragged[0] - answers.wheel[0]) * scale();
          for (let i = 0; i < 200; ++i) key("+");
          answers.nearest = view.to - view.from;
          key("0"), await frame(), answers.fit = look();
        """)
        whole = found["whole"][1] - found["whole"][0]
        self.assertGreaterEqual(whole, found["duration"])
        self.assertAlmostEqual((found["near"][1] - found["near"][0]) / whole, 0.7, places=6)
        self.assertGreater(found["right"][0], found["near"][0])
        self.assertLess(found["moved"], 1e-9)
        self.assertAlmostEqual(found["after"], 100, places=3)
        self.assertGreater(found["nearest"], 0)
        self.assertEqual(found["fit"], found["whole"])

    def test_hover_and_select(self):
        self.write("all_reduce", "--algorithm", "ring", "--ranks", 4, "--bytes", "1M", "--network",
                   "shared-memory")
        found = self.act("""
          const panel = panels[0];
          const m = 5, send = panel.send[m], recv = panel.recv[m];
          const part = 0.3;
          const x = xOf(panel.posted[send]) * (1 - part) + xOf(panel.end[recv]) * part;
          const y = middle(0, panel.rank[send]) * (1 - part) + middle(0, panel.rank[recv]) * part;
          pointer("pointermove", x, y);
          answers.tip = byId("tip").textContent, answers.shown = !byId("tip").hidden;
          pointer("pointerdown", x, y), pointer("pointerup", x, y);
          answers.selected = selected && selected.message, answers.details = byId("details").textContent;
          answers.from = data.ranks[panel.rank[send]].number, answers.to = data.ranks[panel.rank[recv]].number;
          key("n"), answers.next = selected.message;
          key("p"), key("p"), answers.before = selected.message;
          const fold = panel.work[0].find((e) => KINDS[panel.kind[e]] === "fold");
          pointer("pointermove", (xOf(panel.from(fold)) + xOf(panel.to(fold))) / 2, middle(0, 0));
          answers.fold = byId("tip").textContent;
          key("Escape"), answers.none = selected;
        """)
        self.assertTrue(found["shown"])
        self.assertEqual(found["selected"], 5)
        self.assertEqual(found["tip"], found["details"])
        self.assertIn(f"rank {found['from']} → rank {found['to']}, 256.0 KiB, all_reduce", found["details"])
        self.assertRegex(found["details"], r"c\d( \+=)?: ")
        self.assertRegex(found["details"], r"\nthe receiver (waited [\d.]+ µs for it|did not wait for it)")
        self.assertRegex(found["details"], r"\nstep \d+ of rank \d to step \d+ of rank \d")
        self.assertEqual((found["next"], found["before"]), (6, 4))
        self.assertRegex(found["fold"], r"^rank 0: fold c\d, 256.0 KiB")
        self.assertIsNone(found["none"])

    def test_search(self):
        self.write("all_to_all", "--algorithm", "pairwise", "--ranks", 6, "--bytes", "6K", "--network",
                   "shared-memory")
        found = self.act("""
          const count = (text) => { type(text); return found ? found.length : -1; };
          answers.pair = count("1>4"), answers.from = count("from:2"), answers.rank = count("rank:3");
          answers.both = count("from:2 to:3"), answers.none = count("nothing"), answers.end = count("");
          answers.large = count("bytes>100"), answers.small = count("bytes<1K");
          answers.waits = count("wait>1ns") + count("wait<1ns");
          answers.all = panels[0].messages;
          count("from:2");
          key("Enter", byId("search")), answers.first = [...found[0]];
          answers.selected = [selected.panel, selected.message], answers.text = byId("found").textContent;
        """)
        self.assertEqual(found["all"], 30)
        self.assertEqual([found[k] for k in ("pair", "from", "rank", "both", "none", "end")],
                         [1, 5, 10, 1, 0, -1])
        self.assertEqual(found["large"], 30)
        self.assertEqual(found["small"], 0)
        self.assertEqual(found["waits"], 30)
        self.assertEqual(found["first"], found["selected"])
        self.assertEqual(found["text"], "1 of 5")

    def test_play_round_by_round(self):
        self.write("all_reduce", "--algorithm", "ring", "--ranks", 3, "--count", 3)
        found = self.act("""
          const cells = () => [...byId("data").querySelectorAll("tr")].map((row) =>
            [...row.querySelectorAll("td")].map((cell) => cell.textContent).join(" "));
          key("."), answers.first = cells(), answers.round = byId("round").textContent;
          answers.changed = byId("data").querySelectorAll("td.new").length;
          for (let i = 0; i < 9; ++i) key(".");
          answers.last = cells();
          for (let i = 0; i < 9; ++i) key(",");
          answers.before = cells();
          key(" "), answers.playing = byId("play").textContent;
          await new Promise((resolve) => setTimeout(resolve, 8000));
          answers.played = cells(), answers.stopped = byId("play").textContent;
          key("Escape"), answers.end = byId("data").textContent;
        """)
        self.assertEqual(found["before"], ["10 11 12", "20 21 22", "30 31 32"])
        self.assertEqual(found["first"], ["10 11 44", "30 21 22", "30 52 32"])
        self.assertEqual(found["changed"], 3)
        self.assertEqual(found["last"], ["60 63 66"] * 3)
        self.assertEqual((found["playing"], found["stopped"], found["end"]), ("pause", "play", ""))
        self.assertEqual(found["played"], found["last"])
        self.assertEqual(found["round"], "round 0 of 0 to 3")

    def test_critical_path_and_theme_change_the_picture(self):
        self.write("all_reduce", "--algorithm", "ring", "--ranks", 4, "--bytes", "1M", "--network",
                   "shared-memory")
        found = self.act("""
          const colours = () => new Set(new Uint32Array(
            chart.getContext("2d").getImageData(0, 0, chart.width, chart.height).data.buffer));
          answers.ink = ink();
          const black = 0xff000000;
          answers.before = colours().has(black);
          key("c"), await frame(), answers.path = colours().has(black);
          key("c"), await frame(), answers.off = colours().has(black);
          const back = () => getComputedStyle(document.body).backgroundColor, light = back();
          key("t"), await frame(), answers.dark = back() !== light;
          key("t"), await frame(), answers.light = back() === light;
        """)
        self.assertGreater(found["ink"], 5000)
        self.assertEqual((found["before"], found["path"], found["off"]), (False, True, False))
        self.assertTrue(found["dark"] and found["light"])

    def test_prints_as_pdf(self):
        self.write("broadcast", "--ranks", 4, "--count", 8)
        pdf = Path(self.folder.name, "t.pdf")
        chromium(self.folder.name, f"--print-to-pdf={pdf}", self.page.as_uri())
        self.assertTrue(pdf.read_bytes().startswith(b"%PDF-"))
        self.assertEqual(len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes())), 1)
        self.assertGreater(len(pdf.read_bytes()), 20_000)  # the canvas is in it

    def test_a_hundred_thousand_events(self):
        self.write("all_to_all", "--algorithm", "pairwise", "--ranks", 192, "--bytes", "12M", "--network",
                   "infiniband-100g")
        found = self.act("""
          answers.events = panels[0].count, answers.messages = panels[0].messages;
          answers.hidden = Number(chart.dataset.hidden), answers.ink = ink();
          for (let i = 0; i < 14; ++i) key("+"), await frame();
          await new Promise((resolve) => setTimeout(resolve, 200)), await frame();
          answers.near = Number(chart.dataset.hidden), answers.nearInk = ink();
          type("3>77"), answers.found = found.length;
          key("Enter", byId("search")), await frame();
          answers.visible = visibleMessages(panels[0], 0).list.includes(selected.message);
        """)
        self.assertEqual(found["messages"], 192 * 191)
        self.assertGreater(found["events"], 70_000)
        self.assertGreater(found["ink"], 10_000)
        self.assertGreater(found["nearInk"], 1000)
        self.assertLess(found["near"], found["hidden"])
        self.assertEqual(found["found"], 1)
        self.assertTrue(found["visible"])


if __name__ == "__main__":
    unittest.main()
