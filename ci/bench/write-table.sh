#!/bin/sh
# Puts a table into a page, between `<!-- table: … -->` and `<!-- end of table -->`.
#
#   sh ci/bench/write-table.sh TABLE PAGE
set -eu
awk -v table="$1" '
  /^<!-- end of table/ { inside = 0 }
  !inside { print }
  /^<!-- table: / { inside = 1; print ""; while ((getline line < table) > 0) print line; print "" }' "$2" > "$1.page"
cat "$1.page" > "$2"
rm "$1.page"
