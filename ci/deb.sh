#!/bin/sh
# Packages the binaries that cargo built for Debian: hopmap, and hopmap-query and hopmap-mpi if they were built.
#
#   sh ci/deb.sh FOLDER_OF_BINARIES OUT          prints the packages
#
# The same binaries and SOURCE_DATE_EPOCH (default: the time of the last commit) give identical packages.
set -eu
binaries=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
cd "$(dirname "$0")/.."
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}"
maintainer=${MAINTAINER:-The hopmap maintainers <root@localhost>}
version=$("$binaries/hopmap" --version | cut -d ' ' -f 2)
architecture=$(dpkg --print-architecture)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

# Common to all packages: changelog, copyright, stripped binaries, compressed pages, checksums, control.
finish() { # NAME RELATIONS DESCRIPTION; the last line of RELATIONS begins Depends
  name=$1 root=$work/$1 documents=$work/$1/usr/share/doc/$1
  strip --strip-unneeded --remove-section=.comment --remove-section=.note "$root"/usr/bin/*
  find "$root/usr/share" -name '*.1' -exec gzip -9n {} +
  install -Dm 644 ci/debian/copyright "$documents/copyright"
  gzip -9n > "$documents/changelog.gz" <<CHANGELOG
$name ($version) unstable; urgency=medium

  * See CHANGELOG.md in the sources.

 -- $maintainer  $(date -R -u -d "@$SOURCE_DATE_EPOCH")
CHANGELOG
  # dpkg-shlibdeps reads the package names from debian/control in its working directory.
  mkdir -p "$work/shlibs/debian"
  printf 'Source: hopmap\n\nPackage: %s\nArchitecture: any\n' "$name" > "$work/shlibs/debian/control"
  libraries=$(cd "$work/shlibs" && dpkg-shlibdeps -O "$root"/usr/bin/* | sed -n 's/^shlibs:Depends=//p')
  mkdir "$root/DEBIAN"
  (cd "$root" && find usr -type f | LC_ALL=C sort | xargs -d '\n' md5sum) > "$root/DEBIAN/md5sums"
  cat > "$root/DEBIAN/control" <<CONTROL
Package: $name
Source: hopmap
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -sk --apparent-size "$root/usr" | cut -f1)
$2$libraries
Section: science
Priority: optional
Description: $3
CONTROL
  package=$out/${name}_${version}_$architecture.deb
  dpkg-deb --root-owner-group "-Z${COMPRESSION:-xz}" --build "$root" "$package" >/dev/null
  echo "$package"
}

# Moves installed files into a separate package.
split() { # NAME FILE...
  name=$1 && shift
  for file in "$@"; do
    mkdir -p "$(dirname "$work/$name/usr/$file")"
    mv "$work/hopmap/usr/$file" "$work/$name/usr/$file"
  done
  mkdir -p "$work/$name/usr/share"
}

DESTDIR=$work/hopmap PREFIX=/usr ZSH_FOLDER=vendor-completions sh ci/install.sh "$binaries"
[ ! -e "$work/hopmap/usr/bin/hopmap-query" ] || split hopmap-query bin/hopmap-query
[ ! -e "$work/hopmap/usr/bin/hopmap-ranks" ] || split hopmap-mpi bin/hopmap-ranks share/man/man1/hopmap-ranks.1

finish hopmap "Suggests: hopmap-query, hopmap-mpi
Depends: " "topology-aware process mapping for MPI applications
 hopmap reads a trace of an MPI program, builds its communication matrix, and
 searches for a mapping that keeps heavily communicating ranks close to each
 other. The result is a rank file, machine file or host file for mpirun or
 srun. Every step is a stage of a pipeline, and every result is reproduced
 bit-identically."
[ ! -e "$work/hopmap-query" ] || finish hopmap-query "Depends: hopmap (= $version), " "SQL queries over results of hopmap
 hopmap computes topology-aware process mappings for MPI applications. This
 package has the program behind \"hopmap query\" and tables in pipelines: SQL
 over parameters, metrics and tables of all results."
[ ! -e "$work/hopmap-mpi" ] || finish hopmap-mpi "Depends: hopmap (= $version), " "stages of hopmap as MPI ranks
 hopmap computes topology-aware process mappings for MPI applications. With
 this package a stage runs as MPI ranks of Open MPI, on as many hosts as its
 launcher uses."
