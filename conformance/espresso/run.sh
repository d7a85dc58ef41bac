#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Quantum ESPRESSO's layer over MPI, built with our mpif90 from Debian's source package.
#
#   sh conformance/espresso/run.sh [--sites] [--limit SECONDS] [TEST...]
#
# Builds UtilXlib and its tests below target/espresso. --sites: over two testbed sites. Failures that are expected stand in expected.tsv.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=espresso
. "$here/../common.sh"
. "$here/../listed.sh"
listed_options "$@"
need gcc gcc
need gfortran gfortran
need make make
need python3 python3
need dpkg-source dpkg-dev
need_file /usr/lib/x86_64-linux-gnu/liblapack.so liblapack-dev
install_missing
need_mpicc "$bin/mpif90"
mkdir -p "$work"

build() {
    cp -R "$work/source/." "$work/build" && cd "$work/build" && export PATH="$bin:$PATH" || return 1
    ./configure --enable-parallel FFLAGS=-O1 FCFLAGS=-O1 MPIF90="$bin/mpif90" || return 1
    # What its script for tests sets: the words for the preprocessor.
    export DFLAGMATRIX=-D__MPI
    make -j2 -C UtilXlib -f Makefile.test || return 1
    cd UtilXlib/tests && rm -f ./*_gpu.* && python3 gen_tests.py || return 1
    make common || return 1
    for source in test_mp_*.f90 autotest_mp_*.f90; do
        make "${source%.f90}.x" || return 1
    done
}
build_once espresso
listed_inside
# All tests that were built, each on 3 ranks as its script has it.
listed_list=$work/list.txt
(cd "$work/build/UtilXlib/tests" && ls ./*.x) | sed 's|^\./\(.*\)|\1 3|' >"$listed_list"
listed_good() { [ "$2" = 0 ] && grep -q ' 0  *error(s)' "$1" && ! grep -q '[1-9][0-9]*  *error(s)' "$1"; }
listed_run "$work/build/UtilXlib/tests"
