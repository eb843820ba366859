"""Usage: launch_test.py LAUNCH, the folder scripts/launch/"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

LAUNCH = Path(sys.argv.pop()).resolve()
PROGRAM = str(LAUNCH.parents[1] / "build/baton-train")


class Launch(unittest.TestCase):
    def start(self, script, *arguments, **variables):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("BATON_", "SLURM_"))}
        return subprocess.run([script, *arguments], capture_output=True, text=True, timeout=60,
                              env={**kept, **variables})

    def printed(self, script, *arguments, **variables):
        done = self.start(LAUNCH / script, "--dry-run", *arguments, **variables)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def hosts(self, text):
        with tempfile.NamedTemporaryFile("w", delete=False) as file:
            file.write(text)
        self.addCleanup(Path(file.name).unlink)
        return file.name

    def test_every_script_is_bash(self):
        scripts = [path for path in LAUNCH.iterdir() if path.suffix not in (".md", ".example")]
        self.assertEqual(len(scripts), 4)
        for script in scripts:
            subprocess.run(["bash", "-n", script], check=True)

    def test_sbatch_scripts_say_what_they_need(self):
        for script in LAUNCH.glob("*.sbatch"):
            options = [line for line in script.read_text().splitlines() if line.startswith("#SBATCH ")]
            for needed in ["--nodes=", "--ntasks-per-node=", "--cpus-per-task=", "--time="]:
                self.assertTrue(any(needed in option for option in options), script)

    def test_one_node(self):
        command = self.printed("one-node.sbatch", "--model", "mlp", "--parallel", "dp",
                               SLURM_NTASKS="6", SLURM_CPUS_PER_TASK="2", BATON_CHECK="1")
        self.assertEqual(command[:3], ["mpirun", "-n", "6"])
        self.assertIn("slot:PE=2", command)
        self.assertEqual(command[command.index("-x") + 1], "BATON_CHECK")
        self.assertEqual(command[command.index(PROGRAM):],
                         [PROGRAM, "--threads", "2", "--model", "mlp", "--parallel", "dp"])

    def test_several_nodes(self):
        command = self.printed("several-nodes.sbatch", SLURM_JOB_NUM_NODES="3",
                               SLURM_NTASKS_PER_NODE="8", BATON_LAUNCHER="srun")
        self.assertEqual(command, ["srun", "--mpi=pmix", "-n", "24", "--cpus-per-task", "1", PROGRAM, "--threads", "1", "--model",
                                   "block", "--parallel", "tp-sp", "--tp", "8", "--check"])
        self.assertIn("ppr:4:node:PE=1", self.printed("several-nodes.sbatch"))

    def test_a_copy_finds_the_repository_where_sbatch_was_called(self):
        with tempfile.TemporaryDirectory() as spool:
            for script in LAUNCH.glob("*.sbatch"):
                copy = Path(spool) / "slurm_script"
                copy.write_text(script.read_text())
                done = self.start("bash", copy, "--dry-run", SLURM_SUBMIT_DIR=str(LAUNCH.parents[1]))
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn(f" {PROGRAM} ", done.stdout)

    def test_hostfile(self):
        example = str(LAUNCH / "hostfile.example")
        self.assertEqual(self.printed("with-hostfile", example, "--check"),
                         ["mpirun", "-n", "8", "--hostfile", example, PROGRAM, "--check"])
        hosts = self.hosts("# two\n\na slots=3\nb\n")
        self.assertEqual(self.printed("with-hostfile", hosts)[2], "4")

    def test_what_does_not_fit_is_one_sentence(self):
        for sentence, *arguments in [
                ("expected a hostfile", ),
                ("expected a hostfile that can be read, found '/no/such'", "/no/such"),
                ("expected lines HOST slots=N, found 'a slots=x'", self.hosts("a slots=x\n")),
                ("expected at least one host, found none", self.hosts("# none\n"))]:
            done = self.start(LAUNCH / "with-hostfile", *arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(sentence, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)
        done = self.start(LAUNCH / "one-node.sbatch", "--dry-run", BATON_LAUNCHER="pdsh")
        self.assertIn("BATON_LAUNCHER: expected mpirun or srun, found 'pdsh'", done.stderr)


if __name__ == "__main__":
    unittest.main()
