#!/bin/sh
# Puts a table into a page, between `<!-- table: … -->` and `<!-- end of table -->`; of several tables into that with the name.
#
#   sh ci/bench/write-table.sh TABLE PAGE [NAME]
set -eu
awk -v table="$1" -v begin="^<!-- table: ${3:+$3[ ,]}" '
  /^<!-- end of table/ { inside = 0 }
  !inside { print }
  $0 ~ begin { inside = 1; print ""; while ((getline line < table) > 0) print line; print "" }' "$2" > "$1.page"
cat "$1.page" > "$2"
rm "$1.page"
