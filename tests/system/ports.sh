#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# However many processes there are, a pair of sites has one listening port at each end and, between the two, the connections of the trunk: by default
# where direct connections would be many. Looking at the job (isthmus top) listens nowhere.
# ISTHMUS_TEST_RANKS=512: 512 processes at each site (some minutes).
. "$(dirname "$0")/common.sh"
need_testbed
command -v ss >/dev/null 2>&1 || skip "no ss (package iproute2)"
ranks=${ISTHMUS_TEST_RANKS:-33}
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra "$top/tests/system/ports.c" -o ports || fail "mpicc ports.c"

cat >all.sh <<'S'
set -u
ranks=$1
isthmus run --site "home:$ranks" --site "b1:$ranks" ./ports "$PWD/stop" >out 2>err </dev/null &
job=$!
for _ in $(seq 6000); do grep -q going out && break; kill -0 $job 2>/dev/null || break; sleep 0.1; done
grep -q going out || { echo "the job did not start"; exit 1; }
isthmus top --once --json >top.json
for place in a1 b1; do
    # What another host could reach.
    ssh "$place" ss -Hltn | awk '{ n = split($4, at, ":"); if (at[n] != 22 && $4 !~ /^(127\.|\[::1\]|\[::ffff:127\.)/) print at[n] }' | sort -un >"$place.ports"
done
ss -Htn state established | awk '$4 ~ /10\.2\.0\./ && $4 !~ /:22$/ && $3 !~ /:22$/' >between
touch stop
wait $job
S
isthmus-testbed run --sites 2x1 --rtt 4ms -- sh all.sh "$ranks" || { tail -n 5 out err; fail "the job failed"; }
grep -q "^$((2 * ranks)) processes are through" out || { cat out; fail "not all ranks came through"; }
for place in a1 b1; do
    [ "$(wc -l <$place.ports)" -eq 1 ] || { cat $place.ports; fail "$place listens on $(wc -l <$place.ports) ports"; }
done
[ "$(wc -l <between)" -le 2 ] || { cat between; fail "$(wc -l <between) connections between the sites"; }
# Fewer ports than processes: the job says so once, and who has the trouble.
cat >ring.c <<'C'
#include <mpi.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Finalize();
    return 0;
}
C
mpicc -O2 ring.c -o ring || fail "mpicc ring.c"
cat >few.sh <<'S'
ISTHMUS_PATH=direct ISTHMUS_PORTS=5000-5004 timeout -k 5 60 isthmus run --site home:1 --site b1:9 ./ring >few.out 2>&1 </dev/null && exit 1
exit 0
S
isthmus-testbed run --sites 2x1 --rtt 4ms -- sh few.sh || { cat few.out; fail "nine processes share five ports"; }
[ "$(grep -c 'no port of the range 5000-5004 is free' few.out)" = 1 ] || { cat few.out; fail "too few ports are not told once"; }
grep -q "isthmus: error: rank [0-9] (site 'b1'): .*no port" few.out || { cat few.out; fail "who lacks a port is not told"; }
echo "$ranks + $ranks ranks: one listening port at each site, $(wc -l <between) connections between the sites"
