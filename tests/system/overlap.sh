#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Operations over 2 and 3 sites complete while the programs compute, also those parts that stay inside a site or on a node.
. "$(dirname "$0")/common.sh"
need_testbed
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra "$top/tests/system/overlap.c" -o overlap -pthread || fail "mpicc overlap.c"

# job NAME SITE:LAN:COUNT...
job() {
    name=$1
    shift
    printf 'program = "%s/overlap"\n' "$work" >"$name.toml"
    for part; do
        rest=${part#*:}
        printf '[[subjob]]\nsite = "%s"\ncount = %s\nlan = "%s"\n' "${part%%:*}" "${rest#*:}" "${rest%:*}" >>"$name.toml"
    done
}
job nodes home:a:2 b1:b:2
job machines home:a:1 a2:a:1 b1:b:2
job sites home:a:1 b1:b:1 c1:c:1

# check NAME RANKS: every operation of that many processes came by itself.
check() {
    [ "$(grep -c 'came by itself' "$1.out")" = $((2 + $2)) ] || { cat "$1.out" "$1.err"; fail "$1: something waited for the program"; }
    grep -q "called by the program's thread" "$1.out" || { cat "$1.out"; fail "$1: operators of the program"; }
}
run='for job; do isthmus run "$job.toml" >"$job.out" 2>"$job.err" </dev/null || { cat "$job.out" "$job.err"; exit 1; }; done'
isthmus-testbed run --sites 2x2 --rtt 20ms -- sh -c "$run" run nodes machines || fail "2 sites"
isthmus-testbed run --sites 3x1 --rtt 20ms -- sh -c "$run" run sites || fail "3 sites"
check nodes 4
check machines 4
check sites 3
echo "over 2 and 3 sites operations completed while the programs computed"
