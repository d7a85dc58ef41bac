#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Jobs that meet on one machine: of two launchers, of programs without a launcher, and one of each; again and again through one port. Neither
# leaves anything behind. A job whose partner is killed gets an error, and goes on.
. "$(dirname "$0")/common.sh"
for tool in isthmus mpicc; do command -v $tool >/dev/null 2>&1 || skip "no $tool in PATH"; done
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -I"$top/tests/c" "$top/tests/c/connect.c" -o connect || fail "mpicc connect.c"
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -I"$top/tests/c" "$top/tests/system/parted.c" -o parted || fail "mpicc parted.c"

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

# More jobs, one after the other, than a process has numbers for transports.
rounds=${ISTHMUS_TEST_ROUNDS:-10}
both many "./connect server port $rounds" "./connect client port $rounds"

# A partner that is killed is an error, not the end.
rm -f port
timeout 100 ./parted server port >killed.server 2>&1 </dev/null &
job=$!
timeout 100 ./parted client port >killed.client 2>&1 </dev/null
wait $job || { tail -n 20 killed.server killed.client; fail "a partner was killed, and the other one ended badly"; }
grep -q "goes on" killed.server || { cat killed.server; fail "the survivor does not go on"; }
