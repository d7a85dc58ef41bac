#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Subjobs on a machine's own MPI over two nodes of Slurm, for each such MPI that is installed: where the processes are, right results of
# communicators over both nodes, over one, and over two sites; how such jobs end; and what is said when that MPI places processes in
# another way. MPICH over UCX, the only way of Debian's 4.0, is left out: alone, without us, it does not come to an end between these nodes.
here=$(cd "$(dirname "$0")" && pwd)
programs='p2p collectives communicators nodes together'
if [ "$1" != inside ]; then
    . "$here/../system/common.sh"
    [ "$(id -u)" = 0 ] || skip "the schedulers' daemons are started by root"
    need_testbed
    for tool in slurmctld slurmd munged sbatch srun; do
        command -v "$tool" >/dev/null 2>&1 || skip "no $tool: sh ci/schedulers.sh --install"
    done
    mpicc -std=c11 -D_GNU_SOURCE -O2 "$here/ring.c" -o ring || fail "mpicc ring.c"
    mpicc -std=c11 -D_GNU_SOURCE -O2 "$here/ends.c" -o ends || fail "mpicc ends.c"
    mpicc -std=c11 -O2 "$here/../system/steps.c" -o steps || fail "mpicc steps.c"
    for program in $programs; do
        mpicc -std=c11 -D_GNU_SOURCE -O2 -w -I"$top/tests/c" "$top/tests/c/$program.c" -o "$program" -lm || fail "mpicc $program.c"
    done
    printf 'sites = [{ name = "a" }, { name = "b", hosts = 3 }]\n[link]\nround_trip = "2ms"\nrate = "unlimited"\n' >bed.toml
    isthmus-testbed run --topology bed.toml -- sh "$here/vendor.sh" inside "$work" "$top"
    exit
fi

work=$2 peers=$3/target/peers
cd "$work" || exit 1
fail() { printf 'FAIL: %s\n' "$*" >&2; exit 1; }
. "$here/conformance.sh"
. "$here/slurm.sh"
. "$here/../system/counted.sh"
slurm_start "$work" b1 b1n2 b1n3 || fail "Slurm does not come up"
home=$(ssh b1 'echo $HOME')
# Hosts of the testbed share /tmp and have the same process ids, which daemons of Open MPI 5 make names of.
for node in b1n2 b1n3; do ssh $node "mount -t tmpfs none '$home' && mount -t tmpfs none /mnt" || fail "cannot hide the home"; done

# The agent of the second node is killed: its processes are gone soon, the others when the job ends, which says where that was.
# Before that they all have left MPI_Init, though none of them goes on to call MPI. lose_agent COUNT OPTIONS...: of so many processes.
lose_agent() {
    count=$1
    shift
    # shellcheck disable=SC2086 # options are words
    timeout -k 5 60 isthmus run "$@" $fabric ./ends lasting >out 2>err </dev/null &
    job=$!
    for try in $(seq 100); do [ "$(wc -l <out)" = "$count" ] && break; sleep 0.2; done
    [ "$(wc -l <out)" = "$count" ] || { cat out err; fail "$name: the processes did not start"; }
    agent=$(ssh b1n3 "pgrep -f '^[^ ]*isthmus[^ ]* node '" | head -n 2)
    [ "$(echo "$agent" | wc -w)" = 1 ] && ssh b1n3 "kill -KILL $agent" || { ssh b1n3 'ps axww -o pid,args'; fail "$name: agents on the second node: $agent"; }
    for try in $(seq 50); do ssh b1n3 'pgrep -x ends >/dev/null' || break; sleep 0.1; done
    ssh b1n3 'pgrep -x ends' && fail "$name: after their agent was killed there are processes"
    wait $job
    status=$?
    [ $status = 1 ] && grep -q 'error: .*b1n3' err || { cat err; fail "$name: an agent that is killed, exit status $status"; }
    echo "ok $name: an agent that is killed: $(grep error: err)"
}

# An mpiexec that starts the processes of its own node, and ends before those of the other begin.
begin_here_only() {
    mkdir -p "only-$name"
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$(dirname "$mpiexec")/$(basename "$mpiexec" | sed 's/mpiexec/mpicc/')" >"only-$name/mpicc"
    printf '#!/bin/sh\nset -- $(echo "$@" | sed "s/-n 4/-n 2/; s/\\(-host [^, ]*\\),[^ ]*/\\1/")\n"%s" "$@" &\nsleep 2\n' "$mpiexec" >"only-$name/mpiexec"
    chmod +x "only-$name/mpicc" "only-$name/mpiexec"
    # shellcheck disable=SC2086 # options are words
    start 60 --site "b1:4,scheduler=slurm,nodes=2,mpi=$work/only-$name/mpiexec" $fabric ./ring
    [ $status = 1 ] && grep -q "error: .*: the machine's own mpiexec ended (.*) before all processes were started" err || { cat out err; fail "$name: an mpiexec that starts half of the processes, exit status $status"; }
    echo "ok $name: an mpiexec that starts half of the processes: $(grep error: err | cut -c 1-120)"
}

conforming=slurm queued=yes tried=0
for name in openmpi mpich-5.0.2 openmpi-5.0.11; do
    mpiexec=$(command -v "mpiexec.$name" || ls "$peers/$name/bin/mpiexec" 2>/dev/null)
    [ -n "$mpiexec" ] || { echo "not installed, not tried: $name"; continue; }
    conforming=slurm
    fabric='--env TMPDIR=/mnt'
    case $name in mpich-5*) fabric="$fabric --env MPIR_CVAR_CH4_NETMOD=ofi" ;; esac
    site="b1:4,scheduler=slurm,nodes=2,mpi=$mpiexec"
    start 60 --site "$site" $fabric ./ring
    [ $status = 0 ] && grep -q '^4 processes: ring is right$' out || { cat out err; fail "$name: a ring"; }
    [ "$(sort out | grep '^rank' | sed 's/.* //' | tr '\n' ' ')" = 'b1n2 b1n2 b1n3 b1n3 ' ] || { cat out; fail "$name: ranks do not fill node after node"; }
    start 60 --site "b1:3,scheduler=slurm,nodes=2,mpi=$mpiexec" $fabric ./ring
    [ "$(grep -c 'on b1n2$' out) $(grep -c 'on b1n3$' out)" = '2 1' ] || { cat out err; fail "$name: three processes on two nodes"; }
    echo "ok $name: two nodes of two processes, and of two and one"
    for program in $programs; do
        # shellcheck disable=SC2086 # options are words
        start 120 --site "$site" $fabric "./$program"
        [ $status = 0 ] || { cat out err; fail "$name: $program"; }
        start 120 --site home:2 --site "$site" $fabric "./$program"
        [ $status = 0 ] || { cat out err; fail "$name: $program with two processes at home"; }
    done
    echo "ok $name: $programs, on it and with two processes at home"
    for form in together binomial; do
        export ISTHMUS_COLL="*@vendor=$form"
        ISTHMUS_STATS=1 start 120 --site home:2 --site "$site" $fabric ./steps
        [ $status = 0 ] || { cat out err; fail "$name: steps, $form"; }
        mv err $form.err
        start 120 --site home:2 --site "$site" $fabric ./nodes
        [ $status = 0 ] || { cat out err; fail "$name: operations in which its processes take steps together, $form"; }
        unset ISTHMUS_COLL
    done
    for operation in bcast allreduce; do
        with=$(counted together.err $operation vendor) without=$(counted binomial.err $operation vendor)
        [ "$with" = 0 ] && [ "$without" -gt 0 ] || fail "$name: $operation: $with messages of ours between its nodes with its own steps, $without without"
    done
    echo "ok $name: operations over two sites take steps with it"
    for end in killed:137 aborted:7 orderly:0; do
        start 60 --site "$site" $fabric ./ends "${end%:*}" 3
        [ $status = "${end#*:}" ] || { cat out err; fail "$name: $end, exit status $status"; }
    done
    head -c 300000 /dev/urandom >input
    timeout -k 5 60 isthmus run --site "$site" $fabric ./ends copy 0 <input >out 2>err || { cat err; fail "$name: input"; }
    cmp input out || fail "$name: input is not what it was"
    lose_agent 4 --site "$site"
    lose_agent 6 --site home:2 --site "$site"
    begin_here_only
    nothing_left
    for node in b1n2 b1n3; do ssh $node "pgrep -x 'ends|ring|nodes'" && fail "$name: processes are left on $node"; done
    echo "ok $name: ends of jobs, input"
    tried=$((tried + 1))
    case $name in
    openmpi-5*)
        start 60 --site "$site" $fabric --env PRTE_MCA_rmaps_default_mapping_policy=node ./ring
        [ $status = 1 ] && grep -q "started its rank 1 on b1n3, where ranks 2 to 3 of the subjob are awaited\|started its rank 2 on b1n2, where ranks 0 to 1" err ||
            { cat out err; fail "$name: ranks from node to node, exit status $status"; }
        echo "ok $name: ranks in another place: $(grep error: err)"
        ;;
    esac
done
# srun as the launcher of an MPI that finds its processes by PMI. A directory has it and the compiler wrapper.
if [ -x "$peers/mpich-5.0.2/bin/mpicc" ]; then
    mkdir bin
    ln -s "$(command -v srun)" bin/srun
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$peers/mpich-5.0.2/bin/mpicc" >bin/mpicc
    chmod +x bin/mpicc
    fabric='--env TMPDIR=/mnt --env MPIR_CVAR_CH4_NETMOD=ofi'
    for count in 4 3; do
        # shellcheck disable=SC2086 # options are words
        start 60 --site "b1:$count,scheduler=slurm,nodes=2,mpi=$work/bin/srun" $fabric --env SLURM_MPI_TYPE=pmi2 ./ring
        [ $status = 0 ] && [ "$(grep -c 'on b1n2$' out) $(grep -c 'on b1n3$' out)" = "2 $((count - 2))" ] &&
            grep -q "^$count processes: ring is right\$" out || { cat out err; fail "srun: a ring of $count"; }
    done
    start 120 --site home:1 --site "b1:4,scheduler=slurm,nodes=2,mpi=$work/bin/srun" $fabric --env SLURM_MPI_TYPE=pmi2 ./nodes
    [ $status = 0 ] || { cat out err; fail "srun: operations with a process at home"; }
    for end in killed:137 aborted:7 orderly:0; do
        start 60 --site "b1:4,scheduler=slurm,nodes=2,mpi=$work/bin/srun" $fabric --env SLURM_MPI_TYPE=pmi2 ./ends "${end%:*}" 3
        [ $status = "${end#*:}" ] || { cat out err; fail "srun: $end, exit status $status"; }
    done
    start 60 --site "b1:4,scheduler=slurm,nodes=2,mpi=$work/bin/srun" $fabric --env SLURM_MPI_TYPE=none ./ring
    [ $status != 0 ] && grep -q SLURM_MPI_TYPE err || { cat out err; fail "srun without PMI, exit status $status"; }
    nothing_left
    echo "ok srun as the launcher"
fi
start 60 --site b1:4,scheduler=slurm,nodes=2,mpi=/nowhere/mpiexec ./ring
[ $status = 1 ] && [ "$(grep -c error: err)" = 1 ] && grep -q "there is no '/nowhere/mpiexec'" err || { cat err; fail "an mpiexec that is not there"; }
echo "ok an mpiexec that is not there: $(grep error: err)"
nothing_left
[ $tried -gt 0 ] || { echo "SKIP: no other MPI is installed"; exit 77; }
echo "subjobs on machines' own MPIs span nodes"
