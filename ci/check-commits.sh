#!/bin/sh
# Checks the message of every commit of BASE..HEAD, oldest first, and runs `make quick` and `make check` on it: prints a line per commit, goes on
# after a failure and ends with 1 if there was one. Commits that change only texts are not built.
#
#   sh ci/check-commits.sh BASE
#
# The worktree is temporary; what it builds is in CARGO_TARGET_DIR, with the output of what failed.
set -eu
cd "$(dirname "$0")/.."
[ -n "${1:-}" ] || { echo "no base: \`make check-commits BASE=main\` checks the commits that main does not have" >&2; exit 2; }
base=$(git rev-parse --quiet --verify "$1^{commit}") || { echo "\`$1\` is no commit: BASE is a branch, a tag or a hash" >&2; exit 2; }
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
logs=$CARGO_TARGET_DIR/check-commits
mkdir -p "$logs"
folder=$(mktemp -d) child=
trap 'trap "" INT TERM HUP; git worktree remove --force "$folder/tree" 2>/dev/null || :; rm -rf "$folder"' EXIT
# A shell that waits for a command in the foreground would see a signal only after it.
trap '[ -z "$child" ] || { kill "$child" || :; wait "$child" || :; }; exit 130' INT TERM HUP
git worktree add --quiet --detach "$folder/tree" "$base"
# Subjects that name a tool or a file and no change: what they repair belongs in the commit that broke it.
repairs='^(fixup|squash|amend)!|^wip([^a-z]|$)|^(satisfy|follow|please|appease) (clippy|rustfmt)|^(update|regenerate|accept) (the )?(reference|snapshots)'

status=0
for commit in $(git rev-list --reverse --topo-order "$base..HEAD"); do
  hash=$(git log -1 --format=%h "$commit") subject=$(git log -1 --format=%s "$commit") begin=$(date +%s) failed='' note=''
  [ -n "$(git log -1 --format=%b "$commit")" ] || failed="$failed, no body"
  ! printf '%s\n' "$subject" | grep -qiE "$repairs" || failed="$failed, the subject names no change"
  if git diff-tree -r --name-only "$commit^" "$commit" | grep -qvE '\.md$|^docs/'; then
    git -C "$folder/tree" checkout --quiet --force --detach "$commit"
    for target in quick check; do
      make -C "$folder/tree" "$target" > "$logs/$hash-$target" 2>&1 & child=$!
      if wait "$child"; then rm "$logs/$hash-$target"; else failed="$failed, make $target failed ($logs/$hash-$target)"; fi
      child=
    done
  else note=', only texts: not built'; fi
  [ -z "$failed" ] || status=1
  result=${failed#, }
  printf '%s %s: %s (%d s)\n' "$hash" "$subject" "${result:-ok}$note" $(($(date +%s) - begin))
done
exit $status
