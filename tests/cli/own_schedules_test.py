"""Usage: own_schedules_test.py SAMPLES ALGORITHMS.so NONE.so BATON EXAMPLES REFUSED.so...

Algorithms of a user: files of MSCCL and GOAL, and shared objects. SAMPLES is tests/diagrams."""

import re
import sys
import tempfile
from pathlib import Path

from command import CommandTest, run_tests


class OwnSchedules(CommandTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def file(self, name, text):
        (self.folder / name).write_text(text)
        return str(self.folder / name)

    def written(self, ending, *arguments):
        file = str(self.folder / f"written.{ending}")
        self.output("timeline", *arguments, "-o", file)
        return file

    # --- MSCCL --------------------------------------------------------------------------------

    def test_msccl_is_read_by_every_reader(self):
        file = self.written("xml", "all_reduce", "--algorithm", "ring", "--ranks", "3")
        self.assertEqual(self.output("verify", "--msccl", file),
                         "# all_reduce ring on 3 ranks: 12 messages in 4 rounds, 0 failures\n"
                         "# sends are synchronous, so the proof holds on any transport\n")
        self.assertEqual(self.json("simulate", "--msccl", file)["rows"][0]["messages"], 12)
        small, large = (self.json("simulate", "--msccl", file, "--chunk", chunk)["rows"][0]
                        for chunk in ("1", "100000"))
        self.assertEqual(large["bytes_within_hosts"], 100000 * small["bytes_within_hosts"])
        self.assertIn("after round", self.output("explain", "--msccl", file))
        svg = self.folder / "picture.svg"
        self.output("timeline", "--msccl", file, "-o", str(svg))
        self.assertEqual(len(re.findall("data-from=", svg.read_text())), 12)
        row, = self.json("run", "--msccl", file, "--chunk", "10", "--dtype", "i32")["rows"]
        self.assertEqual((row["count"], row["wrong"]), (30, 0))
        again = self.file("again.xml", Path(file).read_text())
        self.output("timeline", "--msccl", file, "-o", again)
        self.assertEqual(self.output("explain", "--msccl", again, "--format", "text"),
                         self.output("explain", "--msccl", file, "--format", "text"))

    def test_msccl_that_needs_buffers(self):
        file = str(self.samples / "fused_ring.xml")
        self.assertIn("deadlock: step 0 of rank 0 (send input[0:1] to 1) waits for ",
                      self.output("verify", "--msccl", file, code=1))
        self.assertIn("; --buffered assumes a transport with buffers, such as NCCL\n",
                      self.output("verify", "--msccl", file, code=1))
        text = self.output("verify", "--msccl", file, "--buffered")
        self.assertIn("12 messages in 4 rounds, 0 failures\n"
                      "# sends are buffered, up to 8 messages of one lane from one rank to another\n"
                      "# with synchronous sends: deadlock: step 0 of rank 0", text)
        self.assertIn("up to 1 message of one lane",
                      self.output("verify", "--msccl", file, "--buffered=1"))
        found = self.json("verify", "--msccl", file, "--buffered=2")
        self.assertEqual((found["sends"], found["buffered_messages"], found["findings"]),
                         ("buffered", 2, []))
        self.assertEqual([f["flaw"] for f in found["findings_with_synchronous_sends"]],
                         ["deadlock"])
        strict = self.json("verify", "--msccl", file, code=1)
        self.assertEqual((strict["sends"], strict["buffered_messages"]), ("synchronous", 0))
        # It runs all the same: by the order of its data.
        self.assertIn(f"# {file}: its own order needs buffered sends; steps run as soon as their "
                      "data allow\n", self.output("run", "--msccl", file, "--chunk", "1000"))
        self.assertEqual(self.json("run", "--msccl", file)["rows"][0]["wrong"], 0)

    def test_flawed_in_both(self):
        good = (self.samples / "fused_ring.xml").read_text()
        file = self.file("wrong.xml", good.replace('type="rrs" srcbuf="i" srcoff="2"',
                                                   'type="rrs" srcbuf="i" srcoff="1"', 1))
        text = self.output("verify", "--msccl", file, "--buffered", code=1)
        self.assertIn("contribution: output[", text)
        self.assertIn("# with synchronous sends: deadlock", text)
        self.assertIn("deadlock: ", self.output("run", "--msccl", file, code=1))
        waits = self.file("waits.txt", "baton-schedule 1\ncollective broadcast\nsize 2\ninput 0\n"
                          "output 1\nin_place\nrank 0\nrecv 1 output[0:1]\nsend 1 output[0:1]\n"
                          "rank 1\nrecv 0 output[0:1]\nsend 0 output[0:1]\n")
        text = self.output("verify", "--schedule", waits, "--buffered", code=1)
        self.assertTrue(text.startswith(f"{waits}: deadlock: step 0 of rank 0 (recv"), text)
        self.assertIn("# with synchronous sends: deadlock: ", text)

    def test_wrong_use(self):
        xml, goal = str(self.samples / "fused_ring.xml"), str(self.samples / "overtaking.goal")
        huge = self.file("huge.goal", "num_ranks 2\nrank 0 {\nsend 402653187b to 1\n}\n"
                         "rank 1 {\nrecv 402653187b from 0\nsend 3b to 0\n}\n")
        broken = self.file("broken.xml", Path(xml).read_text().replace('cnt="1"', 'cnt="x"', 1))
        for sentence, *arguments in [
                ("broken.xml:5: expected cnt of <step> from 1 to 2147483647, found \"x\"", "verify",
                 "--msccl", broken),
                ("broken.xml:5: ", "run", "--msccl", broken),
                ("broken.xml:5: ", "simulate", "--msccl", broken),
                ("broken.xml:5: ", "explain", "--msccl", broken),
                ("broken.xml:5: ", "timeline", "--msccl", broken, "-o", "x.svg"),
                ("broken.xml:5: ", "tune", "--msccl", broken, "--ranks", "3"),
                (":1: expected \"num_ranks N\", found \"<!--\"", "verify", "--goal", xml),
                ("overtaking.goal:1: expected XML, found ", "verify", "--msccl", goal),
                ("expected a file that can be read", "verify", "--goal", "/nowhere"),
                ("--schedule excludes --msccl", "verify", "--msccl", xml, "--schedule", xml),
                ("--msccl excludes --goal", "simulate", "--msccl", xml, "--goal", goal),
                ("--chunk requires --msccl", "verify", "--chunk", "2"),
                ("expected a whole number from 1 to ", "verify", "--msccl", xml, "--chunk", "0"),
                ("expected a whole number from 1 to ", "verify", "--msccl", xml, "--buffered=0"),
                ("--fused excludes --buffered", "verify", "--msccl", xml, "--buffered", "--fused"),
                ("--buffered: expected --schedule, --msccl or --goal, found none", "verify",
                 "--buffered"),
                ("expected a schedule for 4 ranks, found one for 3", "run", "--msccl", xml,
                 "--ranks", "4"),
                ("expected an algorithm that runs in place", "run", "--msccl", xml, "--in-place"),
                ("--in-place requires --msccl", "verify", "--in-place"),
                ("--in-place requires --msccl", "verify", "--schedule", xml, "--in-place"),
                *[(f"--in-place excludes {form}", command, form, xml, "--in-place", *output)
                  for command, *output in (["explain"], ["timeline", "-o", "x.svg"])
                  for form in ("--schedule", "--goal")],
                ("--in-place excludes --from", "timeline", "--from", xml, "--in-place"),
                ("--dtype: expected none with --goal, which counts bytes, found f64", "simulate",
                 "--goal", goal, "--dtype", "f64"),
                ("--goal", "run", "--goal", goal),
                ("expected at most 134217728 elements (after division by 3, what all counts have in "
                 "common), found more: verify with smaller counts", "verify", "--goal", huge)]:
            with self.subTest(arguments=arguments):
                self.refused(sentence, *arguments)

    # --- GOAL ---------------------------------------------------------------------------------

    def test_goal_is_read_by_all_readers_but_run(self):
        file = str(self.samples / "overtaking.goal")
        self.assertEqual(self.output("verify", "--goal", file),
                         "# program goal on 2 ranks: 3 messages, 0 failures\n"
                         "# sends are synchronous, so the proof holds on any transport\n"
                         "# messages, order and hazards alone: a program promises no values\n")
        row = self.json("simulate", "--goal", file)["rows"][0]
        self.assertEqual((row["messages"], row["bytes_within_hosts"]), (3, 32))
        self.assertGreater(row["time_ns"], 1000)
        self.assertIn("compute 1000 other calc", self.output("explain", "--goal", file))
        svg = self.folder / "picture.svg"
        self.output("timeline", "--goal", file, "--network", "shared-memory", "-o", str(svg))
        self.assertEqual(len(re.findall("data-from=", svg.read_text())), 3)
        again = str(self.folder / "again.goal")
        self.output("timeline", "--goal", file, "-o", again)
        self.assertEqual(self.output("explain", "--goal", again, "--format", "text"),
                         self.output("explain", "--goal", file, "--format", "text"))

    def test_goal_that_deadlocks(self):
        rank = "rank {0} {{\nl1: recv 8b from {1}\nl2: send 8b to {1}\nl2 requires l1\n}}\n"
        file = self.file("waits.goal", "num_ranks 2\n" + rank.format(0, 1) + rank.format(1, 0))
        self.assertIn("deadlock: step 0 of rank 0", self.output("verify", "--goal", file,
                                                                "--buffered", code=1))
        sends = self.file("sends.goal", Path(file).read_text().replace("l2 requires l1",
                                                                       "l1 requires l2"))
        self.assertIn("deadlock: ", self.output("verify", "--goal", sends, code=1))
        self.assertIn("0 failures\n", self.output("verify", "--goal", sends, "--buffered"))

    # --- algorithms of shared objects and files -----------------------------------------------

    def test_registry(self):
        for arguments in (["verify", "--max-ranks", "5"], ["explain", "all_reduce"],
                          ["simulate", "all_reduce"], ["run", "all_reduce", "--bytes", "4K"]):
            with self.subTest(arguments=arguments):
                mine = [*arguments, "--algorithm", "there_and_back"]
                self.refused("expected an algorithm", *mine)
                self.assertIn("there_and_back", self.output(*mine, "--registry", self.algorithms))
        self.assertRegex(self.output("verify", "--max-ranks", "5", "--algorithm", "there_and_back",
                                     "--registry", self.algorithms), r"\d\d+ proofs over .*, 0 fail")
        self.assertIn("there_and_back", self.output("list", "all_reduce", "--registry",
                                                    self.algorithms))
        outdated, headless, idle, throwing, throwing_anything = self.refused_ones
        for sentence, *files in [
                (f"--registry {outdated}: expected one compiled with headers of version ", outdated),
                ("found 1.7", outdated),
                # Each object has a version of its own.
                (f"--registry {outdated}: expected one compiled with headers of version ",
                 self.algorithms, outdated),
                *[(f"--registry {file}: expected a shared object that includes "
                   "baton/own_algorithms.hpp, found no baton_headers in it", file)
                  for file in (headless, self.none)],
                (f"--registry {idle}: expected a shared object that defines baton_register, found "
                 "none", idle),
                (f"--registry {throwing}: expected algorithms of its baton_register, found an "
                 "exception: no algorithm today", throwing),
                (f"--registry {throwing_anything}: expected algorithms of its baton_register, found "
                 "an exception of an unknown type", throwing_anything),
                ("--registry /nowhere.so: expected a shared object, found /nowhere.so: cannot open",
                 "/nowhere.so"),
                ("--registry nowhere.so: expected a shared object, found ./nowhere.so: cannot open",
                 "nowhere.so"),
                ("\"there_and_back\" of all_reduce is registered already", self.algorithms,
                 self.algorithms)]:
            with self.subTest(files=files):
                self.refused(sentence, "list", *sum((["--registry", f] for f in files), []))

    def test_an_algorithm_that_is_not_proved(self):
        run = ["run", "broadcast", "--registry", self.flawed, "--algorithm", "silent", "--ranks", "2",
               "--bytes", "64", "--iters", "1", "--prove", "2"]
        self.assertIn("# broadcast silent, 2 ranks, ", self.output(*run, code=1))
        proved = self.json(*run, code=1)["proved"]
        self.assertEqual((proved["algorithms"], proved["failures"] > 0), (1, True))
        self.assertTrue(proved["first_failure"].startswith("broadcast silent, 2 ranks, "), proved)
        run[run.index("silent")] = "linear"
        self.assertIsNone(self.json(*run)["proved"]["first_failure"])

    def test_tuned_algorithms_are_used(self):
        # So slow, by estimate, that a built-in algorithm would not be tried.
        schedule = self.file("mine.txt", (self.examples / "there_and_back.txt").read_text()
                             .replace("there_and_back", "mine")
                             .replace("rank 0\n", "rank 0\n" + 300 *
                                      "send 1 input[0:1]\nrecv 1 scratch[0:1]\n", 1)
                             .replace("rank 1\n", "rank 1\n" + 300 *
                                      "recv 0 scratch[0:1]\nsend 0 scratch[0:1]\n", 1))
        file = str(self.folder / "table.txt")
        self.output("tune", "all_reduce", "--ranks", "3", "--bytes", "16:64", "--repeats", "1",
                    "--schedule", schedule, "--msccl", str(self.samples / "fused_ring.xml"),
                    "--registry", self.algorithms, "--output", file)
        text = Path(file).read_text()
        for name, sizes in [("mine", ["16 B", "32 B", "48 B"]),  # of 4 elements
                            ("fused_ring", ["48 B"]),            # of 3
                            ("there_and_back", ["16 B", "32 B", "48 B"])]:
            self.assertEqual(re.findall(rf"(?m)^# {name}, all_reduce of (.*) f32: [\d.]+ times the "
                                        "best one's time$", text), sizes)
        table = self.file("own.txt", re.sub(r"(?m)^(all_reduce +0 +)\w+.*\n(all_reduce.*\n)*",
                                            r"\1there_and_back 0\n", text))
        row, = self.json("run", "all_reduce", "--ranks", "3", "--bytes", "1K", "--registry",
                         self.algorithms, BATON_TABLE=table)["rows"]
        self.assertEqual((row["algorithm"], row["wrong"]), ("there_and_back", 0))
        self.refused("expected an algorithm of all_reduce (", "run", "all_reduce", "--ranks", "3",
                     BATON_TABLE=table)

    def test_small_sizes_stay_small_beside_a_schedule_with_a_unit(self):
        schedule = self.file("mine.txt", (self.examples / "there_and_back.txt").read_text()
                             .replace("there_and_back", "mine"))  # of 4 elements
        tuned = ["tune", "all_reduce", "--ranks", "3", "--repeats", "1", "--schedule", schedule]
        text = self.output(*tuned, "--bytes", "4:64")
        self.assertEqual(re.findall(r"(?m)^# mine, all_reduce of (\S+ \S+) f32: (.*?)(?:$|[\d.]+ )",
                                    text),
                         [("4 B", "does not serve it"), ("8 B", "does not serve it"), ("16 B", ""),
                          ("32 B", ""), ("64 B", "")])
        self.refused("--bytes: expected a largest size of at least 16, as the schedules of all_reduce "
                     "serve multiples of 16 bytes, found 15", *tuned, "--bytes", "15")
        prime = [self.file(f"{count}.txt", "baton-schedule 1\ncollective broadcast\n"
                           f"algorithm one_{count}\nsize 2\ninput 0\noutput {count}\nin_place\n"
                           f"rank 0\nsend 1 output[0:{count}]\nrank 1\nrecv 0 output[0:{count}]\n")
                 for count in (2147483629, 2147483587)]
        self.refused(f"{prime[1]}: expected numbers of elements with a common multiple of at most "
                     "281474976710656, found 2147483629 and 2147483587", "tune", "broadcast", "--ranks", "2",
                     *sum((["--schedule", file] for file in prime), []))

    def test_what_tune_refuses(self):
        schedule = str(self.examples / "there_and_back.txt")
        flawed = self.file("flawed.txt", Path(schedule).read_text().replace("send 2 output[0:4]",
                                                                            "send 2 input[0:4]"))
        rooted = self.file("rooted.txt", self.output("explain", "broadcast", "--ranks", "3",
                                                     "--root", "1", "--format", "text"))
        built_in = self.file("ring.txt", self.output("explain", "all_reduce", "--algorithm", "ring",
                                                     "--ranks", "3", "--format", "text"))
        for sentence, *arguments in [
                (f"{schedule}: expected schedules for 2 ranks, found those for 3", "--ranks", "2",
                 "--schedule", schedule),
                (f"{flawed}: there_and_back: expected schedules that are proved, found ",
                 "--ranks", "3", "--schedule", flawed),
                (f"{rooted}: expected root 0, for which rooted collectives are tuned, found 1",
                 "--ranks", "3", "--schedule", rooted),
                (f"{built_in}: algorithm \"ring\" of all_reduce is registered already", "--ranks",
                 "3", "--schedule", built_in)]:
            with self.subTest(arguments=arguments):
                self.refused(sentence, "tune", "all_reduce", "--bytes", "8", *arguments)


if __name__ == "__main__":
    OwnSchedules.samples, OwnSchedules.examples = Path(sys.argv[1]), Path(sys.argv[5])
    OwnSchedules.algorithms, OwnSchedules.none = sys.argv[2:4]
    *OwnSchedules.refused_ones, OwnSchedules.flawed = sys.argv[6:12]
    run_tests(OwnSchedules, [sys.argv[4]])
