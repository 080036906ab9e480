#!/usr/bin/env python3
"""Compares the forwarding tables of route/fabric with those of OpenSM's routing engines, on simulated InfiniBand fabrics.

  python ci/bench-opensm.py HOPMAP [--only NAME[;NAME...]] [--page FILE]

Needs opensm, ibsim and infiniband-diags. For every fabric, ibsim simulates it, opensm routes it with every engine, and hopmap computes
tables from what ibnetdiscover says; opensm loads these from a file. All tables are read back from the switches with dump_lfts, and
their loads are counted here, from these dumps alone: pairs of hosts over the busiest link between switches, if all hosts send to all
others; the mean and the worst of 64 shifts; the bit reversal; and kB of a traced program, whose ranks are spread over the hosts in their
order. "program ms" is what predict/time says for all messages of this program at once under the tables. "cycle" means that links can
wait for each other with one virtual lane: dfsssp and lash need several lanes. Prints a table, and writes it into the page.

All simulations of a network namespace share a socket: run several at once with `unshare --net`.
"""

import argparse
import csv
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

ENGINES = ["minhop", "updn", "ftree", "dfsssp", "nue"]
# One virtual lane for nue, and a root for updn, which finds none outside of trees.
OPTIONS = {"nue": ["--nue_max_num_vls", "1"], "updn": ["--root_guid_file", "roots"]}
KNOWS = ["--in", "task-graph=graph", "--in", "mapping=placed"]
OURS = {
    "hopmap": [],
    "hopmap, with the program": KNOWS,
    "hopmap, `deadlock_free = false`": ["-p", "deadlock_free=false"],
    "hopmap, `deadlock_free = false`, with the program": ["-p", "deadlock_free=false", *KNOWS],
}
SHIFTS = 64
LIMIT_S = 600
PROGRAM = pathlib.Path(__file__).parent.parent / "sample-traces/lulesh-64"


def program():
    """Source, destination and bytes of all streams."""
    with open(PROGRAM.with_name(PROGRAM.name + ".expected.csv")) as file:
        return [(int(row["source"]), int(row["destination"]), int(row["bytes"])) for row in csv.DictReader(file)]


def host_of(rank, hosts):
    """The host of a rank, of its number."""
    return rank * (hosts // 64)


class Fabric:
    """Cables between ports of switches and hosts."""

    def __init__(self, is_tree=False):
        self.is_tree = is_tree
        self.ports = {}
        self.cables = []
        self.hosts = []

    def host(self, switch):
        name = f"H{len(self.hosts)}"
        self.hosts.append(name)
        self.join(switch, name)

    def join(self, a, b):
        ends = []
        for node in (a, b):
            self.ports[node] = self.ports.get(node, 0) + 1
            ends.append((node, self.ports[node]))
        self.cables.append(tuple(ends))

    def without(self, count, seed=1):
        """The same without some cables between switches."""
        between = [at for at, ((a, _), (b, _)) in enumerate(self.cables) if a[0] == b[0] == "S"]
        failed = set(random.Random(seed).sample(between, count))
        self.cables = [cable for at, cable in enumerate(self.cables) if at not in failed]
        return self

    def text(self):
        """The fabric as ibsim reads it."""
        lines = {node: [] for node in self.ports}
        for (a, at), (b, to) in self.cables:
            lines[a].append(f'[{at}] "{b}"[{to}]')
            lines[b].append(f'[{to}] "{a}"[{at}]')
        heads = {node: f'{"Switch" if node[0] == "S" else "Hca"} {max(ports, 2)} "{node}"' for node, ports in self.ports.items()}
        return "\n\n".join("\n".join([heads[node], *lines[node]]) for node in sorted(lines, key=lambda node: (node[0] == "H", node))) + "\n"


def fat_tree(radix, levels):
    """Leaves with `radix` hosts, and as many links up as down."""
    fabric = Fabric(is_tree=True)
    if levels == 2:
        for leaf in range(radix):
            for spine in range(radix):
                fabric.join(f"S1-{leaf}", f"S2-{spine}")
            for _ in range(radix):
                fabric.host(f"S1-{leaf}")
        return fabric
    for pod in range(radix):
        for leaf in range(radix):
            for middle in range(radix):
                fabric.join(f"S1-{pod}-{leaf}", f"S2-{pod}-{middle}")
        for middle in range(radix):
            for top in range(radix):
                fabric.join(f"S2-{pod}-{middle}", f"S3-{middle}-{top}")
    for pod in range(radix):
        for leaf in range(radix):
            for _ in range(radix):
                fabric.host(f"S1-{pod}-{leaf}")
    return fabric


def torus(size, hosts):
    fabric = Fabric()
    cells = [(x, y, z) for x in range(size) for y in range(size) for z in range(size)]
    name = lambda cell: "S" + "-".join(map(str, cell))
    for x, y, z in cells:
        for other in [((x + 1) % size, y, z), (x, (y + 1) % size, z), (x, y, (z + 1) % size)]:
            fabric.join(name((x, y, z)), name(other))
    for cell in cells:
        for _ in range(hosts):
            fabric.host(name(cell))
    return fabric


def irregular(switches, degree, hosts, seed):
    """A random graph with nearly the same degree everywhere, as a Jellyfish: parallel cables and loops are left out."""
    ends = [switch for switch in range(switches) for _ in range(degree)]
    random.Random(seed).shuffle(ends)
    pairs = {tuple(sorted(ends[at : at + 2])) for at in range(0, len(ends), 2)}
    pairs = {pair for pair in pairs if pair[0] != pair[1]}
    fabric = Fabric()
    for a, b in sorted(pairs):
        fabric.join(f"S{a}", f"S{b}")
    for switch in range(switches):
        for _ in range(hosts):
            fabric.host(f"S{switch}")
    return fabric


SHAPES = {
    "fat-tree-324": lambda: fat_tree(18, 2),
    "torus-6x6x6": lambda: torus(6, 1),
    "irregular-64": lambda: irregular(64, 8, 4, 1),
    "fat-tree-1728": lambda: fat_tree(12, 3),
}


def fabrics():
    """All fabrics, by name."""
    for name, shape in SHAPES.items():
        for failed in (0, 10) if name.endswith("1728") else (0, 1, 3, 10):
            suffix = f", {failed} cable{'s' * (failed > 1)} failed" if failed else ""
            yield name + suffix, lambda shape=shape, failed=failed: shape().without(failed)


FABRICS = dict(fabrics())


class Simulation:
    """A fabric in ibsim."""

    def __init__(self, folder, fabric):
        self.folder = folder
        (folder / "net").write_text(fabric.text())
        found = sorted(pathlib.Path("/usr/lib").glob("*/umad2sim/libumad2sim.so"))
        port = 20000 + os.getpid() % 20000
        self.environment = {**os.environ, "IBSIM_SERVER_PORT": str(port), "SIM_HOST": "H0", "OSM_TMP_DIR": str(folder)}
        self.environment["PATH"] += ":/usr/sbin"
        log = open(folder / "ibsim.log", "w")
        self.server = subprocess.Popen(
            ["ibsim", "-s", "-N", "4096", "-S", "1024", "-P", "65536", "net"], cwd=folder, env=self.environment, stdin=subprocess.PIPE, stdout=log, stderr=log
        )
        self.environment["LD_PRELOAD"] = str(found[0])
        for _ in range(100):
            time.sleep(0.3)
            if subprocess.run(["ibstat"], env=self.environment, cwd=folder, capture_output=True).returncode == 0:
                return
        sys.exit(f"ibsim does not start: {folder}/ibsim.log")

    def run(self, *words):
        try:
            return subprocess.run(words, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            sys.exit(f"{words[0]} takes more than {LIMIT_S} s")

    def opensm(self, *options):
        """Routes the fabric; CPU seconds, and the log."""
        before = os.times()
        self.run("opensm", "-o", "-f", "osm.log", *options)
        after = os.times()
        log = (self.folder / "osm.log").read_text(errors="replace")
        (self.folder / "osm.log").unlink()
        return after.children_user + after.children_system - before.children_user - before.children_system, log

    def write_roots(self, fabric):
        """The top switches of a tree, or the middle one of another fabric, by GUID."""
        top = max((name[:2] for name in fabric.ports if re.match(r"S\d-", name)), default="")
        switches = sorted(name for name in fabric.ports if name[0] == "S")
        roots = [name for name in switches if name.startswith(top + "-")] if fabric.is_tree else [switches[len(switches) // 2]]
        found = re.findall(r"^Switch.*\"S-([0-9a-f]+)\".*# \"([^\"]*)\"", self.run("ibnetdiscover").stdout, re.M)
        (self.folder / "roots").write_text("".join(f"0x{guid}\n" for guid, name in found if name in roots))

    def close(self):
        self.server.kill()
        self.server.wait()


def tables(dump):
    """Output ports by switch and host, from dump_lfts."""
    switches, switch = {}, None
    for line in dump.splitlines():
        head = re.match(r"Unicast lids .* \('?([^')]*)'?\)", line)
        entry = re.match(r"0x([0-9a-fA-F]+) (\d+) .*: '([^' ]*)", line)
        if head:
            switch = switches.setdefault(head[1], {})
        elif entry and entry[3].startswith("H"):
            switch[entry[3]] = int(entry[2])
    return switches


def loads(fabric, entries):
    """Loads by kind of traffic, whether links can wait in a cycle, and the longest route."""
    switches = sorted(entries)
    place = {name: at for at, name in enumerate(switches)}
    channels, peer, home = {}, {}, {}
    for (a, at), (b, to) in fabric.cables:
        for (node, port), other in [((a, at), b), ((b, to), a)]:
            if node in place:
                peer[place[node], port] = other
                if other in place:
                    channels[place[node], port] = len(channels)
            else:
                home[node] = place[other]
    hosts = fabric.hosts
    count, last = len(hosts), len(switches)
    # By host, the channel and the switch after each switch on the way; the last switch has no channel.
    ways = []
    for host in hosts:
        way = {}
        for name, own in entries.items():
            at, port = place[name], own.get(host)
            if home[host] != at and (at, port) in channels:
                way[at] = channels[at, port], place[peer[at, port]]
        ways.append(way)

    def route(source, target):
        """The channels from a host to another; none if packets do not arrive."""
        at, links = home[hosts[source]], []
        while at != home[hosts[target]]:
            if at not in ways[target] or len(links) > last:
                return None
            channel, at = ways[target][at]
            links.append(channel)
        return links

    senders = {}
    for host in hosts:
        senders[home[host]] = senders.get(home[host], 0) + 1
    total, longest, turns = [0] * len(channels), 0, set()
    for target, host in enumerate(hosts):
        for switch, weight in senders.items():
            at, before, steps = switch, None, 2
            while at != home[host]:
                if at not in ways[target] or steps > last + 2:
                    return {"unreachable": True}
                channel, at = ways[target][at]
                total[channel] += weight
                if before is not None:
                    turns.add((before, channel))
                before, steps = channel, steps + 1
            longest = max(longest, steps)

    def busiest(pairs):
        load = [0] * len(channels)
        for source, target, *own in pairs:
            for channel in route(source, target):
                load[channel] += own[0] if own else 1
        return max(load)

    chosen = sorted({1 + index * (count - 1) // SHIFTS for index in range(SHIFTS)} & set(range(1, count)))
    shifts = [busiest((host, (host + shift) % count) for host in range(count)) for shift in chosen]
    bits = count.bit_length() - 1
    reverse = busiest((host, int(format(host, f"0{bits}b")[::-1], 2)) for host in range(1 << bits))
    return {
        "all-to-all": max(total),
        "shift": sum(shifts) / len(shifts),
        "worst shift": max(shifts),
        "bit reversal": reverse,
        "program": busiest((host_of(source, count), host_of(target, count), size) for source, target, size in program()),
        "longest": longest,
        "cycle": has_cycle(len(channels), turns),
    }


def has_cycle(channels, turns):
    follow, before = {}, [0] * channels
    for first, second in turns:
        follow.setdefault(first, []).append(second)
        before[second] += 1
    free, done = [at for at in range(channels) if before[at] == 0], 0
    while free:
        at, done = free.pop(), done + 1
        for other in follow.get(at, []):
            before[other] -= 1
            if before[other] == 0:
                free.append(other)
    return done < channels


class Exec:
    """Stages of hopmap in the folder of a simulation."""

    def __init__(self, hopmap, simulation, hosts):
        self.hopmap, self.simulation, self.folder = hopmap, simulation, simulation.folder
        (self.folder / "fabric").mkdir()
        (self.folder / "fabric/fabric.ibnet").write_text(simulation.run("ibnetdiscover").stdout)
        trace = f"path={PROGRAM.resolve()}/eztrace_log.otf2"
        self.run("trace/otf2", "-p", trace, "-p", "collectives=ignore", out="graph")
        (self.folder / "ranks").write_text("".join(f"rank {rank}=H{host_of(rank, len(hosts))} slot=0\n" for rank in range(64)))
        # The trace lacks the ends of messages, so that the order is unknown: all are sent at once.
        messages = [f"{target} irecv {source} 0 {size} 6\n{source} isend {target} 0 {size} 6" for source, target, size in program()]
        every = lambda action: [f"{rank} {action}" for rank in range(64)]
        (self.folder / "actions").write_text("\n".join(every("init") + messages + every("waitall") + every("finalize")) + "\n")
        self.run("trace/program", "-p", "path=actions", "-p", "format=simgrid-tagged", out="traced")
        self.load()

    def run(self, *words, out, measure=()):
        shutil.rmtree(self.folder / out, ignore_errors=True)
        subprocess.run([*measure, self.hopmap, "exec", "--quiet", *words, "--out", out], cwd=self.folder, check=True)

    def load(self):
        """The fabric with the tables of its switches."""
        (self.folder / "fabric/lfts").write_text(self.simulation.run("dump_lfts").stdout)
        self.run("topology/import", "-p", "path=fabric", "-p", "link_latency_s=1e-6", out="machine")
        self.run("map/import", "--in", "task-graph=graph", "--in", "system=machine", "-p", "path=ranks", out="placed")
        self.run("route/demands", "--in", "task-graph=graph", "--in", "system=machine", out="found")

    def predicted(self):
        """Seconds of the program under the tables of the switches."""
        self.load()
        knows = ["system=found/system", "tables=found/tables", "program=traced", "mapping=placed"]
        self.run("predict/time", *[word for name in knows for word in ("--in", name)], "-p", "baselines=false", out="predicted")
        return json.loads((self.folder / "predicted/prediction/artifact.json").read_text())["metrics"]["seconds"]

    def route(self, options):
        """Tables of hopmap, loaded by opensm; CPU seconds and MB."""
        measure = ["/usr/bin/time", "-f", "%U %S %M", "-o", "time"]
        self.run("route/fabric", *options, "--in", "system=machine", out="routed", measure=measure)
        user, system, memory = map(float, (self.folder / "time").read_text().split())
        lids = ["-p", "lids=fabric/lfts"]
        self.run("route/export", "--in", "system=routed/system", "--in", "tables=routed/tables", "-p", "format=lft", *lids, out="file")
        (written,) = (self.folder / "file/files").iterdir()
        _, log = self.simulation.opensm("-R", "file", "-U", str(written))
        if "file tables configured" not in log:
            sys.exit(f"opensm does not load the tables of hopmap:\n{log}")
        return user + system, memory / 1024


def row(name, engine, result, predicted, seconds, memory=None):
    if result.get("unreachable"):
        return f"| {name} | {engine} | – | – | – | – | – | – | – | {seconds:.2f} | |"
    used = "" if memory is None else f"{memory:.0f}"
    cycle = "yes" if result["cycle"] else "no"
    return (
        f'| {name} | {engine} | {result["all-to-all"]} | {result["shift"]:.2f} | {result["worst shift"]} | {result["bit reversal"]} | {result["program"] / 1e3:.0f} '
        f'| {predicted * 1e3:.2f} | {cycle} | {seconds:.2f} | {used} |'
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hopmap", type=pathlib.Path)
    parser.add_argument("--only", help="fabrics, separated by semicolons")
    parser.add_argument("--page", type=pathlib.Path)
    arguments = parser.parse_args()
    hopmap = arguments.hopmap.resolve()
    lines = ["| fabric | tables | all-to-all | shift | worst shift | bit reversal | program kB | program ms | cycle | CPU s | MB |", "|---" * 11 + "|"]
    print("\n".join(lines), flush=True)
    for name in arguments.only.split(";") if arguments.only else FABRICS:
        fabric = FABRICS[name]()
        with tempfile.TemporaryDirectory(prefix="bench-opensm-") as folder:
            simulation = Simulation(pathlib.Path(folder), fabric)
            try:
                simulation.write_roots(fabric)
                stages = None
                for engine in ENGINES:
                    seconds, log = simulation.opensm("-R", engine, *OPTIONS.get(engine, []))
                    stages = stages or Exec(hopmap, simulation, fabric.hosts)
                    # An engine that cannot route a fabric leaves it to another one.
                    used = re.search(r"(\w[\w-]*) tables configured", log)
                    label = engine if used and used[1] == engine else f"{engine}: {used[1] if used else 'no tables'}"
                    result = loads(fabric, tables(simulation.run("dump_lfts").stdout))
                    lines.append(row(name, label, result, stages.predicted(), seconds))
                    print(lines[-1], flush=True)
                for label, options in OURS.items():
                    seconds, memory = stages.route(options)
                    result = loads(fabric, tables(simulation.run("dump_lfts").stdout))
                    lines.append(row(name, label, result, stages.predicted(), seconds, memory))
                    print(lines[-1], flush=True)
            finally:
                simulation.close()
    if arguments.page:
        text = arguments.page.read_text()
        begin, end = "<!-- table: ci/bench-opensm.py -->", "<!-- end of table -->"
        before, rest = text.split(begin)
        arguments.page.write_text(before + begin + "\n\n" + "\n".join(lines) + "\n\n" + end + rest.split(end)[1])


if __name__ == "__main__":
    main()
