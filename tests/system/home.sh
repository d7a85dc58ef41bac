#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Several sites on this machine, without the testbed: the programs of tests/c over them, and what crosses which level
# on 3 sites of 2 machines of 4 processes.
. "$(dirname "$0")/common.sh"
for tool in isthmus mpicc; do
    command -v "$tool" >/dev/null 2>&1 || skip "no $tool in PATH"
done
for program in datatypes p2p collectives communicators crossings; do
    mpicc -std=c11 -D_GNU_SOURCE -O2 -I"$top/tests/c" "$top/tests/c/$program.c" -o $program || fail "mpicc $program.c"
done
for program in datatypes p2p collectives communicators; do
    for sites in '--site a=home:2 --site b=home:2' '--site a=home:1 --site b=home:3 --site c=home:1'; do
        # shellcheck disable=SC2086 # options are words
        timeout -k 5 120 isthmus run $sites ./$program </dev/null >out 2>&1 || { cat out; fail "$program on $sites"; }
        echo "$program on $sites: as on one machine"
    done
done
{
    printf 'program = "%s/crossings"\narguments = ["grid"]\n' "$work"
    for machine in a1 a2 b1 b2 c1 c2; do
        printf '[[subjob]]\nsite = "%s"\ncontact = "home"\ncount = 4\nlan = "%s"\n' "$machine" "${machine%?}"
    done
} >grid.toml
timeout -k 5 120 isthmus run grid.toml </dev/null >out 2>&1 || { cat out; fail "crossings"; }
echo "every operation and root crosses the slow levels as often as its cost card says"
