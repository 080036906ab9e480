#!/usr/bin/env bash
# Records series of checkpoints of running programs: NPB LU and CG, LAMMPS, sqlite and numpy. Programs that are not installed are skipped with a message.
#
#   bash ci/record-series.sh FOLDER [NAME …]     FOLDER/NAME/NN/core for each of lu cg lammps sqlite numpy, or of those named
#     --checkpoints 10     number of checkpoints per series
#     --every 1            seconds between two checkpoints
#     --npb FOLDER         sources of NPB-CPP (github.com/GMAP/NPB-CPP), to build LU of class A and CG of class B of NPB-SER
#
# A checkpoint is the process memory that gcore (gdb) writes while the process continues; a DMTCP image has the same pages in
# another file format. Then, for every series: hopmap exec checkpoint/delta -p path=FOLDER/NAME --out deltas-NAME
set -euo pipefail

usage() { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
say() { echo "record-series: $*" >&2; }
checkpoints=10 every=1 npb='' positional=()
while [ $# -gt 0 ]; do
  case $1 in
    --checkpoints) checkpoints=${2:?"--checkpoints wants a number"}; shift ;;
    --every) every=${2:?"--every wants seconds"}; shift ;;
    --npb) npb=$(realpath "${2:?"--npb wants a folder"}"); shift ;;
    -*) usage ;;
    *) positional+=("$1") ;;
  esac
  shift
done
[ ${#positional[@]} -ge 1 ] || usage
mkdir -p "${positional[0]}"
out=$(realpath "${positional[0]}")
series=("${positional[@]:1}")
[ ${#series[@]} -gt 0 ] || series=(lu cg lammps sqlite numpy)
command -v gcore > /dev/null || { say "there is no gcore: install gdb"; exit 1; }
work=$(mktemp -d "${TMPDIR:-/tmp}/hopmap-record.XXXXXX")
program=''
clear_away() { [ -z "$program" ] || kill "$program" 2> /dev/null || true; rm -rf "$work"; }
trap clear_away EXIT

# Takes checkpoints of a running program, the first after two seconds.
record() {
  local name=$1 taken=0
  shift
  rm -rf "${out:?}/$name"
  ( cd "$work" && exec "$@" ) > "$work/$name.log" 2>&1 &
  program=$!
  sleep 2
  while [ "$taken" -lt "$checkpoints" ] && kill -0 "$program" 2> /dev/null; do
    local folder
    folder=$(printf '%s/%s/%02d' "$out" "$name" $((taken + 1)))
    mkdir -p "$folder"
    if ! gcore -o "$folder/core" "$program" > "$work/gcore.log" 2>&1 || ! mv "$folder/core.$program" "$folder/core"; then
      rm -rf "$folder"
      break
    fi
    taken=$((taken + 1))
    sleep "$every"
  done
  kill "$program" 2> /dev/null || true
  wait "$program" 2> /dev/null || true
  program=''
  if [ "$taken" -lt "$checkpoints" ]; then
    say "$name: $taken of $checkpoints checkpoints, then the program or gcore ended:"
    tail -n 3 "$work/$name.log" "$work/gcore.log" >&2 || true
  else
    say "$name: $taken checkpoints, $(du -sm "$out/$name" | cut -f1) MB"
  fi
}

npb_series() {
  [ -n "$npb" ] || { say "$1 is skipped: give the sources of NPB-CPP with --npb"; return; }
  command -v g++ make > /dev/null || { say "$1 is skipped: g++ and make build it"; return; }
  cp -r "$npb" "$work/npb-$1"
  local sources=$work/npb-$1/NPB-SER
  [ -f "$sources/config/make.def" ] || cp "$sources/config/make.def.template" "$sources/config/make.def"
  mkdir -p "$sources/bin"
  make -C "$sources" "$1" "CLASS=$2" > "$work/make.log" 2>&1 || { say "$1 is skipped: $(tail -n 1 "$work/make.log")"; return; }
  record "$1" "$sources/bin/$1.$2"
}

lammps_series() {
  command -v lmp > /dev/null || { say "lammps is skipped: there is no lmp"; return; }
  cat > "$work/melt.in" <<'MELT'
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 20 0 20 0 20
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 20 delay 0 check no
fix 1 all nve
run 1000000
MELT
  record lammps env OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
    OMPI_MCA_ess_singleton_isolated=1 lmp -in "$work/melt.in"
}

python=$(command -v python3 || true)
# Start the program itself instead of a script: gcore dumps exactly the process that it is given.
[ -z "$python" ] || python=$("$python" -c 'import sys; print(sys.executable)')

sqlite_series() {
  [ -n "$python" ] && "$python" -c 'import sqlite3' 2> /dev/null || { say "sqlite is skipped: python3 has no sqlite3"; return; }
  cat > "$work/rows.py" <<'ROWS'
import random, sqlite3
random.seed(1)
base = sqlite3.connect(":memory:")
base.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, name TEXT, value REAL)")
new = lambda: ("%032x" % random.getrandbits(128), random.random())
base.executemany("INSERT INTO rows (name, value) VALUES (?, ?)", (new() for _ in range(150_000)))
while True:
    if random.random() < 0.7:
        base.execute("UPDATE rows SET value = ? WHERE id = ?", (random.random(), random.randint(1, 150_000)))
    else:
        base.execute("INSERT INTO rows (name, value) VALUES (?, ?)", new())
ROWS
  record sqlite "$python" "$work/rows.py"
}

numpy_series() {
  [ -n "$python" ] && "$python" -c 'import numpy' 2> /dev/null || { say "numpy is skipped: python3 has no numpy"; return; }
  cat > "$work/annealing.py" <<'ANNEALING'
import os
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy
draw = numpy.random.default_rng(1)
ranks = 1500
traffic, cost = draw.random((ranks, ranks)), draw.random((ranks, ranks))
place, history, temperature = numpy.arange(ranks), [], 1e3
while True:
    one, other = draw.integers(ranks, size=2)
    swapped = place.copy()
    swapped[[one, other]] = place[[other, one]]
    change = sum(traffic[rank] @ (cost[swapped[rank], swapped] - cost[place[rank], place]) for rank in (one, other))
    if change < 0 or draw.random() < numpy.exp(-change / temperature):
        place = swapped
    temperature *= 0.9999
    history.append((float(change), place[:16].copy()))
ANNEALING
  record numpy "$python" "$work/annealing.py"
}

for name in "${series[@]}"; do
  case $name in
    lu) npb_series lu A ;;
    cg) npb_series cg B ;;
    lammps | sqlite | numpy) "${name}_series" ;;
    *) say "there is no series $name"; exit 2 ;;
  esac
done
