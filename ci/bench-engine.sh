#!/usr/bin/env bash
# How long it takes to confirm that 1,000 stages have nothing to do: hopmap beside GNU make and doit (if installed), and
# the start of the process. CPU seconds, user and system, the median of 7. The DAG: 333 times placement → quality and
# rank file on one program and one machine, each stage written out in the pipeline file.
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
  printf '[stages.program]\nuses = "trace/csv"\nwith = { file = "program.csv" }\n'
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
echo "start (hopmap --version, CPU ms, median of 7): $(cpu "$hopmap" --version)"
