#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A process spawns a program that it has made, which only its site has.
. "$(dirname "$0")/common.sh"
need_testbed
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -I"$top/tests/c" "$top/tests/system/made.c" -o maker || fail "mpicc made.c"
isthmus-testbed run --sites 2x1 --rtt 2ms --private-tmp -- \
    timeout 100 isthmus run --site home:1 --site b1:1 ./maker >out 2>&1 || { cat out; fail "the job"; }
for host in a1 b1; do
    grep -q "^good at $host" out || { cat out; fail "at $host"; }
done
echo "what a process has made it spawns at its site"
