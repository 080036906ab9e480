#!/bin/sh
# Runs a command in this folder as an ordinary user of a bare Debian with make, git and a C compiler, where nothing else is
# installed: what a newcomer has. As root, with debootstrap; the root is kept in the cache.
#
#   sh ci/bare.sh COMMAND...
#
# The toolchain and the crates that cargo has fetched are bound in read-only, this folder and CARGO_TARGET_DIR as they are, all
# under the same paths, so that builds outside go on with what was built inside. While it runs, both folders belong to the user.
set -eu
cd "$(dirname "$0")/.."
folder=$PWD
root=${ROOT:-${XDG_CACHE_HOME:-$HOME/.cache}/hopmap-bare}
target=${CARGO_TARGET_DIR:-$folder/target}
crates=${CARGO_HOME:-$HOME/.cargo}
toolchain=$(rustc --print sysroot)
user=1000

sh ci/root.sh running "$root" gcc,libc6-dev,make,git
cargo fetch --locked --quiet
mkdir -p "$target"
[ -d "$root/home/newcomer" ] || chroot "$root" useradd --create-home --uid $user newcomer
owner=$(stat -c %u:%g "$folder") target_owner=$(stat -c %u:%g "$target")
give_back() { chown -R "$owner" "$folder"; chown -R "$target_owner" "$target"; }
trap give_back EXIT
# A shell that waits for a command in the foreground would see a signal only after it.
trap 'kill -KILL "$child"; wait; exit 130' INT TERM HUP
chown -R $user:$user "$folder" "$target"

# The mounts end with the namespace.
export root folder target crates toolchain user
unshare --mount --pid --fork --kill-child sh -euc '
bind() { mkdir -p "$root$1"; mount --bind "$1" "$root$1"; [ "$2" = rw ] || mount -o "remount,bind,$2" "$root$1"; }
# The toolchain and the crates are often below it.
chmod a+x "$root/root"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
bind "$toolchain" ro
bind "$crates/registry" ro
chown $user:$user "$root$crates"
bind "$folder" rw
bind "$target" rw
bind /dev rw
bind /sys ro
mount -t proc proc "$root/proc"
echo "127.0.0.1 localhost $(hostname)" > "$root/etc/hosts"
# What .ci/run installs must not be there.
for program in sbatch srun mpirun mpicc python3 cmake clang c++ pkg-config ip ps kill hwloc-ls dot chromium; do
  if chroot "$root" env PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -c "command -v $program" | grep -q /; then echo "the bare root has $program" >&2; exit 1; fi
done
# Not as the first process of the namespace, which has to stay root to end with its parent.
chroot --userspec=$user:$user "$root" env -i PATH="$toolchain/bin:/usr/local/bin:/usr/bin:/bin" HOME=/home/newcomer LANG=C.UTF-8 \
  CARGO_HOME="$crates" CARGO_TARGET_DIR="$target" CARGO_NET_OFFLINE=true sh -euc "cd \"\$0\"; exec \"\$@\"" "$folder" "$@" || exit $?' sh "$@" &
child=$!
wait "$child"
