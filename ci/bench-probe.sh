#!/usr/bin/env bash
# Time of the smallest message between two ranks of one host, measured by `topology/probe` and by a loop in C that sends and
# times the same messages, alternating. One-way microseconds (half of the round trip), shortest and median of each run.
set -euo pipefail
target=$(cargo metadata --format-version 1 --no-deps | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
hopmap=${1:-$target/release/hopmap}
runs=${2:-7}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

cat > "$folder/loop.c" <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
enum { MESSAGES = 1000 };
static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
int main(int argc, char **argv) {
  int rank;
  char message = 0, answer;
  double times[MESSAGES];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int turn = 0; turn < 2; turn++) { /* the first turn warms up */
    double before = MPI_Wtime();
    for (int i = 0; i < MESSAGES; i++) {
      if (rank == 0) {
        MPI_Send(&message, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(&answer, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double now = MPI_Wtime();
        times[i] = now - before;
        before = now;
      } else {
        MPI_Recv(&answer, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&message, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
      }
    }
  }
  if (rank == 0) {
    qsort(times, MESSAGES, sizeof *times, by_value);
    printf("%.3f %.3f\n", times[0] * 5e5, times[MESSAGES / 2] * 5e5);
  }
  MPI_Finalize();
}
C
mpicc -O2 -o "$folder/loop" "$folder/loop.c"

ours() { # the same number of messages, however calm they are
  "$hopmap" exec topology/probe --launcher "mpirun --oversubscribe -n 2" -p 'sizes=[1]' -p bandwidth=none \
    -p messages=1000 -p tolerance=0.0 --out "$folder/probe" --quiet > /dev/null
  "$hopmap" show "$folder/probe/measurements" --table samples --format csv |
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR == 2 { printf "%.3f %.3f\n", $at["minimum_s"] * 5e5, $at["median_s"] * 5e5 }'
}

for _ in $(seq "$runs"); do
  theirs=$(mpirun --oversubscribe -n 2 "$folder/loop")
  measured=$(ours)
  printf 'C %s\nprobe %s\n' "$theirs" "$measured"
done | tee "$folder/all"
shortest() { awk -v who="$1" '$1 == who { print $2 }' "$folder/all" | sort -n | head -1; }
middle() { awk -v who="$1" '$1 == who { print $3 }' "$folder/all" | sort -n | sed -n "$(((runs + 1) / 2))p"; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3f, %.3f, ratio %.2f\n", a, b, b / a }'; }
echo "shortest of all runs, C and probe: $(ratio "$(shortest C)" "$(shortest probe)")"
echo "middle of the medians, C and probe: $(ratio "$(middle C)" "$(middle probe)")"

# The tournament compared with one pair after the other, between agents in network namespaces whose hosts are 200 µs to 1 ms apart:
# messages of 70,000 bytes between all pairs, in rounds of disjoint pairs and one pair at a time.
network=$(dirname "$hopmap")/hopmap-test-network
[ -x "$network" ] || network=$target/debug/hopmap-test-network
seconds() { # hosts, children of the tree, then more parameters
  local hosts=$1 tree=$2
  shift 2
  "$network" run --tree "$tree" --microseconds 200,500,1000 -- bash -c 'TIMEFORMAT=%R; time "$@" > /dev/null 2>&1' _ \
    "$hopmap" exec topology/probe -p "hosts=h[0-$((hosts - 1))]" -p measure_intra_node=false -p 'sizes=[70000]' -p messages=10 \
    -p "start=$network on {host} $hopmap agent --bind 10.77.0.0/24" --out "$folder/tournament" "$@" 2>&1 | tail -1
}
for sizes in "8 2,2,2" "16 4,2,2" "32 4,4,2"; do
  # shellcheck disable=SC2086
  set -- $sizes
  rounds=$(seconds "$1" "$2" -p bandwidth=loaded)
  serial=$(seconds "$1" "$2" -p bandwidth=isolated -p parallel=1)
  echo "$1 hosts: tournament $rounds s, one pair after the other $serial s"
done
