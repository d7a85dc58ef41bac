#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One job over four sites: fork at home (a1), Slurm with two nodes (b1; b1n2, b1n3), Grid Engine (c1; c1n2), and a host (d1) that is
# reached through a jump host (b1). Then what a held queue does to a job, and what happens when a node of Slurm dies.
here=$(cd "$(dirname "$0")" && pwd)
if [ "$1" != inside ]; then
    . "$here/../system/common.sh"
    [ "$(id -u)" = 0 ] || skip "the schedulers' daemons are started by root"
    need_testbed
    for tool in slurmctld slurmd munged sbatch srun sge_qmaster sge_execd qsub qconf; do
        command -v "$tool" >/dev/null 2>&1 || skip "no $tool: sh ci/schedulers.sh --install"
    done
    for program in ring talk lines; do
        mpicc -std=c11 -D_GNU_SOURCE -O2 "$here/$program.c" -o $program || fail "mpicc $program.c"
    done
    printf 'sites = [{ name = "a" }, { name = "b", hosts = 3 }, { name = "c", hosts = 2 }, { name = "d" }]\n[link]\nround_trip = "2ms"\nrate = "unlimited"\n' >bed.toml
    isthmus-testbed run --topology bed.toml -- sh "$here/together.sh" inside "$work" "${1:-all}"
    exit
fi

work=$2 part=$3
cd "$work" || exit 1
fail() { printf 'FAIL: %s\n' "$*" >&2; exit 1; }
ok() { printf 'ok %s\n' "$*"; }
. "$here/slurm.sh"
. "$here/grid-engine.sh"
slurm_start "$work" b1 b1n2 b1n3 || fail "Slurm does not come up"
if [ "$part" != held ]; then
    grid_engine_start "$work" c1 c1n2 || fail "Grid Engine does not come up"
fi
printf 'Host d1\n    ProxyJump b1\n%s\n' "$(cat ~/.ssh/config)" >config && cat config >~/.ssh/config
ssh d1 'echo $SSH_CONNECTION' | grep -q "^$(ssh b1 hostname -i | awk '{ print $1 }') " || fail "d1 is not reached through b1"

# states FILE SITE: in the order in which they were told, without repetition.
states() { sed -n 's/.*"event":"state".*"site":"'"$2"'".*"state":"\([a-z-]*\)".*/\1/p' "$1" | uniq | tr '\n' ' '; }

program=$work/lines
each=62500
cat >job.rsl <<RSL
+
( &(resourceManagerContact=home)                  (label=fork)  (count=4) (arguments=$each) (executable=\$(GLOBUSRUN_GASS_URL) # $program) )
( &(resourceManagerContact="b1/jobmanager-slurm") (label=slurm) (count=4) (arguments=$each) (executable=\$(GLOBUSRUN_GASS_URL) # $program) (hostCount=2) )
( &(resourceManagerContact="c1/jobmanager-sge")   (label=sge)   (count=4) (arguments=$each) (executable=\$(GLOBUSRUN_GASS_URL) # $program) )
( &(resourceManagerContact=d1)                    (label=far)   (count=4) (arguments=$each) (executable=\$(GLOBUSRUN_GASS_URL) # $program) )
RSL
cat >job.toml <<TOML
program = "$program"
arguments = ["$each"]
[[subjob]]
site = "fork"
contact = "home"
count = 4
[[subjob]]
site = "slurm"
contact = "b1"
count = 4
scheduler = "slurm"
nodes = 2
[[subjob]]
site = "sge"
contact = "c1"
count = 4
scheduler = "grid-engine"
[[subjob]]
site = "far"
contact = "d1"
count = 4
TOML
four_sites() {
    isthmus job convert --to toml job.rsl >converted.toml 2>/dev/null && isthmus job convert --to toml job.toml >other.toml 2>/dev/null
    cmp -s converted.toml other.toml || { diff converted.toml other.toml; fail "the two descriptions are not equal"; }
    for file in job.rsl job.toml; do
        timeout -k 5 300 isthmus run --events events $file >out 2>err </dev/null || { tail err; tail -n 3 out | cut -c 1-80; fail "$file: status $?"; }
        [ "$(grep -c '^rank .* of 16 on ' err)" = 16 ] || { cat err; fail "$file: not 16 ranks"; }
        hosts=$(sed -n 's/^rank .* on //p' err | sort | uniq -c | awk '{ printf "%s:%s ", $2, $1 }')
        [ "$hosts" = "a1:4 b1n2:2 b1n3:2 c1n2:4 d1:4 " ] || fail "$file: the ranks are at $hosts"
        awk -v each=$each '
            length($0) != 199 { print "line " NR " has " length($0) " bytes"; exit 1 }
            $2 != next_of[$1]++ { print "line " NR ": rank " $1 " is at " $2; exit 1 }
            { c = ($1 + $2 + length($1) + length($2) + 2) % 26; if (substr($3, 1, 1) != sprintf("%c", 97 + c)) { print "line " NR " is torn"; exit 1 } }
            END { for (r in next_of) n += next_of[r] == each; exit n != 16 }' out || fail "$file: output is not complete"
        [ "$(wc -lc <out | awk '{ print $1, $2 }')" = "1000000 200000000" ] || fail "$file: $(wc -lc <out)"
        for site in fork slurm sge far; do
            states events $site | grep -qx "connecting staging \(queued \)\?\(starting \)\?\(ready \)\?running done " || fail "$file: $site passed through $(states events $site)"
        done
        ok "$file: 16 ranks at $hosts; 1000000 lines of 200 bytes, none lost, none torn; states in their order"
    done
}

# held NAME STATUS TERMS: two ranks at home and two in a queue that is full.
held() {
    timeout -k 5 150 isthmus run --events events --site home:2 --site "slurm=b1:2,scheduler=slurm$3" ./ring >out 2>err </dev/null
    status=$?
    [ $status = "$2" ] || { cat out err; fail "$1: status $status"; }
}
held_queue() {
    full=$(slurm_fill)
    sleep 2
    began=$(date +%s)
    held optional 0 ,need=optional,start_timeout=20s
    took=$(($(date +%s) - began))
    grep -q '^2 processes: ring is right$' out && [ $took -ge 20 ] && [ $took -lt 40 ] || { cat out err; fail "optional: after $took s"; }
    [ "$(slurm_queue | wc -l)" = 1 ] || { slurm_queue; fail "optional: a job is left in the queue"; }
    ok "optional, time-out 20 s: started without it after $took s: $(grep 'goes on without' err)"
    began=$(date +%s)
    held required 1 ,start_timeout=20s
    took=$(($(date +%s) - began))
    [ ! -s out ] && [ "$(grep -c error: err)" = 1 ] && [ $took -lt 35 ] || { cat out err; fail "required: after $took s"; }
    sleep 3
    [ "$(slurm_queue | wc -l)" = 1 ] || { slurm_queue; fail "required: a job is left in the queue"; }
    pgrep -x ring && fail "required: a rank runs"
    ok "required, time-out 20 s: ended after $took s: $(grep error: err)"
    ( sleep 60; slurm_empty "$full" ) &
    timeout -k 5 150 isthmus run --events events --site home:2 --site slurm=b1:2,scheduler=slurm ./ring >out 2>err </dev/null &
    job=$!
    sleep 55
    [ ! -s out ] || { cat out; fail "a rank got through a barrier that is not open"; }
    wait $job || { cat out err; fail "held for 60 s: status $?"; }
    grep -q '^4 processes: ring is right$' out || { cat out err; fail "held for 60 s"; }
    ok "held in the queue for 60 s: nobody ran before, then all did"
}

# A node of Slurm dies before the barrier opens, while the job runs, and while it ends.
node_dies() {
    cat >waits.c <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void wait_in(const char *phase, char **argv)
{
    if (!strcmp(getenv("GLOBUS_DUROC_SUBJOB_INDEX"), "1") && !strcmp(argv[1], phase)) {
        printf("waiting\n");
        fflush(stdout);
        sleep(600);
    }
}
int main(int argc, char **argv)
{
    wait_in("before", argv);
    MPI_Init(&argc, &argv);
    wait_in("running", argv);
    MPI_Finalize();
    wait_in("ending", argv);
    return 0;
}
C
    mpicc -O2 waits.c -o isthmus-waits || fail "mpicc"
    for phase in before running ending; do
        timeout -k 5 120 isthmus run --site home:2 --site slurm=b1:4,scheduler=slurm,nodes=2 ./isthmus-waits $phase >out 2>err </dev/null &
        job=$!
        for try in $(seq 240); do [ "$(grep -c waiting out)" = 4 ] && break; sleep 0.25; done
        [ "$(grep -c waiting out)" = 4 ] || { cat out err; fail "node $phase: the job does not run"; }
        began=$(date +%s)
        # All of Slurm and of ours at that node: process ids of that host alone.
        ssh b1n3 'kill -KILL $(pgrep -x slurmd) $(pgrep -x slurmstepd) $(pgrep "^isthmus") 2>/dev/null'
        wait $job
        status=$?
        took=$(($(date +%s) - began))
        [ $status = 1 ] && [ "$(grep -c error: err)" = 1 ] && grep error: err | grep -q "site 'slurm'" || { cat err; fail "node $phase: status $status"; }
        [ $took -le 11 ] || fail "node $phase: told after $took s"
        sleep $((15 - took))
        for host in a1 b1 b1n2 b1n3; do
            left=$(ssh $host ps -eo pid=,args= | grep -E 'isthmus-waits|isthmus (agent|run|node)|isthmus-[0-9a-f]* (agent|node)' | grep -v -e grep -e 'ps -eo')
            [ -z "$left" ] || fail "node $phase: left at $host: $left"
        done
        ok "a node of Slurm dies, $phase: after $took s: $(grep error: err)"
        ssh b1n3 "setsid slurmd -D -N b1n3 >>'$slurm/slurmd-b1n3.log' 2>&1 </dev/null &"
        ssh b1 'scontrol update nodename=b1n3 state=down reason=test; scontrol update nodename=b1n3 state=resume' 2>/dev/null
        for try in $(seq 60); do [ "$(ssh b1 sinfo -h -N -p main -t idle -o %N | wc -l)" = 2 ] && break; sleep 1; done
    done
}

[ "$part" = held ] || four_sites
[ "$part" = four ] || held_queue
[ "$part" = four ] || node_dies
echo "four sites: all is well"
