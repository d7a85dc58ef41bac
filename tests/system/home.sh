#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Several sites on this machine, without the testbed: the programs of tests/c over them, and what crosses which level
# on 3 sites of 2 machines of 4 processes.
. "$(dirname "$0")/common.sh"
for tool in isthmus mpicc; do
    command -v "$tool" >/dev/null 2>&1 || skip "no $tool in PATH"
done
for program in datatypes p2p collectives collective_persistent collective_groups collective_neighbours collective_order communicators crossings; do
    mpicc -std=c11 -D_GNU_SOURCE -O2 -I"$top/tests/c" "$top/tests/c/$program.c" -o $program || fail "mpicc $program.c"
done
for program in datatypes p2p collectives collective_persistent collective_groups collective_neighbours communicators; do
    for sites in '--site a=home:2 --site b=home:2' '--site a=home:1 --site b=home:3 --site c=home:1'; do
        # shellcheck disable=SC2086 # options are words
        timeout -k 5 120 isthmus run $sites ./$program </dev/null >out 2>&1 || { cat out; fail "$program on $sites"; }
        echo "$program on $sites: as on one machine"
    done
done
# As they are when links differ: what goes from b to c passes a, whose own blocks stand between those of others.
cat >routed.toml <<'EOF'
[[link]]
between = ["a", "b"]
latency = "0.5 ms"
[[link]]
between = ["a", "c"]
latency = "0.5 ms"
[[link]]
between = ["b", "c"]
latency = "7 ms"
EOF
for program in collectives collective_persistent collective_groups; do
    for sites in '--site a=home:1 --site b=home:3 --site c=home:1' '--site b=home:2 --site a=home:1 --site c=home:2'; do
        # shellcheck disable=SC2086 # options are words
        timeout -k 5 120 isthmus run --links routed.toml $sites ./$program </dev/null >out 2>&1 || { cat out; fail "$program on $sites, by way of a"; }
    done
done
echo "messages that pass a site arrive"
# One order of reduction: the same bits over 1, 2 and 3 sites (the program also renumbers the ranks).
for sites in '--site a=home:6' '--site a=home:3 --site b=home:3' '--site a=home:1 --site b=home:3 --site c=home:2'; do
    # shellcheck disable=SC2086 # options are words
    timeout -k 5 120 isthmus run $sites ./collective_order </dev/null >out 2>&1 || { cat out; fail "collective_order on $sites"; }
    grep '^6 processes: ' out >>bits || { cat out; fail "collective_order on $sites prints nothing"; }
done
[ "$(sort -u bits | wc -l)" = 1 ] || { cat bits; fail "the bits of sums depend on the sites"; }
echo "sums over 1, 2 and 3 sites have the same bits: $(sort -u bits)"
{
    printf 'program = "%s/crossings"\narguments = ["grid"]\n' "$work"
    for machine in a1 a2 b1 b2 c1 c2; do
        printf '[[subjob]]\nsite = "%s"\ncontact = "home"\ncount = 4\nlan = "%s"\n' "$machine" "${machine%?}"
    done
} >grid.toml
timeout -k 5 120 isthmus run grid.toml </dev/null >out 2>&1 || { cat out; fail "crossings"; }
# mpiexec inside an allocation with several nodes is over those, unless its words say where processes run.
in_allocation() { SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=2 SLURM_JOB_NODELIST='n[1-2]' SLURM_TASKS_PER_NODE='2(x2)' SLURMD_NODENAME=n1 mpiexec -dumprsl "$@"; }
[ "$(in_allocation -n 3 ./crossings -f x | grep -cE 'resourceManagerContact="(home|n2)"|count=[21]\)')" = 4 ] || fail "mpiexec in an allocation: $(in_allocation -n 3 ./crossings)"
printf 'me 2 all.q@me UNDEFINED\nn2 2 all.q@n2 UNDEFINED\n' | sed "s/^me/$(uname -n)/" >pe_hosts
for allocation in "JOB_ID=7 PE_HOSTFILE=pe_hosts" "LSB_JOBID=7 LSB_MCPU_HOSTS=$(uname -n)+2+n2+2"; do
    env=$(echo "$allocation" | cut -d' ' -f2 | tr + ' ')
    [ "$(env "${allocation%% *}" "$env" mpiexec -dumprsl -n 3 ./crossings -f x | grep -cE 'resourceManagerContact="(home|n2)"|count=[21]\)')" = 4 ] ||
        fail "mpiexec in an allocation: $allocation"
done
# On one node there are as many processes as slots; -n wins.
me=$(uname -n)
printf '%s\n%s\n%s\n' "$me" "$me" "$me" >pbs_nodes
printf '%s 3 all.q@%s UNDEFINED\n' "$me" "$me" >pe_hosts
cat >count.sh <<'S'
#!/bin/sh
echo one of us
S
chmod +x count.sh
for allocation in "SLURM_JOB_ID=7 SLURM_NNODES=1 SLURM_JOB_NODELIST=$me SLURM_NTASKS=3 SLURM_TASKS_PER_NODE=3" "PBS_JOBID=7 PBS_NODEFILE=pbs_nodes" \
    "PBS_JOBID=7 PBS_NP=3" "JOB_ID=7 PE_HOSTFILE=pe_hosts NSLOTS=3" "LSB_JOBID=7 LSB_MCPU_HOSTS=$me+3" "LSB_JOBID=7 LSB_HOSTS=$me+$me+$me"; do
    for command in mpiexec 'isthmus run'; do
        for count in '' '-n 2' '-n 5' '-ppn 4'; do
            # shellcheck disable=SC2086 # options are words
            in_job() { (for one in $allocation; do export "$(echo "$one" | tr + ' ')"; done && $command $count ./count.sh </dev/null); }
            in_job >out 2>&1 || { cat out; fail "$command $count in $allocation"; }
            case $count in '') expected=3 ;; *) expected=${count##* } ;; esac
            [ "$(grep -c 'one of us' out)" = "$expected" ] || { cat out; fail "$command $count in $allocation: not $expected processes"; }
        done
    done
done
PBS_JOBID=7 PBS_NODEFILE=/none mpiexec -n 3 ./crossings >out 2>&1 && fail "a missing list of nodes is passed over"
grep -q "PBS_NODEFILE is '/none'" out || { cat out; fail "a missing list of nodes"; }
in_allocation -host localhost -n 3 ./crossings | grep -q n2 && fail "mpiexec -host in an allocation"
echo "every operation and root crosses the slow levels as often as its cost card says"
