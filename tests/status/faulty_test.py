"""Processes of which one does not come to a collective: every survivor names it, and `baton status` shows
it, too.

Usage: faulty_test.py BATON FAULTY [machines | cluster SCRIPT | mpirun ARGUMENT...]
Without mpirun, processes meet by UCX. machines: even and odd ranks have a /dev/shm each, so they see each
other as those of two machines do. cluster: mpirun starts them on virtual hosts, by scripts/virtual-cluster."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from ports import free_port  # noqa: E402

BATON, FAULTY, *MPIRUN = sys.argv[1:]
CLUSTER = []
if MPIRUN[:1] == ["cluster"]:
    CLUSTER = [MPIRUN[1], "--name", f"faulty-{os.getpid()}"]
MACHINES = bool(CLUSTER) or MPIRUN == ["machines"]
if MACHINES:
    BATON, FAULTY = str(Path(BATON).resolve()), str(Path(FAULTY).resolve())
    os.environ["BATON_INTERFACE"] = ""  # all; and ranks answer others also without a timeout
    if not CLUSTER:
        MPIRUN = []
        os.environ["BATON_UCX_TLS"] = "tcp,self"
        if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
            sys.exit(77)
SECONDS = 60
SIZES = [4, 7] if MACHINES else [2, 4, 7]

# A launcher of MPI programs ends the job where a process ends.
FAULTS = {
    "sleeps": ["has not entered it (last: broadcast #", "its process is alive and sleeps"],
    "computes": ["has not entered it (last: broadcast #", "its process is alive and computes"],
    "stopped": ["has not entered it (last: broadcast #", "its process is stopped"],
    "leaves": ["has left the communicator (its process is alive"],
    "differs": ["ranks disagree about it: ", "all_gather of 1000 f32", "on rank "],
} | ({} if MPIRUN else {
    "killed": ["has not entered it (last: broadcast #", "its process has ended with signal 9"],
    "exits": ["has not entered it (last: broadcast #", "its process has ended"],
})


def setUpModule():
    if CLUSTER and (status := subprocess.run([*CLUSTER, "up", "4", "1gbit"]).returncode) != 0:
        sys.exit(77 if status == 3 else 1)


def tearDownModule():
    if CLUSTER:
        subprocess.run([*CLUSTER, "down"], check=True)


class Faults(unittest.TestCase):
    def start(self, folder, fault, culprit, size, timeout=2, program=FAULTY, **more):
        environment = os.environ | {"BATON_TIMEOUT": str(timeout)} | more
        command = [program, folder, fault, str(culprit)]
        if CLUSTER:
            alone = ["--per-host", "1" if size == 2 else "2", str(size)]
            commands = [[*CLUSTER, "run", *alone, *command]]
        elif MPIRUN:
            commands = [[*MPIRUN[:1], "-n", str(size), *MPIRUN[1:], *command]]
        else:
            address = f"127.0.0.1:{free_port()}"
            commands = [[*self.machine(folder, r), *command, str(r), str(size), address] for r in range(size)]
        return [subprocess.Popen(c, env=environment, start_new_session=True) for c in commands]

    def machine(self, folder, rank):
        """The command that starts a process of UCX on its machine."""
        if not MACHINES:
            return []
        memory = Path(folder) / f"shm{rank % 2}"
        memory.mkdir(exist_ok=True)
        return ["unshare", "-m", "--propagation", "private", "sh", "-c",
                'mount --bind "$0" /dev/shm && exec "$@"', str(memory)]

    def end(self, processes, members):
        # Not waited for before: the system tells how a process ended as long as nobody has asked.
        for member in members:
            try:
                os.kill(member, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for process in processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()

    def wait_for(self, done, what):
        end = time.monotonic() + SECONDS
        while not done():
            self.assertLess(time.monotonic(), end, f"expected {what}")
            time.sleep(0.01)

    def status(self, process):
        done = subprocess.run([*self.inside(process), BATON, "status", "--json", self.number_inside(process)],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        (one,) = json.loads(done.stdout)
        return one

    def inside(self, process):
        """The command that runs another one on a process's machine."""
        spaces = ["-m", "-p", "-n"] if CLUSTER else ["-m"]
        return ["nsenter", *spaces, "-t", str(process)] if MACHINES else []

    def number_inside(self, process):
        """The number that a process has on its machine."""
        return re.search(r"^NSpid:.*?(\d+)$", Path(f"/proc/{process}/status").read_text(errors="replace"), re.M)[1]

    def process(self, folder, inside):
        """The process of a job that has this number on its machine; None: it has ended."""
        if not CLUSTER:
            return int(inside)
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_text(errors="replace").split("\0")
                if words[:2] == [FAULTY, str(folder)] and self.number_inside(process.name) == inside:
                    return int(process.name)
            except OSError:
                pass  # it has ended
        return None

    def each(self, check, cases):
        """Calls check(*case) for all cases, some at a time: a job mostly waits for its timeout."""
        with ThreadPoolExecutor(4) as pool:
            for case, done in [(case, pool.submit(check, *case)) for case in cases]:
                with self.subTest(case=case):
                    done.result()

    def members(self, folder):
        texts = [file.read_text() for file in Path(folder).glob("process*")]
        found = [self.process(folder, text.strip()) for text in texts if text.endswith("\n")]
        return [process for process in found if process is not None]

    def test_every_survivor_names_the_culprit(self):
        self.each(self.names_the_culprit, [(size, fault) for size in SIZES for fault in FAULTS])

    def names_the_culprit(self, size, fault):
        expected = FAULTS[fault]
        culprit = size // 2
        with tempfile.TemporaryDirectory() as folder:
            processes = self.start(folder, fault, culprit, size)
            try:
                survivors = [r for r in range(size) if r != culprit or fault == "differs"]
                self.wait_for(lambda: len(self.members(folder)) == size and
                              all((Path(folder) / str(r)).exists() for r in survivors),
                              f"the files of ranks {survivors}, found {os.listdir(folder)}")
                sentences = {(Path(folder) / str(r)).read_text() for r in survivors}
                self.assertEqual(len(sentences), 1, sentences)
                (sentence,) = sentences
                print(f"{size} ranks, {fault}: {sentence}")
                for part in ["#", "of communicator 'world' ", *expected]:
                    self.assertIn(part, sentence)
                # Where a message has another length, or a connection ends, a rank finds it at once.
                at_once = ["leaves", "differs", *(["killed", "exits"] if MACHINES else [])]
                found = "failed: " in sentence and fault in at_once
                if not found:
                    # The end of a process is noticed before the timeout.
                    seconds = "2" if fault in ["sleeps", "computes", "stopped", "differs"] else r"\S+"
                    self.assertRegex(sentence, rf"cannot complete \(no progress for {seconds} s\): ")
                self.assertIn(f"rank {culprit}", sentence)
                self.assertNotIn("on another machine", sentence)
                # The view from outside is the same.
                for r in survivors:
                    own = self.process(folder, (Path(folder) / f"process{r}").read_text().strip())
                    ranks = {rank["rank"]: rank for rank in self.status(own)["ranks"]}
                    self.assertEqual(ranks[r]["verdict"], sentence)
                    self.assertIsNone(ranks[r]["operations"][-1]["end_ns"])
                    self.assertIn(ranks[r]["life"], ["runs", "sleeps"])
                    gone = {culprit} if fault in ["leaves", "exits", "killed"] else set()
                    self.assertEqual(ranks.keys() | gone, set(range(size)))
                    if fault in ["stopped", "killed"] and culprit in ranks:
                        self.assertEqual(ranks[culprit]["life"],
                                         "stopped" if fault == "stopped" else "ended")
                    if fault != "leaves" and culprit in ranks:
                        self.assertIn(expected[-1] if len(expected) == 2 else "",
                                      ranks[culprit]["condition"])
            finally:
                self.end(processes, self.members(folder))

    @unittest.skipUnless(MACHINES, "needs a machine for each rank")
    def test_a_rank_alone_on_its_machine(self):
        cases = [("sleeps", "its process is alive and sleeps"), ("leaves", "has left the communicator"),
                 ("stopped", "it runs on another machine and does not answer"),
                 ("killed", "its process has ended|its machine refuses connections")]
        self.each(self.names_a_rank_alone, [case for case in cases if case[0] in FAULTS])

    def names_a_rank_alone(self, fault, expected):
        with tempfile.TemporaryDirectory() as folder:
            processes = self.start(folder, fault, 1, 2)
            try:
                file = Path(folder) / "0"
                self.wait_for(file.exists, "a sentence of rank 0")
                print(f"alone, {fault}: {file.read_text()}")
                self.assertRegex(file.read_text(), f"rank 1.*({expected})")
            finally:
                self.end(processes, self.members(folder))

    def test_without_a_timeout_the_end_of_a_rank_is_noticed(self):
        faults = [fault for fault in ["leaves", "killed", "exits"] if fault in FAULTS]
        self.each(self.notices_the_end, [(size, fault) for size in SIZES for fault in faults])

    def notices_the_end(self, size, fault):
        culprit = size - 1
        with tempfile.TemporaryDirectory() as folder:
            processes = self.start(folder, fault, culprit, size, timeout=0)
            try:
                files = [Path(folder) / str(r) for r in range(size - 1)]
                self.wait_for(lambda: all(f.exists() for f in files), f"{size - 1} files")
                sentences = {f.read_text() for f in files}
                self.assertEqual(len(sentences), 1, sentences)
                self.assertRegex(sentences.pop(), f"rank {culprit} .*"
                                 "(has left the communicator|its process has ended)")
            finally:
                self.end(processes, self.members(folder))

    def test_survivors_go_on(self):
        self.each(self.goes_on, [(size, fault) for size in SIZES for fault in FAULTS])

    def goes_on(self, size, fault):
        culprit = 0 if size == 4 else size // 2
        with tempfile.TemporaryDirectory() as folder:
            processes = self.start(folder, fault + ",shrink", culprit, size)
            try:
                survivors = [r for r in range(size) if r != culprit or fault == "differs"]
                files = [Path(folder) / f"shrunk{r}" for r in survivors]
                self.wait_for(lambda: all(f.exists() for f in files),
                              f"the files of ranks {survivors}")
                self.assertEqual([f.read_text() for f in files],
                                 [f"{len(survivors)} {len(survivors)}"] * len(survivors))
            finally:
                self.end(processes, self.members(folder))

    def test_status_shows_a_running_hang(self):
        with tempfile.TemporaryDirectory() as folder:
            program = FAULTY
            if not CLUSTER:  # where processes are found by their program
                program = os.fsencode(folder) + b"/faulty-caf\xe9"  # a name that is not UTF-8
                os.symlink(Path(FAULTY).resolve(), program)
            processes = self.start(folder, "sleeps", 0, 2, program=program)
            try:
                self.wait_for(lambda: self.waiting(folder, 1), "a rank that waits")
                first = self.members(folder)[0]
                status = [*self.inside(first), BATON, "status"]
                asked = [self.number_inside(first)]
                if not CLUSTER:  # there the launcher has another namespace
                    asked.append(str(processes[0].pid if MPIRUN else os.getpid()))
                for process in asked:
                    found = subprocess.run([*status, process, "--json"], capture_output=True, text=True,
                                           check=True).stdout
                    self.assertEqual([r["here"] for c in json.loads(found) for r in c["ranks"]].count(False),
                                     1 if MACHINES else 0)
                text = subprocess.run([*status, asked[0], "--operations", "2"], capture_output=True,
                                      text=True, errors="replace").stdout
                self.assertIn("communicator 'world', 2 ranks\n", text)
                self.assertEqual(text.count("of another machine"), 1 if MACHINES else 0)
                text = text.replace(" of another machine", "")
                self.assertRegex(text, r"rank 0, process \d+ \(faulty\S*\): in no operation; last #\d+ broadcast of "
                                       r"1000 f32, root 0 \(\S+\), finished \d+\.\d s ago; its process is alive "
                                       r"and sleeps")
                self.assertRegex(text, r"rank 1, process \d+ \(faulty\S*\): in #\d+ all_reduce of 1000 f32, sum "
                                       r"\(ring\) for \d+\.\d s; waits for rank 0 \(step \d+: recv")
                self.assertRegex(text, r"    \d+\.\d s ago: #\d+ broadcast of 1000 f32, root 0 \(\S+\), [\d.]+ us")
                self.assertRegex(text, r"    \d+\.\d s ago: #\d+ all_reduce of 1000 f32, sum \(ring\), under way")
                trace = str(Path(folder) / "last.trace")
                subprocess.run([*status, asked[0], "-o", trace], check=True)
                contents = subprocess.run([BATON, "timeline", "--from", trace], capture_output=True, text=True,
                                          check=True).stdout
                self.assertIn("broadcast of 1000 f32, root 0", contents)
                self.assertIn("all_reduce of 1000 f32, sum (ring), under way", contents)
            finally:
                self.end(processes, self.members(folder))

    def waiting(self, folder, rank):
        """The messages that a rank of two waits for, in words; None: none yet."""
        members = self.members(folder)
        if len(members) < 2:
            return None
        return {r["rank"]: r for r in self.status(members[0])["ranks"]}[rank]["waits"]

    @unittest.skipUnless(MPIRUN, "needs a transport with blocking calls")
    def test_status_shows_a_wait_inside_a_blocking_call(self):
        with tempfile.TemporaryDirectory() as folder:
            processes = self.start(folder, "sleeps,broadcast", 0, 2, timeout=0, BATON_TRANSPORT="mpi")
            try:
                self.wait_for(lambda: self.waiting(folder, 1), "a rank that waits")
                self.assertEqual(self.waiting(folder, 1), "waits for rank 0 (step 0: recv)")
            finally:
                self.end(processes, self.members(folder))

    def test_a_process_without_a_communicator_is_refused(self):
        done = subprocess.run([BATON, "status", str(os.getpid())], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, "baton: status: expected a process of this user with a communicator, or one "
                                      f"that started such a process, found none with number {os.getpid()}\n")


unittest.main(argv=sys.argv[:1], verbosity=2)
