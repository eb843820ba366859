"""Usage: gpu_bundle_test.py SCRIPTS, the folder of scripts/"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPTS = Path(sys.argv.pop())

APT_CACHE = """#!/bin/sh
# The first package needs a library, which needs the C library.
for last; do :; done
echo "$last"
case "$last" in
  doctest-dev) echo '  Depends: library' ;;
  library) printf '  Depends: libc6\\n  Depends: <virtual>\\n' ;;
esac
"""
APT_GET = """#!/bin/sh
echo "$*" >>"$CALLS"
echo >one.deb
"""
DPKG_DEB = """#!/bin/sh
share=$3/usr/share to=$3/usr/lib/x86_64-linux-gnu
mkdir -p "$share/man" "$share/doc" "$to/fortran" "$to/pkgconfig" "$to/deep/lib/pkgconfig"
mkdir "$to/blas" && touch "$to/blas/libblas.so.3" "$to/pkgconfig/blas-netlib.pc"
touch "$share/man/page" "$share/doc/news" "$share/doc/copyright" "$to/libucp.so.0" "$to/libx.a"
printf 'prefix = /usr\\nlibdir=/usr/lib/deep\\nother=/usrlocal\\nCflags: -I/usr/include\\n' >"$to/deep/lib/pkgconfig/a.pc"
ln -s ../deep/lib/pkgconfig/a.pc "$to/pkgconfig/a.pc"
truncate -s "$SIZE" "$to/large"
"""


class GpuBundle(unittest.TestCase):
    """With stand-ins for Debian's tools, and a PyPI that has nothing."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "bin").mkdir()
        for name, text in [
            ("apt-cache", APT_CACHE),
            ("apt-get", APT_GET),
            ("dpkg-deb", DPKG_DEB),
            ("python3", "#!/bin/sh\nexit 1\n"),
            ("strip", "#!/bin/sh\n"),
        ]:
            file = self.folder / "bin" / name
            file.write_text(text)
            file.chmod(0o755)

    def bundle(self, size, code=0):
        done = subprocess.run(
            [SCRIPTS / "gpu-bundle", self.folder / "out"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
                "SIZE": str(size),
                "CALLS": str(self.folder / "calls"),
            },
        )
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout + done.stderr

    def test_a_bundle_says_where_its_files_are_wherever_it_is(self):
        said = "has 11 packages and UCX without CUDA (PyPI gave no libucx-cu13): 0 MB\n"
        self.assertIn(said, self.bundle(1000))
        asked = (self.folder / "calls").read_text().split()
        self.assertIn("library", asked)
        self.assertNotIn("libc6", asked)
        moved = (self.folder / "out").rename(self.folder / "moved")
        libraries = moved / "usr/lib/x86_64-linux-gnu"
        for file in [libraries / "pkgconfig/a.pc", libraries / "deep/lib/pkgconfig/a.pc"]:
            self.assertFalse(file.is_symlink())
            prefix, libdir, other, flags = file.read_text().splitlines()
            found = prefix.removeprefix("prefix = ").replace("${pcfiledir}", str(file.parent))
            self.assertEqual(Path(found).resolve(), (moved / "usr").resolve())
            self.assertEqual(libdir, f"libdir={prefix.removeprefix('prefix = ')}/lib/deep")
            self.assertEqual(other, "other=/usrlocal")
            self.assertEqual(flags, f"Cflags: -I{prefix.removeprefix('prefix = ')}/include")
        for there in ["libblas.so.3", "pkgconfig/blas.pc"]:
            self.assertTrue((libraries / there).is_file())
        for gone in [
            libraries / "libx.a",
            libraries / "fortran",
            moved / "usr/share/man",
            moved / "usr/share/doc/news",
        ]:
            self.assertFalse(gone.exists())
        self.assertTrue((moved / "usr/share/doc/copyright").exists())
        command = '. "$0" && echo "$OPAL_PREFIX $LD_LIBRARY_PATH"'
        shown = subprocess.run(
            ["bash", "-uc", command, moved / "environment"],
            stdout=subprocess.PIPE,
            text=True,
            env={"PATH": os.environ["PATH"]},
        ).stdout
        self.assertEqual(shown.split()[0], str((moved / "usr").resolve()))
        self.assertIn(str(libraries.resolve()), shown)

    def test_a_bundle_has_less_than_60_mb(self):
        said = self.bundle(70_000_000, code=2)
        self.assertIn("expected a bundle of less than 60 MB, found 70 MB\n", said)
        self.assertFalse((self.folder / "out").exists())
        self.bundle(50_000_000)
        old = self.folder / "out/usr/old"
        old.touch()
        self.bundle(1000)  # anew
        self.assertFalse(old.exists())
        self.assertEqual((self.folder / "out/usr/lib/x86_64-linux-gnu/large").stat().st_size, 1000)

    def refused(self, *arguments):
        done = subprocess.run(
            [SCRIPTS / "gpu-bundle", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.assertEqual(
            (done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr
        )
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
