#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One way to start processes at a site, conformance and what is its own, inside the testbed: host a1 is home, b1 the machine that
# ssh reaches, b1n2 and b1n3 are nodes of its cluster. usage: suite.sh fork|slurm|grid-engine
name=$1
here=$(cd "$(dirname "$0")" && pwd)
if [ "$2" != inside ]; then
    . "$here/../system/common.sh"
    [ "$(id -u)" = 0 ] || skip "the schedulers' daemons are started by root"
    need_testbed
    case $name in
    fork) needed= ;;
    slurm) needed='slurmctld slurmd munged sbatch srun' ;;
    grid-engine) needed='sge_qmaster sge_execd qsub qconf' ;;
    esac
    for tool in $needed; do
        command -v "$tool" >/dev/null 2>&1 || skip "no $tool: sh ci/schedulers.sh --install"
    done
    for program in ring talk; do
        mpicc -std=c11 -D_GNU_SOURCE -O2 "$here/$program.c" -o $program || fail "mpicc $program.c"
    done
    printf 'sites = [{ name = "a" }, { name = "b", hosts = 3 }]\n[link]\nround_trip = "2ms"\nrate = "unlimited"\n' >bed.toml
    isthmus-testbed run --topology bed.toml -- sh "$here/suite.sh" "$name" inside "$work"
    exit
fi

work=$3
cd "$work" || exit 1
fail() { printf 'FAIL: %s\n' "$*" >&2; exit 1; }
. "$here/conformance.sh"
case $name in
fork) conform fork b1 '' ;;
slurm)
    . "$here/slurm.sh"
    slurm_start "$work" b1 b1n2 b1n3 || fail "Slurm does not come up"
    # The nodes see nothing of the user's home on the machine that ssh reaches: everything is carried along.
    home=$(ssh b1 'echo $HOME')
    for node in b1n2 b1n3; do ssh $node "mount -t tmpfs none '$home'" || fail "cannot hide the home"; done
    conform slurm b1 ,scheduler=slurm
    start 120 --site home:2 --site b1:4,scheduler=slurm,nodes=2 ./ring
    [ $status = 0 ] && grep -q '^6 processes: ring is right$' out || { cat out err; fail "two nodes, two sites"; }
    [ "$(grep -c 'on b1n2$' out) $(grep -c 'on b1n3$' out)" = '2 2' ] || { cat out; fail "the processes are not on two nodes"; }
    check "fork and Slurm in one job, two nodes of two processes each"
    # A batch script that asks for one node only: all of its tasks, whichever command starts them.
    for command in mpiexec "isthmus run"; do
        path=$(command -v "${command%% *}")
        ssh b1 "cd '$work' && timeout 60 sbatch --wait --nodes=1 --ntasks=3 -o one.out --wrap '$path ${command#"${command%% *}"} ./ring'" >/dev/null
        grep -q '^3 processes: ring is right$' one.out || { cat one.out; fail "$command on one node of an allocation"; }
    done
    check "a batch script on one node starts all of its tasks"
    ssh b1 sinfo -h -o %T -n b1n2,b1n3 >/dev/null
    timeout -k 5 120 isthmus run --site b1:4,scheduler=slurm,nodes=2,exclusive,directive=--comment=mine ./talk sleep </dev/null >out 2>err &
    job=$!
    for try in $(seq 120); do [ "$(grep -c sleeping out)" = 4 ] && break; sleep 0.5; done
    ssh b1 squeue -h -o %D.%h.%k | grep -qx '2.NO.mine' || { ssh b1 squeue -h -o %D.%h.%k; fail "exclusive and directives"; }
    check "two whole nodes, a comment of the user's"
    # Process ids of that host alone: it has a name space of its own.
    ssh b1n3 'kill -KILL $(pgrep -x slurmstepd) $(pgrep "^isthmus")'
    wait $job
    status=$?
    [ $status = 1 ] && [ "$(grep -c error: err)" = 1 ] || { cat err; fail "a node that dies"; }
    check "a node that dies: $(grep error: err)"
    nothing_left
    ;;
grid-engine)
    . "$here/grid-engine.sh"
    grid_engine_start "$work" b1 b1n2 b1n3 || fail "Grid Engine does not come up"
    conform grid_engine b1 ,scheduler=grid-engine
    start 120 --site home:2 --site b1:4,scheduler=grid-engine,directive=-pe,directive=spread,directive=4 ./ring
    [ $status = 0 ] && grep -q '^6 processes: ring is right$' out || { cat out err; fail "two nodes, two sites"; }
    [ "$(grep -c 'on b1n2$' out) $(grep -c 'on b1n3$' out)" = '2 2' ] || { cat out; fail "the processes are not on two nodes"; }
    check "fork and Grid Engine in one job, two nodes of two processes each"
    nothing_left
    if command -v mpiexec.openmpi >/dev/null 2>&1; then
        start 120 --site b1:4,scheduler=grid-engine,directive=-pe,directive=spread,directive=4,mpi=mpiexec.openmpi ./ring
        [ $status = 0 ] && grep -q '^4 processes: ring is right$' out || { cat out err; fail "another MPI on two nodes"; }
        [ "$(grep -c 'on b1n2$' out) $(grep -c 'on b1n3$' out)" = '2 2' ] || { cat out; fail "the processes of another MPI are not on two nodes"; }
        check "Open MPI underneath, two nodes of two processes each"
        nothing_left
    fi
    ;;
esac
echo "$name conforms"
