#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two worlds on the same two machines, with two processes of each on both: in what is merged of them a machine is one, so a broadcast and a reduction
# cross the network between the machines once, whoever is the root; whether they are in one local area or far from each other.
. "$(dirname "$0")/common.sh"
need_testbed
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -I"$top/tests/c" "$top/tests/system/merged.c" -o merged || fail "mpicc merged.c"
for site in home b1; do
    printf '[[subjob]]\nsite = "%s"\ncount = 2\nlan = "campus"\nprogram = "./merged"\narguments = ["home", "b1"]\n' $site
done >near.toml
cat >run.sh <<'S'
set -eu
isthmus run near.toml >near.out 2>near.err </dev/null || { cat near.out near.err; exit 1; }
isthmus run --site home:2 --site b1:2 ./merged home b1 >far.out 2>far.err </dev/null || { cat far.out far.err; exit 1; }
S
timeout 200 isthmus-testbed run --sites 2x1 --rtt 10ms --rate 200mbit -- sh run.sh >run.log 2>&1 || { tail -n 30 run.log; fail "the jobs failed"; }
for where in near far; do
    [ "$(grep -c '^bcast\|^reduce' $where.out)" = 16 ] || { cat $where.out; fail "$where: not all operations"; }
    # Both worlds of a machine have its colour.
    grep '^rank' $where.out | awk '{ print $NF }' | sort | uniq -c | awk '$1 != 4 { exit 1 } END { exit NR != 2 }' ||
        { cat $where.out; fail "$where: machines of two worlds are not one"; }
done
# Both machines are in one local area, or each in one of its own.
grep '^rank' near.out | grep -v 'area 0,' && fail "machines of one local area have different colours"
grep '^rank' far.out | grep -v 'area \([01]\), machine \1$' && fail "machines that are far from each other have one area's colour"
# On a machine no process hears twice of the same: six are not the first of theirs.
grep '^bcast\|^reduce' near.out far.out | grep -v 'node [0-6]$' && fail "more messages on a machine than there are processes"
grep -v 'wide 0, local 1, ' near.out | grep '^bcast\|^reduce' && fail "the network of the local area was crossed more than once"
grep -v 'wide 1, local 0, ' far.out | grep '^bcast\|^reduce' && fail "the wide area was crossed more than once"
echo "two worlds on two machines cross what is between these once"
