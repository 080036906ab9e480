#!/usr/bin/env bash
# Compares the storage of checkpoint series by `hopmap checkpoint`, zstd, xdelta3, borg, restic and casync, all in one run.
#
#   bash ci/bench-checkpoint.sh FOLDER [HOPMAP]    every subfolder of FOLDER is a series, and every subfolder of a
#                                                  series is a checkpoint, in the order of their names
#     --only hopmap|peers    measure one side only: results of peers do not change between versions of hopmap
#     --series A,B           measure only these series
#     --csv FILE             also write the results as CSV to FILE
#
# A checkpoint is, for example, a DMTCP checkpoint folder with its image, side files and script. zstd runs plain and with --patch-from; tools that
# are not installed are listed as missing.
#
# Stored is the total size of all files that a tool leaves behind. Speeds are bytes of the checkpoint (10⁶) per CPU second (user and
# system) of all processes; all input was read before, so that it is in memory if there is enough. Unchanged: the last
# checkpoint once more, as a copy with other times and inodes. Peak memory is the maximum over all processes. A tool fails if its
# restored files differ from the input in any byte. Tools that work on files (zstd, xdelta3) start once per file, and restore a chain
# of patches from its beginning. Restores, and adding unchanged data, are the best of three runs if a run takes less than
# three seconds. The temporary folder (TMPDIR) needs space for a store and four checkpoints.
set -euo pipefail
shopt -s inherit_errexit

usage() { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
say() { echo "bench-checkpoint: $*" >&2; }
only='' wanted='' csv='' positional=()
while [ $# -gt 0 ]; do
  case $1 in
    --only) only=${2:-}; case $only in hopmap | peers) ;; *) usage ;; esac; shift ;;
    --series) wanted=,${2:?"--series wants names"},; shift ;;
    --csv) csv=$(realpath "${2:?"--csv wants a file"}"); shift ;;
    -*) usage ;;
    *) positional+=("$1") ;;
  esac
  shift
done
case ${#positional[@]} in 1 | 2) ;; *) usage ;; esac
all=$(realpath "${positional[0]}")
hopmap=${positional[1]:-}
[ -z "$hopmap" ] || hopmap=$(realpath "$(command -v "$hopmap" || echo "$hopmap")")

here=$(cd "$(dirname "$0")" && pwd)/bench
folder=$(mktemp -d "${TMPDIR:-/tmp}/hopmap-bench.XXXXXX")
clear_away() { chmod -R u+w "$@" 2> /dev/null || true; rm -rf "$@"; }
trap 'clear_away "$folder"' EXIT
store=$folder/store
export BORG_BASE_DIR=$folder/home BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes
export RESTIC_PASSWORD=bench
cc -O2 -o "$folder/measure" "$here/measure.c"

# timed COMMAND...: appends CPU seconds, wall seconds and KiB to `times`. Discards the output.
timed() { "$folder/measure" 1 "$@" >> "$folder/times"; }
# forget the measurements so far; print the CPU seconds since then, and the peak
reset() { : > "$folder/times"; }
spent() { awk '{ cpu += $1 } $3 > peak { peak = $3 } END { print cpu + 0, peak + 0 }' "$folder/times"; }
bytes() { find "$@" -type f -printf '%s\n' | awk '{ all += $1 } END { printf "%.0f\n", all }'; }
warm() { find "$@" -type f -exec cat {} + > /dev/null; }
files() { (cd "$1" && find . -type f -printf '%P\n' | sort); }

# A kind of tool is three functions. Options are in `options`.
#   KIND_start                   creates an empty store
#   KIND_add NUMBER DIR BEFORE   adds a folder; BEFORE is the previous one, empty for the first
#   KIND_restore NUMBER OUT      writes the files of a checkpoint to the empty folder OUT

hopmap_start() { "$hopmap" checkpoint init "$store" > /dev/null; }
hopmap_add() { timed "$hopmap" checkpoint add "$store" "$2" --quiet; }
hopmap_restore() { rmdir "$2"; timed "$hopmap" checkpoint restore "$store" "$1" -o "$2"; }

zstd_start() { mkdir "$store"; }
zstd_add() {
  local file
  while IFS= read -r file; do
    mkdir -p "$(dirname "$store/$1/$file")"
    timed zstd -q "${options[@]}" "$2/$file" -o "$store/$1/$file.zst"
  done < <(files "$2")
}
zstd_restore() {
  local file
  while IFS= read -r file; do
    mkdir -p "$(dirname "$2/$file")"
    timed zstd -q -d "$store/$1/$file" -o "$2/${file%.zst}"
  done < <(files "$store/$1")
}

# Encodes every file against the file of the same name in the previous checkpoint.
chain_add() { # ENCODE NUMBER DIR BEFORE
  local encode=$1 number=$2 dir=$3 before=$4 file
  while IFS= read -r file; do
    mkdir -p "$(dirname "$store/$number/$file")"
    if [ -n "$before" ] && [ -s "$before/$file" ]; then
      "$encode" "$before/$file" "$dir/$file" "$store/$number/$file.patch"
    else
      timed zstd -q "${options[0]}" "$dir/$file" -o "$store/$number/$file.zst"
    fi
  done < <(files "$dir")
}
chain_restore() { # DECODE NUMBER OUT
  local decode=$1 number=$2 out=$3 i at=$folder/chain file
  for i in $(seq "$number"); do
    mkdir -p "$at/$i"
    while IFS= read -r file; do
      mkdir -p "$(dirname "$at/$i/$file")"
      case $file in
        *.patch) "$decode" "$at/$((i - 1))/${file%.patch}" "$store/$i/$file" "$at/$i/${file%.patch}" ;;
        *) timed zstd -q -d "$store/$i/$file" -o "$at/$i/${file%.zst}" ;;
      esac
    done < <(files "$store/$i")
    rm -rf "${at:?}/$((i - 1))"
  done
  rmdir "$out"
  mv "$at/$number" "$out"
  rm -rf "$at"
}

patch_start() { zstd_start; }
patch_add() { chain_add patch_encode "$@"; }
patch_restore() { chain_restore patch_decode "$@"; }
patch_encode() { timed zstd -q "${options[@]}" --long=31 --patch-from="$1" "$2" -o "$3"; }
patch_decode() { timed zstd -q -d --long=31 --memory=2048MB --patch-from="$1" "$2" -o "$3"; }

xdelta_start() { zstd_start; }
xdelta_add() { chain_add xdelta_encode "$@"; }
xdelta_restore() { chain_restore xdelta_decode "$@"; }
xdelta_encode() { timed xdelta3 -q -e -1 -B 536870912 -s "$1" "$2" "$3"; }
xdelta_decode() { timed xdelta3 -q -d -B 536870912 -s "$1" "$2" "$3"; }

borg_start() { rm -rf "$BORG_BASE_DIR"; borg init --encryption none "$store"; }
borg_add() { (cd "$2" && timed borg create "${options[@]}" "$store::$1" .); }
borg_restore() { (cd "$2" && timed borg extract "$store::$1"); }

restic_start() { restic init --quiet --no-cache --repo "$store" > /dev/null; }
restic_add() { (cd "$2" && timed restic backup --quiet --no-cache --repo "$store" --tag "$1" .); }
restic_restore() { timed restic restore latest --quiet --no-cache --repo "$store" --tag "$1" --target "$2"; }

casync_start() { mkdir "$store"; }
casync_add() { timed casync make --store="$store/chunks.castr" "${options[@]}" "$store/$1.caidx" "$2"; }
casync_restore() { timed casync extract --store="$store/chunks.castr" "$store/$1.caidx" "$2"; }

same_files() { # EXPECTED RESTORED
  local file
  while IFS= read -r file; do cmp "$1/$file" "$2/$file" || return 1; done < <(files "$1")
  [ "$(files "$1")" = "$(files "$2")" ]
}
rate() { awk -v bytes="$1" -v cpu="$2" 'BEGIN { if (cpu > 0) printf "%.0f", bytes / 1e6 / cpu; else printf "-" }'; }

# measured: measures one tool on the series and prints one line: bytes stored; MB/s of the first checkpoint and of the later ones;
# MB/s and bytes of adding the last one again; peak KiB; MB/s of restoring the last and the middle one, and peak KiB.
measured() {
  local count=${#checkpoints[@]} number before='' cpu peak most=0 out=$folder/out
  local first later_bytes=0 later_cpu=0 stored added='' last middle
  "${kind}_start" > "$folder/log" 2>&1
  for number in $(seq "$count"); do
    warm "${checkpoints[number - 1]}" ${before:+"$before"}
    reset
    "${kind}_add" "$number" "${checkpoints[number - 1]}" "$before"
    read -r cpu peak < <(spent)
    [ "$peak" -le "$most" ] || most=$peak
    if [ "$number" -eq 1 ]; then
      first=$(rate "$(bytes "${checkpoints[0]}")" "$cpu")
    else
      later_bytes=$((later_bytes + $(bytes "${checkpoints[number - 1]}")))
      later_cpu=$(awk -v a="$later_cpu" -v b="$cpu" 'BEGIN { print a + b }')
    fi
    before=${checkpoints[number - 1]}
  done
  stored=$(bytes "$store")

  # Before the last one is added again: tools that identify it by its number restore what the loop added.
  last=$(restored "$count")
  middle=$(restored "$(((count + 1) / 2))")

  : > "$folder/repeated"
  for number in $(seq "$((count + 1))" "$((count + repeats))"); do
    clear_away "$folder/copy"
    cp -R --no-preserve=all "$before" "$folder/copy"
    warm "$folder/copy" "$before"
    reset
    "${kind}_add" "$number" "$folder/copy" "$before"
    spent >> "$folder/repeated"
    [ -n "$added" ] || added=$(($(bytes "$store") - stored))
    enough && break
  done
  read -r cpu peak < <(least)
  [ "$peak" -le "$most" ] || most=$peak
  echo "$stored $first $(rate "$later_bytes" "$later_cpu") $(rate "$(bytes "$folder/copy")" "$cpu") $added $most" \
    "${last% *} ${middle% *} $(printf '%s\n' "${last#* }" "${middle#* }" | sort -n | tail -1)"
}
restored() { # NUMBER: prints MB/s and peak KiB
  local cpu peak dir=${checkpoints[$1 - 1]}
  : > "$folder/repeated"
  for _ in $(seq $repeats); do
    clear_away "$out"
    mkdir "$out"
    warm "$store"
    reset
    "${kind}_restore" "$1" "$out"
    spent >> "$folder/repeated"
    enough && break
  done
  same_files "$dir" "$out" >&2
  read -r cpu peak < <(least)
  echo "$(rate "$(bytes "$dir")" "$cpu") $peak"
}
repeats=3
enough() { [ "$(awk 'END { print ($1 > 3) }' "$folder/repeated")" = 1 ]; }
least() { sort -g "$folder/repeated" | head -1; }

# row NAME KIND OPTIONS...: measures one tool and prints its row
row() {
  local name=$1 kind=$2 options=("${@:3}") numbers status
  set +e
  numbers=$(set -e; measured 2> "$folder/errors")
  status=$?
  set -e
  clear_away "$store" "$folder"/{copy,out,chain}
  if [ $status -ne 0 ]; then
    say "$series: $name failed: $(tail -n 3 "$folder/errors")"
    failed="$failed
$series: $name"
    echo "| $name | failed | | | | | | | | |"
  else
    [ -z "$csv" ] || echo "$series,${#checkpoints[@]},$size,\"$name\",${numbers// /,}" >> "$csv"
    awk -v name="$name" '{
      printf "| %s | %.1f | %s | %s | %s | %.2f | %.0f | %s | %s | %.0f |\n", name, $1 / 1e6, $2, $3, $4, $5 / 1e6, $6 / 1024, $7, $8, $9 / 1024
    }' <<< "$numbers"
  fi
}

# Reports everything that is missing before measuring.
present() { case $missing in *" $1 "*) return 1 ;; esac; }
missing=' '
if [ "$only" != peers ]; then
  if [ -z "$hopmap" ]; then
    say "no hopmap given: measured without it"
    missing="${missing}hopmap "
  elif ! "$hopmap" checkpoint --help > /dev/null 2>&1; then
    say "$hopmap has no command checkpoint: measured without it"
    missing="${missing}hopmap "
  fi
fi
if [ "$only" != hopmap ]; then
  for tool in zstd xdelta3 borg restic casync; do
    command -v $tool > /dev/null || { say "$tool is missing: measured without it"; missing="$missing$tool "; }
  done
  # The first checkpoint of an xdelta3 chain is compressed by zstd.
  present zstd || missing="${missing}xdelta3 "
fi

if [ "$only" = hopmap ] && ! present hopmap; then exit 1; fi

columns="stored MB | first, MB/s | later, MB/s | unchanged, MB/s | unchanged, MB | peak, MB | restore last, MB/s | middle, MB/s | peak, MB"
[ -z "$csv" ] || echo "series,checkpoints,bytes,tool,stored_bytes,first_mb_per_s,later_mb_per_s,unchanged_mb_per_s,unchanged_bytes,add_peak_kib,restore_last_mb_per_s,restore_middle_mb_per_s,restore_peak_kib" > "$csv"
echo "$(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg); speeds by CPU time"
failed='' found=''
for path in "$all"/*/; do
  path=${path%/}
  series=${path##*/}
  case $wanted in '' | *",$series,"*) ;; *) continue ;; esac
  mapfile -t checkpoints < <(find "$path" -mindepth 1 -maxdepth 1 -type d | LC_ALL=C sort)
  [ ${#checkpoints[@]} -gt 1 ] || { say "$series: fewer than two checkpoints"; continue; }
  found=yes
  size=$(bytes "${checkpoints[@]}")
  printf '\n### %s: %d checkpoints, %.1f MB\n\n| tool | %s |\n|---|%s\n' "$series" "${#checkpoints[@]}" \
    "$(awk -v b="$size" 'BEGIN { print b / 1e6 }')" "$columns" "---:|---:|---:|---:|---:|---:|---:|---:|---:|"
  if [ "$only" != peers ] && present hopmap; then row hopmap hopmap; fi
  if [ "$only" != hopmap ]; then
    if present zstd; then
      row "zstd -1" zstd -1
      row "zstd -3" zstd -3
      row "zstd -1 --patch-from" patch -1
      row "zstd -3 --patch-from" patch -3
    fi
    if present xdelta3; then row "xdelta3 -1" xdelta -1; fi
    if present borg; then
      row "borg, zstd,3" borg --compression zstd,3
      row "borg, 4 KiB, zstd,1" borg --compression zstd,1 --chunker-params fixed,4096
    fi
    if present restic; then row "restic" restic; fi
    if present casync; then
      row "casync" casync
      row "casync, 16 KiB" casync --chunk-size=16K
    fi
  fi
done
[ -n "$found" ] || { say "$all holds no series"; exit 1; }
[ -z "$failed" ] || { say "failed:$failed"; exit 1; }
