#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Libraries and solvers that people use, built as they come and judged by their own checks, over two sites.
#
#   sh conformance/codes/run.sh [--rtt TIME] [--rate RATE] [--local] [hypre|scotch|sundials|p4est ...]
#
# Gets Debian's source packages, builds them with our mpicc, and runs their own checks with the ranks spread over two
# testbed sites (--local: over two subjobs on this machine). Without names: all four. Everything is made below
# target/codes. The last line is "N passed, N failed", where each check of a code counts as one.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=codes
. "$here/../common.sh"

rtt=2ms rate=1gbit local='' wide=1
options 'rtt= rate= local *' "$@"
[ -z "$local" ] || wide=
codes=$words
for code in $codes; do
    case $code in hypre | scotch | sundials | p4est) ;; *) usage ;; esac
done
need gcc gcc
need g++ g++
need make make
need cmake cmake
need flex flex
need bison bison
need autoreconf autoconf
need automake automake
need libtoolize libtool
need dpkg-source dpkg-dev
need_file /usr/include/zlib.h zlib1g-dev
install_missing
need_mpicc "$bin/mpicc"

# The codes call `mpirun` or `mpiexec`; both are the launcher that spreads ranks over two sites.
mkdir -p "$work/bin"
for name in mpirun mpiexec; do ln -sf "$here/../spread" "$work/bin/$name"; done
ISTHMUS_TEST_BIN=$bin PATH=$work/bin:$bin:$PATH
export ISTHMUS_TEST_BIN PATH
[ -n "$wide" ] || export SPREAD_SITES="a=home b=home"

# sources CODE PACKAGE: Debian's source package, unpacked into $work/CODE unless it is there and newer than our mpicc.
sources() {
    [ ! -e "$work/$1/built" ] || [ "$bin/mpicc" -nt "$work/$1/built" ] || return 1
    say "$1: getting and building"
    debian_source "$2"
    rm -rf "${work:?}/$1"
    mv "$work/source" "$work/$1"
}
# hypre compares what its drivers print with saved results (tolerance as its own script takes it). An .err file is a difference.
hypre() {
    if sources hypre hypre; then
        built hypre "cd src && ./configure --disable-fortran CC=mpicc CXX=mpicxx CFLAGS=-O1 && make -j$(nproc) &&
            cd test && make -j$(nproc) struct_migrate struct ij sstruct"
    fi
    checks="TEST_struct/migrate TEST_struct/emptyproc TEST_ij/default TEST_sstruct/default3d"
    for check in $checks; do
        there "cd '$work/hypre/src/test' && ./runtest.sh -rtol 1e-3 -atol 1e-6 $check.sh" >>"$work/hypre.out" 2>&1 || true
        status=1
        # The script that compares leaves its output beside; that there is one at all shows that the runs took place.
        if [ -s "$work/hypre/src/test/$check.out" ] && [ ! -s "$work/hypre/src/test/$check.err" ]; then status=0; fi
        verdict hypre "$check" $status
    done
}

# PT-Scotch's test programs end with 0 if graphs, orderings and partitions are consistent.
scotch() {
    if sources scotch scotch; then
        built scotch "cd src && sed 's/-O3/-O1/' Make.inc/Makefile.inc.x86-64_pc_linux2 >Makefile.inc && make CCD=mpicc ptscotch"
    fi
    status=0
    there "cd '$work/scotch/src/check' && LD_LIBRARY_PATH='$work/scotch/lib' make CCD=mpicc ptcheck" >"$work/scotch.out" 2>&1 || status=$?
    verdict scotch ptcheck $status
}

# SUNDIALS brings the expected output of its examples. The statistics at the end depend on rounding; the solution does not.
sundials() {
    if sources sundials sundials; then
        built sundials "mkdir -p b && cd b && cmake .. -DENABLE_MPI=ON -DMPI_C_COMPILER=mpicc -DBUILD_SHARED_LIBS=OFF -DEXAMPLES_ENABLE_C=ON \
            -DEXAMPLES_ENABLE_CXX=OFF -DBUILD_ARKODE=OFF -DBUILD_IDAS=OFF -DBUILD_CVODES=OFF -DCMAKE_C_FLAGS=-O1 && make -j$(nproc)"
    fi
    : >"$work/sundials.out"
    for check in "cvode cvAdvDiff_non_p 2" "cvode cvAdvDiff_diag_p 4" "kinsol kinFoodWeb_kry_bbd_p 4" "ida idaHeat2D_kry_p 4" "kinsol kinFoodWeb_kry_p 4"; do
        # shellcheck disable=SC2086 # three words
        set -- $check
        expected=$work/sundials/examples/$1/parallel/$2.out
        status=0
        there "mpirun -n $3 '$work/sundials/b/examples/$1/parallel/$2'" >"$work/sundials-$2.out" 2>&1 || status=$?
        [ $status != 0 ] || awk -f "$here/agree.awk" "$expected" "$work/sundials-$2.out" >>"$work/sundials.out" || status=$?
        verdict sundials "$2" $status
    done
}

# p4est checks its forests itself. The tests of its helper library libsc, which need windows, are in ../onesided.
p4est() {
    if sources p4est p4est; then
        built p4est "./bootstrap && ./configure --enable-mpi --disable-mpiio --disable-shared --without-blas --without-lapack CC=mpicc CFLAGS=-O1 && make -j$(nproc)"
    fi
    tests="test/p4est_test_balance test/p4est_test_partition test/p4est_test_ghost test/p8est_test_lnodes test/p4est_test_nodes"
    (cd "$work/p4est" && make $tests) >>"$work/p4est.log" 2>&1 || die "p4est: its tests do not build; see $work/p4est.log"
    : >"$work/p4est.out"
    for check in $tests; do
        status=0
        there "cd '$work/p4est' && mpirun -n 4 ./$check" >>"$work/p4est.out" 2>&1 || status=$?
        verdict p4est "$check" $status
    done
}

for code in ${codes:-hypre scotch sundials p4est}; do
    : >"$work/$code.out"
    $code
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
