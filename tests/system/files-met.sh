#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Files of two jobs at two sites that have met: what one of them does not see it uses through the other one, also alone and to delete it, in
# directories that the other job shares, and nowhere else.
. "$(dirname "$0")/common.sh"
need_testbed
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -I"$top/tests/c" "$top/tests/c/connect.c" -o connect || fail "mpicc connect.c"

cat >all.sh <<'S'
here=$PWD
mkdir -p /tmp/both && ssh b1 mkdir -p /tmp/both || exit 1
# Two commands, here and at the other site, which must both end well.
both() {
    rm -f port
    timeout 100 $2 ./connect server port 2 >$1.server 2>&1 </dev/null &
    job=$!
    ssh b1 "cd $here; PATH=$PATH ISTHMUS_TEST_FILES=$ISTHMUS_TEST_FILES timeout 100 $3 ./connect client port 2" >$1.client 2>&1 </dev/null
    client=$?
    wait $job
    echo "$1: $? $client" >>said
}
export ISTHMUS_TEST_FILES=/tmp/both ISTHMUS_ACCEPT=any-with-port
both shared "isthmus run -n 2 --share /tmp/both" "isthmus run -n 2 --share /tmp/both"
export ISTHMUS_TEST_KEPT=1
both kept "isthmus run -n 1" "env ISTHMUS_TEST_KEPT=1 isthmus run -n 1"
ls -A /tmp/both >left
ssh b1 ls -A /tmp/both >>left
exit 0
S
isthmus-testbed run --sites 2x1 --rtt 20ms --private-tmp -- sh all.sh >run.out 2>&1 || { cat run.out; fail "the jobs"; }
grep -q "^shared: 0 0" said || { tail -n 20 shared.*; fail "files that are shared"; }
grep -q "^kept: 0 0" said || { tail -n 20 kept.*; fail "files that are not shared"; }
[ -s left ] && fail "left: $(cat left)"
echo "two jobs at two sites use each other's files, as far as they are shared"
