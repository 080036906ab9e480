#!/bin/sh
# Refuses binaries that can be told to crash (core/durable/src/crash.rs): no release may have that.
#
#   sh ci/no-crash-points.sh FOLDER_OF_BINARIES
set -eu
for name in hopmap hopmap-query hopmap-ranks; do
  if [ -e "$1/$name" ] && grep -q HOPMAP_CRASH_AT "$1/$name"; then
    echo "$1/$name has the crash points of tests: was it built with debug assertions?" >&2
    exit 1
  fi
done
