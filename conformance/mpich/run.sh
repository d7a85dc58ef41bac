#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The MPICH project's test suite against Isthmus.
#
#   MPICH_SUITE=RUNNER sh conformance/mpich/run.sh [--fortran] [--sites] [--rtt TIME] [--baseline TSV] [--dirs A,B] [RUNNER OPTION...]
#
# RUNNER is a script that builds and runs the suite (Debian's source package of mpich has it under test/mpi) with any mpicc and
# mpiexec: options --mpicc --mpiexec --mpifort --dirs --only-passing --timeout --out; one row per test in --out: directory, test,
# ranks, arguments, result (pass, fail ...). --sites: the ranks are spread over two testbed sites. --baseline: only the tests that passed there.
# --fortran: the directories f77, f90 and f08 with mpifort in the place of those in C; ISTHMUS_FC chooses the compiler.
# Tests listed in skips.tsv count as skipped, with the reason given there. Exit status 0: all others passed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=mpich-suite
. "$here/../common.sh"

sites= limit=60 rtt=2ms baseline= mpifort=none
dirs=attr,basic,coll,comm,datatype,errhan,errors,group,info,init,pt2pt,rma,topo,threads,part,session,mpi_t,io,spawn
while [ $# -gt 0 ]; do
    case $1 in
    --fortran) mpifort=$bin/mpifort dirs=f77,f90,f08 ;;
    --sites) sites=-sites limit=600 ;;
    --rtt) rtt=$2; shift ;;
    --baseline) baseline=$2; shift ;;
    --dirs) dirs=$2; shift ;;
    *) break ;;
    esac
    shift
done
[ -n "${MPICH_SUITE:-}" ] || usage
need gcc gcc
need python3 python3
install_missing
need_mpicc "$bin/mpicc"
mkdir -p "$work"
results=$work/results$sites.tsv
# Results of an earlier run are no results of this one.
case " $* " in
*" --resume "*) ;;
*) rm -f "$results" ;;
esac
export ISTHMUS_TEST_BIN="$bin"
set -- --mpicc "$bin/mpicc" --mpifort "$mpifort" --dirs "$dirs" --timeout "$limit" --out "$results" ${baseline:+--only-passing "$baseline"} "$@"
if [ -n "$sites" ]; then
    "$MPICH_SUITE" --mpiexec "$bin/mpiexec" --build-only "$@" >&2 || true
    set -- "$bin/isthmus-testbed" run --sites 2x1 --rtt "$rtt" --rate 1gbit --private-tmp -- "$MPICH_SUITE" --mpiexec "$here/../spread" "$@"
else
    set -- "$MPICH_SUITE" --mpiexec "$bin/mpiexec" "$@"
fi
"$@" </dev/null >&2 || true
[ -s "$results" ] || die "the runner left no results"
awk -F '\t' -f "$here/verdict.awk" "$here/skips.tsv" "$results"
