#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A machine's own MPI in one process with ours: for each that is installed an adaptor is compiled, and a program that is linked to our
# library uses both, started by the other's mpiexec.
. "$(dirname "$0")/common.sh"
command -v mpicc >/dev/null 2>&1 || skip "no mpicc in PATH"
mpicc -std=c11 -O2 -Wall -Wextra "$top/tests/vendor/beside.c" -o beside -ldl || fail "mpicc beside.c"
tried=0
for vendor in mpich openmpi mpich-5.0.2 mpich-5.0.2-abi openmpi-5.0.11; do
    compiler=mpicc.$vendor launcher=mpiexec.$vendor
    tree=$top/target/peers/${vendor%-abi}
    if [ -d "$tree" ]; then
        compiler=$tree/bin/mpicc launcher=$tree/bin/mpiexec
        case $vendor in *-abi) compiler=${compiler}_abi ;; esac
    fi
    if ! command -v "$compiler" >/dev/null 2>&1; then
        echo "not installed, not tried: $vendor"
        continue
    fi
    case $vendor in openmpi*) options='--allow-run-as-root --oversubscribe' ;; *) options= ;; esac
    isthmus adaptor build --mpicc "$compiler" --directory adaptors >built || fail "adaptor for $vendor"
    adaptor=$(sed 's/ (.*//' built)
    # shellcheck disable=SC2086 # options are words
    timeout -k 5 60 "$launcher" $options -n 3 ./beside "$adaptor" >out 2>&1 || { cat out; fail "beside $vendor"; }
    [ "$(grep -c 'both work' out)" = 3 ] || { cat out; fail "not all processes of $vendor came to the end"; }
    isthmus adaptor build --mpicc "$compiler" --directory adaptors | grep -q 'there already' || fail "built twice for $vendor"
    echo "$vendor: $(head -1 out)"
    tried=$((tried + 1))
done
isthmus adaptor build --mpicc /no/such/mpicc --directory adaptors >out 2>&1 && fail "a compiler that is not there"
grep -q 'cannot be run' out || { cat out; fail "no reason given"; }
# Subjobs on top of them: a few programs, half of the processes on each, or all on one; then the ends of jobs.
for pair in mpich:openmpi mpich:mpich; do
    command -v "mpicc.${pair%:*}" >/dev/null 2>&1 && command -v "mpicc.${pair#*:}" >/dev/null 2>&1 || continue
    ISTHMUS_VENDOR_PAIRS=$pair timeout -k 5 150 sh "$top/ci/vendor.sh" tests/c/p2p.c tests/c/collectives.c tests/c/communicators.c tests/c/nodes.c >out 2>&1 ||
        { cat out; fail "programs on $pair"; }
    tail -1 out
done
# Over two such jobs, each on one node: its processes take steps together in memory, and no message of the other MPI.
cat >steps.c <<'EOF'
#include <mpi.h>
#include <stddef.h>
int main(void)
{
    int one = 1, sum;
    static char data[300000];
    MPI_Init(NULL, NULL);
    for (int i = 0; i < 2; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 5; i++) {
        MPI_Bcast(data, sizeof data, MPI_CHAR, i % 4, MPI_COMM_WORLD);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (sum != 4)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return 0;
}
EOF
mpicc steps.c -o steps || fail "mpicc steps.c"
if command -v mpicc.mpich >/dev/null 2>&1 && command -v mpicc.openmpi >/dev/null 2>&1; then
    for form in together binomial; do
        ISTHMUS_STATS=1 ISTHMUS_COLL="*@node=$form" timeout -k 5 60 isthmus run --site one=home:2,mpi=mpiexec.mpich \
            --site two=home:2,mpi=mpiexec.openmpi ./steps >out 2>$form.err || { cat out $form.err; fail "steps, $form"; }
    done
    for operation in bcast allreduce; do
        met=$(counted together.err $operation vendor) sent=$(counted binomial.err $operation vendor)
        [ "$met" = 0 ] && [ "$sent" -gt 0 ] || fail "$operation: $met messages of the machines' MPIs, $sent without steps together"
    done
    echo "processes of two jobs of other MPIs take steps together on their nodes"
fi
cat >ending.c <<'EOF'
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1 && argv[1][0] == 'k')
        raise(SIGKILL);
    if (rank == 1 && argv[1][0] == 'a')
        MPI_Abort(MPI_COMM_WORLD, 7);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
EOF
mpicc ending.c -o ending || fail "mpicc ending.c"
for vendor in mpich openmpi; do
    command -v "mpiexec.$vendor" >/dev/null 2>&1 || continue
    for end in killed:137 aborted:7 orderly:0; do
        timeout -k 5 30 isthmus run --site "a=home:2,mpi=mpiexec.$vendor" --site b=home:1 ./ending "${end%:*}" >out 2>&1
        status=$?
        [ "$status" = "${end#*:}" ] || { cat out; fail "$end on $vendor: exit status $status"; }
    done
    echo "jobs on $vendor end as they should"
done
[ $tried -gt 0 ] || skip "no other MPI is installed (Debian: mpich libmpich-dev, openmpi-bin libopenmpi-dev)"
