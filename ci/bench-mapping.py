#!/usr/bin/env python3
"""Writes the tables of docs/explanation/results.md: what hopmap and other mappers find, measured in one way.

  python3 ci/bench-mapping.py HOPMAP [--data FOLDER] [--only TABLE[,TABLE...]] [--seeds N] [--out FOLDER] [--page FILE]...

HOPMAP is a release build. FOLDER, HOPMAP_DATA by default, has Taillard's instances in qap/taie, QAPLIB in qap/qaplib, and traces in
traces. Tables: programs, taillard, hierarchies, hierarchies-large, networks, scipy, taillard-long, qaplib; those without a place in a page are
only printed. Runs that are in the folder `out` are not repeated.

Every run is a process of its own on the same files, and hopmap computes the cost of every mapping: those of other programs are read
by `map/import`. Seconds are CPU seconds of a process and its children, which depend least on what else the machine does. A search gets
a number of evaluations, so that it finds the same everywhere. Cells are the median and the worst of the seeds, or one number if they
are equal.

VieM takes part if `viem` is in the path, SciPy if the Python that runs this script has it. The table `networks` needs the programs
of Scotch.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parent.parent

# Best known F; of tai343e01 and tai729e01 that of the papers.
BEST = {27: 2558, 45: 6412, 75: 14488, 125: 35426, 175: 57540, 343: 145862, 729: 469650}
# Millions of evaluations of each of two islands in a second of two idle cores.
SPEED = {27: 60, 45: 70, 75: 70, 125: 65, 175: 60, 343: 35, 729: 23}
QAPLIB = {"tai80a": 70, "tai100a": 70, "lipa90a": 70, "tho150": 60, "tai150b": 60, "tai256c": 4}
MILLION = 1_000_000
SCIPY_SECONDS = 10

# Name, trace, machine, whether collective operations count.
PROGRAMS = [
    ("NPB LU S, 16 ranks", "traces/eztrace-lu.S.16", "tree:2x2x4", False),
    ("Sweep3D 4 × 4, 16 ranks", "traces/eztrace-sweep3d-16", "tree:2x2x4", False),
    ("NPB MG A, 16 ranks", "traces/eztrace-mg.A.16", "tree:2x4x2", False),
    ("LULESH, 64 ranks", "sample-traces/lulesh-64", "tree:2x4x8", True),
    ("LAMMPS melt, 64 ranks", "sample-traces/lammps-melt-64", "tree:2x4x8", True),
    ("a sample built to have a bad linear mapping, 16 ranks", "sample-traces/rows-columns-16", "tree:2x4x2", True),
]
# Name, ranks, generator and its parameters.
GRAPHS = [
    ("64 × 64 grid", 4096, "stencil", {"shape": "64x64"}),
    ("16 × 16 × 16 grid", 4096, "stencil", {"shape": "16x16x16"}),
    ("geometric", 4096, "geometric", {"n": 4096, "degree": 8}),
    ("random", 4096, "random", {"n": 4096, "degree": 8}),
    ("power law", 4096, "power-law", {"n": 4096, "degree": 8}),
    ("256 × 256 grid", 65536, "stencil", {"shape": "256x256"}),
    ("geometric", 65536, "geometric", {"n": 65536, "degree": 8}),
    ("power law", 65536, "power-law", {"n": 65536, "degree": 8}),
]
# Machines that are not trees, by ranks, and the mapping strategies of Scotch.
NETWORKS = [
    (1024, "torus:8x8x16"),
    (1024, "dragonfly:4x8x4x32"),
    (4096, "torus:16x16x16"),
    (4096, "dragonfly:8x16x8x32"),
]
STRATEGIES = ["q", "b", "r", "s", "qb", "t"]


class Bench:
    """Runs of hopmap and other programs in a folder, where every result is kept."""

    def __init__(self, hopmap, data, out, seeds):
        self.hopmap, self.data, self.out, self.seeds = hopmap, data, out, seeds

    def make(self, name, stage, inputs=None, params=None):
        """The artifact of a stage, made unless it is there."""
        folder = self.out / name
        if not folder.exists():
            self.run(self.command(stage, inputs or {}, params or {}, folder))
        return folder

    def command(self, stage, inputs, params, folder):
        options = [f"--in={port}={artifact}" for port, artifact in inputs.items()]
        options += [f"-p{name}={value}" for name, value in params.items()]
        return [self.hopmap, "exec", stage, *options, "--quiet", "--out", folder]

    def run(self, command, output=None):
        """Runs a program, and returns its CPU seconds."""
        before = os.times()
        done = subprocess.run(list(map(str, command)), stdout=output or subprocess.DEVNULL, check=False)
        after = os.times()
        if done.returncode != 0:
            sys.exit(f"exit status {done.returncode}: {' '.join(map(str, command))}")
        return after.children_user - before.children_user + after.children_system - before.children_system

    def search(self, name, stage, inputs, params):
        """F and CPU seconds of a mapper."""
        return self.kept(name, lambda folder: self.run(self.command(f"map/{stage}", inputs, params, folder)))

    def table(self, folder, name):
        """Rows of a table of an artifact."""
        command = [self.hopmap, "show", folder, "--table", name, "--format", "csv"]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return [line.split(",") for line in printed.splitlines()[1:]]

    def peer(self, name, command, inputs, convert=None):
        """The same of another program, which writes a mapping to a file or prints it."""

        def measured(folder):
            written = folder.with_suffix(".txt")
            words = [str(word).replace("{output}", str(written)) for word in command]
            with (written if words == list(map(str, command)) else written.with_suffix(".log")).open("w") as output:
                seconds = self.run(words, output)
            if convert:
                written.write_text(convert(written.read_text()))
            self.run(self.command("map/import", inputs, {"path": written}, folder))
            return seconds

        return self.kept(name, measured)

    def kept(self, name, measure):
        folder = self.out / name
        record = folder.with_suffix(".seconds")
        folder.parent.mkdir(parents=True, exist_ok=True)
        if not record.exists():
            shutil.rmtree(folder, ignore_errors=True)
            record.write_text(str(measure(folder)))
        return json.loads((folder / "artifact.json").read_text())["metrics"]["F"], float(record.read_text())


def problem(bench, name, stage, params):
    """A quadratic assignment problem as inputs of mappers."""
    folder = bench.make(name, stage, params=params)
    return {"task-graph": folder / "task-graph", "system": folder / "system"}


def programs(bench):
    """F of real programs relative to the linear mapping."""
    rows = []
    for name, trace, shape, counts in PROGRAMS:
        folder = PROJECT if trace.startswith("sample") else bench.data
        key = trace.replace("/", "-")
        params = {"path": folder / trace} | ({} if counts else {"collectives": "ignore"})
        inputs = {
            "task-graph": bench.make(f"{key}/graph", "trace/otf2", params=params),
            "system": bench.make(f"{key}/machine", "topology/synthetic", params={"shape": shape}),
        }
        linear, _ = bench.search(f"{key}/linear", "linear", inputs, {"weight": "bytes"})
        runs = [
            bench.search(f"{key}/auto-{seed}", "auto", inputs, {"weight": "bytes", "seed": seed})
            for seed in range(1, bench.seeds + 1)
        ]
        rows.append([name, f"`{shape}`", joined([f"{f / linear:.3f}" for f in ends([f for f, _ in runs])])])
    return [["program", "machine", "F / linear"], *rows]


def hierarchies(bench, size=4096):
    """J of graphs of a size on a tree of 4 cores, 16 hosts and as many switches as needed."""
    mappers = {
        "`map/hierarchical`": ("hierarchical", {}),
        "`map/auto`": ("auto", {}),
        "METIS": ("hierarchical", {"partitioner": "metis"}),
        "Scotch": ("hierarchical", {"partitioner": "scotch"}),
    }
    # It takes minutes on larger graphs.
    viem = shutil.which("viem") if size == 4096 else None
    rows = [["graph", *mappers, *(["VieM"] if viem else [])]]
    for name, ranks, generator, params in (graph for graph in GRAPHS if graph[1] == size):
        key = f"{generator}-{'-'.join(map(str, params.values()))}"
        inputs = {
            "task-graph": bench.make(f"{key}/graph", f"instance/{generator}", params=params),
            "system": bench.make(
                f"{key}/machine", "topology/synthetic", params={"shape": f"kahip:4:16:{ranks // 64}", "costs": "1:10:100"}
            ),
        }
        seeds = range(1, bench.seeds + 1)
        cells = []
        for mapper, (stage, more) in mappers.items():
            if ranks > 4096 and stage == "auto":
                more = more | {"evaluations": 20 * MILLION}
            runs = [bench.search(f"{key}/{mapper.strip('`').replace('/', '-')}-{seed}", stage, inputs, more | {"seed": seed}) for seed in seeds]
            cells.append(costs(runs))
        if viem:
            graph = write_metis(bench.out / f"{key}/graph.metis", edges(bench, f"{key}/graph"))
            options = [f"--hierarchy_parameter_string=4:16:{ranks // 64}", "--distance_parameter_string=1:10:100", "--preconfiguration_mapping=fast"]
            runs = [
                bench.peer(f"{key}/viem-{seed}", [viem, graph, *options, f"--seed={seed}", "--output_filename={output}"], inputs)
                for seed in seeds
            ]
            cells.append(costs(runs))
        rows.append([name, *cells])
    return rows


def hierarchies_large(bench):
    """The same with 65,536 ranks."""
    return hierarchies(bench, 65536)


def networks(bench):
    """F on networks that are not trees: of map/auto, and the best of Scotch's strategies with the seconds of all of them."""
    rows = [["graph", "machine", "`map/auto`, 20,000 evaluations", "`map/auto`", "Scotch"]]
    for ranks, shape in NETWORKS:
        machine = bench.make(shape, "topology/synthetic", params={"shape": shape})
        target = scotch_target(bench, machine, shape)
        for name, generator in (("geometric", "geometric"), ("random", "random"), ("power law", "power-law")):
            key = f"{generator}-{ranks}-8"
            graph = bench.make(f"{key}/graph", f"instance/{generator}", params={"n": ranks, "degree": 8})
            inputs = {"task-graph": graph, "system": machine}
            cells = []
            for budget, params in (("short", {"evaluations": 20_000}), ("auto", {})):
                seeds = range(1, bench.seeds + 1)
                cells.append(costs([bench.search(f"{key}/{shape}-{budget}-{seed}", "auto", inputs, params | {"seed": seed}) for seed in seeds]))
            source = write_scotch(bench.out / f"{key}/graph.grf", edges(bench, f"{key}/graph"))
            runs = [
                bench.peer(f"{key}/{shape}-scotch-{strategy}", ["scotch_gmap", source, target, "{output}", "-b0", f"-c{strategy}"], inputs, scotch_mapping)
                for strategy in STRATEGIES
            ]
            cells.append(f"{min(f for f, _ in runs) / 2:,.0f} in {sum(seconds for _, seconds in runs):.1f} s")
            rows.append([f"{name}, {ranks}", f"`{shape}`", *cells])
    return rows


def scotch_target(bench, machine, shape):
    """A machine in Scotch's format: a torus, or a decomposition of the graph of its links."""
    target = bench.out / f"{shape}.tgt"
    if shape.startswith("torus"):
        extents = shape.removeprefix("torus:").split("x")
        target.write_text(f"torus{len(extents)}D\n{' '.join(extents)}\n")
    elif not target.exists():
        links = [(int(a), int(b), 1) for a, b, *_ in bench.table(machine, "links")]
        graph = write_scotch(bench.out / f"{shape}.grf", links)
        hosts = bench.out / f"{shape}.hosts"
        slots = [host for _, host, _ in bench.table(machine, "slots")]
        hosts.write_text("\n".join([str(len(slots)), *slots]) + "\n")
        bench.run(["amk_grf", "-2", graph, target, f"-l{hosts}"])
    return target


def scotch_mapping(text):
    """Slots in the order of the ranks, from a mapping of Scotch."""
    pairs = sorted(tuple(map(int, line.split())) for line in text.splitlines()[1:])
    return "".join(f"{slot}\n" for _, slot in pairs)


def edges(bench, graph):
    """Source, destination and bytes of the edges of a task graph."""
    csv = bench.make(f"{graph}-csv", "trace/export", {"task-graph": bench.out / graph}, {"format": "csv"}) / "files/matrix.csv"
    rows = (map(int, line.split(",")) for line in csv.read_text().splitlines()[1:])
    return [(source, destination, size) for source, destination, _, size in rows]


def neighbours(edges):
    """Neighbours of all vertices and half of the bytes of both directions."""
    near = [{} for _ in range(1 + max(max(edge[:2]) for edge in edges))]
    for source, destination, size in edges:
        for a, b in ((source, destination), (destination, source)):
            near[a][b] = near[a].get(b, 0) + size
    return [[(b, size // 2) for b, size in sorted(row.items())] for row in near]


def write_metis(path, edges):
    near = neighbours(edges)
    lines = [" ".join(f"{b + 1} {size}" for b, size in row) for row in near]
    path.write_text("\n".join([f"{len(near)} {sum(map(len, near)) // 2} 1", *lines]) + "\n")
    return path


def write_scotch(path, edges):
    near = neighbours(edges)
    lines = [" ".join([str(len(row)), *(f"{size} {b}" for b, size in row)]) for row in near]
    path.write_text("\n".join(["0", f"{len(near)} {sum(map(len, near))}", "0 010", *lines]) + "\n")
    return path


def taillard(bench, seconds=1):
    """Percent above the best known value, of map/auto in some seconds of two cores."""
    rows = [["instance", "median %", "worst %", "CPU s"]]
    for size, best in BEST.items():
        name = f"tai{size}e01"
        inputs = problem(bench, f"{name}/problem", "instance/qaplib", {"path": bench.data / f"qap/taie/{name}.dat"})
        rows.append([name, *gaps(bench, name, inputs, best, seconds * SPEED[size])])
    return rows


def taillard_long(bench):
    """The same in ten seconds."""
    return taillard(bench, 10)


def qaplib(bench):
    """The same in sixty seconds, for instances of QAPLIB."""
    rows = [["instance", "median %", "worst %", "CPU s"]]
    for name, speed in QAPLIB.items():
        path = bench.data / f"qap/qaplib/{name}"
        inputs = problem(bench, f"{name}/problem", "instance/qaplib", {"path": path.with_suffix(".dat")})
        best = float(path.with_suffix(".sln").read_text().split()[1])
        rows.append([name, *gaps(bench, name, inputs, best, 60 * speed)])
    return rows


def gaps(bench, name, inputs, best, millions):
    runs = [
        bench.search(f"{name}/auto-{millions}-{seed}", "auto", inputs, {"seed": seed, "evaluations": millions * MILLION})
        for seed in range(1, bench.seeds + 1)
    ]
    found = [f"{100 * (f - best) / best:.2f}" for f in ends([f for f, _ in runs])]
    return [*found, f"{statistics.median(seconds for _, seconds in runs):.1f}"]


def scipy(bench):
    """F of three problems like tai75e, of map/auto and SciPy with as many CPU seconds."""
    rows = [["problem", "`map/auto`", "SciPy `faq`", "SciPy `2opt`"]]
    if not importlib.util.find_spec("scipy"):
        sys.exit("this Python has no SciPy")
    for instance in (1, 2, 3):
        key = f"taillard-e-{instance}"
        inputs = problem(bench, f"{key}/problem", "instance/taillard-e", {"groups": "[5,3,5]", "seed": instance})
        text = bench.out / f"{key}.dat"
        ours = {"command": f"cp {{input}} {text} && seq 1 75"}
        bench.make(f"{key}/text", "map/external", inputs, ours)
        seeds = range(1, bench.seeds + 1)
        # Two islands in half of the seconds, and less for what a busy machine takes longer.
        evaluations = SCIPY_SECONDS * SPEED[75] * MILLION // 3
        cells = [costs([bench.search(f"{key}/auto-{seed}", "auto", inputs, {"seed": seed, "evaluations": evaluations}) for seed in seeds], 1)]
        for method in ("faq", "2opt"):
            command = [sys.executable, PROJECT / "pipelines/peers/scipy_qap.py", method, text, SCIPY_SECONDS]
            cells.append(costs([bench.peer(f"{key}/{method}-{seed}", [*command, seed], inputs, one_a_line) for seed in seeds], 1))
        rows.append([str(instance), *cells])
    return rows


def one_a_line(text):
    return "\n".join(text.split()) + "\n"


def ends(values):
    """Median and worst."""
    return statistics.median_high(values), max(values)


def joined(texts):
    """Two numbers, or one if they are equal."""
    return ", ".join(dict.fromkeys(texts))


def costs(runs, part=2):
    """Median and worst of F, divided, and the median of the seconds."""
    found = [f"{f / part:,.0f}" for f in ends([f for f, _ in runs])]
    return f"{joined(found)} in {statistics.median(seconds for _, seconds in runs):.1f} s"


# Seeds by default, fewer where a run takes long or varies little.
TABLES = {
    "programs": (programs, 3),
    "taillard": (taillard, 20),
    "hierarchies": (hierarchies, 3),
    "hierarchies-large": (hierarchies_large, 3),
    "networks": (networks, 3),
    "scipy": (scipy, 3),
    "taillard-long": (taillard_long, 3),
    "qaplib": (qaplib, 3),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hopmap", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("HOPMAP_DATA", "data"))
    parser.add_argument("--only", default=",".join(TABLES))
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--out", type=pathlib.Path, default="target/bench-mapping")
    parser.add_argument("--page", type=pathlib.Path, action="append", default=[])
    given = parser.parse_args()
    out = given.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    for name in given.only.split(","):
        table_of, seeds = TABLES[name]
        header, *rows = table_of(Bench(given.hopmap.resolve(), given.data.resolve(), out, given.seeds or seeds))
        lines = [f"| {' | '.join(cells)} |" for cells in [header, ["---"] * len(header), *rows]]
        lines[1] = lines[1].replace(" ", "")
        table = out / f"{name}.md"
        table.write_text("\n".join(lines) + "\n")
        print(f"{name}\n\n{table.read_text()}", flush=True)
        for page in given.page:
            subprocess.run(["sh", PROJECT / "ci/bench/write-table.sh", table, page, name], check=True)


if __name__ == "__main__":
    main()
