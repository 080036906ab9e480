#!/bin/sh
# Tries packages in a clean Debian: installs, uses and removes them. As root, with debootstrap.
#
#   sh ci/try-deb.sh PACKAGE.deb...              ROOT=FOLDER takes a Debian that is there already
set -eu
root=${ROOT:-}
if [ -z "$root" ]; then
  root=$(mktemp -d)
  trap 'rm -rf "$root"' EXIT
  # The release that the packages were built on: others have other libraries.
  release=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
  debootstrap --variant=minbase --include=man-db,bash-completion "$release" "$root" >/dev/null
fi
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive LANG=C.UTF-8 sh -euc "$1"; }
files() { (cd "$root" && find etc usr root opt srv -xdev ! -type d ! -name '*.pyc' | LC_ALL=C sort); }
# Documentation is left out of small images: here it is what is tried.
inside 'rm -f /etc/dpkg/dpkg.cfg.d/*; apt-get update -qq; mkdir -p /tmp/packages'
rm -f "$root"/tmp/packages/*
cp "$@" "$root/tmp/packages"
# What packages need stays when they go.
inside 'apt-get install -y -qq --no-install-recommends $(for package in /tmp/packages/*.deb; do
    dpkg-deb --field $package Depends | tr "," "\n" | sed "s/ (.*//; s/|.*//" | grep -v "^ *hopmap"; done) >/dev/null'
files > "$root/tmp/before"

echo "== install"
inside 'apt-get install -y -qq --no-install-recommends /tmp/packages/*.deb >/dev/null; dpkg -l "hopmap*" | tail -n +6'
echo "== use"
inside '
hopmap --version
! ldd /usr/bin/hopmap | grep "not found"
man -w hopmap hopmap-init hopmap-checkpoint-add
man hopmap-init | head -4
bash -ic ". /usr/share/bash-completion/bash_completion; _load_comp hopmap 2>/dev/null || __load_completion hopmap; complete -p hopmap
  COMP_WORDS=(hopmap in); COMP_CWORD=1; _hopmap hopmap in hopmap; echo \"completes in: \${COMPREPLY[*]}\"" 2>/dev/null
rm -rf /tmp/project /tmp/demo; mkdir /tmp/demo; cd /tmp
samples=/usr/share/doc/hopmap/examples
hopmap init project --trace $samples/sample-traces/rows-columns-16/eztrace_log.otf2
cd project
hopmap check place.toml
hopmap run place.toml --report report.html
hopmap run place.toml --quiet
test -s out/rankfile; test -s report.html
cd /tmp/demo
hopmap run $samples/pipelines/place.toml --store .hopmap -p out=/tmp/demo/out --no-report
rm -rf /tmp/project /tmp/demo'
echo "== remove"
inside 'apt-get purge -y -qq "hopmap*" >/dev/null'
files > "$root/tmp/after"
# Caches of apt and dpkg are below /var; nothing else may be left.
diff "$root/tmp/before" "$root/tmp/after"
echo "nothing is left"
