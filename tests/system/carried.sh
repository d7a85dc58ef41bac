#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Sites behind address translation that lets only ssh out: processes that are spawned at one of them, at several, or at one that the job has not, speak
# with all others by the connections of their launcher. They do so again when those to one site were cut, which ends nothing: nor does it where a direct
# connection carries what they say.
# beside: it mostly waits.
. "$(dirname "$0")/common.sh"
need_testbed
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -I"$top/tests/c" "$top/tests/system/carried.c" -o carried || fail "mpicc carried.c"

# ACCESS SITES... -- SPAWN-SITES...: the job, and where it spawns. ISTHMUS_SPAWN_SITES names the others.
carried() {
    access=$1 sites=
    shift
    while [ "$1" != -- ]; do sites="$sites --site $1" && shift; done
    shift
    # shellcheck disable=SC2086 # options are words
    isthmus-testbed run --sites 3x1 --rtt 10ms --access "$access" -- \
        timeout 100 isthmus run $sites ./carried "$@" >out 2>&1 </dev/null || { cat out; fail "$access:$sites: $*"; }
    for site in "$@"; do
        grep -q "^good at $site" out || { cat out; fail "$access:$sites: $* at $site"; }
    done
}
carried a=nat-ssh,b=nat-ssh,c=nat-ssh home:2 b1:1 -- b1 home
export ISTHMUS_SPAWN_SITES="b1 c1"
carried a=nat-ssh,b=nat-ssh,c=nat-ssh home:2 -- b1 c1 home
unset ISTHMUS_SPAWN_SITES
# One end can connect: that is direct.
carried a=nat home:1 b1:1 -- b1 home
cat >cut.sh <<'C'
set -eu
timeout 100 isthmus run --site home:1 --site b1:1 ./carried b1 home cut >out 2>&1 </dev/null & job=$!
until [ -e spoken ]; do kill -0 $job; sleep 0.1; done
cut=
for launcher in $(ps -o pid= --ppid $job); do
    for child in $(ps -o pid= --ppid $launcher); do
        if ps -o args= -p $child | grep -q "ssh.* b1"; then kill -9 $child && cut=$child; fi
    done
done
[ -n "$cut" ]
touch cut
wait $job
C
for access in a=nat-ssh,b=nat-ssh a=open; do
    rm -f spoken cut
    isthmus-testbed run --sites 2x1 --rtt 10ms --access $access -- sh cut.sh >log 2>&1 || { cat log out; fail "$access: a cut"; }
    grep -q "^good after a cut" out || { cat out; fail "$access: after a cut"; }
    grep -q "'b1+1': .*trying to reach it again" out || { cat out; fail "$access: what is said of a cut"; }
done
echo "spawned processes speak with all others where only the launcher reaches them"
