"""Times collectives of torch.distributed by gloo and by baton, one thread a rank. Whole launches of one
backend take turns; in a launch each case runs in rounds, and its time is the median round of the slowest
rank. Prints for each case the median over launches and the quartiles of gloo's time / baton's.

Between virtual hosts (--over hosts, as root) the bytes that all hosts send for a call are counted, too."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPTS = Path(__file__).parent
OPERATIONS = ["all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all"]
BYTES = [1 << 10, 16 << 10, 256 << 10, 4 << 20, 64 << 20]
ROUNDS = 5


def sent_bytes():
    """That this virtual host has sent."""
    for line in Path("/proc/self/net/dev").read_text().splitlines():
        name, _, counts = line.strip().partition(":")
        if name == "eth0":
            return int(counts.split()[8])
    return 0


def side(options):
    """One rank of one launch."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", options.rank))
    size = options.size
    dist.init_process_group(options.backend, init_method=f"file://{options.store}", rank=rank,
                            world_size=size)

    def slowest(seconds):
        times = [torch.zeros(1, dtype=torch.double) for _ in range(size)]
        dist.all_gather(times, torch.tensor([seconds], dtype=torch.double))
        return max(t.item() for t in times)

    results = []
    for operation in options.operations:
        for bytes_ in options.bytes:
            n = max(bytes_ // 4 // size, 1) * size
            whole, other, part = torch.ones(n), torch.empty(n), torch.empty(n // size)
            call = {"all_reduce": lambda: dist.all_reduce(whole),
                    "broadcast": lambda: dist.broadcast(whole, 0),
                    "all_gather": lambda: dist.all_gather_into_tensor(other, part),
                    "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, whole),
                    "all_to_all": lambda: dist.all_to_all_single(other, whole)}[operation]
            # The slower backend would take minutes for the rounds that the faster one needs.
            repeats = max(2, min(100, int(4e6 * (0.1 if options.over == "hosts" else 1) / bytes_)))
            for _ in range(2):
                call()
            times, sent = [], 0
            for _ in range(ROUNDS):
                whole.fill_(1)
                dist.barrier()
                before = sent_bytes() if options.over == "hosts" else 0
                begin = time.perf_counter()
                for _ in range(repeats):
                    call()
                seconds = (time.perf_counter() - begin) / repeats
                if options.over == "hosts":
                    dist.barrier()
                    sent = (sent_bytes() - before) / repeats
                times.append(slowest(seconds))
            all_sent = torch.tensor([float(sent)])
            dist.all_reduce(all_sent)
            results.append({"operation": operation, "bytes": bytes_, "seconds": statistics.median(times),
                            "sent": all_sent.item()})
    dist.destroy_process_group()
    if rank == 0:
        Path(options.result).write_text(json.dumps(results))


def launch(options, backend, size):
    """The results of one launch, by (operation, bytes)."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if options.over == "tcp":
        environment["BATON_UCX_TLS"] = "tcp,self"
    if options.over == "hosts":
        environment["GLOO_SOCKET_IFNAME"] = "eth0"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--side", "--backend", backend, "--size", size,
                   "--over", options.over, "--store", f"{folder}/store", "--result",
                   f"{folder}/result", "--bytes", *options.bytes, "--operations", *options.operations]
        command = [*map(str, command)]
        if options.over == "hosts":
            ranks = [[str(SCRIPTS / "virtual-cluster"), "with", str(size), options.rate, *command]]
        else:
            ranks = [[*command, "--rank", str(rank)] for rank in range(size)]
        processes = [subprocess.Popen(rank, env=environment) for rank in ranks]
        while (codes := [process.poll() for process in processes]).count(0) < len(codes):
            if any(codes):  # the others would wait for that rank
                for process in processes:
                    process.kill()
                sys.exit(f"bench-torch: expected exit code 0 of all ranks by {backend}, found another")
            time.sleep(0.05)
        results = json.loads(Path(f"{folder}/result").read_text())
    return {(r["operation"], r["bytes"]): r for r in results}


def main():
    parser = argparse.ArgumentParser(description=__doc__.replace("\n", " "))
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--over", choices=["shm", "tcp", "hosts"], default="shm",
                        help="shared memory (gloo has TCP alone), TCP on one machine, or virtual hosts")
    parser.add_argument("--rate", default="1gbit", help="of the virtual hosts' links")
    parser.add_argument("--launches", type=int, default=10)
    parser.add_argument("--bytes", type=int, nargs="+", default=BYTES, help="of the whole vector")
    parser.add_argument("--operations", nargs="+", default=OPERATIONS, choices=OPERATIONS)
    parser.add_argument("--json", help="file for all results")
    hidden = argparse.SUPPRESS
    parser.add_argument("--side", action="store_true", help=hidden)
    parser.add_argument("--backend", help=hidden)
    parser.add_argument("--rank", default="0", help=hidden)
    parser.add_argument("--size", type=int, help=hidden)
    parser.add_argument("--store", help=hidden)
    parser.add_argument("--result", help=hidden)
    options = parser.parse_args()
    if options.side:
        return side(options)
    kept = []
    for size in options.ranks:
        launches = []
        for turn in range(options.launches):
            order = ["gloo", "baton"][::1 if turn % 2 == 0 else -1]
            launches.append({backend: launch(options, backend, size) for backend in order})
        ratios_of_all = []
        for case in launches[0]["gloo"]:
            gloo, baton = ([one[b][case]["seconds"] for one in launches] for b in ("gloo", "baton"))
            ratios = sorted(g / b for g, b in zip(gloo, baton))
            middle = statistics.median(ratios)
            low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
            ratios_of_all.append(middle)
            sent = [launches[-1][b][case]["sent"] for b in ("gloo", "baton")]
            wire = f"  sends {sent[1] / sent[0]:.2f} of gloo's bytes" if sent[0] > 0 else ""
            times = [statistics.median(of_all) * 1e6 for of_all in (gloo, baton)]
            print(f"{size} ranks, {options.over}  {case[0]:15} {case[1]:9}  gloo {times[0]:10.1f} us"
                  f"  baton {times[1]:10.1f} us  {middle:6.2f} [{low:.2f}, {high:.2f}]{wire}", flush=True)
        print(f"{size} ranks, {options.over}: geometric mean {statistics.geometric_mean(ratios_of_all):.2f},"
              f" least {min(ratios_of_all):.2f}", flush=True)
        kept.append({"ranks": size, "over": options.over,
                     "launches": [{b: list(one[b].values()) for b in one} for one in launches]})
    if options.json:
        Path(options.json).write_text(json.dumps(kept, indent=1))


main()
