"""The faults of processes by name, for processes_test.py and scripts/soak.py. Each makes a job, has its
fault, and judges the job's course."""

import resource
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from processes import ENDED, STOPPED, Job, Outcome, Skipped


@dataclass
class Course:
    """How a fault is to happen."""
    folder: Path   # of the programs
    over: str      # a transport: ucx, shm
    size: int      # ranks
    random: object
    times: int     # at most, where a job can have it more often than once

    def job(self, outcome, **more):
        return Job(str(self.folder.resolve() / "job"), self.over, self.size, outcome, **more)


def killed(course, outcome, timeout="5"):
    with course.job(outcome, environment={"BATON_TIMEOUT": timeout}) as job:
        job.start().run_on(2)
        for _ in range(course.times):
            if len(job.left()) <= 2:
                break
            job.lose(course.random.choice(job.left()), signal.SIGKILL, ENDED)
        job.run_on(2)
        job.finish()


def killed_without_timeout(course, outcome):
    killed(course, outcome, timeout="0")


def stopped(course, outcome):
    with course.job(outcome, environment={"BATON_TIMEOUT": "5"}) as job:
        job.start().run_on(2)
        for _ in range(course.times):
            if len(job.left()) <= 2:
                break
            victim = course.random.choice(job.left())
            job.lose(victim, signal.SIGSTOP, STOPPED)
            job.processes[victim].send_signal(signal.SIGCONT)
            code = job.code_of(victim)
            late = [event.text for event in job.events(victim, kind="late")]
            if code != 3 or len(late) != 1 or "came too late" not in late[0]:
                job.problem(f"the late rank {victim}: expected one error and exit code 3, found {late}, "
                            f"{code}, {job.said(victim)}")
            job.run_on(2)
        job.finish()


def without_files(course, outcome, spoil, restore):
    """Files cannot be written for a while: all ranks are told so, and go on; later they can again."""
    with course.job(outcome, mounts={"files": "256k"}) as job:
        job.start().run_on(5)
        for _ in range(course.times):
            spoil(job)
            since = job.now()
            job.run_on(9, since)  # files are written in every fourth round
            refused = [[event.text for event in job.events(rank, since, "refused")] for rank in job.left()]
            if not all(refused) or len(set(map(frozenset, refused))) > 1:
                job.problem(f"expected the same sentences on all ranks, found {refused}")
            for text in set(sum(refused, [])):
                if str(job.files) not in text:
                    job.problem(f"expected a sentence that names the file, found {text}")
            restore(job)
            job.run_on(5)  # one that was under way may still be refused
            since = job.now()
            job.run_on(5, since)
            if again := [event.text for rank in job.left() for event in job.events(rank, since, "refused")]:
                job.problem(f"refused with room: {again}")
            outcome.happened += 1
            outcome.survivors += len(job.left())
        job.finish()


def full_disk(course, outcome):
    without_files(course, outcome, lambda job: job.space.fill(job.files),
                  lambda job: job.space.empty(job.files))


def read_only_disk(course, outcome):
    without_files(course, outcome, lambda job: job.space.remount(job.files, "ro"),
                  lambda job: job.space.remount(job.files, "rw"))


def killed_on_a_full_disk(course, outcome):
    """Neither the last operations nor the recording can be written; the cause is told as ever."""
    files = {"BATON_FLIGHT": "files/flight", "BATON_TRACE": "files/trace", "BATON_TIMEOUT": "5"}
    with course.job(outcome, mounts={"files": "256k"}, environment=files) as job:
        job.quiet = False
        job.start().run_on(2)
        job.space.fill(job.files)
        job.lose(course.random.choice(job.left()), signal.SIGKILL, ENDED)
        job.run_on(2)
        job.finish()
        said = [(rank, line) for rank in [*job.left(), *job.deaf] for line in job.said(rank).splitlines()]
        full = [(rank, line) for rank, line in said if line.endswith("No space left on device")]
        # One rank of a communicator writes it for all; halves may fail as well as the whole.
        flights = [job.failed_in.get(rank) for rank, line in full if "files/flight" in line]
        if not flights or len(set(flights)) < len(flights):
            job.problem(f"expected one sentence about files/flight of each of {job.failed_in}, found {said}")
        parts = [line for rank, line in full if "files/trace.rank" in line and rank not in job.deaf]
        if len(parts) != len(job.left()):
            job.problem(f"expected each rank's sentence about its part of the recording, found {said}")


def undisturbed(course, outcome, rounds=6, **how):
    """A job that must not notice the fault."""
    with course.job(outcome, **how) as job:
        job.start().run_on(rounds)
        outcome.happened += 1
        outcome.survivors += len(job.left())
        for rank in job.left():
            for kind in ["error", "refused"]:
                events = job.events(rank, kind=kind)
                outcome.problems += [f"rank {rank}: {kind} {event.text}" for event in events]
        job.finish()


def interrupted(course, outcome):
    undisturbed(course, outcome, way="interrupted", environment={"BATON_TIMEOUT": "20"})


def unreadable(course, outcome):
    """No rank may read another's memory: single copies are refused."""
    prefix = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]
    if subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
        prefix = []
    undisturbed(course, outcome, way="unreadable", prefix=prefix)


def clock_jumps(course, outcome):
    clock = str(course.folder.resolve() / "libjumping_clock.so")
    undisturbed(course, outcome, environment={"BATON_TIMEOUT": "20", "LD_PRELOAD": clock})


def full_shared_memory(course, outcome):
    """Messages go another way: UCX 1.13 needs room in /dev/shm for its own."""
    ways = {"BATON_UCX_TLS": "sysv,cma,self", "BATON_TIMEOUT": "5"}
    with course.job(outcome, mounts={"/dev/shm": "64k"}, environment=ways) as job:
        job.space.fill("/dev/shm")
        job.start().run_on(6)
        outcome.happened += 1
        outcome.survivors += len(job.left())
        job.expect_no_errors()
        job.lose(course.random.choice(job.left()), signal.SIGKILL, ENDED, same=False)
        job.finish()


def shared_memory_fills_up(course, outcome):
    """While the job runs: later communicators have no status pages."""
    with course.job(outcome, mounts={"/dev/shm": "256m"}, environment={"BATON_TIMEOUT": "5"}) as job:
        job.start().run_on(5)
        job.space.fill_up("/dev/shm")
        since = job.now()
        job.run_on(6, since)
        job.expect_no_errors()
        job.lose(course.random.choice(job.left()), signal.SIGKILL, ENDED, same=False)
        job.finish()


def few_descriptors(course, outcome):
    """A process may open only so many files more than it has: none, one, and so on."""
    with course.job(outcome, environment={"BATON_TIMEOUT": "20"}) as job:
        job.start().run_on(5)
        usual = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        for more in range(4):
            before = job.descriptors()
            for rank, used in before.items():
                job.limit_descriptors(rank, used + more)
            outcome.happened += 1
            job.run_on(6)
            for rank in job.left():
                job.limit_descriptors(rank, usual)
            for rank in job.left():
                outcome.problems += [f"{more} descriptors, rank {rank}: {event.text}"
                                     for event in job.events(rank, kind="error")]
            job.run_on(5)
            after = job.descriptors()
            if after != before:
                job.problem(f"descriptors by rank: expected {before}, found {after}")
            outcome.survivors += len(job.left())
        job.finish()


FAULTS = {function.__name__.replace("_", " "): function for function in [
    killed, killed_without_timeout, stopped, full_disk, read_only_disk, killed_on_a_full_disk,
    few_descriptors, full_shared_memory, shared_memory_fills_up, unreadable, clock_jumps,
    interrupted]}


def faults_of(over):
    """The names of those that the transport can have."""
    # Ranks that may not look at each other do not get to share memory.
    return [name for name in FAULTS if over == "ucx" or name != "unreadable"]


def run(name, course):
    """Has a fault; problems, exceptions of the driver included, are in the outcome."""
    outcome = Outcome()
    try:
        FAULTS[name](course, outcome)
    except Skipped as reason:
        outcome.skipped = str(reason)
    except Exception as error:  # a job that hangs or crashes
        outcome.problems.append(f"{type(error).__name__}: {error}")
    return outcome
