#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Whatever dies, whenever: soon nothing of the job runs anywhere, the exit status is right and one message names the cause.
# A site that is cut off for 5 or 30 s loses nothing; the user is told after 9 s. With ISTHMUS_AWAY=11 it is lost after 11 s, and nothing runs there after
# 1.5 times that and 5 s. What a killed launcher leaves waits for another one for ISTHMUS_AWAY. The row of a scheduler's node is in tests/schedulers/together.sh.
# usage: kills.sh [all]   (without: a short selection)
# beside: it mostly waits, in its own network.
whole=${1:-}
. "$(dirname "$0")/common.sh"
need_testbed
# Each host gets its own /tmp here, so that leftovers can be told apart.
case $(command -v isthmus) in /tmp/*) skip "isthmus lives below /tmp, which this test hides" ;; esac

cat >prog.c <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* Rank 3 waits in the phase that is named: before, running or ending. */
static void wait_in(const char *phase, int rank, char **argv)
{
    if (rank == 3 && !strcmp(argv[1], phase)) {
        printf("waiting\n");
        fflush(stdout);
        sleep((unsigned)atoi(argv[2]));
    }
}
int main(int argc, char **argv)
{
    int rank = atoi(getenv("GLOBUS_DUROC_SUBJOB_INDEX")) * 2 + atoi(getenv("ISTHMUS_INDEX"));
    wait_in("before", rank, argv);
    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    wait_in("running", rank, argv);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    wait_in("ending", rank, argv);
    return 0;
}
C
mpicc -O2 prog.c -o isthmus-test-prog || fail "mpicc"

cat >rows.sh <<'S'
set -u
bad=0
prog=$PWD/isthmus-test-prog
mkdir -p "$1" && cd "$1" || exit 1
complain() { echo "FAIL $name: $*"; bad=1; }
ours='isthmus-test-prog|isthmus agent|isthmus run|isthmus-[0-9a-f]* (agent|service)'
processes() { for host in a1 b1; do ssh "$host" ps -eo pid=,args= | grep -E "$ours" | grep -v -e grep -e 'ps -eo' | sed "s/^/$host: /"; done; }
# on HOST PATTERN: the newest process there whose command line matches. One listing of processes can miss one, so more are taken.
on() {
    for _ in $(seq 50); do
        found=$(ssh "$1" ps -eo pid=,args= | grep -E "$2" | grep -v -e grep -e 'ps -eo' -e @exec | awk 'END { print $1 }')
        [ -n "$found" ] && echo "$found" && return
        sleep 0.2
    done
}
agent() { on b1 'isthmus-[0-9a-f]* agent'; }
kill_rank() { ssh b1 kill -KILL "$(on b1 isthmus-test-prog)"; }
kill_agent() { ssh b1 kill -KILL "$(agent)"; }
kill_coordinator() { kill -KILL $job; }
kill_connection() { ssh b1 "kill -KILL \$(ps -o ppid= -p $(agent))"; }
cut_short() { isthmus-testbed cut a b; sleep 5; isthmus-testbed restore a b; }
cut_long() { isthmus-testbed cut a b; sleep 30; isthmus-testbed restore a b; }
cut_off() { isthmus-testbed cut a b; }

# row VICTIM STATUS PATTERN PHASE...
row() {
    victim=$1 wanted=$2 pattern=$3
    shift 3
    for phase in "$@"; do
        name="$victim $phase"
        nap=600
        away=
        case $victim in cut_short | kill_connection) nap=15 ;; cut_long) nap=45 ;; cut_off) away=ISTHMUS_AWAY=11 ;; kill_coordinator) away=ISTHMUS_AWAY=5 ;; esac
        # Nothing is there that an earlier job has said.
        : >out
        env $away isthmus run --site home:2 --site b1:2 "$prog" "$phase" $nap >out 2>err </dev/null &
        job=$!
        for _ in $(seq 600); do grep -q waiting out && break; kill -0 $job 2>/dev/null || break; sleep 0.1; done
        grep -q waiting out || complain "the job did not start: $(cat out err)"
        sleep 1
        began=$(date +%s)
        $victim
        # Far more than it takes where nothing else runs: a busy machine may be ten times slower.
        ( sleep 200; kill -KILL $job 2>/dev/null ) &
        watchdog=$!
        wait $job 2>/dev/null
        status=$?
        took=$(($(date +%s) - began))
        kill $watchdog 2>/dev/null
        [ $status = $wanted ] || complain "exit status $status, not $wanted"
        # Whoever can still be told is told, once.
        if [ -n "$pattern" ]; then
            [ "$(grep -c 'error:' err)" = 1 ] || complain "$(grep -c 'error:' err) messages"
            grep 'error:' err | head -n 1 | grep -qE "$pattern" || complain "the message is not like '$pattern': $(cat err)"
            # A cut is told of after 9 s; here it is for good after 11 s.
            if [ $victim = cut_off ]; then
                grep -q "site 'b1': nothing has been heard from its agent for 9 s" err || complain "the cut was not told: $(cat err)"
                grep -q "site 'b1': .*any processes there end by themselves within 21 s" err || complain "the user does not know of the rest: $(cat err)"
            fi
        elif [ $victim = kill_connection ]; then
            grep -q "site 'b1': its agent is reached again" err || complain "the connection was not made again: $(cat err)"
        elif [ $victim = cut_short ] || [ $victim = cut_long ]; then
            grep -q 'error:' err && complain "$(cat err)"
            if [ $victim = cut_long ]; then
                grep -q "site 'b1': nothing has been heard from its agent for 9 s" err || complain "the cut was not told: $(cat err)"
                grep -q "site 'b1': its agent is heard again" err || complain "its end was not told: $(cat err)"
            fi
        fi
        if [ $victim = cut_off ]; then
            # The site gives up half as long later, and has 5 s to end what it runs.
            sleep $((21 - took > 0 ? 21 - took : 0))
            isthmus-testbed restore a b
        fi
        for _ in $(seq 120); do
            left=$(processes)
            [ -z "$left" ] && break
            sleep 0.5
        done
        [ -z "$left" ] || complain "left after $(($(date +%s) - began)) s: $left"
        [ "$bad" = 1 ] || echo "ok $name: status $status after $took s: $(grep error: err | head -n 1)"
    done
}

all="before running ending"
lost="site 'b1': the connection to its agent was lost"
gone="site 'b1': .*(nothing was heard|lost)"
case $1$2 in
cuts) row cut_long 0 '' running ;;
cutsall) row cut_long 0 '' $all ;;
rest)
    row kill_rank 137 "rank 3 .*signal 9" before
    row kill_agent 1 "$lost" running
    row kill_coordinator 137 '' running
    row kill_connection 0 '' ending
    row cut_short 0 '' running
    row cut_off 1 "$gone" running
    ;;
restall)
    row kill_rank 137 "rank 3 .*signal 9" $all
    row kill_agent 1 "$lost" $all
    row kill_coordinator 137 '' $all
    row kill_connection 1 "$lost" before
    row kill_connection 0 '' running ending
    row cut_short 0 '' $all
    row cut_off 1 "$gone" $all
    ;;
esac
exit $bad
S
# Most of it waits: the rows of the long cut have a network of their own, beside the others.
isthmus-testbed run --sites 2x1 --rtt 4ms --private-tmp -- sh rows.sh cuts "$whole" >cuts.out 2>&1 &
cuts=$!
isthmus-testbed run --sites 2x1 --rtt 4ms --private-tmp -- sh rows.sh rest "$whole" || failed=1
wait $cuts || failed=1
cat cuts.out
[ -z "${failed:-}" ] || fail "see above"
