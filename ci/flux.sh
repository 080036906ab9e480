#!/bin/sh
# Builds Flux into a folder, for the tests of `make soak` that find `flux` on PATH: ci/flux.sh FOLDER [REPOSITORY]. On Debian its
# packages are autoconf automake libtool libzmq3-dev uuid-dev libjansson-dev liblz4-dev libarchive-dev libhwloc-dev libsqlite3-dev
# liblua5.1-dev lua-posix python3-dev python3-cffi python3-ply python3-yaml. Ten minutes on two cores.
set -eu
folder=$1
repository=${2:-https://github.com/flux-framework/flux-core}
[ ! -x "$folder/bin/flux" ] || exit 0
mkdir -p "$folder"
git clone --quiet --depth 1 --branch v0.88.0 "$repository" "$folder/source"
cd "$folder/source"
./autogen.sh
./configure --prefix="$folder" --disable-docs PYTHON=/usr/bin/python3
make -j "$(nproc)"
make install
