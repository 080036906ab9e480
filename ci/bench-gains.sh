#!/usr/bin/env bash
# Gains of placements by pattern, message size and numbering of the processes, measured and predicted: pipelines/gains.toml on an
# emulated tree of 8 hosts with 2 slots, whose links have 80 Mbit/s, and those of the root 40. Needs 2 processors with nothing else
# to do, half an hour, Open MPI 4, and user namespaces. Prints the table of docs/howto/tune.md.
#
#   bash ci/bench-gains.sh [--hopmap FILE]   a release build by default, with hopmap-query and hopmap-test-network beside it
#     --only PATTERN[,PATTERN…]   some of stencil, alltoall, wavefront, rows-columns, butterfly, many-to-one
#     --out FOLDER                recordings, measurements and report, target/bench-gains by default; what is there is kept
#     --page FILE                 write the table into this page
#
# The rates of the machine are given, not probed.
set -euo pipefail
cd "$(dirname "$0")/.."
project=$PWD

usage() { sed -n '6,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
hopmap='' out='' page='' only=stencil,alltoall,wavefront,rows-columns,butterfly,many-to-one
while [ $# -gt 0 ]; do
  case $1 in
    --hopmap) hopmap=${2:?"--hopmap wants a file"}; shift ;;
    --only) only=${2:?"--only wants patterns"}; shift ;;
    --out) out=${2:?"--out wants a folder"}; shift ;;
    --page) page=$(realpath "${2:?"--page wants a file"}"); shift ;;
    *) usage ;;
  esac
  shift
done
target() { cargo metadata --format-version 1 --no-deps | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p'; }
hopmap=$(realpath "${hopmap:-$(target)/release/hopmap}")
out=${out:-$(target)/bench-gains}
mkdir -p "$out/recordings"
out=$(realpath "$out")

# Outside: make the program and the network, and go on inside.
if [ -z "${BENCH_GAINS_INSIDE:-}" ]; then
  mpicc.openmpi -O2 -Wall -o "$out/patterns" ci/bench/patterns.c
  cc -O2 -shared -fPIC -o "$out/yield.so" ci/bench/yield.c
  # The recorder is preloaded as well.
  printf '#!/bin/sh\nexport LD_PRELOAD="%s/yield.so${LD_PRELOAD:+:$LD_PRELOAD}"\nexec %s/patterns "$@"\n' "$out" "$out" > "$out/app"
  chmod +x "$out/app"
  if [ ! -e "$out/network" ]; then
    "$hopmap" exec topology/synthetic --quiet -p shape=tree:2x2x2x2 -p 'hosts=h[0-7]' -p 'link_latency_s=[200e-6, 300e-6, 500e-6]' \
      -p 'bandwidth_bytes_per_s=[10e6, 10e6, 5e6]' --out "$out/true"
    "$hopmap" exec topology/export --quiet --in "system=$out/true" -p format=graph-json --out "$out/network"
  fi
  export BENCH_GAINS_INSIDE=yes PATH="$(dirname "$hopmap"):$PATH"
  [ -z "$page" ] || set -- --page "$page"
  exec hopmap-test-network run --machine "$out/network/files/machine.json" -- \
    bash "$0" --hopmap "$hopmap" --only "$only" --out "$out" "$@"
fi

cd "$out"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_plm_rsh_agent="$(command -v hopmap-test-network) on" OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=10.77.0.0/24
export OMPI_MCA_oob_tcp_if_include=10.77.0.0/24 OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none
# Long messages of both directions at once, as the model has them.
export OMPI_MCA_btl_tcp_flags=1

# record PATTERN BYTES ITERATIONS NUMBERING
record() {
  local name=recordings/$1-$2x$3-$4
  if [ ! -e "$name" ]; then
    "$hopmap" record --events -o "$name.new" -- mpirun.openmpi --host h0:2,h1:2,h2:2,h3:2,h4:2,h5:2,h6:2,h7:2 -n 16 \
      ./app "$1" "$2" "$3" 20000 "$4" > "$name.log" 2>&1 || { cat "$name.log" >&2; exit 1; }
    mv "$name.new" "$name"
  fi
}
for pattern in ${only//,/ }; do
  for numbering in linear shuffled; do
    record "$pattern" 1024 20 "$numbering"
    record "$pattern" 65536 4 "$numbering"
    record "$pattern" 262144 1 "$numbering"
  done
done

"$hopmap" run "$project/pipelines/gains.toml" --quiet --store "$out/store" --report "$out/gains.html" -p "recordings=$out/recordings" \
  -p "machine=$out/true" -p "program=$out/app" -p "patterns=[\"${only//,/\", \"}\"]" -p "out=$out"
{
  sed -n '1s/^/| /; 1s/,/ | /g; 1s/$/ |/p' gains.csv
  sed -n '1s/[^,]*/|---/g; 1s/,//g; 1s/$/|/p' gains.csv
  sed '1d; s/^/| /; s/,/ | /g; s/$/ |/' gains.csv
} | tee table.md
[ -z "$page" ] || sh "$project/ci/bench/write-table.sh" "$out/table.md" "$page"
