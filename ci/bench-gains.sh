#!/usr/bin/env bash
# Gains of placements by pattern, message size and starting order, measured and predicted: `hopmap tune` on an emulated tree of 8 hosts
# with 2 slots, whose links have 80 Mbit/s, and those of the root 40. Needs 2 processors with nothing else to do, half an hour, Open
# MPI 4, and user namespaces. Prints a table.
#
#   bash ci/bench-gains.sh [--hopmap FILE]   a release build by default, with hopmap-test-network beside it
#     --only PATTERN[,PATTERN…]   some of stencil, alltoall, wavefront, rows-columns, butterfly, many-to-one
#     --out FOLDER                recordings, measurements and reports, target/bench-gains by default; what is there is kept
#
# The rates of the machine are given, not probed. Processes are in the order of the launcher, or shuffled by MPI_Comm_split.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD/ci/bench

usage() { sed -n '6,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
hopmap='' out='' only=stencil,alltoall,wavefront,rows-columns,butterfly,many-to-one
while [ $# -gt 0 ]; do
  case $1 in
    --hopmap) hopmap=${2:?"--hopmap wants a file"}; shift ;;
    --only) only=${2:?"--only wants patterns"}; shift ;;
    --out) out=${2:?"--out wants a folder"}; shift ;;
    *) usage ;;
  esac
  shift
done
target() { cargo metadata --format-version 1 --no-deps | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p'; }
hopmap=$(realpath "${hopmap:-$(target)/release/hopmap}")
out=${out:-$(target)/bench-gains}
mkdir -p "$out"
out=$(realpath "$out")

# Outside: make the program and the network, and go on inside.
if [ -z "${BENCH_GAINS_INSIDE:-}" ]; then
  mpicc.openmpi -O2 -Wall -o "$out/patterns" "$here/patterns.c"
  cc -O2 -shared -fPIC -o "$out/yield.so" "$here/yield.c"
  # The recorder is preloaded as well.
  printf '#!/bin/sh\nexport LD_PRELOAD="%s/yield.so${LD_PRELOAD:+:$LD_PRELOAD}"\nexec %s/patterns "$@"\n' "$out" "$out" > "$out/app"
  chmod +x "$out/app"
  if [ ! -e "$out/network" ]; then
    "$hopmap" exec topology/synthetic --quiet -p shape=tree:2x2x2x2 -p 'hosts=h[0-7]' -p 'link_latency_s=[200e-6, 300e-6, 500e-6]' \
      -p 'bandwidth_bytes_per_s=[10e6, 10e6, 5e6]' --out "$out/true"
    "$hopmap" exec topology/export --quiet --in "system=$out/true" -p format=graph-json --out "$out/network"
  fi
  export BENCH_GAINS_INSIDE=yes PATH="$(dirname "$hopmap"):$PATH"
  exec hopmap-test-network run --machine "$out/network/files/machine.json" -- bash "$0" --hopmap "$hopmap" --only "$only" --out "$out"
fi

cd "$out"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_plm_rsh_agent="$(command -v hopmap-test-network) on" OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=10.77.0.0/24
export OMPI_MCA_oob_tcp_if_include=10.77.0.0/24 OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none
# Long messages of both directions at once, as the model has them.
export OMPI_MCA_btl_tcp_flags=1

# row PATTERN BYTES ITERATIONS ORDER: one row of the table
row() {
  local name=$1-$2-$4 order=() last
  [ "$4" = linear ] || order=(shuffled)
  last=$("$hopmap" tune --out "$name" --topology true --hosts 'h[0-7]' --slots 2 --launch open-mpi-hosts --launcher mpirun.openmpi \
    --time-after 'time ' --precision 2% -- ./app "$1" "$2" "$3" 20000 "${order[@]}" 2> "$name.log" | tail -n 1)
  echo "| $1 | $2 | $4 | $last |"
}

echo "| pattern | bytes | order | result |"
echo "|---|---|---|---|"
for pattern in ${only//,/ }; do
  for order in linear shuffled; do
    row "$pattern" 1024 20 "$order"
    row "$pattern" 65536 4 "$order"
    row "$pattern" 262144 1 "$order"
  done
done | tee table.rows
