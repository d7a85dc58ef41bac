#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two jobs that preCICE couples over ports of MPI.
#
#   sh conformance/coupling/run.sh --source DIRECTORY [--library DIRECTORY] [--sites]
#
# DIRECTORY is a copy of https://github.com/precice/precice. Its library is built without options that need more packages, which takes a quarter of an hour of
# one processor, or taken from the directory --library in which that was done. Its own solver dummies, and a parallel program that checks every value (exchange.c),
# run as two jobs: on this machine, or, with --sites, at two sites of the testbed. Exit status 0: all is well.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=coupling
. "$here/../common.sh"
source='' library='' sites=''
options 'source= library= sites' "$@"
[ -d "$source/examples/solverdummies" ] || usage
source=$(cd "$source" && pwd)
need cmake cmake
need g++ g++
for part in log thread program-options test system filesystem; do
    need_file "/usr/share/doc/libboost-$part-dev" "libboost-$part-dev"
done
need_file /usr/include/eigen3 libeigen3-dev
need_file /usr/include/libxml2 libxml2-dev
install_missing
need_mpicc "$bin/mpicxx"
mkdir -p "$work"
PATH=$bin:$PATH
export PATH
library=$(mkdir -p "${library:-$work/library}" && cd "${library:-$work/library}" && pwd)
if [ ! -e "$library/libprecice.so" ]; then
    say "building preCICE in $library"
    cmake -S "$source" -B "$library" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS="-O0 -g0" -DMPI_CXX_COMPILER="$bin/mpicxx" -DBUILD_TESTING=OFF \
        -DPRECICE_FEATURE_PETSC_MAPPING=OFF -DPRECICE_FEATURE_PYTHON_ACTIONS=OFF -DPRECICE_BINDINGS_FORTRAN=OFF -DPRECICE_BUILD_TOOLS=OFF \
        -DPRECICE_CONFIGURE_PACKAGE_GENERATION=OFF >"$work/cmake.log" 2>&1 || die "cmake: see $work/cmake.log"
    cmake --build "$library" -j "$jobs" >"$work/make.log" 2>&1 || die "the library: see $work/make.log"
fi
built="-I$source/extras/bindings/c/include -I$library/src -L$library -Wl,-rpath,$library"
# shellcheck disable=SC2086 # options are words
mpicc -O1 $built "$source/examples/solverdummies/c/solverdummy.c" -lprecice -o "$work/dummy" || die "its solver dummy"
# shellcheck disable=SC2086 # options are words
mpicc -O1 -Wall -Wextra $built "$here/exchange.c" -lprecice -o "$work/exchange" || die "exchange.c"
if [ -n "$sites" ] && [ -z "${COUPLING_IN_TESTBED:-}" ]; then
    COUPLING_IN_TESTBED=1 exec isthmus-testbed run --sites 2x1 --rtt 20ms -- sh "$here/run.sh" --source "$source" --library "$library" --sites
fi
cd "$work"
bad=0
# The two sites have different homes: one user has one key at both.
if [ -n "$sites" ]; then
    keys='umask 077; mkdir -p ~/.local/state/isthmus/keys; cat >~/.local/state/isthmus/keys/own'
    od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >key
    sh -c "$keys" <key && ssh b1 "$keys" <key || die "a key for both sites"
    rm key
fi
# couple NAME PROGRAM SCHEME PROCESSES PROCESSES: two jobs, coupled by what the configuration calls SCHEME.
couple() {
    rm -rf "run-$1" && mkdir "run-$1"
    sed "s|<m2n:sockets[^>]*/>|<m2n:$3 acceptor=\"SolverOne\" connector=\"SolverTwo\" exchange-directory=\"$work/run-$1\" />|" \
        "$source/examples/solverdummies/precice-config.xml" >"run-$1/implicit.xml"
    # Values that are checked pass once.
    sed -e 's/serial-implicit/serial-explicit/' -e '/-iterations /d' -e 's/max-time-windows value="2"/max-time-windows value="20"/' "run-$1/implicit.xml" >"run-$1/explicit.xml"
    configuration=explicit.xml
    [ "$2" = exchange ] || configuration=implicit.xml
    (cd "run-$1" && exec timeout 300 isthmus run -n "$4" "$work/$2" "$configuration" SolverOne >one.out 2>&1 </dev/null) &
    other=$!
    status=0
    second="cd $work/run-$1; PATH=$PATH timeout 300 isthmus run -n $5 $work/$2 $configuration SolverTwo"
    if [ -n "$sites" ]; then
        ssh b1 "$second" >"run-$1/two.out" 2>&1 </dev/null || status=$?
    else
        sh -c "$second" >"run-$1/two.out" 2>&1 </dev/null || status=$?
    fi
    wait $other || status=$?
    case $2 in exchange) done=' 20 steps, 0 values wrong' ;; *) done='Closing C solver dummy' ;; esac
    if [ $status = 0 ] && [ "$(cat "run-$1/one.out" "run-$1/two.out" | grep -c "$done")" = $(($4 + $5)) ]; then
        say "good: $1"
    else
        say "bad: $1 (status $status): see $work/run-$1"
        bad=$((bad + 1))
    fi
}
couple dummies dummy mpi 1 1
couple dummies-multiple dummy mpi-multiple-ports 1 1
couple ranks exchange mpi 2 3
couple ranks-multiple exchange mpi-multiple-ports 2 3
[ $bad = 0 ] || exit 1
say 'all is well'
