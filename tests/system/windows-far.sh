#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Windows whose members lie on several nodes and sites: the programs of tests/c about them over 2 sites x 2 machines, 2 ms apart; a
# target that sleeps is reached all the same; random programs on windows of all kinds of memory are as a model says; who waits for a lock
# of a process that dies does not wait on.
. "$(dirname "$0")/common.sh"
need_testbed
for program in rma windows window_errors window_handles; do
    mpicc -std=c11 -D_GNU_SOURCE -O2 -w -I"$top/tests/c" "$top/tests/c/$program.c" -o "$program" || fail "mpicc $program.c"
done
mpicc -std=c11 -D_GNU_SOURCE -O2 "$top/tests/system/windows-far.c" -o far || fail "mpicc windows-far.c"
mpicc -std=c11 -D_GNU_SOURCE -O2 "$top/tests/windows/model.c" -o model || fail "mpicc model.c"

printf 'program = "PROGRAM"\n' >job.toml
for part in home:a:1 a2:a:2 b1:b:2 b2:b:1; do
    site=${part%%:*} rest=${part#*:}
    printf '[[subjob]]\nsite = "%s"\ncount = %s\nlan = "%s"\n' "$site" "${rest#*:}" "${rest%:*}" >>job.toml
done
cat >run.sh <<'S'
set -eu
for program in rma windows window_errors window_handles far model; do
    sed "s|PROGRAM|$WORK/$program|" job.toml >"$program.toml"
    isthmus run "$program.toml" >"$program.out" 2>"$program.err" </dev/null || { cat "$program.out" "$program.err"; exit 1; }
done
sed "s|PROGRAM|$WORK/far|; 1a arguments = [\"lose\"]" job.toml >lose.toml
status=0
isthmus run lose.toml >lose.out 2>lose.err </dev/null || status=$?
[ $status = 137 ] || { cat lose.out lose.err; exit 1; }
S
WORK=$work
export WORK
isthmus-testbed run --sites 2x2 --rtt 2ms -- sh run.sh || fail "windows over 2 sites x 2 machines"
[ "$(sed -n '$p' far.out)" = woke ] || { cat far.out; fail "the first process had to wait until the last one woke"; }
# Whoever waits hears of the loss, or gets the lock that the target has taken back; nobody waits on.
ended=$(grep -c '^rank [0-4] heard of the loss: ' lose.out)
[ "$ended" = 5 ] || { cat lose.out lose.err; fail "$ended of 5 processes went on when one had died with a lock"; }
grep -q '^rank 0 heard of the loss: yes' lose.out || { cat lose.out lose.err; fail "the process whose lock it was did not hear"; }
[ "$(grep -c 'freed: yes' lose.out)" = 5 ] || { cat lose.out lose.err; fail "a window with a lost process could not be freed"; }
echo "windows over 2 sites x 2 machines are right; a process that slept was reached: $(head -1 far.out)"
