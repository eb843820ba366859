"""Times collectives of this library, of two MPI libraries and of gloo on the same sizes, in one
table. Programs that run in turn are less alike than sides of one run: rounds of whole runs go there
and back (A B C, C B A, ...), and a ratio is the median over rounds, with the least and the greatest
of them as its bounds.

    scripts/bench-peers                                  2 ranks on this machine
    scripts/bench-peers --ranks 4 all_reduce --bytes 1K:16M
    scripts/bench-peers --virtual-cluster 8 --bytes 8:16M --sample-ms 20     needs root
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OURS = "baton over Open MPI"  # what the others are compared with


def give_up(sentence):
    sys.exit(f"bench-peers: {sentence}")


def first_of(*programs):
    for program in programs:
        for folder in os.environ.get("PATH", "").split(":"):
            if os.access(Path(folder, program), os.X_OK):
                return program
    give_up(f"expected {' or '.join(programs)}, found none; scripts/setup installs it")


class Peer:
    """A program that writes what `baton bench --json` writes, and what its sides are called."""

    def __init__(self, name, command, rename):
        self.name, self.command, self.rename = name, command, rename

    def run(self, arguments, file):
        print(f"bench-peers: {self.name}", file=sys.stderr)
        done = subprocess.run([*self.command(file), *arguments, "--json", str(file)],
                              stdout=subprocess.PIPE, text=True)
        if done.returncode not in (0, 1) or not file.is_file():
            give_up(f"expected {self.name} to run, found exit code {done.returncode}\n{done.stdout}")
        return json.loads(file.read_text())


def peers(options):
    """Each of them, started on the same ranks."""
    cluster = [str(ROOT / "scripts/virtual-cluster"), "--name", f"peers-{os.getpid()}"]

    def start(mpi, *local):
        if options.virtual_cluster:
            return [*cluster, "run", "--mpi", mpi, str(options.ranks)]
        return [*local, "-n", str(options.ranks)]

    crowded = ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"] \
        if options.ranks > len(os.sched_getaffinity(0)) else []
    openmpi, mpich = first_of("mpirun.openmpi", "mpirun"), first_of("mpirun.mpich", "mpiexec.hydra")

    def gloo(file):
        # It has a thread of its own for the network, so its ranks are not bound to one core.
        unbound = [] if options.virtual_cluster else ["--bind-to", "none"]
        interface = "eth0" if options.virtual_cluster else "lo"
        store = file.with_suffix("")
        store.mkdir()
        return [*start("openmpi", openmpi, "--quiet", *crowded), *unbound,
                str(ROOT / "build/tests/bench/gloo_bench"), "--interface", interface,
                "--store", str(store)]

    def named(library):
        return lambda side: f"baton over {library}" if side == "baton" else f"{library} {side}"

    network = "TCP" if options.virtual_cluster else "TCP loopback"
    return cluster, [
        Peer("Open MPI", lambda _: [*start("openmpi", openmpi, "--quiet", *crowded),
                                    str(ROOT / "build/baton"), "bench"], named("Open MPI")),
        Peer("MPICH", lambda _: [*start("mpich", mpich), str(ROOT / "build/tests/other_mpi/baton"), "bench"],
             named("MPICH")),
        Peer("gloo", gloo, lambda side: f"{side} ({network})"),
    ]


def merged(runs):
    """Rows over rounds of runs: `runs` has pairs of a renaming of sides and a result."""
    rows = {}
    for rename, result in runs:
        for row in result["rows"]:
            key = row["collective"], row["asked_bytes"]
            one = rows.setdefault(key, {
                "fixed": {k: row[k] for k in ("collective", "asked_bytes", "bytes", "count", "type",
                                              "op", "root", "bus_factor")},
                "bounds": [], "sides": {}})
            if row["lower_bound_us"] is not None and any(
                    rename(side["name"]) == OURS for side in row["sides"]):
                one["bounds"].append(row["lower_bound_us"])
            for side in row["sides"]:
                found = one["sides"].setdefault(
                    rename(side["name"]), {"ours": side["ours"], "rounds": [], "wrong": 0})
                found["rounds"].append(side["samples_us"])
                found["wrong"] += side["wrong"]
    return [merged_row(row) for row in rows.values()]


def merged_row(row):
    sides, ratios = [], []
    medians = {name: [statistics.median(samples) for samples in side["rounds"]]
               for name, side in row["sides"].items()}
    for name, side in row["sides"].items():
        sides.append({
            "name": name, "ours": side["ours"], "wrong": side["wrong"],
            "time_us": statistics.median(sum(side["rounds"], [])),
            "time_low_us": min(medians[name]), "time_high_us": max(medians[name]),
            "rounds_us": side["rounds"]})
        if not side["ours"] and OURS in medians:
            of_rounds = [b / a for a, b in zip(medians[OURS], medians[name])]
            ratios.append({"ours": OURS, "against": name, "ratio": statistics.median(of_rounds),
                           "low": min(of_rounds), "high": max(of_rounds)})
    bound = statistics.median(row["bounds"]) if row["bounds"] else None
    return {**row["fixed"], "lower_bound_us": bound, "sides": sides, "ratios": ratios}


def table(rows):
    lines = [f"# {'collective':<14} {'size':>10}  {'who':<36} {'time':>10} {'busbw':>7} "
             f"{'ratio':>6} {'low':>6} {'high':>6}",
             f"# {'':<14} {'(B)':>10}  {'':<36} {'(us)':>10} {'(GB/s)':>7} {'to ours':>7}"]
    for row in rows:
        ratios = {ratio["against"]: ratio for ratio in row["ratios"]}
        for side in row["sides"]:
            busbw = row["bytes"] * row["bus_factor"] / side["time_us"] * 1e-3
            line = (f"  {row['collective']:<14} {row['bytes']:>10}  {side['name']:<36} "
                    f"{side['time_us']:>10.2f} {busbw:>7.2f}")
            if side["name"] in ratios:
                ratio = ratios[side["name"]]
                line += f" {ratio['ratio']:>6.2f} {ratio['low']:>6.2f} {ratio['high']:>6.2f}"
            lines.append(line)
    return "\n".join(lines)


def parse():
    parser = argparse.ArgumentParser(
        prog="bench-peers", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collectives", nargs="*", metavar="COLLECTIVE",
                        help="(default: the five of baton bench)")
    parser.add_argument("--ranks", type=int, default=2, metavar="N", help="(default 2)")
    parser.add_argument("--virtual-cluster", type=int, metavar="HOSTS",
                        help="a rank on each host instead, with links of 1 Gbit/s")
    parser.add_argument("--rounds", type=int, default=4, metavar="N",
                        help="of runs, which share the pairs (default 4)")
    for option, default in [("--bytes", "8:64M"), ("--factor", "2"), ("--pairs", "20"),
                            ("--large-pairs", "8"), ("--sample-ms", "5")]:
        parser.add_argument(option, default=default, metavar="...",
                            help=f"as of baton bench (default {default})")
    parser.add_argument("-o", "--output", default=str(ROOT / "build/bench/peers"), metavar="FOLDER",
                        help="for peers.json and pictures (default build/bench/peers)")
    options = parser.parse_args()
    if options.virtual_cluster:
        options.ranks = options.virtual_cluster
    for name in ("ranks", "rounds"):
        if getattr(options, name) < 1:
            give_up(f"--{name}: expected at least 1, found {getattr(options, name)}")
    return options


def share(pairs, rounds):
    if not pairs.isdigit() or int(pairs) < 1:
        give_up(f"expected a number of pairs, at least 1, found '{pairs}'")
    return str(-(-int(pairs) // rounds))


def main():
    for ending in signal.SIGTERM, signal.SIGHUP:  # as an interrupt does: the cluster goes down
        signal.signal(ending, lambda number, _: sys.exit(128 + number))
    options = parse()
    arguments = [*options.collectives, "--bytes", options.bytes, "--factor", options.factor,
                 "--sample-ms", options.sample_ms, "--pairs", share(options.pairs, options.rounds),
                 "--large-pairs", share(options.large_pairs, options.rounds)]
    cluster, programs = peers(options)
    runs, about = [], {}
    output = Path(options.output)
    output.mkdir(parents=True, exist_ok=True)
    if options.virtual_cluster:
        subprocess.run([*cluster, "up", str(options.ranks), "1gbit"], check=True)
    try:
        with tempfile.TemporaryDirectory(prefix="baton-peers-") as folder:
            for number in range(options.rounds):
                order = programs if number % 2 == 0 else reversed(programs)
                for peer in order:
                    result = peer.run(arguments, Path(folder, f"{peer.name}-{number}.json"))
                    runs.append((peer.rename, result))
                    about[peer.name] = {k: v for k, v in result.items() if k != "rows"}
    finally:
        if options.virtual_cluster:
            subprocess.run([*cluster, "down"], check=True)
    rows = merged(runs)
    first = about["Open MPI"]
    result = {"mpi": " and ".join(peer.name for peer in programs),
              "processor": first["processor"], "ranks": first["ranks"], "hosts": first["hosts"],
              "interval": f"least and greatest of {options.rounds} rounds of runs",
              "runs": about, "rows": rows}
    file = output / "peers.json"
    file.write_text(json.dumps(result, indent=1) + "\n")
    hosts = len(set(first["hosts"]))
    print(f"# {options.ranks} ranks on {hosts} host{'s' if hosts > 1 else ''}, {first['processor']}\n"
          f"# ratio: their time / that of {OURS}, medians of {options.rounds} rounds of runs, with\n"
          "# the least and the greatest; gloo communicates over "
          f"{'TCP' if options.virtual_cluster else 'TCP on the loopback interface'} only")
    print(table(rows))
    wrong = sum(side["wrong"] for row in rows for side in row["sides"])
    print(f"# {wrong} wrong; written to {file}", flush=True)
    subprocess.run([str(ROOT / "scripts/plot"), str(file), "-o", str(output)], check=True,
                   stdout=subprocess.DEVNULL)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
