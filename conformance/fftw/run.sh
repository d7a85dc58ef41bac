#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# FFTW's MPI transforms, checked by FFTW's own self-test and from Fortran, over two sites.
#
#   sh conformance/fftw/run.sh [--checks N] [--rtt TIME] [--rate RATE] [--local]
#
# Gets Debian's source package fftw3, builds it with our mpicc and lets FFTW's check.pl run N random transforms on each of 1 to 4
# ranks, over two testbed sites (--local: on this machine alone). FFTW compares every transform with its serial one
# (linearity, impulse response, time shift). wave.f90 uses its Fortran interface. Everything is made below target/fftw.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=fftw
. "$here/../common.sh"

checks=10 rtt=2ms rate=1gbit local='' wide=1
options 'checks= rtt= rate= local' "$@"
[ -z "$local" ] || wide=
need gcc gcc
need gfortran gfortran
need make make
need perl perl
need dpkg-source dpkg-dev
install_missing
need_mpicc "$bin/mpicc"
build=$work/build
if [ ! -x "$build/mpi/mpi-bench" ] || [ "$bin/mpicc" -nt "$build/mpi/mpi-bench" ]; then
    debian_source fftw3
    rm -rf "$build"
    cp -r "$work/source" "$build"
    say "building with $bin/mpicc"
    {
        (cd "$build" && ./configure --enable-mpi --disable-doc --disable-shared "MPICC=$bin/mpicc" CFLAGS=-O1) &&
            make -C "$build" -j "$(nproc)" && make -C "$build/mpi" mpi-bench
    } >"$work/build.log" 2>&1 || { grep -iE -A 3 "error|undefined" "$work/build.log" | head -n 20 >&2; die "the build failed; all of it: $work/build.log"; }
fi
"$bin/mpif90" -O1 -I"$build/api" -I"$build/mpi" -J "$work" "$here/wave.f90" "$build/mpi/.libs/libfftw3_mpi.a" "$build/.libs/libfftw3.a" -lm \
    -o "$build/wave" || die "wave.f90 does not compile"
cat >"$work/check.sh" <<CHECK
set -e
for ranks in 1 2 3 4; do
    echo "fftw: \$ranks ranks"
    \$1 -n \$ranks "$build/wave"
    perl -w "$build/tests/check.pl" --verbose --random --maxsize=10000 -c=$checks --mpi "\$1 -n \$ranks $build/mpi/mpi-bench"
done
CHECK
export ISTHMUS_TEST_BIN="$bin"
if [ -n "$wide" ]; then
    set -- "$bin/isthmus-testbed" run --sites 2x1 --rtt "$rtt" --rate "$rate" -- sh "$work/check.sh" "$here/../spread"
else
    set -- sh "$work/check.sh" "$bin/mpiexec"
fi
status=0
timeout "${FFTW_TIMEOUT:-1800}" "$@" </dev/null >"$work/check.log" 2>&1 || status=$?
passed=$(grep -c '^[^ ]*.* [0-9.e-]* [0-9.e-]* [0-9.e-]*$' "$work/check.log" || true)
tail -n 3 "$work/check.log" >&2
if [ "$status" != 0 ] || grep -qiE 'FAILED|isthmus: error' "$work/check.log"; then
    die "a check failed (status $status); all output: $work/check.log"
fi
echo "fftw: passed: $passed transforms on 1 to 4 ranks"
