#!/bin/sh
# Packages what cargo built as a tarball that runs in any folder: hopmap, and hopmap-query if it was built.
#
#   sh ci/tarball.sh FOLDER_OF_BINARIES OUT      prints the tarball
#
# The same binaries and SOURCE_DATE_EPOCH (default: the time of the last commit) give an identical tarball.
set -eu
binaries=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
cd "$(dirname "$0")/.."
time=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
version=$("$binaries/hopmap" --version | cut -d ' ' -f 2)
name=hopmap-$version-$(uname -m)-$(uname -s | tr '[:upper:]' '[:lower:]')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

DESTDIR=$work PREFIX=/$name sh ci/install.sh "$binaries"
cd "$work/$name"
# Not hopmap-ranks: every machine has its own MPI, so it is built there.
rm -f bin/hopmap-ranks share/man/man1/hopmap-ranks.1
strip bin/*
for binary in bin/*; do
  foreign=$(objdump -p "$binary" | awk '$1 == "NEEDED" && $2 !~ /^(lib(c|m|dl|rt|pthread|gcc_s)|ld-linux[^.]*)\.so\./ { print $2 }')
  [ -z "$foreign" ] || { echo "$binary needs what other machines may not have: $foreign" >&2; exit 1; }
done
cd - >/dev/null
sh ci/glibc.sh "$work/$name"/bin/* >&2
install -m 644 LICENSE-APACHE LICENSE-MIT README.md CHANGELOG.md "$work/$name/share/doc/hopmap"
tar -C "$work" --sort=name --mtime="@$time" --owner=0 --group=0 --numeric-owner --format=gnu -cf - "$name" | gzip "-${LEVEL:-9}n" > "$out/$name.tar.gz"
echo "$out/$name.tar.gz"
