#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A client at another site is killed. All processes of the server get out of MPI_Comm_disconnect, also one that has no connection to the client and so
# cannot notice its loss, and they serve the next client. Those of a server that stays connected with it get out of MPI_Finalize. Those that wait for a
# message of one that was killed before it had sent any hear of that.
# beside: it mostly waits, in its own network.
. "$(dirname "$0")/common.sh"
need_testbed
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra "$top/tests/system/lost-client.c" -o lost-client || fail "mpicc lost-client.c"
cat >run.sh <<'S'
there() { ssh b1 "cd $PWD; PATH=$PATH timeout 60 isthmus run -n 1 ./lost-client $1 port" >"$1.out" 2>&1 </dev/null; }
# Hosts of the testbed have no key in common.
ISTHMUS_ACCEPT=any-with-port timeout 100 isthmus run --on-loss go-on -n 2 ./lost-client server port >server.out 2>&1 </dev/null & server=$!
until [ -s port ]; do kill -0 $server || exit 2; sleep 0.1; done
there killed
there served || exit 3
wait $server || exit 4
rm port
ISTHMUS_ACCEPT=any-with-port timeout 100 isthmus run --on-loss go-on -n 2 ./lost-client leaves port >leaves.out 2>&1 </dev/null & server=$!
until [ -s port ]; do kill -0 $server || exit 5; sleep 0.1; done
there killed
wait $server || exit 6
rm port
ISTHMUS_ACCEPT=any-with-port timeout 100 isthmus run --on-loss go-on -n 2 ./lost-client waits port >waits.out 2>&1 </dev/null & server=$!
until [ -s port ]; do kill -0 $server || exit 7; sleep 0.1; done
there gone
wait $server || exit 8
S
isthmus-testbed run --sites 2x1 --rtt 5ms -- sh run.sh >run.out 2>&1 || { status=$?; cat run.out ./*.out; fail "exit status $status"; }
[ "$(grep -c 'client 0: an error' server.out)" = 2 ] || { cat server.out; fail "not both processes get an error"; }
[ "$(grep -c 'client 1: all is well' server.out)" = 2 ] || { cat server.out; fail "not both processes go on"; }
grep -q 'was served' served.out || { cat served.out; fail "the client"; }
[ "$(grep -c 'has ended' leaves.out)" = 2 ] || { cat leaves.out; fail "not both processes leave"; }
[ "$(grep -c 'waits for client 0: an error' waits.out)" = 2 ] || { cat waits.out; fail "not both processes that wait get an error"; }
echo "a client is killed: both processes of the server go on, and serve the next one"
