#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two jobs, of which one lets others in at the port of its gateway only, and processes of the other one leave their site by their gateway only, connect and
# exchange messages: by the gateway of who accepts, of who connects, or both. In the middle the gateway of who accepts is killed, and begins anew.
# beside: it mostly waits, in its own network.
. "$(dirname "$0")/common.sh"
need_testbed
isthmus-testbed run --rtt 1ms --access b=denied -- true >testbed.log 2>&1 || skip "no firewalls here: $(tail -n 1 testbed.log)"
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -I"$top/tests/c" "$top/tests/system/ways.c" -o ways || fail "mpicc ways.c"

ends_gateways >end.sh
# Two hosts of one site, the second of which has no way out.
cat >hidden.toml <<'J'
program = "./ways"
arguments = ["client", "port", "2", "40"]
[[subjob]]
site = "home"
lan = "b"
path = "gateway"
[[subjob]]
site = "b2"
lan = "b"
path = "gateway"
J
cat >all.sh <<'S'
set -u
here=$PWD
export ISTHMUS_ACCEPT=any-with-port
# What has no way out of its site but by another host there; who says so is at that site.
ssh b1 'ssh b2 ip route add unreachable 10.1.0.0/24' </dev/null || exit 20
meet() {
    name=$1 accepts=$2 connects=$3
    rm -f port cut
    # shellcheck disable=SC2086 # options are words
    timeout 120 env $accepts ./ways server port 2 40 >$name.server 2>&1 </dev/null & job=$!
    for i in $(seq 300); do [ -s port ] && break; kill -0 $job || exit 1; sleep 0.1; done
    # shellcheck disable=SC2086
    ssh b1 "cd $here; PATH=$PATH ISTHMUS_ACCEPT=any-with-port timeout 120 env $connects" >$name.client 2>&1 </dev/null & other=$!
    for i in $(seq 600); do grep -q half $name.server && break; kill -0 $job || exit 2; sleep 0.1; done
    [ "$name" = both ] && sh end.sh >killed
    touch cut
    wait $other || exit 3
    wait $job || exit 4
}
behind='ISTHMUS_PATH=gateway ISTHMUS_PORTS=5000-5000 isthmus run -n 2'
meet listener "$behind" 'isthmus run -n 2 ./ways client port 2 40'
meet both "$behind" 'isthmus run hidden.toml'
meet connector 'ISTHMUS_PORTS=5000-5010 isthmus run -n 2' 'isthmus run hidden.toml'
S
isthmus-testbed run --sites 2x2 --rtt 10ms --access a=denied:5000-5010,b=denied -- bash all.sh >run.out 2>&1 || {
    tail -n 20 run.out ./*.server ./*.client
    fail "jobs behind gateways"
}
for name in listener both connector; do
    [ "$(cat $name.server $name.client | grep -c 'all is well')" = 4 ] || { tail $name.server $name.client; fail "$name: not all processes have ended well"; }
done
grep -q killed killed || fail "no gateway was killed"
echo "jobs connect by the gateway of who accepts, of who connects, and both; one was killed"
