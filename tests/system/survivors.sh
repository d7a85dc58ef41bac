#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs that go on with those that are left: they agree, revoke and shrink (mpi-ext.h) while one process after the other is killed in
# whatever it does, on one node and over two sites, and of two launchers.
. "$(dirname "$0")/common.sh"
for tool in isthmus mpicc; do
    command -v "$tool" >/dev/null 2>&1 || skip "no $tool in PATH"
done
mpicc -std=c11 -D_GNU_SOURCE -O2 "$top/tests/system/survivors.c" -o survivors || fail "mpicc survivors.c"

for how in between while agreement shrink revoke any; do
    for place in "-n 7" "--site home:4 --site other=home:4"; do
        # shellcheck disable=SC2086 # options are words
        timeout -k 5 100 isthmus run --on-loss go-on $place ./survivors $how </dev/null >out 2>err
        status=$?
        [ $status = 137 ] || fail "$how, $place: exit status $status: $(cat out err)"
        [ "$(grep -c 'is left, one of 2$' out)" = 2 ] || fail "$how, $place: not two are left: $(cat out err)"
    done
done

# Two jobs with a launcher each work on one communicator; all of one may fail.
for how in any agreement shrink revoke job; do
    service="survivors-$$-$how" left=2 first=137
    [ $how = job ] && left=4 first=0
    timeout -k 5 100 isthmus run --name "$service" --on-loss go-on -n 4 ./survivors $how "$service" serve </dev/null >out 2>err &
    job=$!
    timeout -k 5 100 isthmus run --on-loss go-on --trace visit.json -n 3 ./survivors $how "$service" visit </dev/null >out.visit 2>err.visit
    status=$?
    wait $job
    [ $? = $first ] && [ $status = 137 ] || fail "$how, two launchers: exit status $status: $(cat out err out.visit err.visit)"
    [ "$(cat out out.visit | grep -c "is left, one of $left\$")" = $left ] || fail "$how, two launchers: not $left are left: $(cat out err out.visit err.visit)"
    # Whom the visitors have met is in their trace, by the name of that job, and that they are lost.
    grep '"cat":"connection"' visit.json | grep -q "connected with 4 processes of job $service at home" || fail "$how: the trace knows no connection"
    grep '"cat":"loss"' visit.json | grep -q "lost: rank . (site 'home') was killed by signal 9" || fail "$how: the trace knows no loss"
done

# Three jobs, of which the third one has met only one of the others before it meets what they have become.
for how in any agreement shrink revoke job; do
    service="chain-$$-$how" left=2
    [ $how = job ] && left=4
    jobs=
    for who in host guest third; do
        timeout -k 5 100 isthmus run --on-loss go-on -n $((2 + (${#who} < 5))) ./survivors $how "$service" $who </dev/null >out.$who 2>err.$who &
        jobs="$jobs $!"
    done
    for job in $jobs; do
        wait "$job" || true
    done
    [ "$(cat out.host out.guest out.third | grep -c "is left, one of $left\$")" = $left ] ||
        fail "$how, three launchers: not $left are left: $(cat out.host err.host out.guest err.guest out.third err.third)"
done
echo "survivors of processes that fail in any place agreed, shrank and went on"
