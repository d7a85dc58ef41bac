#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The NAS Parallel Benchmarks, judged by their own verification.
#
#   sh conformance/npb/run.sh [--source DIRECTORY] [--sites] [--limit SECONDS] [BENCHMARK...]
#
# --source: NPB3.4-MPI, unpacked (or NPB_SOURCE). Builds its eight benchmarks below target/npb and runs those of list.txt. Without: EP, IS and DT of
# Debian's source package simgrid (simgrid.txt). --sites: over two testbed sites. Failures that are expected stand in expected.tsv.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=npb
. "$here/../common.sh"
. "$here/../listed.sh"
source=
listed_options source= "$@"
if [ -n "$source" ]; then
    NPB_SOURCE=$(cd "$source" && pwd)
    export NPB_SOURCE
fi
need gcc gcc
need make make
[ -n "${NPB_SOURCE:-}" ] || need dpkg-source dpkg-dev
[ -z "${NPB_SOURCE:-}" ] || need gfortran gfortran
install_missing
need_mpicc "$bin/mpicc"
mkdir -p "$work"

# build_npb NAME...: NPB as it comes. Its random numbers are written in an old form of hexadecimal constants.
build_npb() {
    mkdir -p "$work/build/npb" && cp -R "$NPB_SOURCE/." "$work/build/npb" && cd "$work/build/npb" && mkdir -p bin && rm -f bin/* || return 1
    sed -e "s|^MPIFC.*|MPIFC = $bin/mpif90|" -e "s|^MPICC.*|MPICC = $bin/mpicc|" -e 's|^FFLAGS.*|FFLAGS = -O1 -w -fallow-invalid-boz|' \
        -e 's|^CFLAGS.*|CFLAGS = -O1 -w|' config/make.def.template >config/make.def || return 1
    for name; do
        kind=
        case $name in
        *.fortran_io) kind=SUBTYPE=fortran ;;
        *.mpi_io_full) kind=SUBTYPE=full ;;
        *.mpi_io_simple) kind=SUBTYPE=simple ;;
        esac
        class=${name#*.}
        # shellcheck disable=SC2086 # a word or none
        make "${name%%.*}" "CLASS=${class%%.*}" $kind || return 1
    done
}

# SimGrid's, with the few words of its own taken for what they are on a real machine.
build_simgrid() {
    [ -d "$work/source" ] || debian_source simgrid
    mkdir -p "$work/build/simgrid/smpi" "$work/build/simgrid/simgrid" && cp "$work/source/examples/smpi/NAS"/*.[ch] "$work/build/simgrid" &&
        cd "$work/build/simgrid" || return 1
    cat >smpi/mpi.h <<'HEADER'
#include <mpi.h>
#include <stdlib.h>
/* DT reads memory that it never wrote: its sums are right where that happens to be zero. */
#define malloc(size) calloc(1, size)
#define SMPI_SHARED_MALLOC malloc
#define SMPI_SHARED_FREE free
#define SMPI_SAMPLE_GLOBAL(first, condition, next, ...) for (first; condition; next)
#define TRACE_smpi_set_category(name)
HEADER
    : >simgrid/instr.h
    for name; do
        more=
        [ "$name" != dt ] || more=DGraph.c
        # shellcheck disable=SC2086 # a word or none
        "$bin/mpicc" -O1 -w -I. "$name.c" $more nas_common.c -o "$name" -lm || return 1
    done
}

if [ -n "${NPB_SOURCE:-}" ]; then
    origin=npb programs=$work/build/npb/bin listed_list=$here/list.txt
else
    origin=simgrid programs=$work/build/simgrid listed_list=$here/simgrid.txt
fi
if ! cmp -s "$bin/../include/mpi.h" "$work/$origin.h"; then
    rm -rf "$work/build/$origin"
    say "building with $bin/mpicc"
    # shellcheck disable=SC2046 # names
    if ! (build_$origin $(awk '!/^#/ && NF { print $1 }' "$listed_list" | sort -u)) >"$work/build.log" 2>&1 </dev/null; then
        grep -iE 'error|\*\*\*' "$work/build.log" | head -n 20 >&2
        die "the build failed; all of it: $work/build.log"
    fi
    cp "$bin/../include/mpi.h" "$work/$origin.h"
fi
listed_inside
# What verifies itself is judged by that alone: dt ends with 1 when all is well.
listed_good() { grep -q 'Verification *= *SUCCESSFUL' "$1" && { [ "$2" = 0 ] || [ "${1##*/}" = dt.log ]; }; }
listed_run "$programs"
