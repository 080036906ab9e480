#!/bin/sh
# Installs hopmap with cargo into an empty folder, asks each command of the README there for its help, and runs the demo. In the
# development profile, so that little is built again; not beside tests, which start the hopmap that it builds.
#
#   sh ci/try-install.sh [ARGUMENTS OF cargo install]        such as --no-default-features
set -eu
cd "$(dirname "$0")/.."
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
cargo install --debug --locked --path . --root "$root" "$@"
[ "$(ls "$root/bin")" = hopmap ] || { echo "cargo installed $(ls "$root/bin")" >&2; exit 1; }
commands=$(awk '/^```/ { sh = $0 == "```sh" } sh && $1 == "hopmap" { print $2 }' README.md | sort -u)
[ "$(echo "$commands" | wc -l)" -ge 5 ] || { echo "README.md has too few commands: $commands" >&2; exit 1; }
for command in $commands; do
  "$root/bin/hopmap" "$command" --help >/dev/null
done
"$root/bin/hopmap" run pipelines/demo.toml --store "$root/store" -p out="$root/out" --report "$root/report.html"
test -s "$root/report.html"
