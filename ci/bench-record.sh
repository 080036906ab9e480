#!/usr/bin/env bash
# What recording or reordering a program costs, as a Markdown table: per message, as CPU time of LAMMPS, for the files of 4,096 ranks, and
# in MPI_Init.
#
#   bash ci/bench-record.sh [HOPMAP]   about ten minutes; HOPMAP is a release build by default
#     --only messages|events|lammps|ranks|reorder   one part
#     --runs N                         runs of each way per message, 15 by default
#     --blocks N                       blocks of LAMMPS, at least 2; 20 by default
#
# Messages: MPI_Sendrecv of one byte with oneself under Open MPI, a million times a run. The ways alternate, and the median of the
# runs counts; what a way adds is the median of its differences to the run without in the same turn. Events: the same beside
# EZTrace, also of a message with three calls, and the bytes that a call takes on disk. LAMMPS: a melt of 4,000 atoms
# on 2 ranks, recorded (B) or not (A) in blocks ABBA; user and system seconds of all processes, hopmap's own among them, and the
# interval of Student's t with 95 %. Ranks: made, not run, with 52 pairs each, 3 collective operations and one communicator. Reorder:
# the slowest process in MPI_Init, and CPU seconds of the whole job per process, reversed and not; the median of 3; only if it is asked for, as 256
# processes take minutes on few cores.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n '5,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
only='' runs=15 blocks=20 hopmap=''
while [ $# -gt 0 ]; do
  case $1 in
    --only) only=${2:-}; case $only in messages | events | lammps | ranks | reorder) ;; *) usage ;; esac; shift ;;
    --runs) runs=${2:?"--runs wants a number"}; shift ;;
    --blocks) blocks=${2:?"--blocks wants a number"}; shift ;;
    -*) usage ;;
    *) hopmap=$1 ;;
  esac
  shift
done
if [ -z "$hopmap" ]; then
  target=$(cargo metadata --format-version 1 --no-deps | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
  cargo build --release --locked --quiet --bin hopmap
  hopmap=$target/release/hopmap
fi
hopmap=$(realpath "$hopmap")
here=$PWD/ci/bench
folder=$(mktemp -d "${TMPDIR:-/tmp}/hopmap-bench.XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cc -O2 -o measure "$here/measure.c"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 XDG_CACHE_HOME=$folder/cache

wanted() { [ -z "$only" ] || [ "$only" = "$1" ]; }
median() { sort -g | awk '{ all[NR] = $1 } END { print (all[int((NR + 1) / 2)] + all[int(NR / 2) + 1]) / 2 }'; }
line() { printf '| %s | %s | %s |\n' "$@"; }
has() { "$hopmap" record --help | grep -q -e "$1"; }

# message WAY: nanoseconds per message. Everything that a way writes goes with its folder.
message() {
  local mpi=(mpirun.openmpi -n 1) record=("$hopmap" record -o written) program=(./self_messages "${arguments[@]}")
  case $1 in
    without) "${mpi[@]}" "${program[@]}" ;;
    counts) "${record[@]}" --method preload --no-times -- "${mpi[@]}" "${program[@]}" ;;
    times) "${record[@]}" --method preload -- "${mpi[@]}" "${program[@]}" ;;
    openmpi) "${record[@]}" --method openmpi -- "${mpi[@]}" "${program[@]}" ;;
    events) "${record[@]}" --method preload --events -- "${mpi[@]}" "${program[@]}" ;;
    eztrace) "${mpi[@]}" eztrace -t openmpi -o written "${program[@]}" ;;
  esac 2> log > out || { cat log >&2; exit 1; }
  [ ! -e written ] || du -sb written | cut -f1 > "$1.bytes"
  rm -rf written
  sed -n 's/^\([0-9.]*\) ns$/\1/p' out
}

# turns WAY…: the times of all runs, in files
turns() {
  local way turn
  mpicc.openmpi -O2 -o self_messages "$here/self_messages.c"
  rm -f ./*.ns
  for turn in $(seq "$runs"); do
    for way in "$@"; do message "$way" >> "$way.ns"; done
  done
}
added() { paste without.ns "$1.ns" | awk '{ print $2 - $1 }' | median; }

messages() {
  local ways=(without counts times openmpi) way goal arguments=()
  ! has --events || ways+=(events)
  ! command -v eztrace > /dev/null || ways+=(eztrace)
  turns "${ways[@]}"
  for way in "${ways[@]}"; do
    case $way in
      without) line "1-byte message to self, not recorded" "$(median < without.ns) ns" ""; continue ;;
      counts) goal="≤ 10 ns" ;;
      times) goal="≤ 35 ns" ;;
      events) goal="≤ 100 ns" ;;
      *) goal="" ;;
    esac
    line "$(name_of "$way")" "+ $(added "$way") ns" "$goal"
  done
}
name_of() {
  case $1 in
    counts) echo "counts and sizes (preload)" ;;
    times) echo "the same with time inside MPI" ;;
    openmpi) echo "Open MPI's monitoring" ;;
    events) echo "every call with its times (--events)" ;;
    eztrace) echo "EZTrace" ;;
  esac
}

events() {
  local ways=(events) way calls arguments
  ! command -v eztrace > /dev/null || ways+=(eztrace)
  for calls in 1 3; do
    arguments=(1000000)
    [ "$calls" = 1 ] || arguments+=(nonblocking)
    turns without "${ways[@]}"
    for way in "${ways[@]}"; do
      line "$(name_of "$way"), messages of $calls calls: per call" \
        "+ $(awk "BEGIN { printf \"%.1f\", $(added "$way") / $calls }") ns, $(awk "{ printf \"%.1f\", \$1 / 1001000 / $calls }" "$way.bytes") bytes" \
        "$([ "$way" = eztrace ] || echo "≤ 100 ns, ≤ 24 bytes")"
    done
  done
}

lammps() {
  local block way
  local melt=(-in "$here/../../sample-traces/melt.lammps" -var cells 10 -var steps 4000)
  local program=(mpirun.openmpi -n 2 lmp "${melt[@]}" -log none -screen none)
  seconds_of_A() { ./measure 1 "${program[@]}" | cut -d' ' -f1; }
  seconds_of_B() {
    ./measure 1 "$hopmap" record --method preload -o written -- "${program[@]}" | cut -d' ' -f1
    rm -rf written
  }
  { seconds_of_A; seconds_of_B; } > /dev/null 2> log || { cat log >&2; exit 1; } # the recorder is built, files are in memory
  for block in $(seq "$blocks"); do
    for way in A B B A; do "seconds_of_$way" 2> log || { cat log >&2; exit 1; }; done | paste -s >> lammps.times
  done
  line "CPU time of LAMMPS, 2 ranks, $blocks blocks" "$(interval < lammps.times)" "upper end ≤ 1 %"
}
# Mean and interval of what B takes more than A, in percent; a line is A B B A.
interval() {
  awk '{ more = ($2 + $3) / ($1 + $4) - 1; sum += more; squares += more * more; a += $1 + $4 } END {
    split("12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262 2.228 2.201 2.179 2.160 2.145 2.131 2.120 2.110 2.101 2.093", t, " ")
    mean = sum / NR; half = (NR > 20 ? 2.08 : t[NR - 1]) * sqrt((squares - NR * mean * mean) / (NR - 1) / NR)
    printf "%.2f %% (%.2f … %.2f %%) of %.2f s", 100 * mean, 100 * (mean - half), 100 * (mean + half), a / 2 / NR
  }'
}

ranks() {
  python3 - <<'PYTHON'
import array, json, os, struct
RANKS = 4096
def checksum(content): # FNV-1a
    value = 0xcbf29ce484222325
    for byte in content: value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return value
os.mkdir("made")
with open("made/record.json", "w") as file:
    json.dump({"format": "hopmap-record", "version": 1, "method": "preload", "ranks": RANKS, "complete": True}, file)
members = array.array("I", range(RANKS)).tobytes()
for rank in range(RANKS):
    host = b"node%d" % (rank // 64)
    partners = [(rank + step * 151) % RANKS for step in range(1, 27)]
    pairs = [struct.pack("<4I2Q", partner, 0, size, 0, 1000, 1000 << (size - 1)) for partner in partners for size in (4, 17)]
    calls = [struct.pack("<Q2I2Q2I", 7, kind, root, size, 1000, RANKS, 0) for kind, root, size in ((0, 2**32 - 1, 0), (1, 0, 8000), (12, 2**32 - 1, 8000))]
    content = struct.pack("<8s4I2dI", b"HOPREC1", 1, rank, RANKS, 3, 100.0, 7.0, len(host))
    content += host.ljust((len(host) + 3) // 4 * 4, b"\0") + struct.pack("<2I", 1, rank % 64)
    content += struct.pack("<Q", len(pairs)) + b"".join(pairs) + struct.pack("<Q", len(calls)) + b"".join(calls)
    content += struct.pack("<2QI", 1, 7, RANKS) + members
    with open(f"made/rank-{rank}.bin", "wb") as file:
        file.write(content + struct.pack("<Q", checksum(content)))
PYTHON
  local cpu wall peak
  read -r cpu wall peak <<< "$(./measure 5 "$hopmap" exec trace/import -p path=made -p collectives=keep --out kept --quiet)"
  line "4,096 ranks read and merged (trace/import, collectives kept)" "$wall s, $((peak / 1024)) MB" "≤ 1 s, ≤ 200 MB"
  read -r cpu wall peak <<< "$(./measure 5 "$hopmap" exec trace/import -p path=made --out program --quiet)"
  line "4,096 ranks to a task graph (trace/import)" "$wall s, $((peak / 1024)) MB" ""
}

reorder() {
  local mpi ranks run way before
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
  for mpi in openmpi mpich; do
    "mpicc.$mpi" -O2 -o mpi_init "$here/mpi_init.c"
    for ranks in 16 64 256; do
      seq $((ranks - 1)) -1 0 | awk '{ print NR - 1, $1 }' > reversal
      rm -f ./*.init ./*.cpu
      for run in 0 1 2 3; do # the first builds the library
        for way in without with; do
          before=()
          [ "$way" = without ] || before=("$hopmap" reorder --mpicc "mpicc.$mpi" --mapping reversal --)
          ./measure 1 "${before[@]}" "mpirun.$mpi" -n "$ranks" ./mpi_init seconds > cost 2> log || { cat log >&2; exit 1; }
          [ "$run" = 0 ] || { cat seconds >> "$way.init"; awk -v ranks="$ranks" '{ print $1 / ranks }' cost >> "$way.cpu"; }
        done
      done
      line "MPI_Init of $ranks processes, $mpi" "$(both init)" ""
      line "CPU time of that job, per process" "$(both cpu)" ""
    done
  done
}
both() { echo "$(median < "without.$1") s + $(paste "without.$1" "with.$1" | awk '{ print $2 - $1 }' | median) s"; }

echo "$(mpirun.openmpi --version | head -1); $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg)"
echo
line "" measured goal
line --- --- ---
! wanted messages || messages
! wanted events || events
! wanted lammps || lammps
! wanted ranks || ranks
[ "$only" != reorder ] || reorder
