#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The testers of ScaLAPACK and BLACS, built with our mpif90 and mpicc.
#
#   sh conformance/scalapack/run.sh [--source DIRECTORY] [--sites] [--limit SECONDS] [TESTER...]
#
# Builds the parts for double precision, and BLACS for all types, below target/scalapack. --source: an unpacked ScaLAPACK (or SCALAPACK_SOURCE);
# without: Debian's source package. --sites: over two testbed sites. Failures that are expected stand in expected.tsv.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=scalapack
. "$here/../common.sh"
. "$here/../listed.sh"
limit=600
source=
listed_options source= "$@"
if [ -n "$source" ]; then
    SCALAPACK_SOURCE=$(cd "$source" && pwd)
    export SCALAPACK_SOURCE
fi
need gcc gcc
need gfortran gfortran
need make make
[ -n "${SCALAPACK_SOURCE:-}" ] || need dpkg-source dpkg-dev
need_file /usr/lib/x86_64-linux-gnu/liblapack.so liblapack-dev
install_missing
need_mpicc "$bin/mpif90"
mkdir -p "$work"

build() {
    cp -R "${SCALAPACK_SOURCE:-$work/source}/." "$work/build" && cd "$work/build" || return 1
    sed -e "s|^FC .*|FC = $bin/mpif90|" -e "s|^CC .*|CC = $bin/mpicc|" -e 's|-O3|-O1 -w|' SLmake.inc.example >SLmake.inc || return 1
    make -j2 -C BLACS lib || return 1
    # One at a time: each adds to the same archive.
    for part in "TOOLS double" "PBLAS/SRC double" "REDIST/SRC integer" "REDIST/SRC double" "SRC double"; do
        make -j2 -C "${part% *}" "${part#* }" || return 1
    done
    make -C BLACS/TESTING xFbtest xCbtest || return 1
    # Where the testers of the solvers stand depends on the version.
    testing=TESTING
    [ ! -d TESTING/traditional ] || testing=TESTING/traditional
    make -j2 -C "$testing/LIN" double && make -j2 -C "$testing/EIG" double || return 1
    mkdir -p programs && cp BLACS/TESTING/xFbtest BLACS/TESTING/xCbtest BLACS/TESTING/*.dat "$testing"/*.dat programs || return 1
    for name in $(sed -n 's/^\(xd[a-z]*\) .*/\1/p' "$here/list.txt"); do
        cp "$testing/$name" programs || return 1
    done
}
if [ -n "${SCALAPACK_SOURCE:-}" ]; then build_once; else build_once scalapack; fi
listed_inside
# BLACS' testers end by calling BLACS_ABORT, so their last test is judged; the others by what they count, or by a word in each line. Something must
# have passed.
listed_good() {
    ! grep -qE '[1-9][0-9]* +(FAILED|tests completed and failed|tests failed)|FAILED *$|^ *(FAILED|Failed)' "$1" || return 1
    case $1 in
    */x[FC]btest.log) grep -q 'DONE BLACS_GRIDEXIT' "$1" ;;
    *) [ "$2" = 0 ] && grep -qE '[1-9][0-9]* tests (completed and )?passed|PASSED *$|^ *Passed' "$1" ;;
    esac
}
programs=$work/build/programs
if [ -n "$sites" ]; then
    # Every call waits for the wide area: of the eigenvalue solvers the small matrices, of the least squares one size of blocks.
    programs=$work/build/small
    rm -rf "$programs" && cp -R "$work/build/programs" "$programs"
    for input in SEP.dat SEPR.dat; do
        sed -i '/^.TEST 6/,/^.End of tests/{/^.End of tests/!d}' "$programs/$input"
    done
    sed -i "s/^2\([[:space:]]*number of N[A-Z]*'s\)/1\1/" "$programs/LS.dat"
fi
listed_run "$programs"
