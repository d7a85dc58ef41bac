#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every mistake and every accident: one clear message naming the thing, a non-zero exit status, nothing left running and
# no file left behind at any site within 5 s.
. "$(dirname "$0")/common.sh"
need_testbed
# Each host gets its own /tmp here, so that leftovers can be told apart.
case $(command -v isthmus) in /tmp/*) skip "isthmus lives below /tmp, which this test hides" ;; esac

cat >prog.c <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) { printf("going\n"); fflush(stdout); }
    if (argc > 1 && rank == 3) {
        if (!strcmp(argv[1], "exit")) exit(7);
        if (!strcmp(argv[1], "kill")) kill(getpid(), SIGKILL);
        if (!strcmp(argv[1], "abort")) MPI_Abort(MPI_COMM_WORLD, 5);
    }
    if (argc > 1) sleep(600);
    MPI_Finalize();
    return 0;
}
C
mpicc -O2 prog.c -o isthmus-test-prog || fail "mpicc"
echo 'not a program' >plain
printf '\177ELF\002\001\001\000\000\000\000\000\000\000\000\000\002\000\363\000\001\000\000\000' >foreign
head -c 4096 /dev/zero >>foreign
chmod +x foreign
printf '[[subjob]\nsite = "home"\n' >malformed.toml

cat >all.sh <<'S'
set -u
bad=0
two="--site home:2 --site b1:2"
prog=$PWD/isthmus-test-prog
complain() { echo "FAIL $name: $*"; bad=1; }
files() { for host in a1 b1; do ssh "$host" 'find "$HOME" /tmp /dev/shm -xdev -path "$HOME/.ssh" -prune -o -path "$HOME/.cache" -prune -o -print 2>/dev/null' | grep -v /tmp/isthmus-testbed | grep -i isthmus | sed "s/^/$host: /"; done; }
processes() { for host in a1 b1; do ssh "$host" ps -eo pid=,args= | grep -e isthmus-test-prog -e 'isthmus agent' -e 'isthmus run' | grep -v -e grep -e 'ps -eo' | sed "s/^/$host: /"; done; }
# clean [SECONDS]: within 5 s, or so many, nothing runs and no file of ours is there.
clean() {
    for _ in $(seq $((2 * ${1:-5}))); do
        left=$(processes; files)
        [ -z "$left" ] && return
        sleep 0.5
    done
    complain "left behind: $left"
}
# expect NAME PATTERN COMMAND...: fails with a message that matches.
expect() {
    name=$1 pattern=$2
    shift 2
    timeout 60 "$@" >out 2>err </dev/null
    status=$?
    [ "$status" != 0 ] && [ "$status" != 124 ] || complain "exit status $status"
    grep -qiE "$pattern" err || { complain "no message like '$pattern'"; cat out err; }
    clean
    [ "$bad" = 1 ] || echo "ok $name (exit status $status): $(grep -iE "$pattern" err | head -n 1)"
}
# accident NAME PATTERN ACTION: the action happens to a running job.
accident() {
    name=$1 pattern=$2 action=$3
    # Nothing is there that an earlier job has said.
    : >out
    isthmus run $two "$prog" wait >out 2>err </dev/null &
    job=$!
    for _ in $(seq 600); do grep -q going out && break; kill -0 $job 2>/dev/null || break; sleep 0.1; done
    grep -q going out || { complain "the job did not start"; cat out err; }
    eval "$action"
    wait "$job"
    status=$?
    [ "$status" != 0 ] || complain "exit status 0"
    [ -z "$pattern" ] || grep -qiE "$pattern" err || { complain "no message like '$pattern'"; cat err; }
    clean $((5 + ${ISTHMUS_AWAY:-0}))
    [ "$bad" = 1 ] || echo "ok $name (exit status $status)"
}
ssh b1 'mkdir -p ~/.cache && mount -t tmpfs -o size=64k none ~/.cache'
expect "no room" 'is the disk full' isthmus run $two "$prog"
ssh b1 'umount ~/.cache'
ssh b1 'mount -t tmpfs -o noexec none ~/.cache'
expect "no programs in the home" 'mounted noexec' isthmus run $two "$prog"
# The sites file says where else.
mkdir -p ~/.config/isthmus && printf '[site.b1]\ncache = "/run/other-$USER"\n' >~/.config/isthmus/sites.toml
name="another cache"
timeout 60 isthmus run $two "$prog" >out 2>err </dev/null && ssh b1 'ls /run/other-*/isthmus/isthmus-*' >/dev/null || { complain "cache = is not obeyed"; cat out err; }
rm ~/.config/isthmus/sites.toml
ssh b1 'umount ~/.cache; rm -rf /run/other-*'
clean
expect "unknown site" 'nowhere' isthmus run --site home:1 --site nowhere:1 "$prog"
expect "program missing" 'missing-program' isthmus run $two "$PWD/missing-program"
expect "not executable" 'plain' isthmus run $two "$PWD/plain"
expect "wrong architecture" 'foreign|architecture' isthmus run $two "$PWD/foreign"
expect "a rank exits with 7" '(rank|process) *3|b1' isthmus run $two "$prog" exit
expect "a rank is killed" 'kill|signal *9' isthmus run $two "$prog" kill
expect "MPI_Abort" 'abort' isthmus run $two "$prog" abort
expect "malformed TOML" 'malformed.toml:1:' isthmus run malformed.toml
expect "-n 0" '\b0\b' isthmus run -n 0 "$prog"
expect "-n 100000" '100000|100,000' isthmus run -n 100000 "$prog"
expect "-n 1025" '1025 processes on site .home. are above the limit of 1024 per node' isthmus run -n 1025 "$prog"
accident "Ctrl-C" '' 'kill -INT $job'
accident "Ctrl-C twice" '' 'kill -INT $job; sleep 0.3; kill -INT $job 2>/dev/null'
# Its processes wait for another launcher for so long.
export ISTHMUS_AWAY=5
accident "coordinator killed" '' 'kill -KILL $job'
unset ISTHMUS_AWAY
accident "coordinator told to end" '' 'kill -TERM $job'
accident "agent killed" "connection to its agent was lost" 'ssh b1 "kill -KILL \$(pgrep -f \"isthmus-[0-9a-f]* agent\")"'
ssh b1 'kill $(cat /proc/[0-9]*/stat 2>/dev/null | sed -n "s/^\([0-9]*\) (sshd) .*/\1/p" | sort -n | head -n 1)'
name="ssh refused"
timeout 60 isthmus run $two "$prog" >out 2>err </dev/null
status=$?
[ "$status" != 0 ] && [ "$status" != 124 ] || complain "exit status $status"
grep -qiE 'b1' err && grep -qiE 'refused' err || { complain "the message does not say who refused"; cat err; }
# After a failed start the doctor says what is well and what is not; by itself only where somebody reads it.
! grep -q 'doctor says' err || complain "the doctor was not asked"
ISTHMUS_DOCTOR=1 timeout 60 isthmus run $two "$prog" >out 2>err </dev/null
[ $? != 0 ] && grep -A 9 'doctor says' err | grep -q '^b1: cannot be used: ' || { complain "no word of the doctor"; cat err; }
[ "$bad" = 1 ] || echo "ok $name: $(head -n 1 err)"
exit $bad
S
isthmus-testbed run --sites 2x1 --rtt 4ms --private-tmp -- sh all.sh || fail "see above"
