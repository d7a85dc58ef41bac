#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A rank that is killed at a random moment of messages and collective operations in shared memory: the others end, the command says
# so, and nothing stays behind. ISTHMUS_TEST_SEED: the moments of an earlier run, which has printed it.
. "$(dirname "$0")/common.sh"
for tool in mpiexec mpicc; do
    command -v "$tool" >/dev/null 2>&1 || skip "no $tool in PATH"
done
mpicc -std=c11 -D_GNU_SOURCE -O2 "$top/tests/system/killed.c" -o killed || fail "mpicc killed.c"
# A process that only waits for init to ask for its exit status is gone.
alive() { case $(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) in '' | [ZX]*) return 1 ;; esac; }
first=${ISTHMUS_TEST_SEED:-$(date +%s)}
echo "ISTHMUS_TEST_SEED=$first"
for round in 1 2 3 4 5 6 7 8 9 10; do
    seed=$((first + round))
    # Two, who have a processor each, copy long messages together.
    ranks=$((round % 2 == 0 ? 2 : 6))
    rm -f pid.*
    timeout -k 5 60 mpiexec -n $ranks ./killed </dev/null >out 2>&1 &
    job=$!
    tries=0
    while [ "$(cat pid.* 2>/dev/null | wc -l)" -lt $ranks ]; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || { cat out; fail "the ranks did not start"; }
        sleep 0.1
    done
    # shellcheck disable=SC2046 # two words
    set -- $(awk -v seed=$seed -v ranks=$ranks 'BEGIN { srand(seed); print int(ranks * rand()), 0.5 * rand() }')
    sleep "$2"
    kill -9 "$(cat "pid.$1")" || fail "rank $1 was gone before it was killed"
    wait $job
    status=$?
    [ $status -ne 0 ] && [ $status -ne 124 ] || { cat out; fail "exit status $status after rank $1 was killed"; }
    grep -q -e "rank $1 " -e "process $1 " out || { cat out; fail "nobody says that it was rank $1"; }
    for pid in $(cat pid.*); do
        ! alive "$pid" || fail "process $pid is still there after rank $1 was killed"
    done
done
echo "10 jobs of 6 and of 2 ranks ended after one of them was killed"
