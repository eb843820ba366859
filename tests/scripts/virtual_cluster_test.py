"""Usage: virtual_cluster_test.py SCRIPT PROBE

Exit code 77, after the tests of arguments, where no cluster can be made.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SCRIPT, PROBE = sys.argv[1:]
CLUSTER = f"test-{os.getpid()}"
HOSTS = 3
RATE, BYTES_PER_SECOND = "100mbit", 100e6 / 8
MARK = {"BATON_TEST_MARK": CLUSTER}  # all that a test starts has it in its environment


def start(*arguments, **how):
    return subprocess.Popen([SCRIPT, "--name", CLUSTER, *arguments], text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, start_new_session=True,
                            **{"env": os.environ | MARK, **how})


def finish(process):
    out, err = process.communicate(timeout=120)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def call(*arguments, **how):
    return finish(start(*arguments, **how))


def wait_until(condition):
    """Whether it holds within a minute."""
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def processes():
    """Those that a test started and that still run."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"BATON_TEST_MARK={CLUSTER}\0" in (folder / "environ").read_text(errors="replace"):
                found.append((folder / "cmdline").read_text().replace("\0", " "))
        except OSError:
            pass  # it has ended
    return found


def interfaces():
    return {link["ifname"] for link in json.loads(subprocess.check_output(["ip", "-j", "link"]))}


def remains(cluster=CLUSTER):
    """What there is of a cluster."""
    mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if cluster in line]
    files = [*Path("/run/netns").glob(f"{cluster}.*"), *Path("/run/baton-cluster").glob(cluster)]
    return mounts + files


class Arguments(unittest.TestCase):
    def test_help(self):
        done = call("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for command in ("up", "run", "on", "down", "with"):
            self.assertRegex(done.stdout, rf"virtual-cluster (\[--name NAME\] )?{command}\b")

    def test_errors_are_one_sentence(self):
        for sentence, *arguments in [
                ("expected up, run, on, with or down, found none", ),
                ("expected up, run, on, with or down, found 'start'", "start"),
                ("expected HOSTS and RATE after 'up'", "up", "3"),
                ("expected nothing after HOSTS and RATE, found '4'", "up", "3", "1gbit", "4"),
                ("expected HOSTS from 1 to 250, found '0'", "up", "0", "1gbit"),
                ("expected HOSTS from 1 to 250, found '251'", "up", "251", "1gbit"),
                ("expected a rate like 1gbit or 100mbit, found '1'", "up", "3", "1"),
                ("expected RANKS from 1 to 100000, found 'true'", "run", "true", "true"),
                ("expected RANKS and a program", "run", "3"),
                ("expected --per-host from 1 to 1000, found '0'", "run", "--per-host", "0", "3"),
                ("expected --per-host, --mpi or a number, found '--hosts'",
                 "run", "--hosts", "3", "3"),
                ("expected --mpi openmpi or mpich, found 'lam'", "run", "--mpi", "lam", "3", "true"),
                ("expected --per-host 1 with --mpi mpich, found 2",
                 "run", "--mpi", "mpich", "--per-host", "2", "3", "true"),
                ("--name: expected letters, digits, '-' and '_', found 'a/b'", "--name", "a/b"),
                ("expected HOSTS, RATE and a program", "with", "3", "1gbit"),
                ("expected nothing after 'down', found '3'", "down", "3")]:
            if arguments[:1] == ["--name"]:
                done = finish(subprocess.Popen([SCRIPT, *arguments], text=True, env=os.environ,
                                               stdout=subprocess.PIPE, stderr=subprocess.PIPE))
            else:
                done = call(*arguments)
            with self.subTest(arguments=arguments):
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertIn(sentence, done.stderr)


class Cluster(unittest.TestCase):
    """Of three hosts, which every test leaves as it found it."""

    @classmethod
    def setUpClass(cls):
        cls.interfaces_before = interfaces()

    def setUp(self):
        done = call("up", str(HOSTS), RATE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(interfaces(), self.interfaces_before)

    @classmethod
    def tearDownClass(cls):
        call("down")

    def run_ranks(self, ranks, *program, options=(), code=0, **how):
        """The lines that they printed, in no order."""
        done = call("run", *options, str(ranks), *program, **how)
        self.assertEqual(done.returncode, code, done.stderr)
        return sorted(done.stdout.splitlines())

    def counters(self, host):
        done = call("on", host, "tc", "-s", "-j", "qdisc", "show", "dev", "eth0")
        return json.loads(done.stdout)[0]

    def test_ranks_are_on_hosts(self):
        self.assertEqual(self.run_ranks(3, PROBE), ["host0 1", "host1 1", "host2 1"])
        self.assertEqual(self.run_ranks(5, PROBE, options=("--per-host", "2")),
                         ["host0 2", "host0 2", "host1 2", "host1 2", "host2 1"])

    @unittest.skipUnless(shutil.which("mpirun.mpich"), "needs MPICH")
    def test_other_mpi(self):
        lines = self.run_ranks(2, "sh", "-c", 'echo "$PMI_RANK of $PMI_SIZE on $(hostname)"',
                               options=("--mpi", "mpich"))
        self.assertEqual(lines, ["0 of 2 on host0", "1 of 2 on host1"])

    def test_more_ranks_than_room(self):
        done = call("run", "--per-host", "2", "7", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn("expected at most 6 ranks, 2 on each of 3 hosts, found 7", done.stderr)

    def test_ranks_see_what_the_caller_does(self):
        with tempfile.TemporaryDirectory(prefix="with blank ") as folder:
            lines = self.run_ranks(3, "sh", "-c", 'echo "$(hostname) $BATON_X in $PWD"', cwd=folder,
                                   env=os.environ | MARK | {"BATON_X": "a  'b\" $c"})
        self.assertEqual(lines, [f"host{h} a  'b\" $c in {folder}" for h in range(HOSTS)])

    def test_options_of_mpirun(self):
        lines = self.run_ranks(2, "-x", "OWN=1 2", "--host", "host2,host1", "sh", "-c",
                               'echo "$(hostname) $OWN"')
        self.assertEqual(lines, ["host1 1 2", "host2 1 2"])

    def test_exit_code_is_the_programs(self):
        self.run_ranks(2, "sh", "-c", "exit 7", code=7)
        self.assertEqual(call("on", "host1", "sh", "-c", "exit 7").returncode, 7)

    def test_one_host(self):
        done = call("on", "host1", "printf", "%s|", "a  b", "'", "$c")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "a  b|'|$c|", ""))
        self.assertEqual(call("on", "host2", "hostname").stdout, "host2\n")
        self.assertIn("expected a host from host0 to host2, found 'host3'",
                      call("on", "host3", "hostname").stderr)

    def test_links_are_no_faster_than_their_rate(self):
        """Both ways, for large and for small messages, nothing lost. A link that is not limited
        is far faster; that a busy machine makes it slower is no failure."""
        for size, message in [(2 << 20, 64 << 10), (512 << 10, 1 << 10)]:
            through_host_0 = (HOSTS - 1) * size
            before = self.counters("host0")
            for line in self.run_ranks(HOSTS, PROBE, str(size), str(message)):
                pattern, seconds = line.split()
                with self.subTest(pattern=pattern, message=message):
                    self.assertGreater(float(seconds), 0.9 * through_host_0 / BYTES_PER_SECOND)
            after = self.counters("host0")
            self.assertGreater(after["bytes"] - before["bytes"], 2 * through_host_0)
            self.assertEqual(after["drops"], 0)

    def test_second_up(self):
        self.assertIn("3 hosts at 100mbit are up already", call("up", "3", RATE).stdout)
        done = call("up", "2", RATE)
        self.assertEqual(done.returncode, 2)
        self.assertIn("expected no cluster", done.stderr)
        self.assertIn("or one of 2 hosts at 100mbit, found 3 at 100mbit", done.stderr)

    def test_interrupted_run_leaves_no_process(self):
        ranks = ["sh", "-c", "echo started; sleep 1000 & sleep 1000"]
        for ending, by_group, code in [(signal.SIGINT, True, 130), (signal.SIGINT, False, 130),
                                       (signal.SIGTERM, False, 143), (signal.SIGHUP, True, 129),
                                       (signal.SIGKILL, False, -signal.SIGKILL)]:
            with self.subTest(signal=ending, by_group=by_group):
                running = start("run", "3", *ranks)
                for _ in range(HOSTS):
                    self.assertEqual(running.stdout.readline(), "started\n")
                self.assertTrue(processes())
                (os.killpg if by_group else os.kill)(running.pid, ending)
                finish(running)
                self.assertEqual(running.returncode, code)
                if ending == signal.SIGKILL:  # the kernel alone cleans up, in its own time
                    self.assertTrue(wait_until(lambda: not processes()), processes())
                self.assertEqual(processes(), [])
        self.assertEqual(self.run_ranks(3, "hostname"), ["host0", "host1", "host2"])

    def test_down_leaves_nothing(self):
        running = start("run", "3", "sh", "-c", "echo started; sleep 1000")
        running.stdout.readline()
        for _ in range(2):
            done = call("down")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
            self.assertEqual(remains(), [])
        self.assertNotEqual(finish(running).returncode, 0)
        self.assertEqual(processes(), [])
        self.assertEqual(interfaces(), self.interfaces_before)
        done = call("run", "3", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn("that is up, found none", done.stderr)

    def test_interrupted_up_leaves_nothing(self):
        call("down")
        for ending in signal.SIGINT, signal.SIGTERM:
            with self.subTest(signal=ending):
                rising = start("up", "250", RATE)
                third = Path(f"/run/netns/{CLUSTER}.host2")
                self.assertTrue(wait_until(third.exists))
                done = call("run", "3", "true")
                self.assertEqual(done.returncode, 2)
                self.assertIn("found one half made", done.stderr)
                os.killpg(rising.pid, ending)
                finish(rising)
                self.assertEqual(rising.returncode, 128 + ending)
                self.assertEqual(remains(), [])
        self.assertEqual(interfaces(), self.interfaces_before)

    def test_killed_up_is_removed_by_down(self):
        call("down")
        rising = start("up", "250", RATE)
        self.assertTrue(wait_until(Path(f"/run/netns/{CLUSTER}.host2").exists))
        os.killpg(rising.pid, signal.SIGKILL)
        finish(rising)
        done = call("up", str(HOSTS), RATE)
        self.assertEqual(done.returncode, 2)
        self.assertIn("found one half made; 'down' removes it", done.stderr)
        self.assertEqual(call("down").returncode, 0)
        self.assertEqual(remains(), [])

    def test_with_a_cluster_of_its_own(self):
        done = call("with", "--per-host", "2", "2", RATE, PROBE)
        self.assertEqual(sorted(done.stdout.splitlines()), ["host0 2"] * 2 + ["host1 2"] * 2)
        self.assertEqual(call("with", "2", RATE, "sh", "-c", "exit 7").returncode, 7)

        running = start("with", "2", RATE, "sh", "-c", "echo started; sleep 1000")
        own = f"baton-{running.pid}"
        running.stdout.readline()
        self.assertTrue(remains(own))
        os.killpg(running.pid, signal.SIGINT)
        finish(running)
        self.assertEqual(running.returncode, 130)
        self.assertEqual((remains(own), processes()), ([], []))
        self.assertEqual(call("on", "host0", "hostname").stdout, "host0\n")


def passes(test):
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(test)
    assert suite.countTestCases() > 0
    return unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful()


def main():
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which nohup would have its children ignore
    if not passes(Arguments):
        return 1
    possible = call("up", str(HOSTS), RATE)
    if possible.returncode == 3:
        print("skipped:", possible.stderr.strip())
        return 77
    return 0 if passes(Cluster) else 1


sys.exit(main())
