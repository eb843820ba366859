"""Faults of processes: a job of tests/faults/job.cpp over UCX or shared memory, one fault in it, and the
judgement of its course. Used by processes_test.py and scripts/soak.py."""

import contextlib
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from ports import free_port  # noqa: E402

PATIENCE = 120  # seconds for any expected event
ENDED, STOPPED = "its process has ended", "its process is stopped"
# A process that is killed or stopped while it writes a message into UCX's shared memory blocks the queue of
# the receiver: no later message reaches that. It must say so and leave, and the others go on. Our own shared
# memory has no such queue.
DEAF = "receives nothing from"


class Skipped(Exception):
    """The machine does not allow the fault."""


@dataclass
class Outcome:
    happened: int = 0   # faults
    hits: int = 0       # ranks that were killed or stopped
    survivors: int = 0  # ranks that went on, over all faults
    seconds: list = field(default_factory=list)  # from the fault until a rank had the sentence
    deaf: int = 0       # ranks that ended since nothing reached them any more
    problems: list = field(default_factory=list)
    skipped: str = ""


def where(sentence):
    """The communicator that a sentence is about. A message names its peer, whoever that waits for."""
    label = re.search(r"of communicator '([^']*)'", sentence)
    return "messages" if re.match("(send|recv) ", sentence) else label and label[1]


@dataclass
class Event:
    time: float
    kind: str
    text: str


class Mounts:
    """A mount namespace with file systems in memory of these sizes, {path: size}; paths exist."""

    def __init__(self, sizes):
        mounts = " && ".join(f"mount -t tmpfs -o size={size} tmpfs '{path}'" for path, size in sizes.items())
        self.holder = subprocess.Popen(["unshare", "-m", "--propagation", "private", "sh", "-c",
                                        f"{mounts} && echo ready && exec sleep infinity"],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "ready\n":
            raise Skipped("no mount namespaces: " + self.holder.stderr.read().strip())
        self.prefix = ["nsenter", "-m", "-t", str(self.holder.pid), f"--wd={os.getcwd()}"]

    def seen(self, path):
        """The path in the namespace, from outside."""
        return Path(f"/proc/{self.holder.pid}/root{path}")

    def fill(self, path):
        """Removes all files and uses up the space."""
        for file in self.seen(path).iterdir():
            file.unlink(missing_ok=True)  # a part of a file may be replaced meanwhile
        self.fill_up(path)

    def fill_up(self, path):
        """Uses up the space that is left."""
        with open(self.seen(path) / "filler", "ab", buffering=0) as file:
            for size in [1 << 16, 1 << 12, 1]:
                with contextlib.suppress(OSError):
                    while file.write(bytes(size)):
                        pass

    def empty(self, path):
        (self.seen(path) / "filler").unlink()

    def remount(self, path, how):
        for _ in range(1000):  # refused while a file is open for writing
            if subprocess.run([*self.prefix, "mount", "-o", f"remount,{how}", path],
                              capture_output=True).returncode == 0:
                return
            time.sleep(0.01)
        raise Skipped(f"cannot be mounted again as {how}")

    def end(self):
        self.holder.kill()
        self.holder.communicate()


class Job:
    """Processes of the program `job`; a context that ends them."""

    def __init__(self, program, over, size, outcome, way=None, mounts=None, prefix=(), environment=None):
        self.program, self.over, self.size, self.outcome, self.way = program, over, size, outcome, way
        self.mounts = {"files": "1m"} | mounts if mounts else {}  # of "/dev/shm", too: sizes
        self.prefix, self.environment = list(prefix), environment or {}
        self.lost, self.deaf = set(), set()
        self.failed_in = {}  # by rank: the communicator in which it noticed the last loss
        self.quiet = True  # nothing may be written to standard error

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        # In memory: on a busy disk a rank can wait for its file for as long as others wait for the rank.
        memory = "/dev/shm" if "/dev/shm" not in self.mounts and os.path.isdir("/dev/shm") else None
        folder = tempfile.TemporaryDirectory(prefix="faults-", dir=memory)
        self.folder = Path(self.stack.enter_context(folder))
        self.files = self.folder / "files"
        self.files.mkdir()
        self.space = None
        if self.mounts:
            paths = {str(self.folder / path): size for path, size in self.mounts.items()}  # "/…" stays
            self.space = Mounts(paths)
            self.stack.callback(self.space.end)
            self.prefix = self.space.prefix + self.prefix
        self.processes = []
        return self

    def start(self):
        address = f"127.0.0.1:{free_port()}"
        files = {name: str(self.folder / value) if name in ["BATON_TRACE", "BATON_FLIGHT"] else value
                 for name, value in self.environment.items()}
        for rank in range(self.size):
            command = [*self.prefix, self.program, self.over, str(self.folder), str(rank), str(self.size),
                       address]
            with open(self.folder / f"{rank}.stderr", "w") as errors:
                self.processes.append(subprocess.Popen(command + [self.way] * bool(self.way), stderr=errors,
                                                       stdout=subprocess.DEVNULL,  # UCX warns there
                                                       env=os.environ | files))
        return self

    def __exit__(self, *exception):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        self.stack.close()

    @staticmethod
    def now():
        return time.monotonic()

    def problem(self, text):
        self.outcome.problems.append(text)

    def events(self, rank, since=0.0, kind=None):
        found = []
        with contextlib.suppress(FileNotFoundError):
            for line in (self.folder / f"{rank}.log").read_text().split("\n")[:-1]:
                at, what, text = line.split(" ", 2)
                if float(at) >= since and kind in [None, what]:
                    found.append(Event(float(at), what, text.rstrip()))
        return found

    def left(self):
        return [rank for rank in range(self.size) if rank not in self.lost]

    def last_events(self, number=3):
        """Of each rank that is left, seconds ago: the last, and the last before them that are no rounds."""
        now = self.now()
        last = {}
        for rank in self.left():
            events = self.events(rank)
            others = [event for event in events[:-number] if event.kind != "round"]
            last[rank] = [f"{now - event.time:.1f} s ago: {event.kind} {event.text}"
                          for event in others[-number:] + events[-number:]]
        return last

    def wait_for(self, done, what, pause=0.02):
        end = time.monotonic() + PATIENCE
        while not done():
            if time.monotonic() > end:
                raise TimeoutError(f"expected {what}, found {self.last_events()}")
            for rank in self.left():
                if self.processes[rank].poll() is not None:
                    if self.is_deaf(rank):
                        continue
                    raise ChildProcessError(f"expected {what}, found rank {rank} ended with code "
                                            f"{self.processes[rank].returncode}, {self.said(rank)!r}, "
                                            f"{self.last_events()}")
            time.sleep(pause)

    def is_deaf(self, rank):
        """Counts a rank as lost that has left for this reason: at most one for each that was hit."""
        late = [event.text for event in self.events(rank, kind="late")]
        if (self.over == "shm" or self.processes[rank].returncode != 3 or len(late) != 1
                or DEAF not in late[0] or self.outcome.deaf == self.outcome.hits):
            return False
        self.outcome.deaf += 1
        self.lost.add(rank)
        self.deaf.add(rank)
        return True

    def have_completed(self, rounds, since):
        size = str(len(self.left()))
        return all(sum(event.text.split()[2] == size for event in self.events(rank, since, "round")) >= rounds
                   for rank in self.left())

    def run_on(self, rounds=2, since=None):
        """Waits until all ranks have completed further rounds."""
        since = self.now() if since is None else since
        self.wait_for(lambda: self.have_completed(rounds, since),
                      f"{rounds} rounds of {len(self.left())} ranks")

    def said(self, rank):
        return (self.folder / f"{rank}.stderr").read_text()

    def rank_now(self, rank):
        """A rank's number in the communicator in use."""
        return int(self.events(rank, kind="round")[-1].text.split()[1])

    def lose(self, victim, number, text, same=True):
        """Sends the signal; all others must name the rank, in the same words, and go on without it."""
        culprit = self.rank_now(victim)
        since = self.now()
        self.processes[victim].send_signal(number)
        self.outcome.happened += 1
        self.outcome.hits += 1
        self.lost.add(victim)
        self.run_on(1, since)
        sentences, self.failed_in = {}, {}
        for rank in self.left():
            errors = self.events(rank, since, "error")
            if len(errors) != 1:
                self.problem(f"rank {rank}: expected one error, found {[e.text for e in errors]}")
            for error in errors[:1]:
                self.outcome.seconds.append(error.time - since)
                self.failed_in[rank] = where(error.text)
                sentences.setdefault(self.failed_in[rank], set()).add(error.text)
        for rank in self.deaf:  # it failed like the others, before they went on without it
            for error in self.events(rank, since, "error")[:1]:
                self.failed_in[rank] = where(error.text)
        messages = sentences.pop("messages", set())
        if not sentences and not any(re.search(text, sentence) for sentence in messages):
            self.problem(f"expected \"{text}\", found {sorted(messages)}")
        for label, said in sentences.items():
            if same and len(said) > 1:
                self.problem(f"different sentences: {sorted(said)}")
            # Halves have the even and the odd ranks; their names end with their color.
            named = culprit // 2 if re.search(r"/\d+:[01]$", label or "") else culprit
            for sentence in said:
                if not re.search(rf"\brank {named}\b((?!; rank \d).)*{text}", sentence):
                    self.problem(f"expected rank {named}, \"{text}\", found {sentence}")
        self.outcome.survivors += len(self.left())

    def expect_no_errors(self):
        for rank in self.left():
            for event in self.events(rank, kind="error"):
                self.problem(f"rank {rank}: {event.text}")

    def code_of(self, rank):
        """Waits for a rank's end."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.processes[rank].wait(PATIENCE)
        raise TimeoutError(f"expected rank {rank} to end, found {self.last_events()}")

    def descriptors(self):
        """Open files by rank: the least that each has while all complete three rounds. Rounds open some for
        a while, every fourth one a file that it writes, and on a busy disk for long."""
        least, since = {}, self.now()

        def looked():
            for rank in self.left():
                number = len(os.listdir(f"/proc/{self.processes[rank].pid}/fd"))
                least[rank] = min(number, least.get(rank, number))
            return self.have_completed(3, since)

        self.wait_for(looked, "3 rounds", pause=0.001)
        return least

    def limit_descriptors(self, rank, number):
        limits = (number, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        resource.prlimit(self.processes[rank].pid, resource.RLIMIT_NOFILE, limits)

    def finish(self):
        """Ends the job; all that are left must end well."""
        (self.folder / "stop").touch()
        for rank in self.left():
            code = self.code_of(rank)
            if code != 0:
                self.problem(f"rank {rank}: expected exit code 0, found {code}: {self.said(rank)}")
            pages = list(Path("/dev/shm").glob(f"baton-{self.processes[rank].pid}-*"))
            if pages:
                self.problem(f"rank {rank} has left pages: {pages}")
        for rank in range(self.size):
            for kind in ["wrong", "failed"] + ["late"] * (rank not in self.lost):
                for event in self.events(rank, kind=kind):
                    self.problem(f"rank {rank}: {kind} {event.text}")
            if self.quiet and self.said(rank):
                self.problem(f"rank {rank} says: {self.said(rank)}")
