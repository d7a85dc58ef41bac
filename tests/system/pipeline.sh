#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The example of a simulation and its viewer: viewers come and go, one is killed, and the simulation ends well.
. "$(dirname "$0")/common.sh"
for tool in isthmus mpicc; do command -v $tool >/dev/null 2>&1 || skip "no $tool in PATH"; done
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -pthread "$top/examples/pipeline.c" -o pipeline -lm || fail "mpicc pipeline.c"

timeout 100 isthmus run -n 3 ./pipeline simulate room-$$ 3 >simulation.out 2>&1 </dev/null & simulation=$!
timeout 60 isthmus run -n 1 ./pipeline view room-$$ 2 >first.out 2>&1 </dev/null || { cat first.out simulation.out; fail "the first viewer"; }
./pipeline view room-$$ 1000000 >killed.out 2>&1 </dev/null & killed=$!
for i in $(seq 300); do [ -s killed.out ] && break; sleep 0.1; done
kill -9 $killed
wait $killed
timeout 60 isthmus run -n 1 ./pipeline view room-$$ 3 >last.out 2>&1 </dev/null || { cat last.out simulation.out; fail "the last viewer"; }
wait $simulation || { cat simulation.out; fail "the simulation ended badly"; }
[ "$(grep -c '^a viewer has left' simulation.out)" = 3 ] || { cat simulation.out; fail "not three viewers have left"; }
[ "$(cat first.out last.out | grep -c '^step .* of 96 rows')" = 5 ] || { cat first.out last.out; fail "frames"; }
