#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One file for a job of two sites that have no directory in common: everything that tests/c does with files, from both sites; where the file is,
# and what names of sites do.
. "$(dirname "$0")/common.sh"
need_testbed
for program in files file_forms; do
    mpicc -std=c11 -D_GNU_SOURCE -O2 -w -I"$top/tests/c" "$top/tests/c/$program.c" -o "$program" || fail "mpicc $program.c"
done
cat >where.c <<'C'
#include "files.h"
/* Every process writes its rank through the name that it is given; all read it back. */
int main(int argc, char **argv)
{
    int rank, size, i, value;
    MPI_File file;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_File_open(MPI_COMM_WORLD, argv[argc - 1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    value = rank;
    OK(MPI_File_write_at(file, rank * sizeof value, &value, 1, MPI_INT, &status));
    OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    for (i = 0; i < size; i++) {
        OK(MPI_File_read_at(file, i * sizeof value, &value, 1, MPI_INT, &status));
        CHECK(value == i);
    }
    OK(MPI_File_close(&file));
    MPI_Finalize();
    return 0;
}
C
mpicc -std=c11 -D_GNU_SOURCE -O2 -w -I"$top/tests/c" where.c -o where || fail "mpicc where.c"
cat >run.sh <<'S'
set -eu
# A directory that every host has for itself.
export TMPDIR=/tmp
job="isthmus run --site home:2 --site b1:2"
$job ./files
$job ./file_forms
$job ./where /tmp/at-home
test "$(od -An -tu4 /tmp/at-home | tr -s ' ')" = " 0 1 2 3"
! ssh b1 test -e /tmp/at-home
$job ./where isthmus://b1/tmp/at-b1
test ! -e /tmp/at-b1
test "$(ssh b1 od -An -tu4 /tmp/at-b1 | tr -s ' ')" = " 0 1 2 3"
echo all is well
S
isthmus-testbed run --sites 2x1 --rtt 4ms --private-tmp -- sh run.sh >run.out 2>&1 || { cat run.out; fail "the jobs"; }
grep -q '^all is well$' run.out || fail "the jobs: $(cat run.out)"
echo "one file serves two sites that have no directory in common"
