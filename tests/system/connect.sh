#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Jobs that meet on one machine: of two launchers, of programs without a launcher, and one of each; again and again through one port. Neither
# leaves anything behind. Crowds without the secret are refused. A job whose partner is killed gets an error, and goes on.
. "$(dirname "$0")/common.sh"
for tool in isthmus mpicc; do command -v $tool >/dev/null 2>&1 || skip "no $tool in PATH"; done
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -pthread -I"$top/tests/c" "$top/tests/c/connect.c" -o connect || fail "mpicc connect.c"
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -I"$top/tests/c" "$top/tests/system/parted.c" -o parted || fail "mpicc parted.c"

# seen JOB LINE PROCESS: waits until isthmus where shows such a line of the job, as long as the process lives; its output is in where.
seen() {
    tries=0
    until isthmus where "$1" >where 2>where.err && grep -q "^$2" where; do
        tries=$((tries + 1))
        kill -0 "$3" 2>/dev/null && [ $tries -lt 600 ] || return 1
        sleep 0.1
    done
}

# Two commands at once, which must both end well.
both() {
    name=$1 server=$2 client=$3
    rm -f port
    timeout 100 $server >$name.server 2>&1 </dev/null &
    job=$!
    timeout 100 $client >$name.client 2>&1 </dev/null
    status=$?
    wait $job
    [ $? -eq 0 ] && [ $status -eq 0 ] || { tail -n 20 $name.server $name.client; fail "$name"; }
    grep -q "server: all is well" $name.server && grep -q "client: all is well" $name.client || fail "$name said nothing"
}

both launchers "isthmus run -n 3 ./connect server port 3" "isthmus run -n 2 ./connect client port 3"
both alone "./connect server port 3" "./connect client port 3"
both mixed "isthmus run -n 2 ./connect server port 2" "./connect client port 2"

# Threads of both meet at one port at the same time.
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -pthread -I"$top/tests/c" "$top/tests/system/concurrent.c" -o concurrent || fail "mpicc concurrent.c"
for threads in 2 8; do
    both threads-$threads "isthmus run -n 1 ./concurrent server port $threads 12" "isthmus run -n 1 ./concurrent client port $threads 12"
done

# Another user, who has read the name of the port: without a key of who opened it nobody comes in, and the port is not disturbed. With `any-with-port` anybody does.
rm -f port
timeout 300 isthmus run -n 1 ./connect server port 1 >other.server 2>&1 </dev/null &
job=$!
for command in "isthmus run -n 1" ""; do
    XDG_STATE_HOME=$work/other timeout 100 $command ./connect client port 1 >other.client 2>&1 </dev/null && fail "another user came in: $(cat other.client)"
    grep -q "the port takes only jobs of the user who has opened it" other.client || fail "another user: $(cat other.client other.server)"
done
[ "$(stat -c %a "$work/other/isthmus/keys/own")" = 600 ] || fail "others can read a key"
timeout 100 isthmus run -n 1 ./connect client port 1 >own.client 2>&1 </dev/null || fail "a port after strangers: $(cat own.client other.server)"
wait $job || fail "the acceptor after strangers: $(cat other.server)"
# 300 at once whose secret is nearly right, of one process and of several: each is refused within 5 s, and meanwhile who knows the name comes in.
for crowd in "./connect crowd port 300" "isthmus run -n 10 ./connect crowd port 30"; do
    rm -f port
    timeout 100 isthmus run -n 1 ./connect server port 5 >crowd.server 2>&1 </dev/null &
    job=$!
    timeout 100 $crowd >crowd.out 2>&1 </dev/null &
    strangers=$!
    until grep -q begins crowd.out; do kill -0 $strangers 2>/dev/null || break; sleep 0.1; done
    timeout 100 isthmus run -n 2 ./connect client port 4 >crowd.client 2>&1 </dev/null &
    client=$!
    wait $strangers || fail "the crowd: $(cat crowd.out)"
    # The acceptor is there until the last of them has come, and its clients stay connected with it.
    timeout 100 isthmus run -n 1 ./connect client port 1 >last.client 2>&1 </dev/null || fail "after a crowd: $(cat last.client crowd.server)"
    wait $client || fail "among a crowd: $(cat crowd.client crowd.server)"
    wait $job || fail "the acceptor of a crowd: $(cat crowd.server)"
    awk -v limit="$(within 5)" '/turned away/ { n++; if ($4 >= limit) late = 1 } END { exit late || n < 1 }' crowd.out || fail "the crowd waits: $(cat crowd.out)"
done
# Two users who have a key in common.
for home in mine other; do
    mkdir -p -m 700 "$work/$home/isthmus/keys"
    (umask 077; printf '%064d\n' 7 >"$work/$home/isthmus/keys/project")
done
both shared "env XDG_STATE_HOME=$work/mine ISTHMUS_ACCEPT=user=project isthmus run -n 1 ./connect server port 1" "env XDG_STATE_HOME=$work/other isthmus run -n 2 ./connect client port 1"
both any "env ISTHMUS_ACCEPT=any-with-port isthmus run -n 1 ./connect server port 1" "env XDG_STATE_HOME=$work/other ./connect client port 1"

# Without a launcher a program spawns, too: each time a job of its own, whose children spawn as well. What cannot start is an error.
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -I"$top/tests/c" "$top/tests/system/alone.c" -o alone || fail "mpicc alone.c"
timeout 100 ./alone >alone.out 2>alone.err </dev/null || fail "spawning without a launcher: $(cat alone.out alone.err)"
grep -q "all is well" alone.out && grep -q "refused: .*'mars' is not a machine of this job" alone.out || fail "spawning without a launcher: $(cat alone.out)"
grep -q "refused: .*has ended (exit status: 1); it has said why" alone.out && grep -q "'./nowhere'" alone.err || fail "a missing program: $(cat alone.out alone.err)"

# Who spawned whom is in a trace.
isthmus run --trace spawned.json -n 1 ./connect spawn >spawned.out 2>&1 </dev/null || fail "spawning: $(cat spawned.out)"
grep '"cat":"spawn"' spawned.json | grep -q '"has spawned ranks 1-2 at home+1".*"pid":0,' || fail "the trace knows no spawning"

# Nobody comes: whoever waits for others to connect is seen to wait, in a trace, too.
rm -f port
timeout 200 isthmus run --name "waits-$$" --trace waits.json -n 2 ./connect server port 1 >waits.server 2>&1 </dev/null &
job=$!
seen "waits-$$" "rank 1: in MPI_Comm_accept for" $job || fail "who waits for others to connect: $(cat where where.err waits.server)"
! grep suspicion where || fail "waiting for others to connect is suspected"
timeout 100 isthmus run -n 1 ./connect client port 1 >waits.client 2>&1 </dev/null || fail "a client: $(cat waits.client waits.server)"
wait $job || fail "a server: $(cat waits.server)"
grep '"cat":"wait"' waits.json | grep '"name":"MPI_Comm_accept"' | grep -q '"dur":[0-9]\{7,\}.*"pid":1,' || fail "the trace knows no wait for others to connect"

# More jobs, one after the other, than a process has numbers for transports.
rounds=${ISTHMUS_TEST_ROUNDS:-10}
both many "./connect server port $rounds" "./connect client port $rounds"

# With whom a job is connected is seen. A partner that is killed is an error, not the end.
rm -f port
timeout 200 ./parted server port >killed.server 2>&1 </dev/null &
job=$!
timeout 200 isthmus run --name "visits-$$" -n 1 ./parted client port seen >killed.client 2>&1 </dev/null &
client=$!
connected='connected: rank 0 with 1 process at home (..*)$'
seen "visits-$$" "$connected" $client || fail "where: $(cat where where.err killed.server killed.client)"
isthmus ps --long >ps && grep -q "^  $connected" ps || fail "ps --long: $(cat ps)"
isthmus top --once --interval 0.5 "visits-$$" >top && grep -q "^$connected" top || fail "top: $(cat top)"
isthmus where --json "visits-$$" >where.json && isthmus ps --json >ps.json && isthmus top --once --interval 0.5 --json "visits-$$" >top.json || fail "the JSON"
for what in where ps top; do tr -d ' \n' <$what.json | grep -q '"joined":\[{"ranks":\[0\],"with":\[{"host":' || fail "$what --json: $(cat $what.json)"; done
! command -v python3 >/dev/null 2>&1 || python3 "$top/tests/system/schema.py" where.json ps.json top.json || fail "the JSON is not as described"
touch seen
wait $client
[ $? = 137 ] || fail "the killed client: $(cat killed.client)"
wait $job || { tail -n 20 killed.server killed.client; fail "a partner was killed, and the other one ended badly"; }
grep -q "goes on" killed.server || { cat killed.server; fail "the survivor does not go on"; }
