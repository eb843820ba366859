"""What `gpu-check` must know of a machine: its GPUs, CUDA and NCCL."""

import contextlib
import ctypes
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

PATHS = {"CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "LD_LIBRARY_PATH"}  # lists of folders
CUBLASLT = "libcublasLt.so.13"
MAJOR, MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_…


def gpus():
    """The GPUs that CUDA's driver sees, and, if there are none, why."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return [], "no driver (libcuda.so.1)"
    if code := driver.cuInit(0):
        return [], f"error {code} of cuInit"

    def integer(function, *arguments):
        value = ctypes.c_int()
        function(ctypes.byref(value), *arguments)
        return value.value

    version = integer(driver.cuDriverGetVersion)
    found = []
    for ordinal in range(integer(driver.cuDeviceGetCount)):
        device = integer(driver.cuDeviceGet, ordinal)
        name, memory = ctypes.create_string_buffer(100), ctypes.c_size_t()
        driver.cuDeviceGetName(name, len(name), device)
        driver.cuDeviceTotalMem_v2(ctypes.byref(memory), device)
        found.append({
            "name": name.value.decode(),
            "capability": [integer(driver.cuDeviceGetAttribute, a, device) for a in (MAJOR, MINOR)],
            "memory_bytes": memory.value,
            "driver_supports_cuda": f"{version // 1000}.{version % 1000 // 10}",
        })
    return found, "a driver that sees none"


def text_of(found):
    """The first GPU, and how many more there are."""
    gpu, more = found[0], len(found) - 1
    return (f"{gpu['name']}{f' and {more} more' if more else ''}, "
            f"{gpu['memory_bytes'] / 2**30:.0f} GiB, "
            f"compute capability {'.'.join(map(str, gpu['capability']))}")


def architectures(found, known):
    """What to compile for, oldest first: the GPUs' own, or the newest before that is `known`."""
    chosen = set()
    for major, minor in (gpu["capability"] for gpu in found):
        fit = [number for number in known if number <= 10 * major + minor]
        if not fit:
            raise ValueError(f"expected a CUDA compiler for compute capability {major}.{minor}, "
                             f"found one for {min(known, default='none')} and newer")
        chosen.add(max(fit))
    return sorted(chosen)


def known_architectures(nvcc):
    listed = said_by([nvcc, "--list-gpu-arch"])
    return [int(number) for number in re.findall(r"compute_(\d+)\b", listed)]


def said_by(command, **options):
    """Standard output of a command; empty where it cannot be run."""
    with contextlib.suppress(OSError):
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              **options).stdout
    return ""


def with_added(environment, more, last=False):
    """Both; of lists of folders, the added ones come first, or last."""
    result = dict(environment)
    for name, value in more.items():
        both = [value, environment.get(name)] if name in PATHS else [value]
        result[name] = ":".join(filter(None, reversed(both) if last else both))
    return result


def driver():
    said = said_by(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"])
    return said.split("\n")[0] or "unknown"


def versions(nvcc, environment):
    """Of CUDA and NCCL, as compilers find them: "unknown" or "none" where they do not say."""
    cuda = re.search(r"release ([\d.]+)", said_by([nvcc, "--version"]))
    include = Path(nvcc).resolve().parents[1] / "include"
    nccl = said_by(["c++", "-E", "-P", "-x", "c++", f"-I{include}", "-"], env=environment,
                   input="#include <nccl.h>\nversion NCCL_MAJOR NCCL_MINOR NCCL_PATCH\n")
    nccl = re.search(r"^version (\d+) (\d+) (\d+)", nccl, re.MULTILINE)
    return {"cuda": cuda[1] if cuda else "unknown", "nccl": ".".join(nccl.groups()) if nccl else "none"}


def of_python(file):
    """The file of NVIDIA's Python packages, such as nccl/lib/libnccl.so.2; None without it."""
    spec = importlib.util.find_spec("nvidia")
    found = [Path(folder, file) for folder in (spec and spec.submodule_search_locations) or []]
    return next((path for path in found if path.exists()), None)


def nccl_of_python(links):
    """What the environment needs for the NCCL of the Python package nvidia-nccl, by variable; its
    libraries get the names that linkers look for in the folder `links`. Empty without one."""
    library = of_python("nccl/lib/libnccl.so.2")
    if not library:
        return {}
    links.mkdir(parents=True, exist_ok=True)
    for name in ["libnccl.so", "libnccl.so.2"]:
        (links / name).unlink(missing_ok=True)
        (links / name).symlink_to(library)
    return {"CPLUS_INCLUDE_PATH": str(library.parents[1] / "include"), "LIBRARY_PATH": str(links),
            "LD_LIBRARY_PATH": str(links)}


def cublaslt_of_python(environment):
    """What the environment needs for the cuBLASLt of the Python package nvidia-cublas, by variable; empty
    without one, or where programs find another."""
    load = f"import ctypes; ctypes.CDLL('{CUBLASLT}')"
    library = of_python(f"cu13/lib/{CUBLASLT}")
    if not library or subprocess.run([sys.executable, "-c", load], env=environment,
                                     stderr=subprocess.DEVNULL).returncode == 0:
        return {}
    return {"LD_LIBRARY_PATH": str(library.parent)}
