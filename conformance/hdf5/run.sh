#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# HDF5's parallel tests, built with our mpicc from Debian's source package.
#
#   sh conformance/hdf5/run.sh [--sites] [--met] [--limit SECONDS] [TEST...]
#
# Builds the library in C and Fortran and testpar below target/hdf5 and runs the programs of list.txt. --sites: each over two testbed sites without a common
# directory. --met: those in C, in two jobs that have met (../met). Failures that are expected stand with their reasons in expected.tsv. All others: exit
# status 1.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=hdf5
. "$here/../common.sh"
. "$here/../listed.sh"
listed_options met "$@"
need gcc gcc
need gfortran gfortran
need make make
need dpkg-source dpkg-dev
install_missing
need_mpicc "$bin/mpicc"
listed_met
mkdir -p "$work"
tests=$(awk '!/^#/ && NF && $1 != "parallel_test" { print $1 }' "$here/list.txt")
# These take MPI_COMM_WORLD before MPI_Init, when nobody has met.
if [ -n "$met" ]; then tests=$(echo "$tests" | grep -vE '^t_(filters_parallel|init_term)$'); fi
if ! cmp -s "$bin/../include/mpi.h" "$work/mpi.h"; then
    [ -d "$work/source" ] || debian_source hdf5
    rm -rf "$work/build"
    mkdir -p "$work/build"
    say "building with $bin/mpicc"
    {
        # What is not about MPI is left out. Test programs are linked against the static library, so they run where they stand.
        cd "$work/build" &&
            "$work/source/configure" CC="$bin/mpicc" FC="$bin/mpif90" CFLAGS="-O1 -w" FCFLAGS="-O1 -w" --enable-parallel --disable-shared \
                --disable-hl --enable-fortran --disable-cxx --without-szlib --without-zlib --enable-tests &&
            make -j2 -C src && make -j2 -C test libh5test.la ${met:+CFLAGS="-O1 -w $met_flags"} &&
            make -j2 -C testpar $tests ${met:+CFLAGS="-O1 -w $met_flags" LIBS="$met_object -lm -ldl"} &&
            if [ -z "$met" ]; then
                make -j2 -C fortran/src && make -C fortran/test libh5test_fortran.la && make -C fortran/testpar parallel_test &&
                    cp fortran/testpar/parallel_test testpar
            fi && cd "$work"
    } >"$work/build.log" 2>&1 || { tail -n 20 "$work/build.log" >&2; die "the build failed; all of it: $work/build.log"; }
    cp "$bin/../include/mpi.h" "$work/mpi.h"
fi
listed_inside
export HDF5_PARAPREFIX=/tmp SPREAD_OPTIONS="--env HDF5_PARAPREFIX=/tmp"
# shellcheck disable=SC2116,SC2086 # one line
if [ -n "$met" ] && [ -z "$only" ]; then only=$(echo $tests); fi
listed_good() { [ "$2" = 0 ] && ! grep -qE 'FAILED|Parallel ERROR|failed at line' "$1"; }
listed_run "$work/build/testpar"
