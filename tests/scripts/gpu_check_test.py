"""Usage: gpu_check_test.py SCRIPTS DRIVER: the folder of scripts/, a stand-in for CUDA's driver"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

DRIVER = Path(sys.argv.pop())
SCRIPTS = Path(sys.argv.pop())
sys.path.insert(0, str(SCRIPTS))
sys.dont_write_bytecode = True
import gpus  # noqa: E402

MESON = """#!/bin/sh
echo "meson $*" >>"$CALLS"
case "$1" in
  setup)
    for last; do build=$source; source=$last; done
    mkdir -p "$build"
    touch "$build/build.ninja" ;;
  introspect) cat "$PLAN/$3" ;;
esac
"""
NINJA = """#!/bin/sh
echo "ninja $*" >>"$CALLS"
"""
NVCC = """#!/bin/sh
case "$1" in
  --list-gpu-arch) printf 'compute_80\\ncompute_90\\ncompute_100\\n' ;;
  --version) echo 'Cuda compilation tools, release 13.0, V13.0.88' ;;
esac
"""
SANITIZER = """#!/bin/sh
echo "sanitizer $*" >>"$CALLS"
case "$*" in *racecheck*sums*) echo 'RACECHECK SUMMARY: 1 hazard'; exit 9 ;; esac
"""
# A doctest program of two cases, one with a comma.
KERNELS = """#!/bin/sh
case "$1" in --list-test-cases)
  printf '[doctest] all test cases\\n===\\nsums\\ncopies, strided\\n===\\n[doctest] cases: 2\\n' ;;
esac
"""
# Has its own variable and its own folder first, but no option of the library.
STREAMS = """#!/bin/sh
test "$OWN$BATON_CHECK" = 1 && echo "$LD_LIBRARY_PATH" | grep ^/first:
"""


class GpuCheck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.build = self.folder / "build"
        (self.folder / "bin").mkdir()
        for name, text in [
            ("meson", MESON),
            ("ninja", NINJA),
            ("nvcc", NVCC),
            ("compute-sanitizer", SANITIZER),
        ]:
            self.program(f"bin/{name}", text)
        self.plan([], [])
        self.program("build/baton", '#!/bin/sh\necho "baton $*" >>"$CALLS"\n')

    def program(self, name, text):
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
        return str(file)

    def plan(self, tests, benchmarks, interface=False):
        """What meson says that there is: pairs of SUITE:NAME and a program."""

        def described(items):
            return [
                {
                    "name": name.partition(":")[2],
                    "suite": [f"baton:{name.partition(':')[0]}"],
                    "cmd": [program],
                    "env": {"LD_LIBRARY_PATH": "/first", "OWN": "1"},
                    "depends": [name],
                }
                for name, program in items
            ]

        targets = [{"id": name, "filename": [program]} for name, program in tests + benchmarks]
        if interface:
            targets.append({"id": "of-nccl", "filename": [str(self.build / "libbaton-nccl-abi.so")]})
        for option, value in [
            ("--tests", described(tests)),
            ("--benchmarks", described(benchmarks)),
            ("--targets", targets),
        ]:
            (self.folder / option).write_text(json.dumps(value))

    def check(self, *arguments, code=0, devices=1, driver=True, **variables):
        """What gpu-check prints; its exit code must be this one."""
        environment = {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "PLAN": str(self.folder),
            "CALLS": str(self.folder / "calls"),
            "STAND_IN_DEVICES": str(devices),
            "CUDA_VISIBLE_DEVICES": "",
            **variables,
        }
        if driver:
            environment["LD_LIBRARY_PATH"] = str(DRIVER.parent)
        done = subprocess.run(
            [sys.executable, SCRIPTS / "gpu-check", "--build", self.build, *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.error = done.stderr
        return done.stdout

    def calls(self):
        return (self.folder / "calls").read_text()

    def results(self):
        rows = json.loads((self.build / "gpu-check.json").read_text())["parts"]
        return {row["part"]: row["result"] for row in rows}

    def test_without_a_gpu_it_is_skipped_with_a_sentence(self):
        for found, options in [
            ("a driver that sees none", {"devices": 0}),
            ("error 100 of cuInit", {"devices": -1}),
            ("", {"driver": False}),
        ]:
            self.assertEqual(self.check(code=77, **options), "")
            said = f"skipped: expected a GPU that CUDA can use, found .*{found}.*"
            self.assertRegex(self.error, rf"^gpu-check: {said}\n$")
        self.assertFalse((self.folder / "calls").exists())

    def test_what_cannot_be_used_is_one_sentence(self):
        self.check("--bundle", str(self.folder), code=2)
        said = "expected a folder that scripts/gpu-bundle has filled, found no .*"
        self.assertRegex(self.error, f"^gpu-check: {said}\n$")
        self.program("bin/nvcc", "#!/bin/sh\necho compute_100\n")
        self.check(code=2)
        said = "expected a CUDA compiler for compute capability 9.0, found one for 100 and newer"
        self.assertEqual(self.error, f"gpu-check: {said}\n")

    def test_dry_run_prints_commands_for_the_gpu(self):
        text = self.check("--dry-run")
        self.assertIn("-Ddevice_architectures=90 ", text)
        self.assertIn("bench --device cuda --ranks 4", text)
        self.assertRegex(text, "mpirun -n 4 .*/baton bench --device cuda --bytes")
        self.assertIn("torch_ranks.py 2", text)
        self.assertNotIn("all_reduce_perf", text)
        text = self.check("--dry-run", "--nccl-tests", str(self.folder), "--python", "python-of-torch")
        self.assertIn("NVCC_GENCODE=-gencode=arch=compute_90,code=sm_90", text)
        self.assertRegex(text, "mpirun -n 2 .* LD_PRELOAD=.*/libbaton-nccl-abi.so .*/all_reduce_perf .*-o all")
        self.assertIn("python-of-torch ", text)
        self.assertFalse((self.folder / "calls").exists())

    def test_all_parts_run_and_are_in_the_table_and_the_json(self):
        kernels = self.program("build/kernels", KERNELS)
        operations = self.program(
            "build/operations", "#!/bin/sh\ntest $# = 0 || echo products\n"
        )
        streams = self.program("build/streams", STREAMS)
        pairs = self.program(
            "build/pairs", "#!/bin/sh\necho 'skipped: expected 2 devices'\nexit 77\n"
        )
        speed = self.program("build/speed", "#!/bin/sh\necho 'fold 3000 GB/s'\n")
        self.plan(
            [
                ("device:memory/cuda_device", kernels),
                ("device:transformer/cuda_operations", operations),
                ("device:streams", streams),
                ("device:pairs", pairs),
                ("unit:other", "/none"),
            ],
            [("device:speed", speed), ("unit:host", "/none")],
        )
        text = self.check(code=1, BATON_CHECK="1")  # a race is planted
        self.assertIn("-Ddevice_architectures=90 ", self.calls())
        self.assertIn(f"ninja -C {self.build} baton kernels operations pairs speed streams\n", self.calls())
        watched = f"{kernels} --test-case=copies\\, strided\n"
        self.assertIn(f"sanitizer --tool memcheck --error-exitcode 9 {watched}", self.calls())
        self.assertIn("baton bench --device cuda --ranks 8 ", self.calls())
        self.assertEqual(
            self.results(),
            {
                "configure": "passed",
                "compile": "passed",
                "test: memory/cuda_device": "passed",
                "test: transformer/cuda_operations": "passed",
                "test: streams": "passed",
                "test: pairs": "skipped",
                "memcheck: sums": "passed",
                "memcheck: copies, strided": "passed",
                "memcheck: products": "passed",
                "racecheck: sums": "failed",
                "racecheck: copies, strided": "passed",
                "racecheck: products": "passed",
                "benchmark: speed": "passed",
                "benchmark: 2 ranks": "passed",
                "benchmark: 4 ranks": "passed",
                "benchmark: 8 ranks": "passed",
                "NCCL's interface": "skipped",
            },
        )
        self.assertIn("fold 3000 GB/s", text)
        self.assertIn("RACECHECK SUMMARY: 1 hazard", text)
        self.assertIn("Stand-in GPU, 24 GiB, compute capability 9.0; driver ", text)
        self.assertIn(" (up to CUDA 13.1), CUDA 13.0, NCCL ", text)
        self.assertRegex(text, r"\ntest: pairs +skipped +\d\.\d  skipped: expected 2 devices\n")
        self.assertRegex(text, r"\n14 passed, 1 failed or out of time\n$")

    def test_where_there_is_nccl_it_is_timed_beside_ours_by_processes(self):
        launcher = self.program("build/launcher", '#!/bin/sh\necho "launcher $*" >>"$CALLS"\n')
        self.plan([("device:communicator/nccl_stream on 2", launcher)], [])
        self.check(code=1)  # there is nothing for the sanitizers
        self.assertRegex(self.calls(), "launcher -n 2 .*/baton bench --device cuda --bytes")
        self.assertEqual(self.results()["benchmark: 4 ranks beside NCCL"], "passed")

    def test_nccl_tests_and_pytorch_run_on_nccls_interface_if_they_are_there(self):
        launcher = self.program("build/launcher", '#!/bin/sh\necho "launcher $*" >>"$CALLS"\n')
        self.program("bin/make", '#!/bin/sh\necho "make $*" >>"$CALLS"\n')
        python = self.program("bin/python-of-torch", '#!/bin/sh\necho "$LD_PRELOAD $*" >>"$CALLS"\n')
        self.plan([("device:communicator/nccl_stream on 2", launcher)], [], interface=True)
        self.check("--nccl-tests", str(self.folder), "--python", python, code=1)
        self.assertIn(f"ninja -C {self.build} baton launcher libbaton-nccl-abi.so\n", self.calls())
        self.assertRegex(self.calls(), f"make -C {self.folder} .*CXX=mpicxx BUILDDIR={self.build}/nccl-tests ")
        self.assertRegex(self.calls(), "launcher -n 2 .*/nccl-tests/hypercube_perf -b 8 ")
        self.assertRegex(self.calls(), "/libbaton-nccl-abi.so .*/tests/dropin/nccl/torch_ranks.py 2\n")
        results = self.results()
        self.assertEqual(results["nccl-tests: reduce_scatter"], "passed")
        self.assertEqual(results["ProcessGroupNCCL"], "passed")
        self.program("bin/make", "#!/bin/sh\nexit 1\n")
        self.check("--nccl-tests", str(self.folder), "--python", python, code=1)
        results = self.results()
        self.assertEqual(results["nccl-tests: compile"], "failed")
        self.assertNotIn("nccl-tests: reduce_scatter", results)
        self.check("--python", python, code=1)
        self.assertEqual(self.results()["nccl-tests"], "skipped")

    def test_nothing_is_run_without_what_it_needs(self):
        self.program("bin/ninja", "#!/bin/sh\necho 'error: no such type'\nexit 1\n")
        self.assertIn("error: no such type", self.check(code=1))
        self.assertEqual(self.results(), {"configure": "passed", "compile": "failed"})

    def test_a_check_in_which_no_test_ran_has_failed(self):
        skipped = self.program("build/skipped", "#!/bin/sh\nexit 77\n")
        self.plan([("device:streams", skipped)], [])
        self.check(code=1)
        self.assertEqual(self.results()["tests"], "failed")
        self.assertEqual(self.results()["memcheck"], "failed")  # nor is there what it watches

    @unittest.skipIf(Path("/usr/local/cuda/bin/compute-sanitizer").exists(), "there is one")
    def test_a_missing_sanitizer_is_said(self):
        kernels = self.program("build/kernels", KERNELS)
        self.plan([("device:memory/cuda_device", kernels)], [])
        (self.folder / "bin/compute-sanitizer").unlink()
        text = self.check(PATH=f"{self.folder / 'bin'}:/usr/bin:/bin")
        self.assertIn("compute-sanitizer is not installed", text)
        self.assertEqual(self.results()["memcheck"], "skipped")

    def test_what_does_not_fit_is_ended_with_all_it_started_and_said(self):
        child = self.folder / "child"
        slow = self.program("build/slow", f"#!/bin/sh\nsleep 600 & echo $! >{child}; wait\n")
        quick = self.program("build/quick", "#!/bin/sh\n")
        self.plan([("device:quick", quick), ("device:slow", slow)], [])
        self.check("--minutes", "0.25", code=1)
        self.assertEqual(self.results()["test: slow"], "out of time")
        child = Path("/proc", child.read_text().strip())
        self.assertFalse(child.exists() and "\nState:\tZ" not in (child / "status").read_text())


class Gpus(unittest.TestCase):
    def test_architectures_are_the_gpus_own_or_the_newest_that_is_known(self):
        def gpus_of(*capabilities):
            return [{"capability": list(capability)} for capability in capabilities]

        known = [80, 86, 90, 100]
        self.assertEqual(gpus.architectures(gpus_of((9, 0), (9, 0)), known), [90])
        self.assertEqual(gpus.architectures(gpus_of((12, 1), (8, 0)), known), [80, 100])
        with self.assertRaisesRegex(
            ValueError, "compute capability 7.5, found one for 80 and newer"
        ):
            gpus.architectures(gpus_of((7, 5)), known)


if __name__ == "__main__":
    unittest.main()
