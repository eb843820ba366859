"""Usage: gpu_test.py SCRIPTS DRIVER: the folder of scripts/, a stand-in for CUDA's driver"""

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
import gpu_cards  # noqa: E402

MESON = """#!/bin/sh
echo "meson $*" >>"$CALLS"
case "$1" in
  setup) for last; do before=$build; build=$last; done; mkdir -p "$before"; touch "$before/build.ninja" ;;
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
  printf '[doctest] listing all test case names\\n=====\\nsums\\ncopies, strided\\n=====\\n[doctest] cases: 2\\n' ;;
esac
"""


class GpuCheck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.build = self.folder / "build"
        (self.folder / "bin").mkdir()
        for name, text in [("meson", MESON), ("ninja", NINJA), ("nvcc", NVCC), ("compute-sanitizer", SANITIZER)]:
            self.program(f"bin/{name}", text)
        self.plan([], [])
        self.program("build/baton", "#!/bin/sh\necho \"baton $*\" >>\"$CALLS\"\n")

    def program(self, name, text):
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
        return str(file)

    def plan(self, tests, benchmarks):
        """What meson says that there is: pairs of a name and a program; the first part of a name is its suite."""
        def described(items):
            return [{"name": name.partition(":")[2], "suite": [f"baton:{name.partition(':')[0]}"],
                     "cmd": [program], "env": {"LD_LIBRARY_PATH": "/first", "OWN": "1"},
                     "depends": [name]} for name, program in items]
        targets = [{"id": name, "filename": [program]} for name, program in tests + benchmarks]
        for option, value in [("--tests", described(tests)), ("--benchmarks", described(benchmarks)),
                              ("--targets", targets)]:
            (self.folder / option).write_text(json.dumps(value))

    def check(self, *arguments, code=0, devices=1, driver=True, **variables):
        """What gpu-check prints; its exit code must be this one."""
        environment = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "PLAN": str(self.folder),
                       "CALLS": str(self.folder / "calls"), "STAND_IN_DEVICES": str(devices),
                       "CUDA_VISIBLE_DEVICES": "", **variables}
        if driver:
            environment["LD_LIBRARY_PATH"] = str(DRIVER.parent)
        done = subprocess.run([sys.executable, SCRIPTS / "gpu-check", "--build", self.build, *arguments],
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.error = done.stderr
        return done.stdout

    def calls(self):
        return (self.folder / "calls").read_text()

    def results(self):
        rows = json.loads((self.build / "gpu-check.json").read_text())["parts"]
        return {row["part"]: row["result"] for row in rows}

    def test_without_a_gpu_it_is_skipped_with_a_sentence(self):
        for found, options in [("a driver that sees none", {"devices": 0}), ("error 100 of cuInit", {"devices": -1}),
                               ("", {"driver": False})]:
            self.assertEqual(self.check(code=77, **options), "")
            self.assertRegex(self.error, rf"^gpu-check: skipped: expected a GPU that CUDA can use, found .*{found}.*\n$")
        self.assertFalse((self.folder / "calls").exists())

    def test_what_cannot_be_used_is_one_sentence(self):
        self.check("--bundle", str(self.folder), code=2)
        self.assertRegex(self.error, "^gpu-check: expected a folder that scripts/gpu-bundle has filled, found no .*\n$")
        self.program("bin/nvcc", "#!/bin/sh\necho compute_100\n")
        self.check(code=2)
        self.assertEqual(self.error, "gpu-check: expected a CUDA compiler for compute capability 9.0, found one for 100 "
                                     "and newer\n")

    def test_dry_run_prints_commands_for_the_card(self):
        text = self.check("--dry-run")
        self.assertIn("-Ddevice_architectures=90 ", text)
        self.assertIn("bench --device cuda --ranks 4", text)
        self.assertFalse((self.folder / "calls").exists())

    def test_all_parts_run_and_are_in_the_table_and_the_json(self):
        kernels = self.program("build/kernels", KERNELS)
        streams = self.program("build/streams", '#!/bin/sh\ntest "$OWN$BATON_CHECK" = 1 && echo "$LD_LIBRARY_PATH" | grep ^/first:\n')
        pairs = self.program("build/pairs", "#!/bin/sh\necho 'skipped: expected 2 devices'\nexit 77\n")
        speed = self.program("build/speed", "#!/bin/sh\necho 'fold 3000 GB/s'\n")
        self.plan([("device:memory/cuda_device", kernels), ("device:streams", streams), ("device:pairs", pairs),
                   ("unit:other", "/none")], [("device:speed", speed), ("unit:host", "/none")])
        text = self.check(code=1, BATON_CHECK="1")  # a race is planted
        self.assertIn("-Ddevice_architectures=90 ", self.calls())
        self.assertIn(f"ninja -C {self.build} baton kernels pairs speed streams\n", self.calls())
        self.assertIn(r"--tool memcheck --error-exitcode 9 " + kernels + r" --test-case=copies\, strided", self.calls())
        self.assertIn("baton bench --device cuda --ranks 8 ", self.calls())
        self.assertEqual(self.results(), {
            "configure": "passed", "compile": "passed", "test: memory/cuda_device": "passed", "test: streams": "passed",
            "test: pairs": "skipped", "memcheck: sums": "passed", "memcheck: copies, strided": "passed",
            "racecheck: sums": "failed", "racecheck: copies, strided": "passed", "benchmark: speed": "passed",
            "benchmark: 2 ranks": "passed", "benchmark: 4 ranks": "passed", "benchmark: 8 ranks": "passed"})
        self.assertIn("fold 3000 GB/s", text)
        self.assertIn("RACECHECK SUMMARY: 1 hazard", text)
        self.assertIn("Stand-in GPU, 24 GiB, compute capability 9.0; driver unknown (up to CUDA 13.1), CUDA 13.0", text)
        self.assertRegex(text, r"\ntest: pairs +skipped +\d\.\d  skipped: expected 2 devices\n")
        self.assertRegex(text, r"\n11 passed, 1 failed or out of time\n$")

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
        self.assertIn("compute-sanitizer is not installed", self.check(PATH=f"{self.folder / 'bin'}:/usr/bin:/bin"))
        self.assertEqual(self.results()["memcheck"], "skipped")

    def test_what_does_not_fit_is_ended_with_all_it_started_and_said(self):
        slow = self.program("build/slow", f"#!/bin/sh\nsleep 600 & echo $! >{self.folder}/child; wait\n")
        self.plan([("device:quick", self.program("build/quick", "#!/bin/sh\n")), ("device:slow", slow)], [])
        self.check("--minutes", "0.25", code=1)
        self.assertEqual(self.results()["test: slow"], "out of time")
        child = Path("/proc", (self.folder / "child").read_text().strip())
        self.assertFalse(child.exists() and "\nState:\tZ" not in (child / "status").read_text())


class Cards(unittest.TestCase):
    def test_architectures_are_the_cards_own_or_the_newest_that_is_known(self):
        def cards(*capabilities):
            return [{"capability": list(capability)} for capability in capabilities]
        known = [80, 86, 90, 100]
        self.assertEqual(gpu_cards.architectures(cards((9, 0), (9, 0)), known), [90])
        self.assertEqual(gpu_cards.architectures(cards((12, 1), (8, 0)), known), [80, 100])
        with self.assertRaisesRegex(ValueError, "compute capability 7.5, found one for 80 and newer"):
            gpu_cards.architectures(cards((7, 5)), known)


class GpuBundle(unittest.TestCase):
    """With stand-ins for Debian's tools, and a PyPI that has nothing."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        tools = {
            # The first package needs a library, which needs the C library.
            "apt-cache": """for last; do :; done
                            echo "$last"
                            case "$last" in doctest-dev) echo '  Depends: library' ;;
                              library) printf '  Depends: libc6\\n  Depends: <virtual>\\n' ;; esac""",
            "apt-get": """for last; do case "$last" in *-*) ;; *) echo "$last" >>"$CALLS" ;; esac; done
                          echo >one.deb""",
            "dpkg-deb": """to=$3/usr/lib/x86_64-linux-gnu
                           mkdir -p "$to/pkgconfig" "$to/fortran" "$to/deep/lib/pkgconfig" "$3"/usr/share/man "$3/usr/share/doc"
                           touch "$3/usr/share/doc/copyright" "$3/usr/share/doc/news" "$to/libucp.so.0" "$to/libx.a" "$3/usr/share/man/page"
                           printf 'prefix = /usr\\nlibdir=/usr/lib/deep\\nother=/usrlocal\\n' >"$to/deep/lib/pkgconfig/a.pc"
                           ln -s ../deep/lib/pkgconfig/a.pc "$to/pkgconfig/a.pc"
                           truncate -s "$SIZE" "$to/large" """,
            "python3": "exit 1", "strip": "",
        }
        (self.folder / "bin").mkdir()
        for name, text in tools.items():
            file = self.folder / "bin" / name
            file.write_text(f"#!/bin/sh\n{text}\n")
            file.chmod(0o755)

    def bundle(self, size, code=0):
        done = subprocess.run([SCRIPTS / "gpu-bundle", self.folder / "out"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, env={"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "SIZE": str(size),
                                              "CALLS": str(self.folder / "calls")})
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout + done.stderr

    def test_a_bundle_says_where_its_files_are_wherever_it_is(self):
        self.assertRegex(self.bundle(1000), r"has 9 packages and UCX without CUDA \(PyPI gave no libucx-cu13\): \d MB\n$")
        asked = (self.folder / "calls").read_text().split()
        self.assertIn("library", asked)
        self.assertNotIn("libc6", asked)
        moved = (self.folder / "out").rename(self.folder / "moved")
        libraries = moved / "usr/lib/x86_64-linux-gnu"
        for file in [libraries / "pkgconfig/a.pc", libraries / "deep/lib/pkgconfig/a.pc"]:
            self.assertFalse(file.is_symlink())
            prefix, libdir, other = file.read_text().splitlines()
            found = prefix.removeprefix("prefix = ").replace("${pcfiledir}", str(file.parent))
            self.assertEqual(Path(found).resolve(), (moved / "usr").resolve())
            self.assertEqual(libdir, f"libdir={prefix.removeprefix('prefix = ')}/lib/deep")
            self.assertEqual(other, "other=/usrlocal")
        for gone in [libraries / "libx.a", libraries / "fortran", moved / "usr/share/man",
                     moved / "usr/share/doc/news"]:
            self.assertFalse(gone.exists())
        self.assertTrue((moved / "usr/share/doc/copyright").exists())
        shown = subprocess.run(["bash", "-uc", '. "$0" && echo "$OPAL_PREFIX $LD_LIBRARY_PATH"', moved / "environment"],
                               stdout=subprocess.PIPE, text=True, env={"PATH": os.environ["PATH"]}).stdout
        self.assertEqual(shown.split()[0], str((moved / "usr").resolve()))
        self.assertIn(str(libraries.resolve()), shown)

    def test_a_bundle_has_less_than_60_mb(self):
        self.assertRegex(self.bundle(70_000_000, code=2), "expected a bundle of less than 60 MB, found 70 MB\n$")
        self.assertFalse((self.folder / "out").exists())
        self.bundle(50_000_000)
        self.bundle(1000)  # anew
        self.assertEqual((self.folder / "out/usr/lib/x86_64-linux-gnu/large").stat().st_size, 1000)

    def refused(self, *arguments):
        done = subprocess.run([SCRIPTS / "gpu-bundle", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
        return done.stderr

    def test_only_a_new_folder_or_a_bundle_is_filled(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "own").write_text("mine")
            self.assertIn("found '" + folder + "' with something else in it", self.refused(folder))
            self.assertEqual(Path(folder, "own").read_text(), "mine")
        self.assertIn("expected a folder to fill, found ''", self.refused())
        self.assertIn("expected one folder, found 2", self.refused("a", "b"))


if __name__ == "__main__":
    unittest.main()
