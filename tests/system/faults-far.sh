#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Jobs over three sites that go on when a process elsewhere, an agent or a whole site is lost (--on-loss go-on): the survivors at the
# other two sites end as usual, and nothing of the lost site runs on.
. "$(dirname "$0")/common.sh"
need_testbed
mpicc -std=c11 -D_GNU_SOURCE -O2 "$top/tests/system/faults.c" -o isthmus-test-faults || fail "mpicc faults.c"

cat >lose.sh <<'EOF'
# lose.sh HOW COMMAND...: the last two ranks, which are at site b, are lost by the command once all processes run.
how=$1
shift
# Nothing is there that an earlier job has said: this one would not be waited for.
: >out
timeout -k 5 100 isthmus run --on-loss go-on --site home:2 --site c1:2 --site b1:2 ./isthmus-test-faults "$how" 2 <"/dev/null" >out 2>err &
job=$!
until grep -q ready out; do
    kill -0 $job 2>/dev/null || { echo "the job did not start"; exit 1; }
    sleep 0.1
done
"$@"
wait $job
echo $? >status
# Nothing of the site that was decided to be lost is left, at the latest 1.5 times ISTHMUS_AWAY and a few seconds later.
isthmus-testbed restore a b
isthmus-testbed restore b c
tries=0
while ssh b1 ps -eo args= | grep -q '[i]sthmus-test-faults'; do
    tries=$((tries + 1))
    [ $tries -lt 40 ] || exit 3
    sleep 0.5
done
true
EOF
cat >kill-agent.sh <<'EOF'
. "$1/tests/system/agents.sh"
kill_agent b1 isthmus-test-faults
EOF
cat >cut-off.sh <<'EOF'
isthmus-testbed cut a b
[ "$1" = half ] || isthmus-testbed cut b c
EOF

# lost NAME AWAY LOST STATUS WORDS HOW COMMAND...
lost() {
    name=$1 ISTHMUS_AWAY=$2 told=$3 expected=$4 words=$5
    export ISTHMUS_AWAY
    shift 5
    isthmus-testbed run --sites 3x1 --rtt 4ms -- sh lose.sh "$@" || { cat out err; fail "$name: it did not end, or something is left at the site"; }
    [ "$(cat status)" = "$expected" ] || fail "$name: exit status $(cat status) and not $expected: $(cat out err)"
    [ "$(grep -c 'went on as one of 4$' out)" = 4 ] || fail "$name: not all survivors went on: $(cat out err)"
    [ "$(grep -c 'the job goes on without' err)" = "$told" ] || fail "$name: not $told losses are told, each once: $(cat err)"
    grep -q "error: 2 of 6 processes were lost; the first loss: .*$words" err || fail "$name: the end is not '$words': $(cat err)"
}
lost "killed processes" 60 2 137 "(site 'b1') was killed by signal 9" signal true
lost "a killed agent" 60 1 1 "site 'b1': " wait sh kill-agent.sh "$top"
lost "a site that is cut off" 6 1 1 "site 'b1': nothing was heard from its agent for 6 s" wait sh cut-off.sh whole
# Site b is heard by c and not by the launcher: all the same it is lost for both.
lost "a site that the launcher does not hear" 6 1 1 "site 'b1': nothing was heard from its agent for 6 s" wait sh cut-off.sh half
echo "survivors at two sites went on without the third"
