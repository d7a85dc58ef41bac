#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# PnetCDF's own tests, built with our mpicc and mpif90 from Debian's source package.
#
#   sh conformance/pnetcdf/run.sh [--sites] [--met] [--limit SECONDS] [DIRECTORY...]
#
# `make check` (alone) and `make ptest` (4 ranks) in its directories testcases, C, F90, fandc, nc_test, nf_test, nf90_test, cdf_format, header and
# nonblocking, or in those that are named. --sites: ptest over two testbed sites without a common directory. --met: ptest of the programs in C, in two jobs that have met
# (../met). Exit status 0: all passed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=pnetcdf
. "$here/../common.sh"
. "$here/../listed.sh"
limit=1800
listed_options met "$@"
need gcc gcc
need gfortran gfortran
need m4 m4
need make make
need autoreconf autoconf
need automake automake
need libtoolize libtool
need dpkg-source dpkg-dev
install_missing
need_mpicc "$bin/mpicc"
listed_met
# Those with programs in C, to run in parallel.
all='testcases C cdf_format header nonblocking'
[ -n "$met" ] || all="$all F90 fandc nc_test nf_test nf90_test"
mkdir -p "$work"
if ! cmp -s "$bin/../include/mpi.h" "$work/mpi.h"; then
    [ -d "$work/source" ] || debian_source pnetcdf
    rm -rf "$work/build"
    mkdir -p "$work/build"
    # Before MPI_Init nobody has met.
    [ -z "$met" ] || sed -i '/^int main/,$ { s/MPI_Comm comm = MPI_COMM_WORLD;/MPI_Comm comm;/; s/MPI_Init(&argc, &argv);/& comm = MPI_COMM_WORLD;/; }' \
        "$work/source/test/testcases/redef1.c"
    say "building with $bin/mpicc"
    {
        { [ -x "$work/source/configure" ] || (cd "$work/source" && autoreconf -i); } && cd "$work/build" &&
            "$work/source/configure" MPICC="$bin/mpicc" MPIF77="$bin/mpif77" MPIF90="$bin/mpif90" CFLAGS="-O1 -w" FFLAGS="-O1 -w" \
                FCFLAGS="-O1 -w" --disable-cxx ${met:+--disable-fortran} &&
            make -j2 && if [ -z "$met" ]; then
                make -j2 tests
            else
                for directory in common $all; do
                    make -j2 -C "test/$directory" all tests CFLAGS="-O1 -w $met_flags" LIBS="$met_object -lm" || exit
                done
            fi && cd "$work"
    } >"$work/build.log" 2>&1 || { tail -n 20 "$work/build.log" >&2; die "the build failed; all of it: $work/build.log"; }
    cp "$bin/../include/mpi.h" "$work/mpi.h"
fi
listed_inside
if [ -n "$sites" ]; then place=sites goals=ptest launch="sh $here/../spread"; else place=node goals="check ptest" launch="$bin/mpiexec"; fi
if [ -n "$met" ]; then
    goals=ptest launch="sh $top/conformance/met/mpiexec"
    export MET_SITES="${sites:+home b1}" SPREAD_OPTIONS="--share /tmp"
fi
export ISTHMUS_TEST_BIN="$bin"
out=/tmp/isthmus-pnetcdf.$$
mkdir -p "$out"
failed=0
for goal in $goals; do
    for directory in ${only:-$all}; do
        log=$work/$place-$goal-$directory.log
        timeout -k 5 "$limit" make -k -C "$work/build/test/$directory" "$goal" TESTMPIRUN="$launch -n NP" TESTOUTDIR="$out" \
            >"$log" 2>&1 </dev/null || { failed=1; say "$goal in $directory failed: $log"; grep -iE 'fail|error' "$log" | head -n 10 >&2; }
        echo "pnetcdf ($place): $goal in $directory: $(grep -cE '^PASS|-- *pass' "$log") passed, $(grep -cE '^(FAIL|ERROR)|-- *fail' "$log") failed"
    done
done
rm -rf "$out"
exit $failed
