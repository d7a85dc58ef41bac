#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two jobs at two sites, both behind address translation that lets only ssh out, find each other by a name at a host that ssh reaches, and connect
# through it. In the middle the connection of one of them to the host is cut. Names that were changed or are old, and strangers at that host, are turned away, and disturb nobody. One job is killed: the other one gets
# errors. Nothing is left at the host. Processes at a site that only their launcher's ssh reaches are reached in the same way, and reach others.
# beside: it mostly waits.
# ISTHMUS_TEST_MESSAGES=100000 ISTHMUS_TEST_ROUNDS=1 ISTHMUS_TEST_RTT=1ms, as each message waits for one of the other job, and ISTHMUS_TEST_MESSAGES=10
# ISTHMUS_TEST_ROUNDS=100: long, as is ISTHMUS_TEST_KILLS=100.
. "$(dirname "$0")/common.sh"
need_testbed
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -pthread -I"$top/tests/c" "$top/tests/system/meet-ports.c" -o meet-ports || fail "mpicc meet-ports.c"
messages=${ISTHMUS_TEST_MESSAGES:-100}
rounds=${ISTHMUS_TEST_ROUNDS:-3}

cat >all.sh <<'S'
set -u
here=$PWD rounds=$1 messages=$2 kills=$3
at_b1() { ssh b1 "cd $here; PATH=$PATH timeout $1 isthmus run $2 ./meet-ports client $3" >"$4.out" 2>&1 </dev/null; }
opened() { says open "$1"; }
says() {
    for _ in $(seq 600); do grep -q "$1" "$2" && return; kill -0 $job || return 1; sleep 0.1; done
    return 1
}
timeout 280 isthmus run --meet c1 -n 2 ./meet-ports server $rounds $messages >server.out 2>&1 </dev/null & job=$!
opened server.out || exit 1
# Who does not meet there finds nobody.
at_b1 5 "-n 1" "1 1" apart & apart=$!
# Strangers there: 300 at once on each port that somebody of ours has there, who say nothing or something else, again and again.
ssh c1 'ulimit -n 2048; ports=$(ss -Hltn "src 127.0.0.1" | sed "s/.*127.0.0.1:\([0-9]*\) .*/\1/")
    for turn in 1 2; do for port in $ports; do for i in $(seq 150); do
        exec {idle}<>/dev/tcp/127.0.0.1/$port; (echo garbage >/dev/tcp/127.0.0.1/$port)
    done; done; sleep 1; done' >strangers.out 2>&1 </dev/null & strangers=$!
sleep 0.5
at_b1 280 "--meet c1 -n 2" "$rounds $messages" client || exit 2
wait $job || exit 3
wait $strangers $apart
for far in server client; do
    here_is='-n 1' there_is='--site d1:1'
    [ $far = client ] || { here_is='--site d1:1' there_is='-n 1'; }
    : >far-$far.out
    timeout 280 isthmus run --meet c1 $here_is ./meet-ports server 1 $messages >far-$far.out 2>&1 </dev/null & job=$!
    opened far-$far.out || exit 9
    at_b1 280 "--meet c1 $there_is" "1 $messages" far-$far-client || exit 10
    wait $job || exit 11
done
for kill in $(seq $kills); do
    rm -f cut
    timeout 100 isthmus run --meet c1 -n 1 ./meet-ports server 1 $messages killed >server-killed.out 2>&1 </dev/null & job=$!
    opened server-killed.out || exit 4
    at_b1 100 "--meet c1 -n 1" "1 $messages killed" client-killed & client=$!
    # In the middle the ssh connection of one launcher is cut: it is made again, and the messages go on.
    says half server-killed.out || exit 6
    cut=
    for launcher in $(ps -o pid= --ppid $job); do
        for child in $(ps -o pid= --ppid $launcher); do
            ps -o args= -p $child | grep -q "ssh.* c1" && kill -9 $child && cut="$cut $child"
        done
    done
    [ -n "$cut" ] || exit 7
    touch cut
    wait $client
    wait $job || exit 5
    grep -q "goes on" server-killed.out || { echo "the survivor of kill $kill does not go on"; exit 8; }
done
ssh c1 'ls -A ~/.cache/isthmus/names-met; ss -Hltn "src 127.0.0.1" | grep -v ":22 "' >left
exit 0
S
isthmus-testbed run --sites 4x1 --rtt "${ISTHMUS_TEST_RTT:-20ms}" --access a=nat-ssh,b=nat-ssh,d=nat-ssh -- bash all.sh "$rounds" "$messages" "${ISTHMUS_TEST_KILLS:-1}" >run.out 2>&1 || {
    tail -n 20 run.out ./*.out
    fail "jobs behind address translation"
}
[ "$(cat server.out client.out | grep -c 'all is well')" = 4 ] || { tail server.out client.out; fail "not all processes have ended well"; }
[ "$(cat far-*.out | grep -c 'all is well')" = 4 ] || { tail far-*.out; fail "processes at a further site"; }
grep -q "connected" apart.out && { cat apart.out; fail "a job that meets nobody there has found the name"; }
awk -v limit="$(within 5)" '/turned away/ { n++; if ($4 >= limit) late = 1 } END { exit late || n != 3 }' client.out || { cat client.out; fail "who comes with a wrong name"; }
[ -s left ] && fail "left: $(cat left)"
grep "connected in" client.out
echo "jobs behind address translation meet by a name at a host, and turn strangers away"
