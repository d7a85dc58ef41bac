#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A launcher that is killed: the processes go on, another launcher takes the job up, no line of output is lost, and the job ends with its own
# status. A job that nobody takes up ends by itself.
# beside: it mostly waits, in its own network.
. "$(dirname "$0")/common.sh"
need_testbed
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra "$top/tests/system/taken-up.c" -o taken-up || fail "mpicc taken-up.c"
# What all hosts see: signs to the program, and its signs to us.
signs=$(mktemp -d /var/tmp/isthmus-signs.XXXXXX)
trap 'rm -rf "$work" "$signs"' EXIT
export signs
cat >all.sh <<'S'
step() { echo "$(date +%T) $*"; }
anew() { rm -f "$signs"/* out attach.out err; : >out; }
reached() { cat "$signs/step.$1" 2>/dev/null || echo -1; }
# go_on: every rank is three steps further than it is now.
go_on() {
    for rank in 0 1 2; do
        now=$(reached $rank)
        until [ "$(reached $rank)" -ge $((now + 3)) ]; do sleep 0.05; done
    done
}
# launcher [SITE]: the process of the launcher that lives there.
launcher() { isthmus ps --json --site "${1:-home}" | python3 -c 'import json, sys; print([j["pid"] for j in json.load(sys.stdin)["jobs"] if j["state"] in ("starting", "running")][0])'; }
processes() { for host in a1 b1 c1; do ssh "$host" 'ps -eo args=' | grep -E '[t]aken-up /var|[i]sthmus.* agent'; done; }
# lines FILE...: each rank's steps are all there, in order, none lost; a line may stand twice where one launcher followed another.
lines() {
    sed -n 's/^rank \([0-9]*\) step \([0-9]*\)$/\1 \2/p' "$@" | awk '
        { if (!($1 in next_)) next_[$1] = 0
          if ($2 > next_[$1]) { print "rank " $1 " lost step " next_[$1]; bad = 1 }
          if ($2 == next_[$1]) next_[$1]++ }
        END { for (r = 0; r < 3; r++) if (next_[r] < 9) { print "rank " r " has " next_[r] + 0 " lines"; bad = 1 }; exit bad }'
}

step in the foreground over three sites
anew
isthmus run --name tides --site home:1 --site b1:1 --site c1:1 ./taken-up "$signs" >out 2>err </dev/null &
job=$!
go_on
isthmus ps --json >ps.json
kill -KILL $job
wait $job 2>/dev/null
isthmus ps >ps.out; isthmus ps --json >lost.json
grep -q 'tides .* lost ' ps.out && grep -q 'lost its launcher, [0-9]* s left; isthmus attach' ps.out || exit 2
isthmus where tides >where.out 2>&1
grep -q 'has lost its launcher' where.out || exit 3
go_on
isthmus attach tides >attach.out 2>attach.err &
follower=$!
until grep -q step attach.out; do sleep 0.05; done
step and once more
before=$(launcher)
kill -KILL "$before"
wait $follower 2>/dev/null
cat attach.err
grep -q 'lost its launcher.*isthmus attach' attach.err || exit 4
go_on
isthmus attach tides >attach.out 2>attach.err &
follower=$!
until isthmus ps | grep -q 'tides .*running'; do sleep 0.05; done
isthmus signal tides USR1 || exit 5
for rank in 0 1 2; do until [ -e "$signs/signalled.$rank" ]; do sleep 0.05; done; done
isthmus where --json tides >where.json || exit 6
isthmus top --once tides >top.out && grep -q c1 top.out || exit 7
touch "$signs/stop"
wait $follower
[ $? = 7 ] || { cat attach.err; exit 8; }
lines out attach.out || exit 9
until [ -z "$(processes)" ]; do sleep 0.1; done

step in the background, ended without a launcher
anew
job=$(isthmus run --detach --site b1:1 --site c1:2 ./taken-up "$signs") || exit 10
go_on
kill -KILL "$(launcher)"
go_on
isthmus kill "$job" || exit 11
until [ -z "$(processes)" ]; do sleep 0.1; done
isthmus attach "$job" >ended.out 2>&1
[ $? = 143 ] || { cat ended.out; exit 12; }

step at another site, with messages that travel inside the connections of ssh, which end with the launcher
anew
job=$(ISTHMUS_PATH=ssh isthmus run --detach --at b1 --site b1:1 --site c1:2 ./taken-up "$signs") || exit 13
go_on
ssh b1 kill -KILL "$(launcher b1)" || exit 14
isthmus ps --site b1
isthmus attach "$job" >attach.out 2>attach.err &
follower=$!
go_on
touch "$signs/stop"
wait $follower
[ $? = 7 ] || { cat attach.err; exit 15; }
lines attach.out || exit 16

step a connection that breaks is made again
anew
isthmus run --site home:1 --site b1:1 --site c1:1 ./taken-up "$signs" >out 2>err </dev/null &
job=$!
go_on
. "$top/tests/system/agents.sh"
agent=$(agent_at b1 taken-up)
ssh b1 "kill -KILL \$(ps -o ppid= -p $agent)"
until grep -q "site 'b1': its agent is reached again" err; do sleep 0.05; done
go_on
touch "$signs/stop"
wait $job
[ $? = 7 ] || { cat err; exit 17; }
lines out || exit 18
[ "$(sort out | uniq -d | wc -l)" = 0 ] || { sort out | uniq -d; exit 19; }

step nobody takes it up
anew
ISTHMUS_AWAY=2 isthmus run --site home:1 --site b1:1 --site c1:1 ./taken-up "$signs" >out 2>err </dev/null &
job=$!
go_on
kill -KILL $job
wait $job 2>/dev/null
until [ -z "$(processes)" ]; do sleep 0.1; done
S
isthmus-testbed run --sites 3x1 --rtt 5ms -- env top="$top" timeout ${ISTHMUS_TEST_PATIENCE:-240} sh all.sh >all.out 2>&1 ||
    { status=$?; tail -n 50 all.out err ps.out where.out attach.err; fail "status $status: see all.sh"; }
cat all.out
python3 "$top/tests/system/schema.py" ps.json lost.json where.json || fail "JSON is not as the book says"
echo "jobs outlive their launchers"
