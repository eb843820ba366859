"""Times training of GPT-2 in f32 against PyTorch's, one thread a rank: on one rank, and on two by data
parallelism (DistributedDataParallel) and with all state divided (FSDP2), where PyTorch's ranks send by
gloo. Whole processes take turns; each drops its first third of the steps. Medians over launches of
tokens per second, and quartiles of the ratios of neighbours."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PEER = Path(__file__).with_name("torch_gpt2.py")
# name, layers, d_model, heads
MODELS = [("12 blocks of 256", 12, 256, 8), ("4 blocks of 768", 4, 768, 12)]
# name, form, ranks, required: our tokens per second / PyTorch's
FORMS = [("on one rank", "one", 1, 1.1), ("data parallel on two", "dp", 2, 1.2),
         ("fully sharded on two", "fsdp", 2, 1.5)]
SEQ, VOCABULARY, BATCH = 256, 4096, 4  # sequences of each rank
ENVIRONMENT = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1",
                            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def give_up(sentence):
    sys.exit(f"bench-training: {sentence}")


def output(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    if done.returncode:
        give_up(f"expected exit code 0, found {done.returncode} from {' '.join(map(str, command))}")
    return json.loads(done.stdout)


def ours(options, model, form, ranks):
    _, layers, d_model, heads = model
    command = [options.program, "--model", "gpt2", "--text", options.text, "--layers", layers,
               "--d-model", d_model, "--heads", heads, "--vocabulary", VOCABULARY, "--seq", SEQ,
               "--batch-size", BATCH * ranks, "--samples", BATCH * ranks * options.steps // 3,
               "--epochs", 3, "--validation-samples", 1, "--write", 0, "--json"]
    if form != "one":
        mpirun = ["mpirun", "--quiet", "-n", ranks, "--bind-to", "core", "--oversubscribe"]
        command = [*mpirun, *command, "--parallel", form]
    return output([*map(str, command)])["tokens_per_second"]


def peers(options, model, form, ranks):
    _, layers, d_model, heads = model
    with tempfile.TemporaryDirectory() as folder:
        command = [options.python, PEER, form, "--layers", layers, "--d-model", d_model, "--heads", heads,
                   "--vocabulary", VOCABULARY, "--seq", SEQ, "--batch", BATCH * ranks, "--steps",
                   options.steps, "--ranks", ranks, "--store", f"{folder}/store"]
        others = [subprocess.Popen([*map(str, command), "--rank", str(rank)], env=ENVIRONMENT)
                  for rank in range(1, ranks)]
        seconds = output([*map(str, command)])
        for other in others:
            other.wait()
    counted = seconds[options.steps // 3:]
    return BATCH * ranks * SEQ * len(counted) / sum(counted)


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench-training", description=__doc__)
    parser.add_argument("program", help=argparse.SUPPRESS)
    parser.add_argument("text", help=argparse.SUPPRESS)
    parser.add_argument("python", help=argparse.SUPPRESS)
    parser.add_argument("--launches", type=int, default=3, help="of each side [3]")
    parser.add_argument("--steps", type=int, default=12, help="of each launch, a multiple of 3 [12]")
    parser.add_argument("--only", default="", help="comparisons whose name contains this")
    parser.add_argument("--json", help="a file for all numbers")
    options = parser.parse_args()
    if options.launches < 1 or options.steps < 3 or options.steps % 3:
        give_up(f"expected at least 1 launch of a positive multiple of 3 steps, found {options.launches} "
                f"of {options.steps}")
    rows = []
    print(f"{'':<42} {'ours':>9} {'PyTorch':>9}   {'ratio':>5}  quartiles     required")
    for model in MODELS:
        for name, form, ranks, required in FORMS:
            name = f"{model[0]}, {name}"
            if options.only not in name:
                continue
            pairs = [(ours(options, model, form, ranks), peers(options, model, form, ranks))
                     for _ in range(options.launches)]
            ratios = sorted(a / b for a, b in pairs)
            low, middle, high = (statistics.quantiles(ratios, n=4, method="inclusive")
                                 if len(ratios) > 1 else ratios * 3)
            mine, theirs = (statistics.median(side) for side in zip(*pairs))
            print(f"{name:<42} {mine:9.0f} {theirs:9.0f}   {middle:5.2f}  [{low:.2f}, {high:.2f}]  {required}",
                  flush=True)
            rows.append({"name": name, "ours": mine, "pytorch": theirs, "ratio": middle,
                         "quartiles": [low, high], "required": required, "pairs": pairs})
    if not rows:
        give_up(f"--only: expected a part of a comparison's name, found \"{options.only}\"")
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
