#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ROMIO's own tests (src/mpi/romio/test of MPICH), built with our mpicc from Debian's source package of mpich.
#
#   sh conformance/romio/run.sh [--sites] [--met] [--limit SECONDS] [TEST...]
#
# Runs the programs of list.txt as ROMIO's runtests does. --sites: each over two testbed sites without a common directory. --met: in two jobs that
# have met (../met). Failures that are expected stand with their reasons in expected.tsv. All others: exit status 1.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=romio
. "$here/../common.sh"
. "$here/../listed.sh"
listed_options met "$@"
need gcc gcc
need dpkg-source dpkg-dev
install_missing
need_mpicc "$bin/mpicc"
listed_met
build() {
    tests=$work/source/src/mpi/romio/test
    # Two programs are made by configure, which finds out how numbers of 64 bits are printed.
    for made in misc large_file; do
        sed 's/%@LL@/%lld/g' "$tests/$made.c.in" >"$work/build/$made.c"
    done
    cp "$tests"/*.c "$tests/test_hintfile" "$work/build"
    # MPI_LB and MPI_UB are no types of MPI 3; the header for old sources knows them where MPI_Type_struct is called.
    sed -i s/MPI_Type_create_struct/MPI_Type_struct/ "$work/build"/*.c
    for name in $(awk '!/^#/ && NF { print $1 }' "$here/list.txt"); do
        # shellcheck disable=SC2086 # flags are words
        "$bin/mpicc" -O1 -w -std=gnu99 $met_flags -DMPIO_Request=MPI_Request -DMPIO_Wait=MPI_Wait -DMPIO_Test=MPI_Test -DISTHMUS_MPI1 -I"$tests" \
            "$work/build/$name.c" $met_object -o "$work/build/$name" || return
    done
}
build_once mpich
listed_inside
# Its programs end with 0 whatever they found, so what they print is judged.
listed_good() { [ "$2" = 0 ] && ! grep -vE 'No Errors|not counted as an error' "$1" | grep -qiE 'error|should be|incorrect|abort|unexpected|fail'; }
listed_run "$work/build"
