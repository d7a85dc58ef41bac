#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# MUMPS' examples, built with our mpif90 and mpicc from Debian's source package.
#
#   sh conformance/mumps/run.sh [--sites] [--limit SECONDS] [TEST...]
#
# Builds real and complex MUMPS below target/mumps. --sites: over two testbed sites. Exit status 0: every solution is right. SCALAPACK: a
# libscalapack.a made with our mpicc, in place of MUMPS' stubs.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=mumps
. "$here/../common.sh"
. "$here/../listed.sh"
listed_options '' "$@"
need gcc gcc
need gfortran gfortran
need make make
need dpkg-source dpkg-dev
need_file /usr/lib/x86_64-linux-gnu/liblapack.so liblapack-dev
install_missing
need_mpicc "$bin/mpif90"
mkdir -p "$work"

# ScaLAPACK of MUMPS' library for one process: it stands in one source with an MPI, which must not come along.
stubs() {
    cd "$work/build/libseq" && sed -n '/SUBROUTINE *blacs_gridinit/,$p' mpi.f >scalapack.f &&
        gfortran -O1 -w -std=legacy -fPIC -c scalapack.f -o scalapack.o
}
build() {
    cp -R "$work/source/." "$work/build" && cd "$work/build" || return 1
    (stubs) || return 1
    sed -e "s|^CC = .*|CC = $bin/mpicc|" -e "s|^F\([CL]\) = .*|F\1 = $bin/mpif90|" -e 's|^OPT\([FLC]\) *=.*|OPT\1 = -O1 -w|' \
        -e 's|^ORDERINGSF *=.*|ORDERINGSF = -Dpord|' -e 's|^LORDERINGS *=.*|LORDERINGS = $(LPORD)|' -e 's|^IORDERINGSC *=.*|IORDERINGSC = $(IPORD)|' \
        -e 's|^IORDERINGSF *=.*|IORDERINGSF =|' -e "s|^SCALAP *=.*|SCALAP = ${SCALAPACK:-$work/build/libseq/scalapack.o}|" \
        Make.inc/Makefile.debian.PAR >Makefile.inc || return 1
    # Debian's packaging adds shared libraries, which programs in a build directory do not find.
    nice make -j2 prerequisites && nice make -j2 -C src d && nice make -j2 -C src z && rm -f lib/*.so* && make -C examples d z
}
build_once mumps
listed_inside
if [ -n "$sites" ]; then place=sites launch=$here/../spread; else place=node launch=$bin/mpiexec; fi
export ISTHMUS_TEST_BIN="$bin"
mkdir -p "$work/$place"
awk -v n=40 -f "$here/poisson.awk" >"$work/poisson"
passed=0 failed=0
# check TEST RANKS INPUT JUDGE...: runs an example and lets JUDGE read what it printed.
check() {
    name=$1 ranks=$2 input=$3 log=$work/$place/$1-$2-${3##*/}.log
    shift 3
    listed_wanted "$name" || return 0
    if (cd "$work/build/examples" && timeout -k 5 "$limit" "$launch" -n "$ranks" "./$name" <"$input") >"$log" 2>&1 && "$@" "$log" >&2; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        say "$name on $ranks ranks failed: $log"
    fi
}
says() { grep -qE "$1" "$2"; }
solves() { awk -v unknowns="$1" -f "$here/solution.awk" "$2"; }
for ranks in 2 4; do
    check c_example $ranks /dev/null says 'Solution is : +\( +1\.00 +2\.00\)'
    check dsimpletest $ranks input_simpletest_real solves 5
    check dsimpletest_save_restore $ranks input_simpletest_real solves 5
    check zsimpletest $ranks input_simpletest_cmplx solves 5
    check dsimpletest $ranks "$work/poisson" solves 1600
done
echo "mumps ($place): $passed passed, $failed failed"
[ "$failed" = 0 ]
