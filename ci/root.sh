#!/bin/sh
# Makes a minimal Debian to `chroot` into. As root, with debootstrap; prints nothing unless it fails.
#
#   sh ci/root.sh RELEASE FOLDER [PACKAGES]      RELEASE: a name such as bullseye, or `running`, that of this machine
#                                                PACKAGES: more packages, separated by commas
#
# A FOLDER that an earlier call finished with the same arguments stays as it is (the file `.made-by-hopmap` in it has them); with
# others it is made again. Packages come from the mirror of this machine. FOLDER is complete or absent: it gets its name at the end.
set -eu
release=$1 folder=$2 packages=${3:-}
running=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
[ "$release" != running ] || release=$running
made="$release $packages"
[ "$(cat "$folder/.made-by-hopmap" 2>/dev/null)" != "$made" ] || exit 0
if [ -n "$(ls -A "$folder" 2>/dev/null)" ]; then
  [ -e "$folder/.made-by-hopmap" ] || { echo "$folder is not empty, and ci/root.sh did not make it" >&2; exit 1; }
  # What is bound into the old root is not part of it.
  ! grep -qF " $(realpath "$folder")/" /proc/self/mountinfo || { echo "$folder is in use: folders are mounted in it" >&2; exit 1; }
fi
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $running" 2>/dev/null | head -n 1)
mkdir -p "$(dirname "$folder")"
new=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$new" "$new.log"' EXIT
trap 'exit 1' HUP INT TERM
chmod 755 "$new"
if ! debootstrap --variant=minbase ${packages:+"--include=$packages"} "$release" "$new" ${mirror:+"$mirror"} > "$new.log" 2>&1; then
  tail -n 20 "$new.log" >&2
  exit 1
fi
echo "$made" > "$new/.made-by-hopmap"
rm -rf "$folder"
mv -T "$new" "$folder"
