#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A client stops while it is being accepted. The server takes another one meanwhile, and the slow one when it goes on.
# beside: it mostly waits.
. "$(dirname "$0")/common.sh"
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra "$top/tests/system/slow-client.c" -o slow-client -lpthread || fail "mpicc slow-client.c"
timeout 60 isthmus run -n 1 ./slow-client server port >server.out 2>&1 </dev/null & server=$!
until [ -s port ]; do kill -0 $server || fail "the server has ended"; sleep 0.1; done
timeout 60 isthmus run -n 1 ./slow-client slow port >slow.out 2>&1 </dev/null & slow=$!
until [ -s stopped ]; do kill -0 $slow || fail "the slow client has ended"; sleep 0.1; done
timeout 60 isthmus run -n 1 ./slow-client client port >client.out 2>&1 </dev/null || { cat ./*.out; fail "the other client"; }
kill -CONT "$(cat stopped)"
wait $slow || { cat ./*.out; fail "the slow client"; }
wait $server || { cat ./*.out; fail "the server"; }
grep -q 'slow: was served' slow.out || { cat slow.out; fail "the slow client was not served"; }
echo "a client that stops while it is accepted holds nobody up, and is served when it goes on"
