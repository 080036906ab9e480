#!/bin/sh
# Checks the format, runs `cargo test ARGUMENTS...` to the end, and lists the tests that failed, and those that were skipped by reason.
# CARGO is another cargo, such as `cargo +nightly`.
set -u
cargo=${CARGO:-cargo}
results=$(mktemp -d) || exit
trap 'rm -rf "$results"' EXIT
HOPMAP_SKIPPED=$results/skipped
export HOPMAP_SKIPPED
: > "$HOPMAP_SKIPPED"
format=0
if $cargo fmt --version >/dev/null 2>&1; then
  $cargo fmt --all --check || format=$?
else
  printf 'make test: format of the sources\tthe toolchain has no rustfmt\n' > "$HOPMAP_SKIPPED"
  [ "${CI:-}" != true ] || format=1
fi
{ $cargo test --no-fail-fast "$@"; echo $? > "$results/status"; } | tee "$results/log"
# Without a status, as on a full disk, nothing passed.
status=$(cat "$results/status")
status=${status:-1}
sort -u -t "$(printf '\t')" -k 2,2 -k 1,1 "$HOPMAP_SKIPPED" | awk -F '\t' '
  $2 != reason { reason = $2; list = list "  " reason ":\n" }
  { list = list "    " $1 "\n"; if (!($1 in seen)) count++; seen[$1] }
  END { printf "%d tests skipped%s\n%s", count, (count ? ":" : ""), list }'
# Binaries that did not run to their end are in the list of cargo, above.
if [ "$status" -ne 0 ]; then
  sed -n 's/^test \(.*\) \.\.\. FAILED$/    \1/p' "$results/log" | awk '{ list = list $0 "\n" } END { if (NR) printf "%d tests failed:\n%s", NR, list }'
fi
[ "$format" -eq 0 ] || echo "the format of the sources was not checked, or is wrong: run \`cargo fmt --all\`"
exit $((status ? status : format))
