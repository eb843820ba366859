"""Runs the program under test, and what every use of it must hold."""

import json
import os
import subprocess
import unittest


class CommandTest(unittest.TestCase):
    """Subclasses are run by run_tests(); `command` is the program and what it is started by."""

    command = []
    speaker = "baton: "  # begins its sentences

    def start(self, *arguments, **variables):
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("BATON_")}
        return subprocess.run([*self.command, *arguments], capture_output=True, text=True,
                              timeout=250, env={**inherited, **variables})

    def output(self, *arguments, code=0, **variables):
        """What it prints, and nothing on standard error."""
        done = self.start(*arguments, **variables)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        if code == 0:
            self.assertEqual(done.stderr, "")
        return done.stdout

    def json(self, *arguments, **how):
        return json.loads(self.output(*arguments, "--json", **how))

    def refused(self, sentence, *arguments, **variables):
        """Exit code 2, nothing but one sentence on standard error."""
        done = self.start(*arguments, **variables)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "")
        own = [line for line in done.stderr.splitlines() if line.startswith(self.speaker)]
        self.assertEqual(len(own), 1, done.stderr)
        self.assertIn(sentence, own[0])
        return done.stderr


def run_tests(test, command):
    test.command = command
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(test)
    assert suite.countTestCases() > 0
    raise SystemExit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
