#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A setting means the same under the launcher and in a program alone, and one that means nothing is told once.
. "$(dirname "$0")/common.sh"
cat >prog.c <<'C'
#include <mpi.h>
int main(int argc, char **argv)
{
    MPI_Info info;
    int mine = 1, sum;
    MPI_Init(&argc, &argv);
    MPI_Info_create(&info);
    for (int i = 0; i < 2; i++) {
        MPI_Info_set(info, "isthmus_clas", "bulk");
        MPI_Info_set(info, "isthmus_class", "bulk");
        MPI_Info_set(info, "cb_nodez", "1");
    }
    MPI_Info_free(&info);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
C
mpicc prog.c -o prog || fail "mpicc"
# run NAME COMMAND...: succeeds; what it says is in NAME.
run() {
    name=$1; shift
    timeout -k 5 60 env "$@" >out 2>"$name" </dev/null || { cat out "$name"; fail "$name: status $?"; }
}
# lines NUMBER PATTERN NAME: as many lines of it match.
lines() { [ "$(grep -c -e "$2" "$3")" = "$1" ] || { cat "$3"; fail "$3: '$2' stands there not $1 times"; }; }

for on in 1 yes true on; do
    run alone ISTHMUS_STATS=$on ./prog
    lines 1 'allreduce: 1 calls' alone
    run launched ISTHMUS_STATS=$on isthmus run -n 4 ./prog
    lines 1 '^allreduce' launched
done
for off in 0 no false off ''; do
    run alone ISTHMUS_STATS=$off ./prog
    run launched ISTHMUS_STATS=$off isthmus run -n 4 ./prog
    lines 0 allreduce alone
    lines 0 allreduce launched
    lines 0 ISTHMUS_ alone
done

for words in ./prog 'isthmus run -n 4 ./prog' 'isthmus run --site one=home:2 --site two=home:2 ./prog'; do
    # shellcheck disable=SC2086
    run wrong ISTHMUS_STTATS=1 ISTHMUS_AWAY=5x ISTHMUS_TEST_OF_OURS=1 ISTHMUS_LEASE=7 $words
    lines 1 'ISTHMUS_STTATS is not a setting; did you mean ISTHMUS_STATS?' wrong
    lines 1 'ISTHMUS_AWAY is "5x"; it takes seconds from 1 to 1000000. The default is used: 300.' wrong
    lines 2 'ISTHMUS_' wrong
    lines 1 'the info key isthmus_clas has no meaning; did you mean isthmus_class?' wrong
    lines 1 'info key' wrong
done
run env isthmus run -n 2 --env ISTHMUS_TRUNK_STREAMS=65 ./prog
lines 1 'ISTHMUS_TRUNK_STREAMS is "65"; it takes a number from 1 to 64' env
