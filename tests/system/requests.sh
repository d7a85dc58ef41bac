#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Remote service requests over 2 sites x 2 machines, 2 ms apart: the program of tests/c about them and the example; a process that
# dies in a handler, of which all hear who wait for it.
. "$(dirname "$0")/common.sh"
need_testbed
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -I"$top/tests/c" "$top/tests/c/requests.c" -o requests || fail "mpicc requests.c"
mpicc -std=c11 -O2 -Wall -Wextra "$top/examples/work-queue.c" -o queue || fail "mpicc work-queue.c"
mpicc -std=c11 -O2 -Wall -Wextra "$top/tests/system/requests.c" -o lose || fail "mpicc tests/system/requests.c"

printf 'program = "PROGRAM"\n' >job.toml
for part in home:a:1 a2:a:2 b1:b:2 b2:b:1; do
    site=${part%%:*} rest=${part#*:}
    printf '[[subjob]]\nsite = "%s"\ncount = %s\nlan = "%s"\n' "$site" "${rest#*:}" "${rest%:*}" >>job.toml
done
cat >run.sh <<'S'
set -eu
for program in requests queue; do
    sed "s|PROGRAM|$WORK/$program|" job.toml >"$program.toml"
    ISTHMUS_STATS=1 isthmus run "$program.toml" >"$program.out" 2>"$program.err" </dev/null || { cat "$program.out" "$program.err"; exit 1; }
done
sed "s|PROGRAM|$WORK/lose|" job.toml >lose.toml
status=0
isthmus run lose.toml >lose.out 2>lose.err </dev/null || status=$?
[ $status = 137 ] || { echo "status $status"; cat lose.out lose.err; exit 1; }
S
WORK=$work
export WORK
timeout -k 5 120 isthmus-testbed run --sites 2x2 --rtt 2ms -- sh run.sh || fail "requests over 2 sites x 2 machines"
for count in request-ask request-send request-flush; do
    grep -q "^ *$count " requests.err || { cat requests.err; fail "$count is not counted"; }
done
grep -q '^17984 primes below 200000$' queue.out || { cat queue.out; fail "the queue has lost work"; }
for line in 'rank 0: reply: .*rank 5' 'rank 0: send: .*rank 5' 'rank 1: flush: ' 'rank 2: any: .*rank 5' 'rank 3: any: .*rank 5'; do
    grep -q "^$line" lose.out || { cat lose.out lose.err; fail "somebody does not hear of the process that has died: $line"; }
done
echo "requests over 2 sites x 2 machines are done; $(sed -n 1p queue.out)"
