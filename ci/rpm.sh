#!/bin/sh
# Packages the content of a tarball (ci/tarball.sh) for RHEL, SLES and their relatives: hopmap and hopmap-query. Needs rpmbuild.
#
#   sh ci/rpm.sh TARBALL OUT                     prints the packages
#
# The same tarball gives identical packages, with the time of its files.
set -eu
tarball=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
command -v rpmbuild >/dev/null || { echo "rpmbuild is missing (Debian: rpm, Fedora: rpm-build)" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/usr"
tar -C "$work/usr" --strip-components=1 -xzf "$tarball"
SOURCE_DATE_EPOCH=$(stat -c %Y "$work/usr/bin/hopmap")
export SOURCE_DATE_EPOCH
find "$work/usr/share/man" -name '*.1' -exec gzip -9n {} +

# Requirements on glibc are found by rpmbuild. Binaries are stripped already, and nothing is compiled again.
cat > "$work/hopmap.spec" <<SPEC
%global __os_install_post %{nil}
%global debug_package %{nil}
%global _build_id_links none
%global _buildhost localhost
%global _binary_payload w2.xzdio
%global use_source_date_epoch_as_buildtime 1
%global clamp_mtime_to_source_date_epoch 1
Name: hopmap
Version: $("$work/usr/bin/hopmap" --version | sed 's/hopmap //; s/-/~/')
Release: 1
Summary: Topology-aware process mapping for MPI applications
License: MIT OR Apache-2.0
%description
hopmap reads a trace of an MPI program, builds its communication matrix, and
searches for a mapping that keeps heavily communicating ranks close to each
other. The result is a rank file, machine file or host file for mpirun or srun.
%package query
Summary: SQL queries over results of hopmap
Requires: hopmap = %{version}-%{release}
%description query
The program behind "hopmap query" and tables in pipelines of hopmap: SQL over
parameters, metrics and tables of all results.
%install
cp -a $work/usr %{buildroot}
%files
/usr/bin/hopmap
/usr/share/man/man1/hopmap*
/usr/share/doc/hopmap
/usr/share/bash-completion
/usr/share/fish
/usr/share/zsh
%files query
/usr/bin/hopmap-query
SPEC
rpmbuild -bb --quiet --define "_topdir $work/build" --define "_rpmdir $out" --define '_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm' \
  "$work/hopmap.spec" >&2
ls "$out"/hopmap-*.rpm
