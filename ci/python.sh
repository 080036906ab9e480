#!/bin/sh
# Creates a virtual environment in the given folder, unless it has the given packages; by default those by which tests read artifacts and
# archives and check TOML.
set -eu
folder=$1
shift
packages=${*:-pyarrow==26.0.1 duckdb==2.0.0 rocrate==0.16.0 taplo==0.9.3}
[ "$(cat "$folder/packages" 2>/dev/null)" != "$packages" ] || exit 0
rm -rf "$folder"
python3 -m venv "$folder"
# shellcheck disable=SC2086 # a list of words
"$folder/bin/pip" install --quiet --disable-pip-version-check $packages
echo "$packages" > "$folder/packages"
