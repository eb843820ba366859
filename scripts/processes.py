"""Runs a program within a time."""

import contextlib
import os
import signal
import subprocess


def exit_code(command, log, seconds, environment):
    """The exit code of a command, whose output goes to a file; None if it takes longer. Ends all that it has
    started."""
    with open(log, "wb") as output:
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=output, start_new_session=True, env=environment)
        code = None
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(seconds)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return code
