#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A firewall between two sites lets only ssh through for a while; then it opens. Shut from the begin, the job goes through the coordinator's
# connections at first; shut when only the gateways had connected, through those. Either way it moves to something better when it can, while it
# exchanges messages, byte-exact.
. "$(dirname "$0")/common.sh"
need_testbed
command -v nft >/dev/null 2>&1 || skip "no nft here"
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra "$top/tests/system/cuts.c" -o cuts || fail "mpicc cuts.c"

# Whoever begins a connection with something else than ssh is not heard, here and at the other end.
cat >shut.sh <<'EOF'
nft -f - <<'N' || exit 77
table inet shut {
    chain in { type filter hook input priority 0; iifname "lo" accept; tcp flags & (syn | ack) == syn tcp dport != 22 drop; }
    chain out { type filter hook output priority 0; oifname "lo" accept; tcp flags & (syn | ack) == syn tcp dport != 22 drop; }
}
N
EOF
cat >late.sh <<'EOF'
mkdir "here.$(hostname).$$"
until [ -e go ]; do sleep 0.1; done
exec ./cuts "$@"
EOF
cat >job.sh <<'EOF'
when=$1
shift
# Nothing is there that an earlier job has said: this one would not be waited for.
rm -rf go here.*
: >out
[ "$when" = later ] || sh shut.sh || exit
ISTHMUS_STATS=1 isthmus run --site home:2 --site b1:2 sh "$PWD/late.sh" "$@" >out 2>err </dev/null &
job=$!
if [ "$when" = later ]; then
    # The processes are there, waiting, and have no connections yet: one to the other site that is not ssh's is the gateways'.
    until [ "$(ls -d here.* 2>/dev/null | wc -l)" -eq 4 ] && [ -n "$(ss -Htn state established dst 10.2.0.0/16 'sport != :22 and dport != :22')" ]; do
        kill -0 $job 2>/dev/null || exit 1
        sleep 0.2
    done
    sh shut.sh || exit
fi
: >go
until grep -q begun out; do
    kill -0 $job 2>/dev/null || exit 1
    sleep 0.2
done
sleep 1
nft delete table inet shut
wait $job
EOF

# moved PATH WHEN: the job with this policy.
moved() {
    ISTHMUS_PATH=$1 isthmus-testbed run --sites 2x1 --rtt 20ms --rate 200mbit -- sh job.sh "$2" 700 16
    case $? in
    0) ;;
    77) skip "no firewall here" ;;
    *) cat out err; fail "the exchange with ISTHMUS_PATH=$1" ;;
    esac
    grep -q 'all right' out || { cat out err; fail "the exchange has no end"; }
    [ "$(grep -c '700 messages each way' out)" = 4 ] || { cat out; fail "not all processes are through"; }
}
moved auto later
grep -q 'channels moved from gateways to connections of their own' err || { cat err; fail "no channel moved to connections of its own"; }
grep 'went on after' err && { cat err; fail "channels lost all their connections"; }
moved auto first
grep -q 'path home - b1: direct' err || { cat err; fail "the job stayed with the coordinator's connections"; }
moved gateway first
grep -q 'went on over other connections of gateways' err || { cat err; fail "no stream moved from the coordinator's connections"; }
# What is direct stays as it is, also where it has the address of a gateway.
ISTHMUS_STATS=1 isthmus run --site a=home:1 --site b=home:1 sh "$PWD/late.sh" 700 8 >out 2>err </dev/null || { cat out err; fail "the exchange on one machine"; }
grep 'moved from gateways' err && fail "direct connections moved as well"
echo "moved to connections of their own, to direct ones, to the gateways'"
