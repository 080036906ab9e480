#!/bin/sh
# Rejects binaries that contain crash points (core/durable/src/crash.rs), which no release may have.
#
#   sh ci/no-crash-points.sh FOLDER_OF_BINARIES
set -eu
for name in hopmap hopmap-query hopmap-ranks; do
  if [ -e "$1/$name" ] && grep -q HOPMAP_CRASH_AT "$1/$name"; then
    echo "$1/$name has the crash points of tests: was it built with debug assertions?" >&2
    exit 1
  fi
done
