"""Usage: gpu_check_test.py SCRIPTS DRIVER: the folder of scripts/, a stand-in for CUDA's driver"""

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from unittest import mock

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

    def environment(self, devices=1, driver=True, **variables):
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
        return environment

    def check(self, *arguments, code=0, **environment):
        """What gpu-check prints; its exit code must be this one."""
        done = subprocess.run(
            [sys.executable, SCRIPTS / "gpu-check", "--build", self.build, *arguments],
            env=self.environment(**environment),
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

    def json(self):
        return json.loads((self.build / "gpu-check.json").read_text())

    def results(self):
        return {row["part"]: row["result"] for row in self.json()["parts"]}

    def note(self, part):
        return next(row["note"] for row in self.json()["parts"] if row["part"] == part)

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
            "build/pairs", "#!/bin/sh\necho 'skipped: expected 2 devices'\necho '---'\nexit 77\n"
        )
        speed = self.program("build/speed", "#!/bin/sh\necho 'fold 3000 GB/s'\n")
        self.plan(
            [
                ("device:memory/cuda_device", kernels),
                ("device:transformer/cuda_block", operations),
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
                "test: streams": "passed",
                "test: pairs": "skipped",
                "test: transformer/cuda_operations": "passed",
                "test: transformer/cuda_block": "passed",
                "tests-nccl": "skipped",
                "memcheck: sums": "passed",
                "memcheck: copies, strided": "passed",
                "memcheck: products": "passed",
                "benchmark: speed": "passed",
                "benchmark: 2 ranks": "passed",
                "benchmark: 4 ranks": "passed",
                "benchmark: 8 ranks": "passed",
                "beside-nccl": "skipped",
                "transformer": "skipped",
                "racecheck: sums": "failed",
                "racecheck: copies, strided": "passed",
                "racecheck: products": "passed",
                "nccl-interface": "skipped",
            },
        )
        parts = [row["part"] for row in self.json()["parts"]]
        self.assertLess(parts.index("test: streams"), parts.index("test: transformer/cuda_operations"))
        self.assertLess(parts.index("test: transformer/cuda_operations"), parts.index("test: transformer/cuda_block"))
        self.assertLess(parts.index("benchmark: speed"), parts.index("racecheck: sums"))
        self.assertTrue(self.json()["finished"])
        self.assertIn("fold 3000 GB/s", text)
        self.assertIn("RACECHECK SUMMARY: 1 hazard", text)
        self.assertIn("Stand-in GPU, 24 GiB, compute capability 9.0; driver ", text)
        self.assertIn(" (up to CUDA 13.1), CUDA 13.0, NCCL ", text)
        self.assertRegex(text, r"\ntest: pairs +skipped +\d\.\d  skipped: expected 2 devices\n")
        self.assertRegex(text, r"\n15 passed, 1 failed or out of time\n$")

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

    def test_the_list_has_each_part_in_its_order_and_none_takes_three_minutes(self):
        lines = self.check("--list", driver=False).splitlines()
        names = [line.split()[0] for line in lines]
        self.assertEqual(len(set(names)), 12)
        self.assertEqual(names[:5], ["build", "tests-memory", "tests-streams", "tests-transformer", "tests-nccl"])
        self.assertLess(names.index("transformer"), names.index("racecheck"))
        for line in lines:
            self.assertRegex(line, r"^[a-z-]+ +\d+ s  \S.*\S$")
            self.assertLess(int(line.split()[1]), 180)
        lines = self.check("--list", "--only", "racecheck,memcheck", driver=False).splitlines()
        self.assertEqual([line.split()[0] for line in lines], ["memcheck", "racecheck"])
        self.assertFalse((self.folder / "calls").exists())

    def test_only_the_named_parts_run_and_what_they_need(self):
        speed = self.program("build/speed", "#!/bin/sh\n")
        self.plan([("device:streams", speed)], [("device:speed", speed)])
        self.check("--only", "kernels")
        built = {"configure": "passed", "compile": "passed"}
        self.assertEqual(self.results(), built | {"benchmark: speed": "passed"})
        self.check("--only", "kernels,build", "--only", "tests-streams")
        self.assertEqual(list(self.results())[2:], ["test: streams", "benchmark: speed"])
        self.check("--only", "tests")
        self.assertEqual(list(self.results())[2:], ["tests-memory", "test: streams", "tests-transformer", "tests-nccl"])
        self.check("--only", "build")
        self.assertEqual(self.results(), built)
        for wrong in ["test", "kernels,colectives", "kernels,"]:
            self.assertEqual(self.check("--only", wrong, code=2, driver=False), "")
            said = rf"--only: expected tests or one of build, .*racecheck.*, found '{wrong.split(',')[-1]}'"
            self.assertRegex(self.error, f"^gpu-check: {said}\n$")

    def test_results_are_kept_as_they_come(self):
        child = self.folder / "child"
        quick = self.program("build/quick", "#!/bin/sh\n")
        slow = self.program("build/slow", f"#!/bin/sh\nsleep 600 & echo $! >{child}; wait\n")
        self.plan([("device:quick", quick), ("device:slow", slow)], [])
        process = subprocess.Popen(
            [sys.executable, SCRIPTS / "gpu-check", "--build", self.build, "--only", "tests-streams"],
            env=self.environment(),
            stdout=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 60
        while not (child.exists() and child.read_text()) and time.monotonic() < deadline:
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        self.assertEqual(
            self.results(), {"configure": "passed", "compile": "passed", "test: quick": "passed"}
        )
        self.assertEqual(self.json()["gpus"][0]["name"], "Stand-in GPU")
        process.terminate()
        self.assertEqual(process.wait(60), 128 + signal.SIGTERM)
        self.assertFalse(self.json()["finished"])
        self.assert_ended(child)

    def assert_ended(self, child):
        child = Path("/proc", child.read_text().strip())
        self.assertFalse(child.exists() and "\nState:\tZ" not in (child / "status").read_text())

    def test_a_transformer_block_is_timed_beside_pytorch_if_python_has_it(self):
        block = self.program("build/cuda_block_bench", "#!/bin/sh\n")
        python = self.program("bin/python-of-torch", '#!/bin/sh\necho "python $*" >>"$CALLS"\n')
        self.plan([("block:block", block)], [])
        self.check("--only", "transformer", "--python", python)
        self.assertIn(f"ninja -C {self.build} baton cuda_block_bench\n", self.calls())
        self.assertRegex(self.calls(), f"python .*/scripts/transformer.py {block} --device cuda --only tp ")
        self.assertEqual(self.results()["transformer: whole"], "passed")
        self.program("bin/python-of-torch", "#!/bin/sh\nexit 1\n")
        self.check("--only", "transformer", "--python", python)
        self.assertEqual(self.results()["transformer"], "skipped")
        self.check("--only", "transformer", "--python", "/none")
        self.assertEqual(self.note("transformer"), "expected PyTorch of /none, found none")

    def prepared(self, *arguments):
        """A build folder that --prepare has filled without a GPU and that lies elsewhere since; of its programs
        only a launcher of MPI was outside of it. No tool for building works any more."""
        streams = self.program("build/streams", STREAMS)
        speed = self.program("build/speed", "#!/bin/sh\n")
        self.program("build/baton-bench-device", "#!/bin/sh\n")
        self.program("bin/mpirun.of-test", '#!/bin/sh\necho "launcher $*" >>"$CALLS"\n')
        for name in ["bundle/libfmt.so.9", "host/libgomp.so.1", "host/libc.so.6", "host/libcublasLt.so.13",
                     "build/libbaton.so.0.2.0"]:
            self.program(name, name)
        (self.build / "libbaton.so.0.2").symlink_to("libbaton.so.0.2.0")
        (self.folder / "bundle/environment").touch()
        needed = ["bundle/libfmt.so.9", "host/libgomp.so.1", "host/libc.so.6", "host/libcublasLt.so.13",
                  "build/libbaton.so.0.2"]
        lines = [f"\t{Path(name).name} => {self.folder / name} (0x0000)\n" for name in needed]
        self.program("bin/ldd", f"#!/bin/sh\ncat <<'END'\n\tlinux-vdso.so.1 (0x00)\n{''.join(lines)}END\n")
        self.plan([("device:streams", streams), ("device:communicator/nccl_stream on 2", "/far/bin/mpirun.of-test")],
                  [("device:speed", speed)])
        tests = json.loads((self.folder / "--tests").read_text())
        tests[0]["env"]["LD_LIBRARY_PATH"] = str(self.build / "first")
        tests[1] |= {"cmd": ["/far/bin/mpirun.of-test", "-n", "2", "streams"], "depends": ["device:streams"]}
        (self.folder / "--tests").write_text(json.dumps(tests))
        targets = [{"id": "device:streams", "filename": [streams]}, {"id": "device:speed", "filename": [speed]},
                   {"id": "bench", "filename": [str(self.build / "baton-bench-device")]}]
        (self.folder / "--targets").write_text(json.dumps(targets))
        text = self.check("--prepare", "--bundle", str(self.folder / "bundle"), *arguments, driver=False)
        self.prepare_calls = self.calls()
        (self.folder / "calls").unlink()
        for name in ["meson", "ninja", "nvcc"]:
            self.program(f"bin/{name}", '#!/bin/sh\necho "builds" >>"$CALLS"\nexit 1\n')
        moved = self.folder / "moved"
        shutil.move(self.build, moved)
        self.build = moved
        return text

    def test_what_was_prepared_runs_elsewhere_without_tools_for_building(self):
        text = self.prepared()
        self.assertIn("-Ddevice_architectures=90 ", self.prepare_calls)
        self.assertRegex(self.prepare_calls, "ninja -C .* baton baton-bench-device speed streams\n")
        self.assertRegex(text, r"\nplan +passed .* 7 files, \d+ MB, which gpu-check-plan.json names\n")
        plan = json.loads((self.build / "gpu-check-plan.json").read_text())
        self.assertNotIn(str(self.folder), json.dumps(plan))
        self.assertEqual(plan["files"], [
            "baton", "baton-bench-device", "libbaton.so.0.2", "libbaton.so.0.2.0", "libraries/libgomp.so.1", "speed",
            "streams"])
        self.assertEqual(os.listdir(self.build / "libraries"), ["libgomp.so.1"])
        # The test's own folder comes first, the copied libraries last.
        self.program("moved/streams", "#!/bin/sh\n"
                     f'case "$LD_LIBRARY_PATH" in {self.build}/first:*:{self.build}/libraries) ;; *) exit 1 ;; esac\n')
        self.check("--only", "tests", "--only", "kernels", "--only", "beside-nccl")
        self.assertEqual(self.results(), {
            "build": "skipped",
            "tests-memory": "skipped",
            "test: streams": "passed",
            "tests-transformer": "skipped",
            "test: communicator/nccl_stream on 2": "passed",
            "benchmark: speed": "passed",
            "benchmark: 2 ranks beside NCCL": "passed",
            "benchmark: 4 ranks beside NCCL": "passed",
        })
        self.assertRegex(self.note("build"), r"^built before, \d{4}-\d\d-\d\d \d\d:\d\d$")
        self.assertEqual(self.json()["cuda"], "13.0")
        self.assertIn(f"launcher -n 2 {self.build}/streams\n", self.calls())
        self.assertIn(f" {self.build}/baton bench --device cuda ", self.calls())
        self.assertNotIn("builds", self.calls())
        (self.folder / "bin/mpirun.of-test").unlink()
        self.check("--only", "beside-nccl", code=1)
        self.assertEqual(
            self.note("benchmark: 2 ranks beside NCCL"), "expected the program mpirun.of-test, found none"
        )

    def test_what_was_prepared_must_be_whole_and_for_the_gpu(self):
        self.prepared("--architectures", "100,120")
        self.assertIn("-Ddevice_architectures=100,120 ", self.prepare_calls)
        self.check(code=2)
        said = "expected programs for Stand-in GPU, .* capability 9.0, found those that --prepare .* 10.0 and newer"
        self.assertRegex(self.error, f"^gpu-check: {said}\n$")
        (self.build / "streams").unlink()
        self.assertIn("builds, because streams of ", self.check(code=2))
        self.assertEqual(self.calls(), "builds\n")  # nvcc is asked first
        self.check("--architectures", "90", code=2)
        self.assertEqual(self.error, "gpu-check: --architectures: expected --prepare too, found it alone\n")
        self.check("--prepare", "--architectures", "9.0", code=2)
        self.assertRegex(self.error, "expected numbers such as 80,90, found '9.0'\n$")

    def test_nccl_tests_are_prepared_too(self):
        launcher = self.program("build/launcher", '#!/bin/sh\necho "launcher $*" >>"$CALLS"\n')
        self.program("bin/make", """#!/bin/sh
            for word; do case $word in BUILDDIR=*) folder=${word#*=} ;; esac; done
            mkdir -p "$folder"
            for name in all_reduce reduce_scatter reduce all_gather broadcast alltoall gather scatter sendrecv \\
              hypercube; do
              touch "$folder/${name}_perf"
            done
            echo make >>"$CALLS"\n""")
        self.program("build/libbaton-nccl-abi.so", "")
        self.plan([("device:communicator/nccl_stream on 2", launcher)], [], interface=True)
        self.check("--prepare", "--nccl-tests", str(self.folder), driver=False)
        self.check("--only", "nccl-interface", "--python", "true")
        self.assertEqual(self.calls().count("make\n"), 1)
        self.assertEqual(self.results()["nccl-tests: all_reduce"], "passed")
        self.assertRegex(self.calls(), f"launcher .* LD_PRELOAD={self.build}/libbaton-nccl-abi.so .*/all_reduce_perf ")

    def test_a_failed_preparation_leaves_no_plan(self):
        self.check("--prepare", driver=False)
        self.assertTrue((self.build / "gpu-check-plan.json").exists())
        self.program("bin/ninja", "#!/bin/sh\nexit 1\n")
        self.check("--prepare", driver=False, code=1)
        self.assertFalse((self.build / "gpu-check-plan.json").exists())

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
        self.check("--minutes", "0.1", code=1)
        self.assertEqual(self.results()["test: slow"], "out of time")
        self.assert_ended(child)


class Times(unittest.TestCase):
    def setUp(self):
        loader = SourceFileLoader("gpu_check", str(SCRIPTS / "gpu-check"))
        self.script = module_from_spec(spec_from_loader("gpu_check", loader))
        loader.exec_module(self.script)
        self.parts = [part for part in self.script.PARTS if part != "build"]

    def test_all_parts_fit_into_their_minutes(self):
        listed = {part: row[0] for part, row in self.script.PARTS.items()}
        all_parts = self.script.seconds_of(self.parts, True, None)
        self.assertEqual(all_parts["build"], listed["build"])
        self.assertAlmostEqual(sum(all_parts.values()), 60 * self.script.MINUTES)
        # Where there is time for all that is listed, that is taken.
        built_before = self.script.seconds_of(self.parts, False, None)
        self.assertEqual(built_before, listed | {"build": 0})
        few = self.script.seconds_of(["memcheck", "kernels"], True, 3)
        self.assertEqual((few["build"], few["memcheck"], sum(few.values())), (90, 2 * few["kernels"], 180))

    def test_a_part_gets_what_was_left_but_no_more_than_the_longest(self):
        with tempfile.TemporaryDirectory() as folder:
            check = self.script.Check(Path(folder), {}, {}, 100, False)
            with contextlib.redirect_stdout(io.StringIO()):
                for left in [40, 80, 100]:
                    check.begin("part", 40)
                    self.assertAlmostEqual(check.left(), left, delta=5)


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

    def test_libraries_of_nvidias_python_packages_are_found(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(gpus, "CUBLASLT", "libcublasLt-of-test.so"):
            nvidia = Path(folder, "nvidia")
            for file in ["__init__.py", "nccl/lib/libnccl.so.2", "cu13/lib/libcublasLt-of-test.so"]:
                (nvidia / file).parent.mkdir(parents=True, exist_ok=True)
                (nvidia / file).touch()
            shutil.copy(DRIVER, nvidia / "cu13/lib/libcublasLt-of-test.so")  # a library that can be loaded
            with mock.patch.object(sys, "path", [folder]):
                added = gpus.nccl_of_python(Path(folder, "links"))
                self.assertEqual(Path(added["LIBRARY_PATH"], "libnccl.so").resolve(), nvidia / "nccl/lib/libnccl.so.2")
                added = gpus.cublaslt_of_python({})
                self.assertEqual(added, {"LD_LIBRARY_PATH": str(nvidia / "cu13/lib")})
                self.assertEqual(gpus.cublaslt_of_python(added), {})
            self.assertEqual(gpus.cublaslt_of_python({}), {})

    def test_lists_of_folders_get_longer_at_either_end(self):
        before = {"LD_LIBRARY_PATH": "a", "OWN": "1"}
        more = {"LD_LIBRARY_PATH": "b", "OWN": "2", "LIBRARY_PATH": "c"}
        added = {"OWN": "2", "LIBRARY_PATH": "c"}
        self.assertEqual(gpus.with_added(before, more), added | {"LD_LIBRARY_PATH": "b:a"})
        self.assertEqual(gpus.with_added(before, more, last=True), added | {"LD_LIBRARY_PATH": "a:b"})


if __name__ == "__main__":
    unittest.main()
