#!/usr/bin/env bash
# Predictions and metrics of mappings compared with measured run times, on an emulated network with shared links: a tree of 8 hosts
# with 2 slots, whose links have 40 Mbit/s, and those of the root 20. Needs 2 processors with nothing else to do, half an hour, Open
# MPI 4, and user namespaces. Prints the table of docs/explanation/predictions.md.
#
#   bash ci/bench-predict.sh [--hopmap FILE]   a release build by default, with hopmap-test-network beside it
#     --only PATTERN[,PATTERN…]   some of stencil, alltoall, wavefront, rows-columns, butterfly, many-to-one, lammps
#     --out FOLDER                measurements and tables, target/bench-predict by default; what is there is not measured again
#     --runs N                    runs of every mapping, 3 by default
#     --page FILE                 write the table into this page
#     --busy                      keep runs that a busy machine made slow, to try the script
#     --quick                     for tests: three mappings of one pattern, a run each, without calibration; implies --busy
#
# The network is calibrated by topology/probe. Every program is recorded once, under the linear mapping, and runs under 13 mappings
# from random ones to the best for each objective. LAMMPS computes on the 2 processors that its 16 ranks share, so that it is shown
# and not judged.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD/ci/bench

usage() { sed -n '6,13s/^# \{0,1\}//p' "$0" >&2; exit 2; }
hopmap='' out='' page='' busy='' quick='' runs=3 only=stencil,alltoall,wavefront,rows-columns,butterfly,many-to-one,lammps
while [ $# -gt 0 ]; do
  case $1 in
    --hopmap) hopmap=${2:?"--hopmap wants a file"}; shift ;;
    --only) only=${2:?"--only wants patterns"}; shift ;;
    --out) out=${2:?"--out wants a folder"}; shift ;;
    --page) page=$(realpath "${2:?"--page wants a file"}"); shift ;;
    --runs) runs=${2:?"--runs wants a number"}; shift ;;
    --busy) busy=yes ;;
    --quick) quick=yes busy=yes ;;
    *) usage ;;
  esac
  shift
done
target() { cargo metadata --format-version 1 --no-deps | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p'; }
hopmap=$(realpath "${hopmap:-$(target)/release/hopmap}")
out=${out:-$(target)/bench-predict}
mkdir -p "$out"
out=$(realpath "$out")

# Outside: make the programs and the network, and go on inside.
if [ -z "${BENCH_PREDICT_INSIDE:-}" ]; then
  mpicc.openmpi -O2 -Wall -o "$out/patterns" "$here/patterns.c"
  cc -O2 -shared -fPIC -o "$out/yield.so" "$here/yield.c"
  if [ ! -e "$out/network/files/machine.json" ]; then
    "$hopmap" exec topology/synthetic --quiet -p shape=tree:2x2x2x2 -p 'hosts=h[0-7]' -p 'link_latency_s=[200e-6, 300e-6, 500e-6]' \
      -p 'bandwidth_bytes_per_s=[5e6, 5e6, 2.5e6]' --out "$out/true"
    "$hopmap" exec topology/export --quiet --in "system=$out/true" -p format=graph-json --out "$out/network"
  fi
  export BENCH_PREDICT_INSIDE=yes PATH="$(dirname "$hopmap"):$PATH"
  [ -z "$busy" ] || set -- --busy
  [ -z "$quick" ] || set -- "$@" --quick
  [ -z "$page" ] || set -- "$@" --page "$page"
  exec hopmap-test-network run --machine "$out/network/files/machine.json" -- \
    bash "$0" --hopmap "$hopmap" --only "$only" --out "$out" --runs "$runs" "$@"
fi

cd "$out"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_plm_rsh_agent="$(command -v hopmap-test-network) on" OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=10.77.0.0/24
export OMPI_MCA_oob_tcp_if_include=10.77.0.0/24 OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none
hosts=h0:2,h1:2,h2:2,h3:2,h4:2,h5:2,h6:2,h7:2
preload=LD_PRELOAD=$out/yield.so

# The machine as its own probe finds it; in tests, which have no time for that, as it is. After `rm -r OUT/probe` it is calibrated again,
# for new predictions of the same runs.
machine=$out/probe/system
if [ -n "$quick" ]; then
  machine=$out/true
elif [ ! -e probe ]; then
  "$hopmap" exec topology/probe --quiet --launcher "mpirun.openmpi --host $hosts -n 16 -x $preload" -p calibrate=true -p 'sizes=[1, 1024, 8192, 65536, 262144]' \
    -p messages=50 -p size_time_limit_s=0.5 -p parallel=1 --out probe.new
  mv probe.new probe
fi
[ -e searched ] || cp -r "$machine" searched

# measure NAME BYTES TIME_AFTER MIN_IDLE PROGRAM…: one row of the table; a MIN_IDLE of 0 also accepts a late network
measure() {
  local name=$1 bytes=$2 time_after=$3 idle=$4 more=()
  shift 4
  if [ ! -e "recorded-$name" ]; then
    env "$preload" "$hopmap" record --events -o "recorded-$name.new" -- mpirun.openmpi --host "$hosts" -n 16 "$@" > "record-$name.log" 2>&1 ||
      { cat "record-$name.log" >&2; exit 1; }
    mv "recorded-$name.new" "recorded-$name"
  fi
  [ -z "$quick" ] || more+=(-p 'seeds=[3, 6, 13]' -p 'evaluations=[1, 60, 5000]' -p 'objectives=["F", "F", "max-link-time"]' -p noise=0.3)
  [ -z "$busy" ] || idle=0
  [ "$idle" != 0 ] || more+=(-p max_lateness_s=1)
  "$hopmap" run "$here/predict.toml" --quiet --store "$out/store" --report "$out/$name.html" -p "recording=recorded-$name" \
    -p "machine=$machine" -p searched=searched -p "program=$*" -p "time_after=$time_after" -p "yield=$out/yield.so" -p "runs=$runs" -p "min_idle=$idle" \
    -p "out=$out/$name" "${more[@]}"
  row "${name%-*}" "$bytes" "$name"
}

# row PATTERN BYTES
row() {
  "$hopmap" show bench-predict:correlation.metrics --store "$out/store" | awk -v pattern="$1" -v bytes="$2" '
    { value[$1] = $2 }
    function percent(name) { return name in value ? sprintf("%.1f", 100 * value[name]) : "–" }
    END {
      predicted = "kendall_beyond_noise_predicted_s"
      printf "| %s | %s | %d | %d of %d | %s | %s |", pattern, bytes, value["mappings"], value["pairs_beyond_noise"], value["pairs"],
        percent("prediction_error"), predicted in value ? sprintf("%.2f", value[predicted]) : "–"
      count = split("predicted_s F T hop_bytes max_link_load_bytes max_link_time_s", names, " ")
      for (at = 1; at <= count; at++) printf " %s |", percent("regret_" names[at])
      print ""
    }'
}

# Bytes of a message, iterations and microseconds of computation that take about two seconds under a mapping of medium quality.
small() { measure "$1-1000" 1000 "time " 0.3 "$out/patterns" "$1" 1000 "$2" "$3"; }
large() { measure "$1-70000" 70000 "time " 0.3 "$out/patterns" "$1" 70000 "$2" 20000; }
each() {
  case $1 in
    stencil) small stencil 200 5000; large stencil 6 ;;
    alltoall) small alltoall 250 5000; large alltoall 10 ;;
    wavefront) small wavefront 600 1000; large wavefront 8 ;;
    rows-columns) small rows-columns 200 5000; large rows-columns 9 ;;
    butterfly) small butterfly 150 5000; large butterfly 6 ;;
    many-to-one) small many-to-one 200 5000; large many-to-one 15 ;;
    lammps) measure lammps-melt melt "Loop time of" 0 lmp -in "$here/../../sample-traces/melt.lammps" -var steps 60 -log none ;;
    quick) large stencil 4 ;;
    *) echo "unknown pattern $1" >&2; exit 2 ;;
  esac
}

table() {
  echo "| pattern | bytes | mappings | pairs beyond noise | median error % | τ | regret: prediction | F | T | hop-bytes | max-link-load | max-link-time |"
  echo "|---|---|---|---|---|---|---|---|---|---|---|---|"
  for pattern in ${only//,/ }; do each "$pattern"; done
}
if [ -n "$quick" ]; then
  runs=1 only=quick
fi
table | tee table.md
[ -z "$page" ] || sh "$here/write-table.sh" "$out/table.md" "$page"
