#!/bin/sh
# Packs what cargo has built as Debian packages: hopmap, and hopmap-mpi where hopmap-ranks has been built too.
#
#   sh ci/deb.sh FOLDER_OF_BINARIES OUT          prints the packages
#
# The same binaries and the same SOURCE_DATE_EPOCH (else the time of the last commit) give the same packages.
set -eu
binaries=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
cd "$(dirname "$0")/.."
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}"
maintainer=${MAINTAINER:-The hopmap maintainers <root@localhost>}
version=$(sed -n '/^\[workspace.package\]/,/^\[workspace.dep/s/^version = "\(.*\)"/\1/p' Cargo.toml)
architecture=$(dpkg --print-architecture)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

# What both packages have: changelog, copyright, stripped binaries, packed pages, sums, control.
finish() { # NAME DEPENDS DESCRIPTION
  name=$1 root=$work/$1 documents=$work/$1/usr/share/doc/$1
  strip --strip-unneeded --remove-section=.comment --remove-section=.note "$root"/usr/bin/*
  gzip -9n "$root"/usr/share/man/man1/*.1
  install -Dm 644 ci/debian/copyright "$documents/copyright"
  gzip -9n > "$documents/changelog.gz" <<END
$name ($version) unstable; urgency=medium

  * CHANGELOG.md of the sources says what is new.

 -- $maintainer  $(date -R -u -d "@$SOURCE_DATE_EPOCH")
END
  # dpkg-shlibdeps takes the names of packages from a debian/control where it runs.
  mkdir -p "$work/shlibs/debian"
  printf 'Source: hopmap\n\nPackage: %s\nArchitecture: any\n' "$name" > "$work/shlibs/debian/control"
  libraries=$(cd "$work/shlibs" && dpkg-shlibdeps -O "$root"/usr/bin/* | sed -n 's/^shlibs:Depends=//p')
  mkdir "$root/DEBIAN"
  (cd "$root" && find usr -type f | LC_ALL=C sort | xargs -d '\n' md5sum) > "$root/DEBIAN/md5sums"
  cat > "$root/DEBIAN/control" <<END
Package: $name
Source: hopmap
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -sk --apparent-size "$root/usr" | cut -f1)
Depends: $2$libraries
Section: science
Priority: optional
Description: $3
END
  package=$out/${name}_${version}_$architecture.deb
  dpkg-deb --root-owner-group "-Z${COMPRESSION:-xz}" --build "$root" "$package" >/dev/null
  echo "$package"
}

DESTDIR=$work/hopmap PREFIX=/usr ZSH_FOLDER=vendor-completions sh ci/install.sh "$binaries"
if [ -e "$work/hopmap/usr/bin/hopmap-ranks" ]; then
  mkdir -p "$work/hopmap-mpi/usr/bin" "$work/hopmap-mpi/usr/share/man/man1"
  mv "$work/hopmap/usr/bin/hopmap-ranks" "$work/hopmap-mpi/usr/bin"
  mv "$work/hopmap/usr/share/man/man1/hopmap-ranks.1" "$work/hopmap-mpi/usr/share/man/man1"
fi

finish hopmap "" "placement of the ranks of a parallel program on a machine
 hopmap reads a trace of what a parallel program did, knows what the machine
 is, and searches the placement in which the heavy traffic stays close. The
 result is a file that mpirun or srun reads. Every step is a stage of a
 pipeline, every result can be made again bit for bit, and nothing is computed
 twice."
[ ! -e "$work/hopmap-mpi" ] || finish hopmap-mpi "hopmap (= $version), " "stages of hopmap as MPI ranks
 hopmap searches the placement of the ranks of a parallel program on a machine.
 With this package a stage runs as many processes of Open MPI, on as many
 hosts as its launcher takes."
