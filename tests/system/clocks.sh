#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The wall clock of everything that belongs to a job is set back by two hours and on by 400 days while the job runs, and the link between its two
# sites is cut each time: the connections are resumed, and nothing is lost. The machine's own clock stays: clocks.c stands before the C library.
. "$(dirname "$0")/common.sh"
need_testbed
command -v python3 >/dev/null 2>&1 || skip "no python3"
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra "$top/tests/system/cuts.c" -o cuts || fail "mpicc cuts.c"
mpicc -std=c11 -O2 -Wall -Wextra -shared -fPIC -nostartfiles -DSHIFT="\"$work/shift\"" "$top/tests/system/clocks.c" -o clocks.so || fail "mpicc clocks.c"
# A length that does not change: it is mapped.
cat >set.py <<'P'
import struct, sys
with open("shift", "r+b") as file:
    file.write(struct.pack("<q" if sys.byteorder == "little" else ">q", int(sys.argv[1])))
P
head -c 8 /dev/zero >shift
cat >hurt.sh <<'EOF'
set -u
# At the other site whatever ssh starts; here the launcher and what it starts.
ssh b1 "echo export LD_PRELOAD=$PWD/clocks.so >~/.bashrc" || exit 1
LD_PRELOAD=$PWD/clocks.so ISTHMUS_STATS=1 isthmus run --site home:2 --site b1:2 ./cuts 800 9 >exchange.out 2>exchange.err </dev/null &
job=$!
until grep -q begun exchange.out; do
    kill -0 $job 2>/dev/null || exit 1
    sleep 0.2
done
# Two processes and their agent at the other site: all have the clock.
ssh b1 'grep -l clocks.so /proc/[0-9]*/maps 2>/dev/null' | while read -r maps; do
    ssh b1 "tr '\0' ' ' <${maps%maps}cmdline 2>/dev/null; echo" </dev/null
done >preloaded
for seconds in -7200 $((400 * 86400)); do
    python3 set.py $seconds
    isthmus-testbed cut a b
    sleep 4
    isthmus-testbed restore a b
    sleep 1
done
wait $job
EOF
ISTHMUS_AWAY=30 isthmus-testbed run --sites 2x1 --rtt 10ms -- sh hurt.sh || { cat exchange.out exchange.err; fail "the exchange did not survive"; }
grep -q 'all right' exchange.out || { cat exchange.out exchange.err; fail "the exchange has no end"; }
grep -q 'isthmus.* agent' preloaded && [ "$(grep -c 'cuts 800' preloaded)" -ge 2 ] || { cat preloaded; fail "the clock of the other site was not set"; }
[ "$(grep -c 'went on after their connections broke' exchange.err)" = 2 ] || { cat exchange.err; fail "no connection was resumed"; }
echo "connections were resumed with a clock that was two hours behind, and 400 days ahead"
