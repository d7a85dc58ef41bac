#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A launcher that is stopped is not lost: ranks stop and go on with it, here and at sites; signals for the program reach it; Ctrl-C is a SIGINT.
. "$(dirname "$0")/common.sh"
need_testbed
mpicc -O2 "$top/tests/system/stopped.c" -o stopped || fail "mpicc"
cat >all.sh <<'S'
set -u
complain() { echo "FAIL $name: $*"; cat out err; exit 1; }
# Process ids of the ranks on this host whose state is one of these.
ranks() { for p in $(pgrep -x stopped); do case $(ps -o stat= -p $p) in [$1]*) echo $p ;; esac; done; }
begin() {
    name=$1
    shift
    rm -f go-on
    : >out
    # It may be stopped for longer than that.
    env ISTHMUS_AWAY=3 isthmus run "$@" ./stopped "$PWD/go-on" >out 2>err </dev/null & job=$!
    for _ in $(seq 300); do grep -q began out && return; kill -0 $job 2>/dev/null || break; sleep 0.1; done
    complain "the job did not begin"
}
await() { for _ in $(seq 100); do [ "$(ranks "$1" | wc -l)" = 2 ] && return; sleep 0.1; done; complain "the ranks are not in state $1"; }
end() {
    touch go-on
    wait $job || complain "exit status $?"
    [ "$(grep -c "$1 ended well" out)" = "$2" ] || complain "not all ranks ended well"
}
for signal in STOP TSTP; do
    begin "$signal at home" -n 2
    kill -$signal $job
    await T
    # Nothing to wait for but time: longer than a site may be silent.
    sleep 6
    kill -CONT $job
    await RSD
    end : 2
done
begin "TSTP with a site" --site home:2 --site b1:2
kill -TSTP $job
await T
sleep 8
kill -CONT $job
await RSD
kill -USR1 $job
kill -USR2 $job
sleep 1
end ': USR1 USR2' 4
begin "interrupt" --site home:2 --site b1:2
kill -INT $job
wait $job
[ $? = 130 ] || complain "exit status $?"
# The first rank that leaves may take the others with it before they say so.
[ "$(grep -c 'rank [0-9]: interrupted$' out)" -ge 1 ] || complain "SIGINT did not reach the ranks"
[ "$(grep -c 'error:' err)" = 1 ] || complain "more than one error"
S
isthmus-testbed run --sites 2x1 --rtt 4ms -- sh all.sh || fail "see above"
echo "ranks stop and go on with their launcher, and get its signals"
