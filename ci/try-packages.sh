#!/bin/sh
# Tests packages in clean Debians: installs, uses and removes them, and checks for leftovers. As root, with debootstrap.
#
#   sh ci/try-packages.sh FILE...       Debian packages together as root, and RPM packages as well; every wheel and every tarball as a
#                                       separate user. ROOTS=FOLDER keeps the Debians.
#
# Debian packages run on the release on which they were built, because others have other libraries; the rest on the Debian with the
# oldest C library that the mirror has. There is no Fedora, so RPM packages are installed by Debian's rpm, without dependencies.
set -eu
here=$(dirname "$0")
include=man-db,bash-completion,python3-venv,rpm
roots=${ROOTS:-}
if [ -z "$roots" ]; then
  roots=$(mktemp -d)
  trap 'rm -rf "$roots"' EXIT
  chmod 755 "$roots"
fi
root=''

in_root() { # USER HOME COMMANDS
  chroot --userspec="$1:$1" "$root" \
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME="$2" DEBIAN_FRONTEND=noninteractive LANG=C.UTF-8 sh -euc "cd; $3"
}
as_root() { in_root root /root "$1"; }
as_user() { in_root tester /home/tester "$1"; }
# Caches of apt and dpkg are below /var.
files() { (cd "$root" && find etc usr root home opt srv -xdev ! -name '*.pyc' ! -name __pycache__ | LC_ALL=C sort); }
nothing_is_left() {
  files > "$root/tmp/after"
  diff "$root/tmp/before" "$root/tmp/after"
  echo "nothing is left"
}

enter() { # RELEASE FILE...
  root=$roots/$1
  shift
  # Small images exclude documentation, which is tested here.
  as_root 'rm -f /etc/dpkg/dpkg.cfg.d/*; rm -rf /tmp/packages; mkdir /tmp/packages; id tester >/dev/null 2>&1 || useradd --create-home tester'
  cp "$@" "$root/tmp/packages"
  cp -R "$here/../sample-traces/rows-columns-16" "$here/../sample-networks/rapidio" "$root/tmp/packages"
  chmod -R a+rX "$root/tmp/packages"
  echo "== $(as_root '. /etc/os-release; echo "$PRETTY_NAME, glibc $(ldd --version | sed -n "s/.* //; 1p")"')"
}

# For every kind of package: hopmap starts and maps a program, and runs a query if hopmap-query is installed.
use='
hopmap --version
if ldd "$(command -v hopmap)" | grep "not found"; then exit 1; fi
mkdir placed
cd placed
hopmap run place -p trace=/tmp/packages/rows-columns-16/eztrace_log.otf2 --report report.html
grep "rank 15=" out/rankfile
grep -q "</html>" report.html
if command -v hopmap-query; then hopmap query "SELECT COUNT(*) AS cells FROM placement"; fi
cd ..
rm -r placed'
# For those with METIS and HiGHS: the results of the paper on RapidIO are gates of the pipeline.
solve='
mkdir solved
cd solved
hopmap exec trace/otf2 -p path=/tmp/packages/rows-columns-16/eztrace_log.otf2 --out program
hopmap exec topology/synthetic -p shape=tree:2x4x2 --out machine
hopmap exec map/hierarchical -p partitioner=metis --in task-graph=program --in system=machine --out metis
hopmap run rapidio -p method=paper -p example_1=/tmp/packages/rapidio/example-1.toml -p example_2=/tmp/packages/rapidio/example-2.toml --no-report
cd ..
rm -r solved'

debs='' rpms='' portable=''
for file; do
  packed=/tmp/packages/${file##*/}
  case $file in
    *.deb) debs="$debs $packed" ;;
    *.rpm) rpms="$rpms $packed" ;;
    *) portable="$portable $packed" ;;
  esac
done
if [ -n "$debs" ]; then
  sh "$here/root.sh" running "$roots/running" $include
  enter running "$@"
  # Dependencies stay when the packages are removed.
  as_root "apt-get update -qq; apt-get install -y -qq --no-install-recommends \$(for package in $debs; do
    dpkg-deb --field \$package Depends | tr ',' '\n' | sed 's/ (.*//; s/|.*//' | grep -v '^ *hopmap'; done) >/dev/null"
  files > "$root/tmp/before"
  echo "== install$debs"
  as_root "apt-get install -y -qq --no-install-recommends $debs >/dev/null; dpkg -l 'hopmap*' | tail -n +6"
  echo "== use"
  as_user "$use"
  as_user '
man -w hopmap hopmap-init hopmap-checkpoint-add
man hopmap-init | head -4
bash -ic ". /usr/share/bash-completion/bash_completion; _load_comp hopmap 2>/dev/null || __load_completion hopmap; complete -p hopmap
  COMP_WORDS=(hopmap in); COMP_CWORD=1; _hopmap hopmap in hopmap; echo \"completes in: \${COMPREPLY[*]}\"" 2>/dev/null
samples=/usr/share/doc/hopmap/examples
mkdir tried
cd tried
hopmap init project --trace $samples/sample-traces/rows-columns-16/eztrace_log.otf2
cd project
hopmap check place.toml
hopmap run place.toml --quiet
test -s out/rankfile
cd ..
hopmap run $samples/pipelines/place.toml --store .hopmap -p out="$PWD/out" --no-report
cd ..
rm -r tried'
  echo "== remove"
  as_root 'apt-get purge -y -qq "hopmap*" >/dev/null'
  nothing_is_left
fi

[ -n "$rpms$portable" ] || exit 0
for release in buster bullseye running; do
  if sh "$here/root.sh" $release "$roots/$release" $include; then break; fi
  [ $release != running ] || exit 1
  echo "== not tried on Debian $release, which this machine cannot get"
done
enter $release "$@"

if [ -n "$rpms" ]; then
  files > "$root/tmp/before"
  echo "== install$rpms"
  rpm='rpm --force-debian --dbpath /var/lib/rpm'
  as_root "$rpm --install --nodeps $rpms; $rpm --query --all"
  echo "== use"
  as_user "$use; $solve"
  as_user 'man -w hopmap-init'
  echo "== remove"
  as_root "$rpm --erase \$($rpm --query --all 'hopmap*')"
  nothing_is_left
fi

for packed in $portable; do
  case $packed in
    *.whl)
      as_user 'python3 -m venv venv'
      files > "$root/tmp/before"
      echo "== install $packed"
      as_user "venv/bin/pip install --quiet --no-index --no-cache-dir $packed"
      echo "== use"
      as_user "PATH=~/venv/bin:\$PATH; $use; $solve"
      echo "== remove"
      as_user 'venv/bin/pip uninstall --quiet --yes hopmap'
      nothing_is_left
      as_user 'rm -r venv'
      ;;
    *.tar.gz)
      files > "$root/tmp/before"
      echo "== install $packed"
      # Installed in another folder than it was packed for, and then moved.
      as_user "mkdir -p 'some where'; tar -C 'some where' -xzf $packed; mv 'some where'/hopmap-* here; rmdir 'some where'"
      echo "== use"
      as_user "PATH=~/here/bin:\$PATH; $use; $solve"
      as_user '
PATH=~/here/bin:$PATH
man -w hopmap-init
mkdir tried
hopmap run here/share/doc/hopmap/examples/pipelines/place.toml --store tried/.hopmap -p out="$PWD/tried/out" --no-report
test -s tried/out/rankfile
rm -r tried'
      echo "== remove"
      as_user 'rm -r here'
      nothing_is_left
      ;;
  esac
done
