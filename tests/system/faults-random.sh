#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# examples/survivors.c loses processes at random moments, then an agent with all of its machine, then a whole site: the survivors go on
# each time, and the field at the end is right to the last bit.
# ISTHMUS_TEST_SEED: the moments of an earlier run, which has printed it. ISTHMUS_TEST_LONG=1: kills for a minute (ci/nightly.sh losses).
. "$(dirname "$0")/common.sh"
need_testbed
mpicc -std=c11 -D_GNU_SOURCE -O2 "$top/examples/survivors.c" -o isthmus-test-survivors || fail "mpicc survivors.c"
seed=${ISTHMUS_TEST_SEED:-$(date +%s)}
echo "ISTHMUS_TEST_SEED=$seed"
rounds=3 steps=4000
[ -z "$ISTHMUS_TEST_LONG" ] || rounds=12 steps=30000
# For the second part: steps take their time until all are lost that are to be, however long it takes here to find and kill them.
cat >unhurried.c <<'C'
#include <poll.h>
#include <unistd.h>
int usleep(useconds_t microseconds)
{
    if (access(THROUGH, F_OK) != 0) poll(NULL, 0, (int)(microseconds / 1000));
    return 0;
}
C
mpicc -std=c11 -D_GNU_SOURCE -O2 -Dusleep=unhurried -DTHROUGH="\"$work/through\"" "$top/examples/survivors.c" unhurried.c -o isthmus-test-unhurried ||
    fail "mpicc unhurried.c"

# On one machine, of eight: one after the other, each some steps after the survivors of the last one have gone on.
awk -v seed="$seed" 'BEGIN { srand(seed); for (i = 1; i <= 6; i++) { at += int(1 + 60 * rand()); print i "@" at } }' >deaths
# shellcheck disable=SC2046 # several words
timeout -k 5 100 isthmus run --on-loss go-on -n 8 ./isthmus-test-survivors 600 0 $(cat deaths) <"/dev/null" >out 2>err
status=$?
[ $status = 137 ] || { cat deaths out err; fail "exit status $status after deaths at known steps"; }
grep -q "600 steps done by 2 processes: the field is right" out || { cat deaths out err; fail "deaths at known steps"; }

cat >random.sh <<'EOF'
rounds=$1 steps=$2 seed=$3 top=$4
isthmus run --on-loss go-on --site home:4 --site c1:3 --site b1:3 --site b2:2 ./isthmus-test-unhurried "$steps" 20000 <"/dev/null" >out 2>err &
job=$!
of() { ssh "$1" ps -eo pid=,args= | grep '[i]sthmus-test-unhurried' | grep -v -e 'isthmus run' -e @exec -e agent | awk '{ print $1 }'; }
until [ -n "$(of b1)" ] && [ -n "$(of a1)" ] && [ -n "$(of c1)" ]; do kill -0 $job || exit 2; sleep 0.2; done
sleep 1
round=0
while [ $round -lt "$rounds" ]; do
    round=$((round + 1))
    # One process of those that are left at home or at c, where some have to be left.
    host=$(awk -v seed="$seed" -v n=$round 'BEGIN { srand(seed + n); print rand() < 0.5 ? "a1" : "c1" }')
    # shellcheck disable=SC2046 # several words
    set -- $(of "$host")
    [ $# -gt 1 ] && ssh "$host" kill -KILL "$(awk -v seed="$seed" -v n=$round -v all="$*" 'BEGIN { srand(seed - n); m = split(all, p, " "); print p[1 + int(m * rand())] }')"
    sleep "$(awk -v seed="$seed" -v n=$round 'BEGIN { srand(seed * 2 + n); printf "%.2f", 0.1 + 2 * rand() }')"
done
# The machine b2 with its agent, and then all of site b.
. "$top/tests/system/agents.sh"
kill_agent b2 isthmus-test-unhurried
sleep 1
isthmus-testbed cut a b
isthmus-testbed cut b c
touch through
wait $job
echo $? >status
EOF
ISTHMUS_AWAY=5 isthmus-testbed run --sites 3x2 --rtt 4ms -- timeout -k 5 250 sh random.sh $rounds $steps "$seed" "$top" || { cat out err; fail "random kills: it did not end"; }
[ "$(cat status)" = 137 ] || { cat out err; fail "random kills: exit status $(cat status)"; }
grep -q "$steps steps done by .* processes: the field is right" out || { cat out err; fail "random kills: the field"; }
for lost in "site 'b1'" "site 'b2'"; do
    grep -q "$lost.*the job goes on without its" err || { cat out err; fail "random kills: $lost was not lost"; }
done
echo "$(grep -c 'going on with' out) times survivors went on, and the field was right"
