"""Builds baton_torch against the PyTorch that is installed where pip runs.

libbaton comes from BATON_PREFIX (an installed or a build folder), from pkg-config, or from the build folder
of this checkout.
"""

import os
import pathlib
import subprocess
import sys
import sysconfig

from setuptools import setup

# pip builds in an environment of its own, where the installed PyTorch is hidden.
for kind in "purelib", "platlib":
    path = sysconfig.get_path(kind)
    if path not in sys.path:
        sys.path.append(path)

try:
    from torch.utils.cpp_extension import BuildExtension, CppExtension
except ImportError as error:
    sys.exit(f"baton_torch: an installed PyTorch was expected, but found: {error}")

here = pathlib.Path(__file__).resolve().parent
checkout = here.parents[2]


def pkg_config(*what):
    try:
        return subprocess.run(["pkg-config", *what, "baton"], check=True, text=True,
                              capture_output=True).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        return None


def library():
    """The folders of the headers, and the folder of libbaton.so."""
    prefix = os.environ.get("BATON_PREFIX")
    if prefix:
        prefixes = [pathlib.Path(prefix).resolve()]
    else:
        folders = pkg_config("--variable=libdir")
        if folders:
            return [pathlib.Path(p) for p in pkg_config("--variable=includedir")], \
                pathlib.Path(folders[0])
        prefixes = [checkout / "build"]
    for prefix in prefixes:
        for folder in prefix, *sorted(prefix.glob("lib/**/")):
            if (folder / "libbaton.so").exists():
                headers = [prefix / "include"]
                return headers if headers[0].exists() else [checkout / "include"], folder
    sys.exit(f"baton_torch: libbaton.so was expected in {prefixes[0]}, found none; build baton first "
             "(scripts/run), or set BATON_PREFIX")


headers, folder = library()
work = checkout / "build" / "baton_torch"  # not beside the sources
work.mkdir(parents=True, exist_ok=True)
setup(
    # What lies there may be older than the headers, PyTorch's included, on which it depends.
    options={"build": {"build_base": str(work), "force": True}, "egg_info": {"egg_base": str(work)}},
    py_modules=["baton_torch"],
    ext_modules=[CppExtension(
        "_baton_torch",
        ["collectives.cpp", "driver.cpp", "elements.cpp", "group.cpp", "module.cpp", "names.cpp",
         "rendezvous.cpp", "work.cpp"],
        include_dirs=[str(path) for path in headers],
        library_dirs=[str(folder)],
        libraries=["baton"],
        extra_compile_args=["-std=c++20", "-O2", "-Wall", "-fvisibility=hidden"],
        extra_link_args=[f"-Wl,-rpath,{folder}"],
    )],
    cmdclass={"build_ext": BuildExtension},
)
