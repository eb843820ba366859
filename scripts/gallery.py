"""Draws the gallery.

Usage: gallery.py BATON FOLDER [NAME...]
Draws the pictures of these names (such as all_reduce_ring_4, or README for the index) into FOLDER, or all.
"""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

# Those that are drawn at other numbers of ranks, too: their pictures differ there.
MORE = {
    5: ["broadcast binomial", "broadcast circulant", "reduce binomial", "all_reduce circulant",
        "all_reduce rabenseifner", "all_reduce recursive_multiplying", "all_gather bruck",
        "all_gather circulant", "reduce_scatter circulant", "all_to_all pairwise",
        "all_to_all bruck", "barrier dissemination"],
    8: ["broadcast binomial", "broadcast scatter_ring", "broadcast circulant", "all_reduce ring",
        "all_reduce tree", "all_reduce double_tree", "all_reduce rabenseifner",
        "all_reduce recursive_doubling", "all_reduce circulant", "all_reduce hierarchical",
        "all_reduce leaders", "all_gather recursive_doubling", "all_gather hierarchical",
        "reduce_scatter recursive_halving", "all_to_all pairwise", "all_to_all bruck",
        "all_to_all hierarchical", "gather binomial", "scatter binomial"],
    64: ["all_reduce recursive_doubling"],
}
SPLIT = {"all_to_all": ["svg", "png", "pdf", "drawio"], "all_gather": ["svg"],
         "reduce_scatter": ["svg"]}
DRAWIO = ["all_reduce_ring_4"]
# A recording of 8 virtual hosts, which lies beside the pictures:
#   scripts/virtual-cluster with 8 200mbit build/baton run all_reduce --algorithm ring --bytes 1M
#       --segment 0 --iters 3 --trace diagrams/gallery/all_reduce_ring_8_hosts.trace
RECORDING = "all_reduce_ring_8_hosts.trace"
NETWORK = "virtual-cluster-200mbit"
# Two steps of training on one machine:
#   BATON_ALL_REDUCE=ring:0 BATON_TRACE=diagrams/gallery/transformer_tensor_parallel_2.trace mpirun -n 2
#       build/baton-train --model block --parallel tp --d-model 512 --heads 8 --d-ff 2048 --seq 512
#       --samples 2 --epochs 2
TRAINING = "transformer_tensor_parallel_2.trace"
INDEX = "README.md"


def pictures(baton):
    """The arguments of `baton timeline` by the file that they make."""
    listed = json.loads(subprocess.run([baton, "list", "--json"], check=True, capture_output=True,
                                       text=True).stdout)
    made = {}
    for algorithm in listed:
        collective, name = algorithm["collective"], algorithm["algorithm"]
        for size in [4] + [size for size in MORE if f"{collective} {name}" in MORE[size]]:
            arguments = [collective, "--algorithm", name, "--rounds"]
            several = "several hosts" in algorithm["refuses"]
            arguments += ["--hosts", f"2x{size // 2}"] if several else ["--ranks", str(size)]
            if name == "circulant" and collective == "broadcast":
                arguments += ["--count", "4", "--segment", "4"]  # 4 blocks
            stem = f"{collective}_{name}_{size}"
            made[stem + ".svg"] = arguments
            if stem in DRAWIO:
                made[stem + ".drawio"] = arguments
    made["all_reduce_ring_8_critical_path.svg"] = ["all_reduce", "--algorithm", "ring", "--ranks",
                                                   "8", "--rounds", "--critical-path"]
    made["broadcast_chain_4_pieces.svg"] = ["broadcast", "--algorithm", "chain", "--ranks", "4",
                                            "--rounds", "--count", "4", "--segment", "4"]
    gallery = Path(__file__).resolve().parent.parent / "diagrams" / "gallery"
    made["all_reduce_ring_8_hosts_recorded.svg"] = ["--from", str(gallery / RECORDING), "--network",
                                                    NETWORK]
    made["transformer_tensor_parallel_2_recorded.svg"] = ["--from", str(gallery / TRAINING),
                                                          "--operation", "all"]
    made["all_reduce_ring_8_hosts_predicted.svg"] = [
        "all_reduce", "--algorithm", "ring", "--ranks", "8", "--bytes", "1M", "--network", NETWORK]
    for collective, endings in SPLIT.items():
        for ending in endings:
            made[f"{collective}_split_assemble_4.{ending}"] = [collective, "--ranks", "4",
                                                               "--split-assemble"]
    return made


def index(files):
    paragraphs = [
        "# Gallery",
        "`scripts/gallery` draws these pictures, the same to the byte each time; a test draws some of them "
        "again. They show rounds, not times: messages of one round do not depend on each other. A colour is a "
        "chunk; `c3 +=` is folded on arrival.",
        "How data is split and put together: [all_to_all](all_to_all_split_assemble_4.svg) "
        "([PNG](all_to_all_split_assemble_4.png), [PDF](all_to_all_split_assemble_4.pdf), "
        "[draw.io](all_to_all_split_assemble_4.drawio)), [all_gather](all_gather_split_assemble_4.svg), "
        "[reduce_scatter](reduce_scatter_split_assemble_4.svg).",
        "![](all_to_all_split_assemble_4.svg)",
        "A ring all-reduce of 1 MiB on 8 virtual hosts with links of 200 Mbit/s: the "
        f"[recording]({RECORDING}) beside its [prediction](all_reduce_ring_8_hosts_predicted.svg):",
        "![](all_reduce_ring_8_hosts_recorded.svg)",
        f"Two [recorded]({TRAINING}) steps of a transformer block, tensor parallel on 2 ranks. Each step has "
        "two all-reduces in forward, for which ranks wait, and two in backward, which go on while the gradients "
        "of weights are computed:",
        "![](transformer_tensor_parallel_2_recorded.svg)",
    ]
    lines = ["\n\n".join(textwrap.fill(text, 110, break_long_words=False, break_on_hyphens=False)
                         for text in paragraphs), "",
             "| collective | algorithm | pictures, by number of ranks |", "|---|---|---|"]
    rows = {}
    for file, arguments in files.items():
        if "--rounds" not in arguments:
            continue
        stem, ending = file.rsplit(".", 1)
        collective, algorithm = arguments[0], arguments[2]
        text = stem.removeprefix(f"{collective}_{algorithm}_").replace("_", " ")
        rows.setdefault((collective, algorithm), []).append(
            f"[{text}{'' if ending == 'svg' else ' ' + ending}]({file})")
    lines += [f"| {collective} | {algorithm} | {', '.join(links)} |"
              for (collective, algorithm), links in rows.items()]
    return "\n".join(lines) + "\n"


def main():
    baton, folder, *names = sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]
    files = pictures(baton)
    if unknown := set(names) - {file.rsplit(".", 1)[0] for file in [*files, INDEX]}:
        raise SystemExit(f"gallery.py: expected names of pictures, found {sorted(unknown)}")
    folder.mkdir(parents=True, exist_ok=True)
    for file, arguments in files.items():
        if names and file.rsplit(".", 1)[0] not in names:
            continue
        # Dates in a PDF are those of the epoch.
        subprocess.run([baton, "timeline", *arguments, "-o", folder / file], check=True,
                       env={**os.environ, "SOURCE_DATE_EPOCH": "0"})
    if not names or "README" in names:
        (folder / INDEX).write_text(index(files))
    if not names:
        for old in set(os.listdir(folder)) - set(files) - {INDEX, RECORDING, TRAINING}:
            (folder / old).unlink()


main()
