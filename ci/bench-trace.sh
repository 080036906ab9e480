#!/usr/bin/env bash
# Speed of reading OTF2 archives into a communication matrix: hopmap compared with a bare C loop over libotf2, otf2-print,
# python3-otf2 and Pipit, all in one run, on a generated trace of 10 million events in 64 locations.
#
#   bash ci/bench-trace.sh             about two minutes, and 300 MB in a temporary folder
#   bash ci/bench-trace.sh --large     also 100 million events (1.3 GB more)
#
# CPU is user and system seconds of the process, best of 25 runs (libotf2: 9), and so is wall; memory is the maximum
# of all runs. Two threads are only faster if two cores are idle, so the load is printed.
# Readers in Python read 0.2 million events; their start-up is excluded by measuring another 0.2 million. PIPIT=FOLDER names a
# checkout of Pipit, because PyPI has only a placeholder.
set -euo pipefail
cd "$(dirname "$0")/.."
large=; [ "${1:-}" = --large ] && large=yes
target=$(cargo metadata --format-version 1 --no-deps | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
hopmap=$target/release/hopmap
matrix=$target/release/examples/otf2_matrix
if ! pkg-config --exists otf2; then
  echo "bench-trace: libotf2 is missing, so there is nothing to compare with"
  exit 0
fi
cargo build --release --locked --quiet --bin hopmap
cargo build --release --locked --quiet --package hopmap-trace --features libotf2 --example otf2_matrix

here=$PWD/ci/bench
folder=$(mktemp -d "${TMPDIR:-/tmp}/hopmap-bench.XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cc -O2 -o measure "$here/measure.c"
# shellcheck disable=SC2046 # a list of options
cc -O2 -o otf2_loop "$here/otf2_loop.c" $(pkg-config --cflags --libs otf2)
ranks=64
"$matrix" generate stencil2d $ranks 10000000 ten-million
archive=$folder/ten-million/traces.otf2

# All readers must count the same, or nothing is compared.
expected=$("$matrix" read native 1 "$archive")
for answer in "$("$matrix" read libotf2 1 "$archive")" "$(./otf2_loop "$archive" matrix)"; do
  [ "$answer" = "$expected" ] || { echo "bench-trace: '$answer' is not '$expected'" >&2; exit 1; }
done
events=${expected%% *}
pairs=$(awk '{print $(NF-1)}' <<< "$expected")

# row NAME RUNS EVENTS COMMAND...
row() {
  local name=$1 runs=$2 of=$3; shift 3
  read -r cpu wall peak <<< "$(./measure "$runs" "$@")"
  [ "$name" != "libotf2, bare C loop" ] || base_cpu=$cpu
  line "$name" "$of" "$cpu" "$wall" "$peak"
}
# line NAME EVENTS CPU WALL PEAK
line() {
  awk -v name="$1" -v n="$2" -v cpu="$3" -v wall="$4" -v peak="$5" -v base="$base_cpu" -v all="$events" 'BEGIN {
    printf "%-36s %8.3g %8.3g %8.3g %8.1f\n", name, n / cpu / 1e6, (base / all) / (cpu / n), n / wall / 1e6, peak / 1024
  }'
}
missing() { printf '%-36s missing: %s\n' "$1" "$2"; }

echo "$expected, $(du -sh ten-million | cut -f1)B; $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg)"
printf '%-36s %8s %8s %8s %8s\n' "" "M events" "times" "M events" "peak" reader "/ CPU s" "C loop" "/ wall s" MB
base_cpu=1
row "libotf2, bare C loop" 9 "$events" ./otf2_loop "$archive" matrix
row "libotf2, the same with regions" 9 "$events" ./otf2_loop "$archive" regions
row "hopmap, native, 1 thread" 25 "$events" "$matrix" read native 1 "$archive"
one=$wall
row "hopmap, native, 2 threads" 25 "$events" "$matrix" read native 2 "$archive"
two=$wall
row "hopmap, libotf2, 1 thread" 9 "$events" "$matrix" read libotf2 1 "$archive"
one_through=$wall
row "hopmap, libotf2, 2 threads" 9 "$events" "$matrix" read libotf2 2 "$archive"
two_through=$wall
cat > read.toml <<TOML
[stages.program]
uses = "trace/otf2"
with = { path = "$archive", collectives = "ignore" }
TOML
row "hopmap exec trace/events, to Parquet" 5 "$events" "$hopmap" exec trace/events -p "path=$archive" --out messages -j 1 --quiet
row "hopmap exec trace/dag" 5 "$events" "$hopmap" exec trace/dag -p "path=$archive" --out tasks -j 1 --quiet
row "hopmap run, from hashing to storing" 5 "$events" sh -c 'rm -rf .hopmap && exec "$0" run read.toml --quiet --no-report' "$hopmap"
if command -v otf2-print > /dev/null; then
  row "otf2-print > /dev/null" 1 "$events" otf2-print "$archive"
else
  missing otf2-print "install otf2-tools"
fi

# python NAME COMMAND...: appends the archive, or its folder. Measures the events beyond the first 0.2 million.
in_python() {
  local name=$1 what=$2 few many
  shift 2
  few=$(./measure 1 "$@" "few/$what") && many=$(./measure 1 "$@" "many/$what") || { missing "$name" "it fails"; return; }
  read -r cpu wall peak <<< "$many"
  line "$name" "$((many_events - few_events))" "$(minus "$cpu" "${few%% *}")" \
    "$(minus "$wall" "$(cut -d' ' -f2 <<< "$few")")" "$peak"
}
minus() { awk -v a="$1" -v b="$2" 'BEGIN { print a - b }'; }
"$matrix" generate stencil2d $ranks 200000 few
"$matrix" generate stencil2d $ranks 400000 many
few_events=$("$matrix" read native 1 few/traces.otf2 | cut -d' ' -f1)
many_events=$("$matrix" read native 1 many/traces.otf2 | cut -d' ' -f1)
packages=
if ! /usr/bin/python3 -c 'import otf2' 2> /dev/null; then
  # Unpacked here instead of installed.
  apt-get -qq download python3-otf2 2> /dev/null && dpkg -x python3-otf2_*.deb debian && packages=$folder/debian/usr/lib/python3/dist-packages
fi
if PYTHONPATH=$packages /usr/bin/python3 -c 'import otf2' 2> /dev/null; then
  in_python "python3-otf2 (Debian)" traces.otf2 env "PYTHONPATH=$packages" /usr/bin/python3 "$here/python_otf2.py"
else
  missing "python3-otf2 (Debian)" "apt-get finds no package"
fi
if { python3 -m venv venv && venv/bin/pip install -q otf2 numpy pandas && { [ -n "${PIPIT:-}" ] || venv/bin/pip install -q pipit; }; } > pip.log 2>&1 &&
  PYTHONPATH=${PIPIT:-} venv/bin/python -c 'import pipit; pipit.Trace' 2> /dev/null; then
  in_python "Pipit" "" env "PYTHONPATH=${PIPIT:-}" venv/bin/python "$here/pipit_matrix.py"
else
  missing "Pipit" "PyPI has none that works; PIPIT=FOLDER names a checkout"
fi

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }
echo "two threads are as fast as one (wall): native $(ratio "$one" "$two") times, libotf2 $(ratio "$one_through" "$two_through") times"

if command -v valgrind > /dev/null; then
  "$matrix" generate stencil2d $ranks 1000000 one-million
  "$matrix" generate stencil2d $ranks 2000000 two-million
  events_in() { "$matrix" read native 1 "$1/traces.otf2" | cut -d' ' -f1; }
  more=$(($(events_in two-million) - $(events_in one-million)))
  instructions() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 > /dev/null | sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
  }
  # The slope between the two excludes start-up and definitions.
  slope() { echo "$((($(instructions "${@/ARCHIVE/two-million/traces.otf2}") - $(instructions "${@/ARCHIVE/one-million/traces.otf2}")) / more))"; }
  echo "instructions per event: hopmap native $(slope "$matrix" read native 1 ARCHIVE)," \
    "hopmap libotf2 $(slope "$matrix" read libotf2 1 ARCHIVE), C loop $(slope ./otf2_loop ARCHIVE matrix)"
else
  echo "instructions per event: valgrind is missing"
fi

if [ -n "$large" ]; then
  rm -rf ten-million one-million two-million
  "$matrix" generate stencil2d $ranks 100000000 hundred-million
  read -r cpu wall peak <<< "$(./measure 2 "$matrix" read native 1 hundred-million/traces.otf2)"
  echo "100 million events, $pairs pairs, native: $cpu CPU s, peak $((peak / 1024)) MB"
  one=$wall
  read -r cpu wall peak <<< "$(./measure 2 "$matrix" read native 2 hundred-million/traces.otf2)"
  echo "100 million events, $pairs pairs, native, 2 threads: $wall s wall, $(ratio "$one" "$wall") times as fast, peak $((peak / 1024)) MB"
  read -r cpu wall peak <<< "$(./measure 1 "$hopmap" exec trace/events -p path=hundred-million/traces.otf2 --out messages -j 1 --quiet)"
  echo "100 million events to Parquet: $cpu CPU s, peak $((peak / 1024)) MB"
fi
