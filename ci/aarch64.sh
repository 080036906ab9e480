#!/bin/sh
# Checks that everything compiles for aarch64, tests and the recorder for MPI programs included: with the installed Rust if it has that target, otherwise with that of Debian
# testing (needs root and debootstrap; ROOTS=FOLDER keeps the Debian). Without either, says that it was skipped.
#
#   sh ci/aarch64.sh [ARGUMENTS OF CARGO]        such as -p hopmap-map
set -eu
cd "$(dirname "$0")/.."
target=aarch64-unknown-linux-gnu
# Without crates that need libraries of that system, or Polars, which is not ours.
[ $# -gt 0 ] || set -- --workspace --exclude otf2-sys --exclude hopmap-query --exclude hopmap-ranks
check="cargo check --locked --all-targets --target $target $*"
export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc

if [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] && command -v aarch64-linux-gnu-gcc >/dev/null; then
  $check
  exit
fi
if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
  echo "skipped: Rust's target $target with aarch64-linux-gnu-gcc is not installed, and root with debootstrap could get Debian's" >&2
  exit
fi
roots=${ROOTS:-}
if [ -z "$roots" ]; then
  roots=$(mktemp -d)
  trap 'rm -rf "$roots"' EXIT
fi
root=$roots/aarch64
cargo fetch --locked --quiet
sh ci/root.sh testing "$root" ca-certificates
# `Valid-Until`: mirrors may be frozen.
[ -d "$root/usr/lib/rustlib/$target" ] || chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive sh -euc '
  dpkg --add-architecture arm64
  apt-get -o Acquire::Check-Valid-Until=false update -qq
  apt-get install -y -qq --no-install-recommends cargo gcc libc6-dev gcc-aarch64-linux-gnu libc6-dev-arm64-cross libstd-rust-dev:arm64 >/dev/null
  cd /tmp; apt-get download -qq libmpich-dev; dpkg-deb -x libmpich-dev_* /mpich'
mkdir -p "$root/hopmap" "$root/cargo/registry" "$root/target"
built=$(cargo metadata --format-version 1 --no-deps | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')/aarch64
mkdir -p "$built"
# The folders are bound in a namespace of their own, which ends with the command.
unshare --mount sh -euc '
  mount --bind "$PWD" "$1/hopmap"
  mount --bind "${CARGO_HOME:-$HOME/.cargo}/registry" "$1/cargo/registry"
  mount --bind "$2" "$1/target"
  chroot "$1" env CARGO_HOME=/cargo CARGO_TARGET_DIR=/target CARGO_NET_OFFLINE=true PATH=/usr/bin:/bin sh -euc "cd /hopmap; rustc --version; $3
    cat stages/record/src/runtime.c stages/record/src/events.c |
      aarch64-linux-gnu-gcc -std=gnu11 -w -fsyntax-only -I\$(dirname /mpich/usr/include/*/mpich/mpi.h) -x c -"
' sh "$root" "$built" "$check"
