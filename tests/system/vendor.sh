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
    ISTHMUS_ALONE=1 timeout -k 5 60 "$launcher" $options -n 3 ./beside "$adaptor" >out 2>&1 || { cat out; fail "beside $vendor"; }
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
    # A program that hangs is named before the time of all is over.
    ISTHMUS_TEST_LIMIT=100 ISTHMUS_TEST_VENDOR_PAIRS=$pair timeout -k 5 250 sh "$top/ci/vendor.sh" tests/c/p2p.c tests/c/collectives.c tests/c/communicators.c >out 2>&1 ||
        { status=$?; cat out; fail "programs on $pair: exit status $status"; }
    tail -1 out
done
# Over two such jobs, each on one node: its processes take steps together, in memory or with the other MPI, and no message of ours passes between them.
mpicc -std=c11 -O2 "$top/tests/system/steps.c" -o steps || fail "mpicc steps.c"
mpicc -std=c11 -D_GNU_SOURCE -O2 -w -I"$top/tests/c" "$top/tests/c/nodes.c" -o nodes || fail "mpicc nodes.c"
if command -v mpicc.mpich >/dev/null 2>&1 && command -v mpicc.openmpi >/dev/null 2>&1; then
    both() {
        timeout -k 5 200 isthmus run --site one=home:2,mpi=mpiexec.mpich --site two=home:2,mpi=mpiexec.openmpi "$@"
    }
    for way in memory:node=together other:node=binomial,vendor=together messages:node=binomial; do
        name=${way%%:*}
        rules=$(echo "*@${way#*:}" | sed 's/,/;*@/g')
        ISTHMUS_STATS=1 ISTHMUS_COLL=$rules both ./steps >out 2>$name.err || { cat out $name.err; fail "steps, $name"; }
    done
    for operation in bcast allreduce; do
        met=$(counted memory.err $operation vendor) other=$(counted other.err $operation vendor) sent=$(counted messages.err $operation vendor)
        [ "$met $other" = '0 0' ] && [ "$sent" -gt 0 ] ||
            fail "$operation: $met messages with steps in memory, $other with the other MPI's, $sent without"
    done
    ISTHMUS_COLL='*@node=binomial;*@vendor=together' both ./nodes >out 2>&1 || { cat out; fail "operations in which jobs take steps with their own MPIs"; }
    echo "processes of two jobs of other MPIs take steps together, in memory and with these"
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
# Open MPI has a directory for each job, and of one that is left behind another job with the same pid dies.
mkdir temporary
for launcher in mpiexec.mpich mpiexec.openmpi "$top/target/peers/openmpi-5.0.11/bin/mpiexec"; do
    command -v "$launcher" >/dev/null 2>&1 || continue
    for end in killed:137 aborted:7 orderly:0; do
        TMPDIR=$PWD/temporary timeout -k 5 30 isthmus run --site "a=home:2,mpi=$launcher" --site b=home:1 ./ending "${end%:*}" >out 2>&1
        status=$?
        [ "$status" = "${end#*:}" ] || { cat out; fail "$end on $launcher: exit status $status"; }
        left=$(find temporary -name 'pid.*' -o -name 'ompi.[0-9]*')
        [ -z "$left" ] || fail "$end on $launcher has left $left"
    done
    echo "jobs on ${launcher#"$top/"} end as they should, and leave nothing"
done
# A job that goes on has no communicators of that MPI, so all of them can be revoked.
mpicc -std=c11 -D_GNU_SOURCE -O2 -w -I"$top/tests/c" "$top/tests/c/ft_revoke.c" -o ft_revoke || fail "mpicc ft_revoke.c"
for vendor in mpich openmpi; do
    command -v "mpiexec.$vendor" >/dev/null 2>&1 || continue
    TMPDIR=$PWD/temporary timeout -k 5 100 isthmus run --on-loss go-on --site "a=home:2,mpi=mpiexec.$vendor" ./ft_revoke >out 2>&1 || { cat out; fail "revoking over $vendor"; }
done
# An argument that is longer than the system takes is named once, before anything is started; the job's file may have it.
printf 'program = "./ending"\narguments = ["orderly", "%s"]\n[[subjob]]\nsite = "home"\ncount = 2\n' "$(head -c 200000 /dev/zero | tr '\0' x)" >long.toml
for vendor in mpich openmpi; do
    command -v "mpiexec.$vendor" >/dev/null 2>&1 || continue
    { cat long.toml && echo "mpi = \"mpiexec.$vendor\""; } >"long-$vendor.toml"
    timeout -k 5 30 isthmus run "long-$vendor.toml" >out 2>&1
    status=$?
    [ $status = 1 ] && [ "$(grep -c error: out)" = 1 ] && grep -q 'the longest of all is argument 2 with 200001' out && grep -q 'hint: put what is long into a file' out ||
        { cut -c 1-500 out; fail "an argument that is too long on $vendor: exit status $status"; }
    echo "what is too long on $vendor is named"
done
[ $tried -gt 0 ] || skip "no other MPI is installed (Debian: mpich libmpich-dev, openmpi-bin libopenmpi-dev)"
