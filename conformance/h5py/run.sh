#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# h5py with its mpio driver, built from PyPI's source packages of h5py and mpi4py on parallel HDF5: its own tests for MPI, and parallel.py.
#
#   sh conformance/h5py/run.sh [--sites] [--limit SECONDS]
#
# Builds HDF5 below target/hdf5, mpi4py and h5py in a virtual environment below target/h5py, and runs on 2 and 4 ranks. --sites: over two
# testbed sites without a common directory. Exit status 0: all passed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=h5py
. "$here/../common.sh"
. "$here/../listed.sh"
. "$here/../hdf5/library.sh"
listed_options '' "$@"
need_python
install_missing
need_mpicc "$bin/mpicc"
hdf5_library
python=$work/env/bin/python
LD_LIBRARY_PATH=$(cd "$bin/../lib" && pwd)
export LD_LIBRARY_PATH ISTHMUS_TEST_BIN="$bin"
# from_source PACKAGE VERSION OPTION...
from_source() {
    from=$1 version=$2
    shift 2
    "$python" -m pip install -q --no-binary "$from" "$@" "$from==$version" || { echo "error: PyPI's $from $version cannot be built or had"; return 1; }
}
build() {
    export PATH="$bin:$PATH" CC="$bin/mpicc" CFLAGS="-O1 -w" HDF5_MPI=ON HDF5_DIR="$hdf5" MPI4PY_BUILD_MPICC="$bin/mpicc" MAKEFLAGS="-j$jobs"
    python3 -m venv --clear "$work/env" && "$python" -m pip install -q 'numpy<2.3' 'cython<3.1' 'setuptools<81' wheel pkgconfig pytest pytest-mpi &&
        from_source mpi4py 4.1.2 && from_source h5py 3.12.1 --no-build-isolation --no-deps
}
build_once
listed_inside
if [ -n "$sites" ]; then place=sites launch="$here/../spread"; else place=node launch="$bin/mpiexec"; fi
# A copy of Python at a site does not know that it belongs to an environment.
modules=$("$python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
export TMPDIR=/tmp PYTHONPATH="$modules" SPREAD_OPTIONS="--env TMPDIR=/tmp --env PYTHONPATH=$modules"
mkdir -p "$work/$place"
failed=0
# try NAME RANKS WORD...: a program of Python.
try() {
    name=$1 ranks=$2 log=$work/$place/$1-$2.log status=0
    shift 2
    (cd /tmp && timeout -k 5 "$limit" "$launch" -n "$ranks" "$python" "$@") >"$log" 2>&1 </dev/null || status=$?
    echo "h5py ($place): $name on $ranks ranks: $(grep -oE '[0-9]+ (passed|failed|skipped).*|all is well' "$log" | head -n 1), status $status"
    [ $status = 0 ] || { failed=1; say "failed: $log"; grep -E '^(FAILED|ERROR|E  )|rror' "$log" | head -n 20 >&2; }
}
for ranks in 2 4; do
    try parallel "$ranks" "$here/parallel.py" "/tmp/isthmus-h5py.$$.h5"
    try own "$ranks" -m pytest -q -p no:cacheprovider --with-mpi -m mpi --pyargs h5py
done
exit $failed
