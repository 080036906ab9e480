#!/usr/bin/env bash
# Time to confirm that 1,000 stages are up to date: hopmap compared with GNU make and doit (if installed), and
# the start-up time. CPU seconds (user and system), median of 7. The DAG: 333 times mapping → quality and
# rank file for one program and one machine, with each stage written out in the pipeline file. Then sweeps: the overhead of a
# cell, a plan of 10,000 cells, and a store of 100,000 artifacts.
set -euo pipefail
hopmap=${1:-$(cargo metadata --format-version 1 --no-deps | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')/release/hopmap}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

{
  echo "source,destination,messages,bytes"
  for rank in $(seq 0 15); do echo "$rank,$(((rank + 5) % 16)),3,$((1000 + rank))"; done
} > program.csv

{
  printf '[stages.program]\nuses = "trace/import"\nwith = { path = "program.csv", format = "csv" }\n'
  printf '[stages.machine]\nuses = "topology/synthetic"\nwith = { shape = "tree:2x4x2", costs = [1, 10, 100] }\n'
  for i in $(seq 333); do
    printf '[stages.p%d]\nuses = "map/random"\nwith = { seed = %d }\nneeds = { task-graph = "program", system = "machine" }\n' "$i" "$i"
    printf '[stages.q%d]\nuses = "evaluate/mapping"\nneeds = { task-graph = "program", system = "machine", mapping = "p%d" }\n' "$i" "$i"
    printf '[stages.r%d]\nuses = "launch/rankfile"\nneeds = { mapping = "p%d" }\n' "$i" "$i"
  done
} > many.toml

{
  echo "all: $(seq -f 'q%g' 333 | tr '\n' ' ') $(seq -f 'r%g' 333 | tr '\n' ' ')"
  printf 'program machine: program.csv\n\tcat $< > $@\n'
  for i in $(seq 333); do
    printf 'p%d: program machine\n\tcat $^ > $@\nq%d: program machine p%d\n\tcat $^ > $@\nr%d: p%d\n\tcat $^ > $@\n' "$i" "$i" "$i" "$i" "$i"
  done
} > Makefile

cat > dodo.py <<'PYTHON'
def job(name, needs):
    return {"name": name, "file_dep": needs, "targets": ["d" + name], "actions": ["cat %s > d%s" % (" ".join(needs), name)]}
def task_all():
    yield job("program", ["program.csv"])
    yield job("machine", ["program.csv"])
    for i in range(1, 334):
        yield job("p%d" % i, ["dprogram", "dmachine"])
        yield job("q%d" % i, ["dprogram", "dmachine", "dp%d" % i])
        yield job("r%d" % i, ["dp%d" % i])
PYTHON

cpu() { # the median CPU time of a command, in milliseconds
  local times=() TIMEFORMAT='%U %S'
  for _ in 1 2 3 4 5 6 7; do
    times+=("$({ time "$@" > /dev/null 2>&1; } 2>&1 | awk '{printf "%.0f", ($1 + $2) * 1000}')")
  done
  printf '%s\n' "${times[@]}" | sort -n | sed -n 4p
}

TIMEFORMAT='%R s wall, %U s user, %S s system'
echo "first run of 1,001 stages:"
time "$hopmap" run many.toml --quiet --no-report
sleep 3   # so that the files are old enough for their hashes to be remembered
"$hopmap" run many.toml --quiet --no-report
make -s > /dev/null
echo "nothing to do, 1,001 stages (CPU ms, median of 7):"
echo "  hopmap run   $(cpu "$hopmap" run many.toml --quiet --no-report)"
echo "  hopmap plan  $(cpu "$hopmap" plan many.toml --quiet)"
echo "  GNU make     $(cpu make -s)"
if command -v doit > /dev/null; then
  doit -v 0 > /dev/null
  echo "  doit         $(cpu doit)"
fi
echo
echo "sweep of 1,000 cells that do next to nothing, one core:"
cat > sweep.toml <<'TOML'
[stages.program]
uses = "trace/import"
with = { path = "program.csv", format = "csv" }
[stages.machine]
uses = "topology/synthetic"
with = { shape = "tree:2x4x2", costs = [1, 10, 100] }
[stages.placement]
uses = "map/random"
needs = { task-graph = "program", system = "machine" }
matrix = { seed = "1..1000" }
TOML
cells() { # CPU seconds per cell, in milliseconds, of the first run of a sweep with this number of cells
  sed "s/1\\.\\.1000/1..$1/" sweep.toml > cells.toml
  for _ in 1 2 3; do
    rm -rf store
    { time "$hopmap" run cells.toml --store store --quiet --no-report -j1; } 2>&1 | awk '{print $4 + $7}'
  done | sort -n | head -1
}
one=$(cells 1) all=$(cells 1001)
echo "  CPU per cell        $(awk "BEGIN {printf \"%.2f ms\", $all - $one}")"
echo "  syncs of the run    $(strace -f -c -e trace=fsync,fdatasync,syncfs "$hopmap" run sweep.toml --store traced --quiet --no-report -j1 2>&1 | awk '/sync/ {n += $4} END {print n + 0}')"

echo
echo "nothing to do, 10,000 cells (CPU ms, median of 7):"
sed 's/1\.\.1000/1..10000/' sweep.toml > wide.toml
"$hopmap" run wide.toml --store wide --quiet --no-report
sleep 3
"$hopmap" run wide.toml --store wide --quiet --no-report
echo "  hopmap plan  $(cpu "$hopmap" plan wide.toml --store wide)"
echo "  hopmap run   $(cpu "$hopmap" run wide.toml --store wide --no-report)"
sed -i 's/tree:2x4x2/tree:2x2x4/' wide.toml
echo "  hopmap plan, all would run  $(cpu "$hopmap" plan wide.toml --store wide)"

echo
echo "store of 100,000 artifacts and 100 runs of 1,000 cells (CPU ms, median of 7):"
python3 - wide big <<'PYTHON'
import hashlib, json, os, shutil, sys
# A store like that of the sweep, ten times as large: every result again under other keys and digests.
source, target = sys.argv[1:]
os.makedirs(f"{target}/artifacts")
os.makedirs(f"{target}/runs")
shutil.copy(f"{source}/format", target)
lines = [line for line in open(f"{source}/state.log") if not line.startswith(('{"unsynced', '"synced'))]
other = lambda text, copy: hashlib.blake2s(f"{copy}{text}".encode()).hexdigest()
with open(f"{target}/state.log", "w") as log:
    for copy in range(10):
        for line in lines:
            record = json.loads(line)
            (kind, value), = record.items()
            value["key"] = other(value["key"], copy)
            value["pipeline"] = f"sweep-{copy}"
            if kind == "result":
                del value["pipeline"]
                for output in value["outputs"].values():
                    output["digest"] = other(output["digest"], copy)
                    folder = f"{target}/artifacts/{output['digest']}"
                    os.makedirs(folder, exist_ok=True)
                    for name, size in output["files"]:
                        with open(f"{folder}/{name}", "wb") as file:
                            file.truncate(size)
            log.write(json.dumps(record, separators=(",", ":")) + "\n")
run = sorted(os.listdir(f"{source}/runs"))[0]
journal = open(f"{source}/runs/{run}/journal.jsonl").readlines()
few = journal[:1001] + journal[-1:]
for number in range(100):
    os.makedirs(f"{target}/runs/2026-01-01T00-00-{number:02}")
    open(f"{target}/runs/2026-01-01T00-00-{number:02}/journal.jsonl", "w").writelines(few)
PYTHON
echo "  $(ls big/artifacts | wc -l) artifacts, $(wc -l < big/state.log) lines of log"
echo "  hopmap gc --dry-run                $(cpu "$hopmap" gc --dry-run --store big)"
echo "  hopmap runs                        $(cpu "$hopmap" runs --store big)"
sed -i '/"current"/d; /"begun"/d' big/state.log
echo "  hopmap gc --dry-run, all is waste  $(cpu "$hopmap" gc --dry-run --store big)"

echo
echo "start (hopmap --version, CPU ms, median of 7): $(cpu "$hopmap" --version)"
