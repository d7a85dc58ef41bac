#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The link between two sites is cut for a while, again and again, during a byte-exact random exchange: nothing is lost, doubled or out of
# order. Cut for good, the processes are told within the deadline whom they lost, and the survivors compute on.
# ISTHMUS_TEST_LONG=1: 10^5 messages, cuts of 1, 5 and 30 s. ISTHMUS_TEST_SEED: the moments of an earlier run, which has printed it.
# beside: it mostly waits, in its own network.
. "$(dirname "$0")/common.sh"
need_testbed
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra "$top/tests/system/cuts.c" -o cuts || fail "mpicc cuts.c"
if [ -n "$ISTHMUS_TEST_LONG" ]; then
    messages=25000 spread=150 cuts='1 5 30 1 5'
else
    messages=1500 spread=16 cuts='1 5'
fi
seed=${ISTHMUS_TEST_SEED:-$(date +%s)}
echo "ISTHMUS_TEST_SEED=$seed"

# In the testbed: cut and restore at random moments. One end of the link is where the launcher is, which has to be as patient as the processes.
export ISTHMUS_AWAY=90
cat >hurt.sh <<'EOF'
messages=$1 spread=$2 seed=$3 number=0
shift 3
isthmus run --site home:2 --site b1:2 ./cuts "$messages" "$spread" >exchange.out 2>exchange.err </dev/null &
job=$!
until grep -q begun exchange.out; do
    kill -0 $job 2>/dev/null || exit 1
    sleep 0.2
done
for seconds; do
    number=$((number + 1))
    sleep "$(awk -v seed="$seed" -v n=$number 'BEGIN { srand(seed); while (n-- >= 0) r = rand(); printf "%.2f", 1 + 2 * r }')"
    isthmus-testbed cut a b
    sleep "$seconds"
    isthmus-testbed restore a b
done
wait $job
EOF
# shellcheck disable=SC2086 # one argument per cut
isthmus-testbed run --sites 2x1 --rtt 20ms --rate 200mbit -- sh hurt.sh $messages $spread $seed $cuts ||
    { cat exchange.out exchange.err; fail "the exchange did not survive cuts of $cuts s"; }
grep -q 'all right' exchange.out || { cat exchange.out exchange.err; fail "the exchange has no end"; }
[ "$(grep -c "$messages messages each way" exchange.out)" = 4 ] || { cat exchange.out; fail "not all processes are through"; }

cat >lose.sh <<'EOF'
# The processes are told before the launcher ends the job.
isthmus run --env ISTHMUS_AWAY=6 --site home:2 --site b1:2 ./cuts 1 0 lost >lost.out 2>lost.err </dev/null &
job=$!
until grep -q ready lost.out; do
    kill -0 $job 2>/dev/null || exit 1
    sleep 0.2
done
isthmus-testbed cut a b
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
    [ "$(grep -c 'compute on' lost.out)" -ge 2 ] && break
    sleep 1
done
kill $job 2>/dev/null
wait $job
true
EOF
isthmus-testbed run --sites 2x1 --rtt 20ms -- sh lose.sh || { cat lost.out lost.err; fail "cut for good"; }
for rank in 0 1; do
    grep "rank $rank: told:" lost.out | grep -q 'site b1' || { cat lost.out lost.err; fail "rank $rank was not told whom it lost"; }
    grep "rank $rank: told:" lost.out | grep -q 'ISTHMUS_AWAY' || { cat lost.out; fail "rank $rank was not told why"; }
    grep -q "rank $rank: 2 survivors compute on" lost.out || { cat lost.out; fail "rank $rank did not go on"; }
done
echo "$messages messages each way survived cuts of $cuts s; after the last cut the survivors went on"
