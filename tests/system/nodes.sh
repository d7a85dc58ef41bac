#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Collective operations over several nodes of several processes each: right with steps together in the memory of each node and with messages
# there, in whole and in small pieces; no message inside a node where such steps are taken; an error for members that do not call the same;
# and an end for all when one process is killed.
. "$(dirname "$0")/common.sh"
need_testbed
for program in nodes together; do
    mpicc -std=c11 -D_GNU_SOURCE -O2 -w -I"$top/tests/c" "$top/tests/c/$program.c" -o "$program" || fail "mpicc $program.c"
done
mpicc -std=c11 -D_GNU_SOURCE -O2 "$top/tests/system/killed.c" -o killed || fail "mpicc killed.c"
cat >some.c <<'C'
#include <mpi.h>
#include <stddef.h>
int main(void)
{
    int one = 1, sum;
    static char data[300000];
    MPI_Init(NULL, NULL);
    for (int i = 0; i < 2; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 10; i++) {
        MPI_Bcast(data, sizeof data, MPI_CHAR, i % 8, MPI_COMM_WORLD);
        MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM, i % 8, MPI_COMM_WORLD);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (sum != 8)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return 0;
}
C
mpicc -O2 some.c -o some || fail "mpicc some.c"
# On each node the last process calls with another length than the others, after some operations alike.
cat >apart.c <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    static double data[64], sums[64];
    int rank, code, length;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < 8; i++) {
        MPI_Allreduce(data, sums, 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Bcast(data, 8, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    }
    int count = rank % 2 ? 16 : 8;
    if (argv[1][0] == 'a')
        code = MPI_Allreduce(data, sums, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    else
        code = MPI_Bcast(data, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (code) {
        MPI_Error_string(code, text, &length);
        printf("%s\n", text);
        fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Finalize();
    return 0;
}
C
mpicc -O2 apart.c -o apart || fail "mpicc apart.c"
for operation in allreduce bcast; do
    ISTHMUS_COLL='*@node=together' timeout -k 5 30 isthmus run --site one=home:2 --site two=home:2 ./apart $operation >out 2>&1
    status=$?
    [ $status = 3 ] && grep -q 'call different operations: rank' out || { cat out; fail "$operation with unlike lengths on a node: exit status $status"; }
done

cat >run.sh <<'S'
set -eu
sites=$*
over() { # PROGRAM: at each site
    set --
    for site in $sites; do set -- "$@" --site "$site"; done
    isthmus run "$@" "$WORK/$program" >out 2>err </dev/null || { cat out err; exit 1; }
}
program=nodes
over
program=together
ISTHMUS_COLL='*@node=together' over
program=nodes
ISTHMUS_COLL='*=shared,seg=2K,leaders=2; *@node=together' over
ISTHMUS_COLL='*=tree,seg=1K,lanes=3; *@node=together' over
ISTHMUS_COLL='*@node=binomial' over
S
cat >count.sh <<'S'
set -eu
ISTHMUS_COLL="*@node=$1" ISTHMUS_STATS=1 isthmus run --site home:4 --site b1:4 "$WORK/some" >"$1.out" 2>"$1.err" </dev/null || { cat "$1.out" "$1.err"; exit 1; }
S
cat >kill.sh <<'S'
set -u
# at RANK COMMAND...: on its machine.
at() {
    rank_at=$1
    shift
    if [ "$rank_at" -lt 4 ]; then "$@"; else ssh b1 "$@"; fi
}
for rank in 1 4 6; do
    rm -f pid.*
    timeout -k 5 60 isthmus run --site home:4 --site b1:4 "$WORK/killed" >out 2>&1 </dev/null &
    job=$!
    tries=0
    while [ "$(cat pid.* 2>/dev/null | wc -l)" -lt 8 ]; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || { cat out; echo "the ranks did not start"; exit 1; }
        sleep 0.1
    done
    sleep 0.3
    at "$rank" kill -9 "$(cat "pid.$rank")" || { echo "rank $rank was gone before it was killed"; exit 1; }
    wait $job
    status=$?
    [ $status -ne 0 ] && [ $status -ne 124 ] || { cat out; echo "exit status $status after rank $rank was killed"; exit 1; }
    for other in 0 1 2 3 4 5 6 7; do
        ! at "$other" kill -0 "$(cat "pid.$other")" 2>/dev/null || { echo "rank $other is still there after rank $rank was killed"; exit 1; }
    done
done
S
WORK=$work
export WORK
isthmus-testbed run --sites 2x1 --rtt 1ms -- sh run.sh home:4 b1:4 || fail "2 machines of 4 processes"
isthmus-testbed run --sites 2x2 --rtt 1ms -- sh run.sh home:3 a2:1 b1:2 b2:2 || fail "4 machines"
for form in together binomial; do
    isthmus-testbed run --sites 2x1 --rtt 1ms -- sh count.sh $form || fail "counting with $form"
done
for operation in bcast reduce allreduce; do
    met=$(counted together.err $operation node) sent=$(counted binomial.err $operation node)
    [ "$met" = 0 ] && [ "$sent" -gt 0 ] || fail "$operation: $met messages inside nodes, $sent without steps together"
done
isthmus-testbed run --sites 2x1 --rtt 1ms -- sh kill.sh || fail "a process was killed"
echo "processes take steps together on their nodes, and end when one is killed"
