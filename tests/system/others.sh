#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs that are linked with another MPI, under our launcher; programs of ours, under the launchers of others; and the variables from
# which a process knows its rank before MPI_Init.
. "$(dirname "$0")/common.sh"
have() { command -v "$1" >/dev/null 2>&1; }
say() { printf '%s\n' "$*"; }
have isthmus || skip "no isthmus in PATH"
build=$(dirname "$(dirname "$(command -v isthmus)")")
cat >ring.c <<'END'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("rank %d of %d\n", rank, size);
    MPI_Finalize();
    return 0;
}
END
"$build/bin/mpicc" ring.c -o ours || exit 1
tried=0
# refuses WORDS COMMAND...: it fails and says so; no process believes itself alone.
refuses() {
    words=$1
    shift
    "$@" >out 2>&1 && { cat out; fail "status 0: $*"; }
    grep -qF "$words" out || { cat out; fail "does not say '$words': $*"; }
    ! grep -q "of 1" out || grep -q "rank 0 of 1;" out || { cat out; fail "a process ran alone: $*"; }
    tried=$((tried + 1))
}
for mpi in openmpi mpich; do
    have mpicc.$mpi || { say "skipped: $mpi: no mpicc.$mpi" && continue; }
    case $mpi in openmpi) name="Open MPI" extra="--allow-run-as-root --oversubscribe" ;; *) name=MPICH extra= ;; esac
    mpicc.$mpi ring.c -o theirs-$mpi || fail "mpicc.$mpi"
    refuses "is linked with $name" "$build/bin/mpiexec" -n 2 "./theirs-$mpi"
    # What runs inside a shell is known when nobody has called us.
    "$build/bin/mpiexec" -n 2 sh -c "./theirs-$mpi" >out 2>&1 || { cat out; fail "sh -c ./theirs-$mpi"; }
    grep -q "none of the 2 processes called MPI_Init of Isthmus.*'./theirs-$mpi' is linked with $name" out || { cat out; fail "no note of $mpi"; }
    # So is what fails because it is alone, and what runs beside a program of ours.
    "$build/bin/mpiexec" -n 2 sh -c "./theirs-$mpi; exit 3" >out 2>&1
    grep -q "none of the 2 processes called MPI_Init of Isthmus.*'./theirs-$mpi' is linked with $name" out || { cat out; fail "no note of $mpi that failed"; }
    "$build/bin/mpiexec" -n 2 sh -c "./ours && ./theirs-$mpi" >out 2>&1 || { cat out; fail "./ours && ./theirs-$mpi"; }
    grep -q "called MPI_Init of Isthmus, but './theirs-$mpi' is linked with $name" out || { cat out; fail "no note of $mpi beside ours"; }
    ISTHMUS_ALONE=1 "$build/bin/mpiexec" -n 2 "./theirs-$mpi" >out 2>&1 || { cat out; fail "ISTHMUS_ALONE, $mpi"; }
    [ "$(grep -c '^rank 0 of 1$' out)" = 2 ] || { cat out; fail "ISTHMUS_ALONE, $mpi"; }
    if have mpiexec.$mpi; then
        # shellcheck disable=SC2086 # words
        refuses "isthmus run -n 2 ./ours" mpiexec.$mpi $extra -n 2 ./ours
        # shellcheck disable=SC2086 # words
        refuses "has started isthmus 2 times" mpiexec.$mpi $extra -n 2 "$build/bin/isthmus" run -n 2 ./ours
        # shellcheck disable=SC2086 # words
        mpiexec.$mpi $extra -n 1 "$build/bin/isthmus" run -n 2 ./ours >out 2>&1 || { cat out; fail "isthmus under $mpi"; }
        # shellcheck disable=SC2086 # words
        mpiexec.$mpi $extra -n 1 ./ours >out 2>&1 && grep -q '^rank 0 of 1$' out || { cat out; fail "one process under $mpi"; }
        # shellcheck disable=SC2086 # words
        ISTHMUS_ALONE=1 mpiexec.$mpi $extra -n 2 ./ours >out 2>&1 || { cat out; fail "ISTHMUS_ALONE under $mpi"; }
    fi
done
# From an archive: the dynamic linker knows nothing of it.
archive=$(cc -print-file-name=libmpich.a)
if have mpicc.mpich && [ -f "$archive" ]; then
    others=$(ldd "$(cc -print-file-name=libmpich.so)" | awk '/hwloc|libuc|fabric|libpmi/ { print $3 }')
    # shellcheck disable=SC2086 # words
    mpicc.mpich -c ring.c -o ring.o && cc ring.o "$archive" $others -lm -o static-mpich || fail "a static program of MPICH"
    refuses "is linked with MPICH (statically)" "$build/bin/mpiexec" -n 2 ./static-mpich
    echo ./static-mpich >plain && chmod +x plain
    "$build/bin/mpiexec" -n 2 ./plain >out 2>&1 || { cat out; fail "a script without #!"; }
    grep -q "none of the 2 processes called MPI_Init of Isthmus.*'./static-mpich' is linked with MPICH (statically)" out || { cat out; fail "no note of a static program"; }
else
    say "skipped: no archive of MPICH"
fi
refuses "isthmus run --from slurm -n 4 ./ours" env SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=1 ./ours
env SLURM_JOB_ID=7 SLURM_NTASKS=4 SLURM_PROCID=0 ./ours >out 2>&1 || { cat out; fail "a batch script is alone"; }
"$build/bin/mpiexec" -n 2 sh -c 'echo $OMPI_COMM_WORLD_RANK $OMPI_COMM_WORLD_SIZE $OMPI_COMM_WORLD_LOCAL_RANK $MPI_LOCALNRANKS $PMI_RANK' | sort >out
printf '0 2 0 2 0\n1 2 1 2 1\n' | diff - out || fail "ranks before MPI_Init"
# A copy of a process has its rank and its memory: where it took part in an operation, the process itself waited for ever.
cat >copied.c <<'END'
#include <mpi.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (fork() == 0) {
        int over = 0;
        if (argc > 1)
            MPI_Barrier(MPI_COMM_WORLD);
        /* A program that finalizes what is not finalized does nothing here. */
        MPI_Finalized(&over);
        return !over;
    }
    int status = 1;
    wait(&status);
    if (argc == 1 && status)
        MPI_Abort(MPI_COMM_WORLD, 9);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
END
"$build/bin/mpicc" copied.c -o copied || exit 1
"$build/bin/mpiexec" -n 2 ./copied >out 2>&1 || { cat out; fail "a copy that does not call MPI"; }
refuses "called in a copy that fork made" timeout 60 "$build/bin/mpiexec" -n 2 ./copied calls
# Programs without MPI are nobody's business.
"$build/bin/mpiexec" -n 2 true 2>out && [ ! -s out ] || { cat out; fail "a note about true"; }
# What users of other launchers type by habit.
PATH=$build/bin:$PATH
# lines N OPTIONS...: so many processes run.
lines() {
    wanted=$1
    shift
    isthmus run "$@" echo here >out 2>err </dev/null || { cat out err; fail "isthmus run $*"; }
    [ "$(grep -c '^here$' out)" = "$wanted" ] || { cat out err; fail "not $wanted processes: isthmus run $*"; }
}
own=$(uname -n)
printf 'localhost:2\n127.0.0.1\n%s\n' "$own" >hosts
for habit in '-np 2' --np=2 '-N 2' '-ppn 2' '-npernode 2' '-n 2 -N 2' '-H localhost:2' "--host $own,127.0.0.1" '--site localhost:2' '--site [::1]:2' "--site $own:2" \
    '-n 2 -x PATH -genv A B -wdir / --timeout 60' '-n 2 --stdin none'; do
    # shellcheck disable=SC2086 # words
    lines 2 $habit
done
lines 4 --job hosts
lines 1 --mca btl tcp -v -soft 2
[ "$(grep -c 'has no effect' err)" = 3 ] || { cat err; fail "options without effect are not named"; }
refuses 'mpiexec -configfile some' isthmus run -configfile some
refuses 'queue=Q' isthmus run -p debug ./ours
refuses 'colon: --site b1:4' isthmus run --site b1=4 ./ours
refuses '1 more than there is room for' isthmus run -n 3 -ppn 2 ./ours
# One process of a job is one MPI program.
refuses 'has called MPI_Init before' isthmus run -n 2 sh -c './ours && ./ours'
# A program that leaves by way of MPI_Finalize, as mpi4py does after an exception, while the others count on it.
cat >leaves.c <<'END'
#include <mpi.h>
#include <stdlib.h>
static void finalize(void) { MPI_Finalize(); }
int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    atexit(finalize);
    if (rank == 1) exit(3);
    if (argc == 1) return MPI_Barrier(MPI_COMM_WORLD);
    MPI_Group all;
    MPI_Comm made;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    return MPI_Comm_create_group(MPI_COMM_WORLD, all, rank, &made);
}
END
mpicc leaves.c -o leaves || fail "mpicc leaves.c"
refuses 'will wait in MPI_Barrier for ever: rank 1 called MPI_Finalize' isthmus run -n 3 ./leaves
# Rank 2 has given another tag than rank 0, which therefore is through with it.
refuses 'rank 2 will wait in MPI_Comm_create_group for ever: ranks 0-1 called MPI_Finalize' isthmus run -n 3 ./leaves makes
say "$tried starts refused"
