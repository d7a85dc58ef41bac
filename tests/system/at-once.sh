#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Jobs that begin at the same moment with the same new program and the same new input, the first ones on a bare site: each gets its files, and runs.
# beside: it mostly waits, in its own network.
. "$(dirname "$0")/common.sh"
need_testbed
cat >prog.c <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("here\n");
    MPI_Finalize();
    return 0;
}
C
mpicc -O2 prog.c -o clean || fail "mpicc"
cat >run.sh <<'S'
bad=0
for round in 1 2 3; do
    # Some pieces, so that the jobs are in the middle of it together.
    cp clean prog && head -c 4000000 /dev/urandom >>prog
    head -c 3000000 /dev/urandom >input-0
    # The same content under another name.
    cp input-0 input-1
    for job in 1 2 3 4 5 6; do
        { timeout 100 isthmus run --site b1:2 --input "input-$((job % 2))" ./prog >"out-$job" 2>&1 </dev/null; echo "status $?" >>"out-$job"; } &
    done
    wait
    for job in 1 2 3 4 5 6; do
        [ "$(cat "out-$job")" = "here
here
status 0" ] || { echo "round $round, job $job:"; cat "out-$job"; bad=1; }
    done
done
left=$(ssh b1 'ls -A ~/.cache/isthmus/files | grep "^\."; ls -A ~/.cache/isthmus | grep "^isthmus-.*\."')
[ -z "$left" ] || { echo "left behind: $left"; bad=1; }
exit $bad
S
isthmus-testbed run --sites 2x1 --rtt 4ms --rate 1gbit -- sh run.sh >log 2>&1 || fail "$(cat log)"
