#!/bin/sh
# Checks the format, runs `CARGO test ARGUMENTS...` to the end, and lists the tests that failed, and those that were skipped by reason.
set -u
cargo=$1
shift
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
HOPMAP_SKIPPED=$results/skipped
export HOPMAP_SKIPPED
: > "$HOPMAP_SKIPPED"
format=0
if "$cargo" fmt --version >/dev/null 2>&1; then
  "$cargo" fmt --all --check || format=$?
else
  printf 'make test: format of the sources\tthe toolchain has no rustfmt\n' > "$HOPMAP_SKIPPED"
fi
{ "$cargo" test --no-fail-fast "$@"; echo $? > "$results/status"; } | tee "$results/log"
status=$(cat "$results/status")
sort -u -t "$(printf '\t')" -k 2,2 -k 1,1 "$HOPMAP_SKIPPED" | awk -F '\t' '
  $2 != reason { reason = $2; list = list "  " reason ":\n" }
  { list = list "    " $1 "\n"; if (!($1 in seen)) count++; seen[$1] }
  END { printf "%d tests skipped%s\n%s", count, (count ? ":" : ""), list }'
# Binaries that did not run to their end are in the list of cargo, above.
if [ "$status" -ne 0 ]; then
  sed -n 's/^test \(.*\) \.\.\. FAILED$/    \1/p' "$results/log" | awk '{ list = list $0 "\n" } END { printf "%d tests failed:\n%s", NR, list }'
fi
[ "$format" -eq 0 ] || echo "the sources are not formatted: run \`cargo fmt --all\`"
exit $((status ? status : format))
