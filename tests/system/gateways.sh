#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Gateways are killed and started again at random moments, at one end and the other, during a byte-exact random exchange that goes through
# them on two threads each, and the link is cut too: nothing is lost, doubled or out of order.
# ISTHMUS_TEST_LONG=1: 10^5 messages, ten kills, cuts of 1, 5 and 30 s. ISTHMUS_TEST_SEED: the moments of an earlier run, which has printed it.
# beside: it mostly waits, in its own network.
. "$(dirname "$0")/common.sh"
need_testbed
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra "$top/tests/system/cuts.c" -o cuts || fail "mpicc cuts.c"
if [ -n "$ISTHMUS_TEST_LONG" ]; then
    messages=25000 spread=150 blows='a1 1 b1 5 a1 b1 30 a1 b1 1 a1 b1 5 a1 b1' kills=10
else
    messages=1500 spread=16 blows='b1 1 a1 b1' kills=3
fi
seed=${ISTHMUS_TEST_SEED:-$(date +%s)}
echo "ISTHMUS_TEST_SEED=$seed"

ends_gateways >end.sh
cat >hurt.sh <<'EOF'
messages=$1 spread=$2 seed=$3 number=0
shift 3
# Nothing is there that an earlier job has said.
: >out
ISTHMUS_PATH=gateway ISTHMUS_GATEWAY_THREADS=2 ISTHMUS_AWAY=90 isthmus run --site home:2 --site b1:2 ./cuts "$messages" "$spread" >out 2>err </dev/null &
job=$!
until grep -q begun out; do
    kill -0 $job 2>/dev/null || exit 1
    sleep 0.2
done
for blow; do
    number=$((number + 1))
    sleep "$(awk -v seed="$seed" -v n=$number 'BEGIN { srand(seed); while (n-- >= 0) r = rand(); printf "%.2f", 1 + 2 * r }')"
    case $blow in
    a1) sh end.sh ;;
    b1) ssh b1 sh "$PWD/end.sh" ;;
    *) isthmus-testbed cut a b; sleep "$blow"; isthmus-testbed restore a b ;;
    esac
done >blows
wait $job
EOF
# shellcheck disable=SC2086 # one argument per blow
isthmus-testbed run --sites 2x1 --rtt 20ms --rate 200mbit -- sh hurt.sh $messages $spread $seed $blows ||
    { cat out err blows; fail "the exchange did not survive $blows"; }
[ "$(grep -c killed blows)" -eq "$kills" ] || { cat blows; fail "$kills gateways should have been killed"; }
grep -q 'all right' out || { cat out err; fail "the exchange has no end"; }
[ "$(grep -c "$messages messages each way" out)" = 4 ] || { cat out; fail "not all processes are through"; }
echo "$messages messages each way survived: $blows"
