#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Processes of a job that hear of a loss end in order, without waiting for anybody. A process of another job that waits for them then, in whatever way,
# gets an error and does not wait for ever: on the same machine, in the same local area, at another site.
# beside: it mostly waits, in its own network.
. "$(dirname "$0")/common.sh"
need_testbed
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra "$top/tests/system/ended.c" -pthread -o ended || fail "mpicc ended.c"
cat >run.sh <<'S'
# run.sh NAME HOST
ISTHMUS_ACCEPT=any-with-port timeout 110 isthmus run --on-loss go-on -n 2 ./ended server "$1.port" >"$1.out" 2>"$1.err" </dev/null & server=$!
until [ -s "$1.port" ]; do kill -0 $server || exit 2; sleep 0.1; done
there() { timeout 100 isthmus run --on-loss go-on -n 10 ./ended client "$1.port"; }
case $2 in
home) there "$1" ;;
*) ssh "$2" "cd $PWD; PATH=$PATH timeout 100 isthmus run --on-loss go-on -n 10 ./ended client $1.port" ;;
esac >"$1.client" 2>&1 </dev/null || exit 3
wait $server
S
for where in near:2x1:home area:1x2:a2 far:2x1:b1; do
    name=${where%%:*} host=${where##*:} sites=${where#*:}
    timeout 200 isthmus-testbed run --sites "${sites%:*}" --rtt 5ms -- sh run.sh "$name" "$host" >run.out 2>&1
    [ -s "$name.out" ] || { cat run.out "$name".*; fail "$name: nothing ran"; }
    grep ': waits\|: no error' "$name.out" && { cat run.out "$name".*; fail "$name: somebody waits for a process that has ended, or got no error"; }
    [ "$(grep -c ': an error' "$name.out")" -ge 10 ] && grep -q 'process 0 has ended' "$name.out" ||
        { cat run.out "$name".*; fail "$name: the server did not come to its end"; }
    [ "$(grep -c 'has ended' "$name.client")" = 10 ] || { cat run.out "$name".*; fail "$name: not all clients have ended"; }
done
echo "whoever waits for a process of another job that ends in order gets an error, in 10 ways, near and far"
