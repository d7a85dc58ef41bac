#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Parts of one world at three sites: with a ticket, whatever way their data go; and all behind address translation that lets only ssh out, by a place
# that ssh reaches, where a part that was killed while it waited is forgotten.
. "$(dirname "$0")/common.sh"
need_testbed
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -I"$top/tests/c" "$top/tests/c/parts.c" -o parts || fail "mpicc parts.c"

cat >ticket.sh <<'S'
set -eu
here=$PWD
there() { ssh $1 "cd $here; PATH=$PATH ISTHMUS_PATH=$ISTHMUS_PATH timeout 100 isthmus join ~/ticket $2 ./parts 6 3" >$1.out 2>&1 </dev/null; }
timeout 100 isthmus run --world sea=2of3 -n 2 ./parts 6 3 >a1.out 2>&1 </dev/null & first=$!
for i in $(seq 300); do [ -s "$HOME/.cache/isthmus/tickets/sea" ] && break; sleep 0.1; done
for host in b1 c1; do scp -qp "$HOME/.cache/isthmus/tickets/sea" $host:ticket; done
there b1 "--world sea=3of3 -n 1" & third=$!
there c1 "-n 3"
wait $third
wait $first
S
for way in auto gateway ssh; do
    ISTHMUS_PATH=$way isthmus-testbed run --sites 3x1 --rtt 20ms -- sh ticket.sh >run.out 2>&1 || { cat run.out ./*1.out; fail "$way"; }
    [ "$(cat ./*1.out | grep -c 'all is well')" = 6 ] || { cat ./*1.out; fail "not all parts have ended: $way"; }
    rm ./*1.out
done

cat >place.sh <<'S'
set -eu
here=$PWD
there() { ssh $1 "cd $here; PATH=$PATH timeout 100 isthmus run --world sea=$2of3 --meet d1 -n $3 ./parts 6 3" >$1.out 2>&1 </dev/null; }
if isthmus run --world sea=1of3 --meet nowhere -n 1 ./parts 2>nowhere.err; then exit 1; fi
isthmus run --world sea=1of3 --meet d1 -n 1 ./parts >killed.out 2>&1 </dev/null & killed=$!
for i in $(seq 300); do grep -q "waits for" killed.out && break; sleep 0.1; done
kill -9 $killed
wait $killed || true
timeout 100 isthmus run --world sea=2of3 --meet d1 -n 2 ./parts 6 3 >a1.out 2>&1 </dev/null & second=$!
there b1 3 1 & third=$!
there c1 1 3
wait $second
wait $third
ssh d1 'ls ~/.cache/isthmus/meet' >left.out
S
isthmus-testbed run --sites 4x1 --rtt 20ms --access a=nat-ssh,b=nat-ssh,c=nat-ssh -- sh place.sh >run.out 2>&1 || { cat run.out ./*1.out; fail "the place"; }
[ "$(cat ./*1.out | grep -c 'all is well')" = 6 ] || { cat ./*1.out; fail "not all parts have ended"; }
grep -q "cannot meet at 'nowhere'" nowhere.err || fail "an unknown place: $(cat nowhere.err)"
[ -s left.out ] && fail "left at the place: $(cat left.out)"
echo "parts meet with a ticket and at a place, behind address translation too"
