"""What the layout promises: who includes what, headers that stand alone, no source that nobody
builds, a README in every folder.

Usage: check.py ROOT includes
       check.py ROOT built
       check.py ROOT heads
       check.py ROOT namespaces
       check.py ROOT picture
       check.py ROOT readmes
       check.py ROOT columns
       check.py ROOT small
       check.py ROOT headers [--but HEADER]... COMPILER...
Prints one line for each breach; exit code 1 if there is any.
"""

import graphlib
import itertools
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Which headers a file may include, by the first pattern that fits its path: a pattern of the names
# as written, quotes or angle brackets included. `<\w+>` is the standard library.
STANDARD = r"<\w+>"
INCLUDES = [
    (r"algorithms/.*", rf'{STANDARD}|"baton/schedule\.hpp"|"\w+\.hpp"'),
    (r"include/baton/mpi\.hpp", rf'{STANDARD}|"baton/[\w/]+\.hpp"|<mpi\.h>'),
    (r"include/baton/cuda_runtime\.hpp", rf'{STANDARD}|"baton/[\w/]+\.hpp"|<cuda_runtime_api\.h>'),
    (r"include/.*\.h", r'<std(def|int)\.h>|"baton/c/\w+\.h"'),
    (r"include/.*", rf'{STANDARD}|"baton/[\w/]+\.hpp"'),
    (r"transformer/program/.*", rf'{STANDARD}|<(?:sched|unistd)\.h>|<fmt/\w+\.h>|<CLI/CLI\.hpp>|<nlohmann/json\.hpp>|"baton/[\w/]+\.hpp"|"(\.\./)?[\w/]+\.hpp"'),
    (r"transformer/cuda/.*", rf'{STANDARD}|<fmt/\w+\.h>|<cuda(_runtime(_api)?)?\.h>|<cublasLt\.h>|"baton/[\w/]+\.hpp"|"(\.\./)?[\w/]+\.hpp"|"\w+\.cuh"'),
    (r"transformer/state/.*", rf'{STANDARD}|<fmt/\w+\.h>|<nlohmann/json\.hpp>|"baton/[\w/]+\.hpp"|"(\.\./)?[\w/]+\.hpp"'),
    (r"transformer/data/.*", rf'{STANDARD}|<(fcntl|iconv|unistd|sys/stat|sentencepiece_\w+)\.h>|<fmt/\w+\.h>|"baton/[\w/]+\.hpp"|"(\.\./)?[\w/]+\.hpp"'),
    (r"transformer/.*", rf'{STANDARD}|<fmt/\w+\.h>|<(cblas|omp|oneapi/dnnl/dnnl|sys/(mman|prctl))\.h>|<oneapi/dnnl/dnnl\.hpp>|<hwy/[\w/-]+\.h>|"hwy/[\w/-]+\.h"|"transformer/[\w/-]+\.(hpp|cpp)"|"baton/[\w/]+\.hpp"|"(\.\./)?[\w/-]+\.(hpp|inc)"'),
    # CLI11 and the whole of nlohmann-json take seconds to compile.
    (r"lib/cli/common/command_line\.cpp", ".*"),
    (r"lib/cli/.*\.hpp", r'(?!<CLI/|<nlohmann/json\.hpp>).*'),
    (r"lib/cli/.*", r'(?!<CLI/).*'),
    (r"diagrams/convert\.cpp", rf'{STANDARD}|<fmt/\w+\.h>|<[\w/]+\.h>|"baton/[\w/]+\.hpp"|"\w+\.hpp"'),
    (r"diagrams/text\.cpp", rf'{STANDARD}|<fmt/\w+\.h>|<nlohmann/json\.hpp>|"base/utf8\.hpp"|"baton/[\w/]+\.hpp"|'
                            r'"\w+\.hpp"'),
    (r"diagrams/msccl_xml\.cpp", rf'{STANDARD}|<fmt/\w+\.h>|<expat\.h>|"baton/[\w/]+\.hpp"|"\w+\.hpp"'),
    (r"diagrams/goal_read\.cpp", rf'{STANDARD}|<fmt/\w+\.h>|"base/line_reader\.hpp"|"\w+\.hpp"'),
    (r"diagrams/.*", rf'{STANDARD}|<fmt/\w+\.h>|"baton/[\w/]+\.hpp"|"\w+\.hpp"'),
]

# The public headers are described by include/README.md, and installed as they are. Seeds are input of
# programs, all of them; tests/fuzz/README.md describes them.
NO_README = re.compile(r"include/baton(/.*)?|tests/fuzz/seeds(/.*)?")


def sources(root, *suffixes):
    """Files of the tree with these suffixes, relative to the root; build folders left out."""
    for folder, children, files in os.walk(root):
        relative = Path(folder).relative_to(root)
        children[:] = sorted(c for c in children if not c.startswith((".", "build", "__")))
        for file in sorted(files):
            if file.endswith(suffixes):
                yield relative / file


def room(path):
    """The room of lib/ that a path is in, or None."""
    parts = Path(os.path.normpath(path)).parts
    return parts[1] if len(parts) > 2 and parts[0] == "lib" else None


def folders_of_program(root):
    """Folders of lib/cli, each with the folders that it may include, by the table of its README."""
    text = (root / "lib/cli/README.md").read_text()
    rows = re.findall(r"^\| \[`(\w+)/`\]\(.*\| *([\w, ]*?) *\|$", text, re.MULTILINE)
    return {folder: set(re.findall(r"\w+", others)) for folder, others in rows}


def includes(root):
    program = folders_of_program(root)
    for file in sources(root, ".hpp", ".cpp", ".cu", ".cuh", ".h"):
        allowed = next((names for path, names in INCLUDES if re.fullmatch(path, str(file))), ".*")
        for number, line in enumerate((root / file).read_text().splitlines(), 1):
            found = re.match(r'\s*#\s*include\s*([<"]([^>"]*)[>"])', line)
            if not found:
                continue
            if not re.fullmatch(allowed, found[1]):
                yield f"{file}:{number}: expected an include of {allowed}, found {found[1]}"
            candidates = [file.parent / found[2], Path("lib", found[2])]
            included = next((path for path in candidates if (root / path).is_file()), None)
            if file.parts[:2] == ("lib", "cli") and len(file.parts) > 3 and included:
                folder = Path(os.path.normpath(included)).parts[1:-1]
                if folder[:1] == ("cli",) and folder[1:2] != file.parts[2:3] and folder[1:]:
                    if folder[1] not in program.get(file.parts[2], set()):
                        yield (f"{file}:{number}: expected an include of lib/cli/README.md's table, "
                               f"found {found[1]}")
            if file.parts[0] == "transformer" and included and room(included):
                yield f"{file}:{number}: expected no private header of lib/, found {found[1]}"
    for file in sources(root, "meson.build"):
        if file.parts[0] == "transformer" and "private_include" in (root / file).read_text():
            yield f"{file}: expected public headers alone, found private_include"


def readmes(root):
    folders = {parent for file in sources(root, "") for parent in file.parents}
    for folder in sorted(folders):
        if NO_README.fullmatch(folder.as_posix()):
            continue
        readme = root / folder / "README.md"
        if not readme.is_file() or not readme.read_text().strip():
            yield f"{folder}: expected a README.md that says what lives here, found none"
        elif not readme.read_text().startswith("# "):
            first = readme.read_text().splitlines()[0]
            yield f"{folder}/README.md: expected a title, '# …', as its first line, found '{first}'"
    table = (root / "include" / "README.md").read_text()
    for header in sources(root / "include", ".hpp", ".h"):
        if f"`{header}`" not in table:
            yield f"include/README.md: expected a row of `{header}` in a table, found none"


COLUMNS = 110


def columns(root):
    """Prose of READMEs has at most 110 columns; tables, code and lines with a link may be longer."""
    for file in sources(root, ".md"):
        code = False
        for number, line in enumerate((root / file).read_text().splitlines(), 1):
            code ^= line.startswith("```")
            free = code or line.startswith(("|", "    ")) or "](" in line
            if len(line) > COLUMNS and not free:
                yield f"{file}:{number}: expected at most {COLUMNS} columns, found {len(line)}"


def part(path):
    """The box of lib/README.md's picture that a path lies in: a room of lib/, or a top-level folder."""
    return room(path) or Path(path).parts[0]


def arrows(root):
    """The arrows of lib/README.md's picture, from box to box. An arrow from a frame ("subgraph") is one
    from each box of the frame."""
    drawing = (root / "lib/README.md").read_text().split("```mermaid\nflowchart BT\n")[1].split("```")[0]
    frames, open_frames, drawn = {}, [], []
    for line in drawing.splitlines():
        line = re.sub(r'\["[^"]*"\]', "", line).strip()
        if line == "end":
            open_frames.pop()
            continue
        sides = [re.findall(r"\w+", side) for side in line.removeprefix("subgraph ").split("-->")]
        for name in sum(sides, []):
            if open_frames and not any(name in inside for inside in frames.values()):
                frames[open_frames[-1]].append(name)
        if line.startswith("subgraph "):
            open_frames.append(sides[0][0])
            frames[sides[0][0]] = []
        drawn += itertools.product(*sides) if len(sides) == 2 else []

    def boxes(name):
        return sum(map(boxes, frames[name]), []) if name in frames else [name]

    return {(box, included) for name, included in drawn for box in boxes(name)}


def included_files(root):
    """Every include of a file of the tree: (file, included file, name as written)."""
    for file in sources(root, ".hpp", ".cpp", ".cu", ".cuh", ".inc", ".cpp.in", ".h", ".c"):
        for name in re.findall(r'^\s*#\s*include\s*[<"]([^>"]*)[>"]', (root / file).read_text(), re.M):
            folders = [file.parent, *map(Path, ("lib", "include", ".", "tests"))]
            included = next((folder / name for folder in folders if (root / folder / name).is_file()), None)
            if included:
                yield file, Path(os.path.normpath(included)), name


def small(root):
    """A header of a few lines that one file includes belongs into that file.

    Precompiled headers have another user, the compiler.
    """
    users = {}
    for file, included, _ in included_files(root):
        users.setdefault(included, set()).add(file)
    for header, files in sorted(users.items()):
        lines = len((root / header).read_text().splitlines())
        if header.name == "precompiled.hpp":
            continue
        if header.suffix in (".hpp", ".cuh") and header.parts[0] != "include" and len(files) == 1 and lines < 25:
            yield f"{header}: expected 25 lines or two users, found {lines} lines that only {files.pop()} includes"


def picture(root):
    """The picture of lib/README.md has the arrows of the real includes, and no circle."""
    found = {}
    for file, included, name in included_files(root):
        if part(file) not in ("lib", "tests"):
            found.setdefault((part(file), part(included)), f"{file} includes {name}")
    found = {arrow: example for arrow, example in found.items() if arrow[0] != arrow[1]}
    drawn = arrows(root)
    for arrow in sorted(found.keys() - drawn):
        yield (f"lib/README.md: expected an arrow in the picture, since {found[arrow]}, found none; if that "
               f"include is right, add the line \"{' --> '.join(arrow)}\" to the picture")
    for arrow in sorted(drawn - found.keys()):
        yield (f"lib/README.md: expected {arrow[0]} to include {arrow[1]}, as the picture says, found no such "
               f"include; delete \"{' --> '.join(arrow)}\" from the picture")
    try:
        rest = {box: {b for a, b in found if a == box} for box, _ in found}
        list(graphlib.TopologicalSorter(rest).static_order())
    except graphlib.CycleError as error:
        yield f"expected includes without a circle, found {' --> '.join(error.args[1][::-1])}"


def algorithms(root):
    """Names of the algorithms' files without ".cpp", as algorithms/meson.build collects them."""
    return subprocess.run([sys.executable, root / "algorithms" / "collect.py", "names"],
                          check=True, capture_output=True, text=True).stdout.split()


def built(root):
    """Every source is named in a build file of its folder or of one above, relative to that one;
    only algorithms are collected by their names. pip builds by setup.py."""
    collected = {f"algorithms/{name}.cpp" for name in algorithms(root)}
    for file in sources(root, ".cpp", ".c"):
        if file.as_posix() in collected:
            continue
        for folder in file.parents:
            texts = [root / folder / name for name in ("meson.build", "CMakeLists.txt", "setup.py")]
            words = [re.split(r"[\s'\"(),\[\]]+", text.read_text()) for text in texts if text.is_file()]
            if file.relative_to(folder).as_posix() in sum(words, []):
                break
        else:
            yield f"{file}: expected a meson.build that names it, found none"


# The namespace of each room, a folder with all folders below it that have no row of their own.
# lib/README.md has the same table.
NAMESPACES = {
    "algorithms": "baton::algorithms",
    "diagrams": "baton::diagrams",
    "lib/base": "baton::base",
    "lib/c": "baton::c",
    "lib/cli": "baton::cli",
    "lib/communicator": "baton::communicator",
    "lib/cost": "baton::costs",
    "lib/dropin": "baton::pmpi",
    "lib/dropin/torch": "baton::pytorch",
    "lib/dropin/nccl": "baton::nccl_abi",
    "lib/execute": "baton::execute",
    "lib/explain": "baton::explaining",
    "lib/launch": "baton::launching",
    "lib/memory": "baton::host",
    "lib/memory/cuda": "baton::cuda",
    "lib/schedule": "baton::scheduling",
    "lib/select": "baton::selecting",
    "lib/simulate": "baton::simulating",
    "lib/status": "baton::status",
    "lib/timeline": "baton::timing",
    "lib/trace": "baton::tracing",
    "lib/transport": "baton::transport",
    "lib/transport/mpi": "baton::mpi",
    "lib/transport/nccl": "baton::nccl",
    "lib/transport/shm": "baton::shm",
    "lib/transport/staged": "baton::staged",
    "lib/transport/tcp": "baton::tcp",
    "lib/transport/thread": "baton::threads",
    "lib/transport/ucx": "baton::ucx",
    "lib/verify": "baton::proving",
    "transformer": "baton::transformer",
    "transformer/cuda": "baton::transformer::cuda",
    "transformer/ops": "baton::transformer::ops",
    "transformer/program": "baton::transformer::program",
}

FORWARD = re.compile(r"(?:enum )?(?:class|struct) \w+(?: : [\w:]+)?;")  # of a public name
# Part of a public class.
PRIVATE = re.compile(r"(?:class|struct) (?:BATON_HIDDEN )?\w+::\w+ (?:final )?\{")


def opened(text):
    """Namespaces that a text opens outside all others: (name, what stands directly in it)."""
    text = re.sub(r"//.*|/\*.*?\*/|^#.*|\"(?:\\.|[^\"\\])*\"", "", text, flags=re.M)
    start = re.compile(r"^(?:inline )?namespace ?([\w:]*) ?\{", re.M)
    position = 0
    while found := start.search(text, position):
        depth, own, position = 1, [], found.end()
        while depth and position < len(text):
            depth += {"{": 1, "}": -1}.get(text[position], 0)
            if depth == 1 or text[position] == "{" and depth == 2:
                own.append(text[position])
            position += 1
        yield found[1], "".join(own)


def namespaces(root):
    """A room declares its own names in its own namespace. Its headers open no other, but for
    declarations of classes of public headers and other libraries; its sources define public names,
    too. Public headers are those that export their namespace, wherever they lie."""
    headers = [file for file in sources(root, ".hpp") if file.parts[0] == "include"
               or "\n#pragma GCC visibility push(default)\n" in (root / file).read_text()]
    public = set()
    for file in headers:
        for name, inside in opened((root / file).read_text()):
            public |= {name, *(f"{name}::{inner}" for inner in re.findall(r"namespace (\w+)", inside))}
    table = (root / "lib" / "README.md").read_text()
    for room, own in NAMESPACES.items():
        if room.startswith("lib/") and not re.search(rf"`{room[4:]}/`.*\| `{own}` \|", table):
            yield f"lib/README.md: expected a row of `{room[4:]}/` with `{own}`, found none"
    for file in sources(root, ".hpp", ".cpp", ".cu"):
        room = next((str(folder) for folder in file.parents if str(folder) in NAMESPACES), None)
        if room is None or file in headers:
            continue
        own = NAMESPACES[room]
        for name, inside in opened((root / file).read_text()):
            if name == own or name.startswith(own + "::"):
                continue
            if file.suffix == ".hpp":
                rest = PRIVATE.sub("", FORWARD.sub("", inside))
                foreign = name != "std" and not name.startswith("baton")
                fits = (name in public or foreign) and not re.sub(r"[;}\s]", "", rest)
            else:
                fits = name in public or name in ("", "std")
            if not fits:
                yield f"{file}: expected names in {own}, found namespace {name or '{'}"


def heads(root):
    """An algorithm's head comment has the formulas of its row, which a test compares with costs."""
    for name in algorithms(root):
        text = (root / "algorithms" / f"{name}.cpp").read_text()
        row = {key: "".join(re.findall(r'"([^"]*)"', strings)) for key, strings in
               re.findall(r'\.(rounds|depth|sent) = ((?:"[^"]*"\s*)+)', text)}
        head = re.search(r"((?:///.*\n)+)Schedule generate\(", text)
        fields, key = {}, None
        for line in head[1].splitlines() if head else []:
            if found := re.match(r"/// (\w+)  +(.*)", line):
                key, fields[found[1]] = found[1], found[2]
            elif key:
                fields[key] += " " + line[3:].strip()
        depth = f"; depth {row['depth']}" if "depth" in row else ""
        for key, formula in [("Rounds", row["rounds"] + depth), ("Sent", row["sent"])]:
            found = fields.get(key, "nothing")
            if not re.match(re.escape(formula) + r"([.,:; ]|$)", found):
                yield (f"algorithms/{name}.cpp: expected \"{key}\" of the head comment to begin "
                       f"with {formula}, found {found}")


def headers(root, compiler, but):
    """Every public header, alone in a file, included twice, compiles without a warning; one of the C
    interface in C, too."""

    def compile_alone(header):
        for language, standard in [("c", "c99"), ("c++", "c++11"), ("c++", "c++20")]:
            if header.suffix == ".hpp" and standard != "c++20":
                continue
            strict = ["-Wconversion", "-Wstrict-prototypes"] if language == "c" else []
            result = subprocess.run([*compiler, f"-std={standard}", "-fsyntax-only", "-Wall", "-Wextra",
                                     "-Wpedantic", "-Werror", *strict, "-x", language, "-"],
                                    input=f'#include "{header}"\n' * 2, capture_output=True, text=True)
            if result.returncode != 0:
                return f"{header} does not compile alone by {standard}:\n{result.stderr}"
        return None

    public = [file.relative_to("include") for file in sources(root, ".hpp", ".h")
              if file.parts[0] == "include"]
    if not public:
        yield "expected public headers under include/, found none"
    public = [header for header in public if header.as_posix() not in but]
    with ThreadPoolExecutor(2) as pool:
        yield from filter(None, pool.map(compile_alone, public))


def main():
    root, what, *compiler = Path(sys.argv[1]).resolve(), *sys.argv[2:]
    but = []
    while compiler and compiler[0] == "--but":
        _, header, *compiler = compiler
        but.append(header)
    checks = {"includes": includes, "built": built, "heads": heads, "namespaces": namespaces,
              "picture": picture, "readmes": readmes, "columns": columns,
              "small": small,
              "headers": lambda root: headers(root, compiler, but)}
    breaches = list(checks[what](root))
    for breach in breaches:
        print(breach)
    sys.exit(bool(breaches))


main()
