"""The library exports every function that NCCL's header declares, and what the dynamic linker calls.

Usage: symbols.py NM LIBRARY COMPILER...: COMPILER preprocesses C++ that includes <nccl.h>
"""

import re
import subprocess
import sys

# Of nccl_device.h, which needs nvcc: NCCL 2.28 exports them, too.
OF_DEVICE_HEADER = """DevCommCreate DevCommDestroy GinBarrierCreateRequirement LLA2ACalcSlots
LLA2ACreateRequirement LsaBarrierCreateRequirement TeamLsa TeamRail TeamRankToLsa TeamRankToWorld
TeamWorld""".split()
# Of NCCL 2.29 and 2.30: PyTorch needs them to be loaded.
NEWER = """CommGetUniqueId CommGrow CommMemStats CommResume CommSuspend GetLsaMultimemDevicePointer
GetPeerDevicePointer PutSignal Signal WaitSignal WinGetUserPtr""".split()
OTHERS = {"ncclResetDebugInitInternal", "la_version", "la_objsearch"}

nm, library, *compiler = sys.argv[1:]
header = subprocess.run([*compiler, "-E", "-P", "-x", "c++", "-"], input="#include <nccl.h>\n",
                        stdout=subprocess.PIPE, text=True, check=True).stdout
declared = set(re.findall(r"\b(p?nccl[A-Z]\w*) *\(", header))
if len(declared) < 80:
    sys.exit(f"expected the functions of <nccl.h>, found {len(declared)}")
wanted = declared | {prefix + name for name in OF_DEVICE_HEADER for prefix in ("nccl", "pnccl")} | OTHERS
wanted |= {"nccl" + name for name in NEWER}
lines = subprocess.run([nm, "-D", "--defined-only", library], stdout=subprocess.PIPE, text=True,
                       check=True).stdout.splitlines()
found = {line.split()[-1].partition("@")[0] for line in lines}
for name in sorted(wanted - found):
    print(f"expected {name} among the library's symbols, found none")
for name in sorted(found - wanted):
    print(f"expected no symbol but those of NCCL's header, found {name}")
sys.exit(wanted != found)
