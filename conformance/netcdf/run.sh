#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# NetCDF-4's parallel tests, built with our mpicc from Debian's source package on parallel HDF5.
#
#   sh conformance/netcdf/run.sh [--sites] [--limit SECONDS] [TEST...]
#
# Builds HDF5 below target/hdf5-library and NetCDF below target/netcdf and runs the programs of list.txt. --sites: each over two testbed sites without a common
# directory. Failures that are expected stand with their reasons in expected.tsv. All others: exit status 1.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=netcdf
. "$here/../common.sh"
. "$here/../listed.sh"
. "$here/../hdf5/library.sh"
listed_options '' "$@"
need g++ g++
need m4 m4
install_missing
need_mpicc "$bin/mpicc"
hdf5_library
# What is not about files in parallel is left out. Programs are linked against the static library, so they run where they stand.
build() {
    cd "$work/build" &&
        "$work/source/configure" CC="$bin/mpicc" CFLAGS="-O0 -w" CPPFLAGS="-I$hdf5/include" LDFLAGS="-L$hdf5/lib -Wl,-rpath,$hdf5/lib" \
            --disable-shared --enable-parallel-tests --disable-dap --disable-byterange --disable-nczarr --disable-libxml2 --disable-utilities \
            --disable-examples --disable-filter-testing --disable-plugins &&
        for part in include libdispatch libsrc libsrc4 libhdf5 liblib; do make -j"$jobs" -C "$part" || return; done &&
        make -j"$jobs" -C h5_test tst_h_par tst_h_par_compress && cp h5_test/tst_h_par h5_test/tst_h_par_compress nc_test4 &&
        make -j"$jobs" -C nc_test4 $(awk '!/^#/ && NF && !/^tst_h_/ { print $1 }' "$here/list.txt")
}
build_once netcdf
listed_inside
# Its programs make their files where they stand.
listed_apart=1
listed_good() { [ "$2" = 0 ] && ! grep -qE 'FAILED|Sorry!' "$1"; }
listed_run "$work/build/nc_test4"
