"""Times training of GPT-2 and VGG16 in f32 against PyTorch's, one thread a rank: on one rank, and on two
by data parallelism (DistributedDataParallel), with all state divided (FSDP2) and in a pipeline
(torch.distributed.pipelining; 1F1B), where PyTorch's ranks send by gloo. Whole processes take turns; each drops its first third of the steps. Medians over launches of
tokens or images per second, and quartiles of the ratios of neighbours."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PEER = Path(__file__).with_name("torch_training.py")
SEQ, VOCABULARY = 256, 4096


def gpt2(layers, d_model, heads):
    return ["--layers", layers, "--d-model", d_model, "--heads", heads, "--vocabulary", VOCABULARY,
            "--seq", SEQ]


# name, model, samples of each rank in a step, items of a sample, options of both sides
MODELS = [("GPT-2, 12 blocks of 256", "gpt2", 4, SEQ, gpt2(12, 256, 8)),
          ("GPT-2, 4 blocks of 768", "gpt2", 4, SEQ, gpt2(4, 768, 12)),
          ("VGG16", "vgg16", 32, 1, [])]
# name, form, ranks, required of GPT-2 and of VGG16: our items per second / PyTorch's
FORMS = [("on one rank", "one", 1, {"gpt2": 1.1, "vgg16": 1.0}),
         ("data parallel on two", "dp", 2, {"gpt2": 1.2, "vgg16": 1.0}),
         ("fully sharded on two", "fsdp", 2, {"gpt2": 1.5}),
         ("pipeline on two", "pp", 2, {"gpt2": 1.2})]
MICRO_BATCHES = 8  # of a pipeline
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
    _, name, batch, _, sizes = model
    data = {"gpt2": ["--text", options.text, "--write", 0], "vgg16": ["--images", options.images]}
    command = [options.program, "--model", name, *data[name], *sizes, "--batch-size", batch * ranks,
               "--samples", batch * ranks * options.steps // 3, "--epochs", 3, "--validation-samples", 1,
               "--json"]
    if form != "one":
        mpirun = ["mpirun", "--quiet", "-n", ranks, "--bind-to", "core", "--oversubscribe"]
        command = [*mpirun, *command, "--parallel", form]
    if form == "pp":
        command += ["--micro-batches", MICRO_BATCHES]
    result = output([*map(str, command)])
    return result["tokens_per_second" if name == "gpt2" else "samples_per_second"]


def peers(options, model, form, ranks):
    _, name, batch, items, sizes = model
    with tempfile.TemporaryDirectory() as folder:
        command = [options.python, PEER, name, form, *sizes, "--batch", batch * ranks, "--steps",
                   options.steps, "--ranks", ranks, "--store", f"{folder}/store"]
        if form == "pp":
            command += ["--micro-batches", MICRO_BATCHES]
        others = [subprocess.Popen([*map(str, command), "--rank", str(rank)], env=ENVIRONMENT)
                  for rank in range(1, ranks)]
        try:
            seconds = output([*map(str, command)])
            if any([other.wait() for other in others]):
                give_up("expected exit code 0 of all of PyTorch's ranks, found another")
        finally:
            for other in others:
                other.kill()
    counted = seconds[options.steps // 3:]
    return batch * ranks * items * len(counted) / sum(counted)


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench-training", description=__doc__)
    parser.add_argument("program", help=argparse.SUPPRESS)
    parser.add_argument("text", help=argparse.SUPPRESS)
    parser.add_argument("images", help=argparse.SUPPRESS)
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
    print(f"{'':<46} {'ours':>9} {'PyTorch':>9}   {'ratio':>5}  quartiles     required")
    for model in MODELS:
        for name, form, ranks, required in FORMS:
            name, required = f"{model[0]}, {name}", required.get(model[1])
            if not required or options.only not in name:
                continue
            pairs = [(ours(options, model, form, ranks), peers(options, model, form, ranks))
                     for _ in range(options.launches)]
            ratios = sorted(a / b for a, b in pairs)
            low, middle, high = (statistics.quantiles(ratios, n=4, method="inclusive")
                                 if len(ratios) > 1 else ratios * 3)
            mine, theirs = (statistics.median(side) for side in zip(*pairs))
            print(f"{name:<46} {mine:9.4g} {theirs:9.4g}   {middle:5.2f}  [{low:.2f}, {high:.2f}]  {required}",
                  flush=True)
            rows.append({"name": name, "ours": mine, "pytorch": theirs, "ratio": middle,
                         "quartiles": [low, high], "required": required, "pairs": pairs})
    if not rows:
        give_up(f"--only: expected a part of a comparison's name, found \"{options.only}\"")
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
