#!/bin/sh
# Size and start-up time of hopmap: best of 20, in milliseconds of wall time.
#
#   sh ci/bench-start.sh FOLDER_OF_BINARIES
set -eu
hopmap=$(realpath "$1/hopmap")
project=$(realpath "$(dirname "$0")/..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$hopmap" "$work/stripped"
strip --strip-unneeded "$work/stripped"
echo "stripped: $(stat -c %s "$work/stripped") bytes"

best() { # NAME COMMAND...
  name=$1 best=
  shift
  for _ in $(seq 20); do
    begin=$(date +%s%N)
    "$@" >/dev/null 2>&1
    taken=$(($(date +%s%N) - begin))
    if [ -z "$best" ] || [ "$taken" -lt "$best" ]; then best=$taken; fi
  done
  echo "$name: $((best / 1000000)).$(printf %03d $((best / 1000 % 1000))) ms"
}
best "/bin/true" /bin/true
best "hopmap --version" "$work/stripped" --version
cd "$work"
place() { "$work/stripped" run "$project/pipelines/place.toml" --store "$work/store" -p "out=$work/out" --no-report; }
place >/dev/null 2>&1
best "hopmap run place.toml, nothing to do" place
