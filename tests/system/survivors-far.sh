#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Agreeing, shrinking, revoking, connecting and spawning over three sites: that they work, and how long they take (printed, not judged).
. "$(dirname "$0")/common.sh"
need_testbed
mpicc -std=c11 -D_GNU_SOURCE -O2 "$top/tests/system/survivors-far.c" -o survivors-far || fail "mpicc survivors-far.c"
mpicc -std=c11 -D_GNU_SOURCE -O2 "$top/tests/system/survivors.c" -o survivors || fail "mpicc survivors.c"

isthmus-testbed run --sites 3x1 --rtt 40ms -- timeout -k 5 100 isthmus run --site home:8 --site b1:8 --site c1:8 ./survivors-far \
    </dev/null >out 2>err || fail "it did not end: $(cat out err)"
grep -q 'with 24 ranks$' out || fail "no figures: $(cat out err)"
grep -q '^connect .* at another site ' out || fail "no figures of connecting and spawning: $(cat out err)"
figures="$(grep 'with 24 ranks$' out); $(grep '^connect ' out)"
isthmus-testbed run --sites 3x1 --rtt 4ms -- timeout -k 5 100 isthmus run --on-loss go-on --site home:3 --site b1:2 --site c1:2 \
    ./survivors any </dev/null >out 2>err
status=$?
[ $status = 137 ] || fail "exit status $status and not 137: $(cat out err)"
[ "$(grep -c 'is left, one of 2$' out)" = 2 ] || fail "not two are left: $(cat out err)"
echo "survivors at three sites went on; at 40 ms between sites: $figures"
