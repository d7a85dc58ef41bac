#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Sites behind address translation that lets only ssh out: processes that are spawned at one of them, at several, or at one that the job has not, speak
# with all others by the connections of their launcher.
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
echo "spawned processes speak with all others where only the launcher reaches them"
