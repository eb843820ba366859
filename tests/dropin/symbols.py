"""What a drop-in takes from the MPI library and what it puts in front of it.

Usage: symbols.py NM DROP_IN FUNCTION..., with tests/structure in PYTHONPATH

It may call the MPI library by PMPI_ names alone, since an MPI_ name is its own function or another
tool's; it must define each FUNCTION (without MPI_) and its nonblocking form. Exit code 1 if not.
"""

import sys

from exports import names


def main(nm, library, *functions):
    undefined = names(nm, library, "-D", "--undefined-only")
    defined = names(nm, library, "-D", "--defined-only")
    wrong = [f"expected no call of {name}, found one" for name in sorted(undefined)
             if name.lower().startswith("mpi_")]
    if "PMPI_Comm_rank" not in undefined:
        wrong.append("expected calls of the MPI library by PMPI_ names, found none")
    for function in functions:
        for name in (f"MPI_{function}", f"MPI_I{function.lower()}"):
            if name not in defined:
                wrong.append(f"expected {name} to be defined, found none")
    print("\n".join(wrong) or f"{len(undefined)} names undefined, {len(defined)} defined")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
