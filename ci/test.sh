#!/bin/sh
# Runs the given test command, then lists the skipped tests by reason.
set -u
HOPMAP_SKIPPED=$(mktemp)
export HOPMAP_SKIPPED
trap 'rm -f "$HOPMAP_SKIPPED"' EXIT
"$@"
status=$?
sort -u -t "$(printf '\t')" -k 2,2 -k 1,1 "$HOPMAP_SKIPPED" | awk -F '\t' '
  $2 != reason { reason = $2; list = list "  " reason ":\n" }
  { list = list "    " $1 "\n"; if (!($1 in seen)) count++; seen[$1] }
  END { printf "%d tests skipped%s\n%s", count, (count ? ":" : ""), list }'
exit "$status"
