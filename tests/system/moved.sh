#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A job whose launcher lives at a site: it outlives a machine that goes away, and is seen, followed and ended from there. Nothing of this
# machine's files is visible at the sites.
. "$(dirname "$0")/common.sh"
need_testbed
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra "$top/tests/system/moved.c" -o moved || fail "mpicc moved.c"
echo depth >mesh.txt
printf '[[link]]\nbetween = ["b1", "c1"]\nlatency = "2500 us"\n' >pins.toml
# What all hosts see: signs to the program, and its signs to us.
signs=$(mktemp -d /var/tmp/isthmus-signs.XXXXXX)
trap 'rm -rf "$work" "$signs"' EXIT
export signs
cat >away.sh <<'S'
step() { echo "$(date +%T) $*"; }
job=$(isthmus run --detach --at b1 --name tides --site b1:1 --site c1:1 --links pins.toml --input mesh.txt --output 'out.*' ./moved "$signs/go" "$signs/through") || exit 1
echo "$job" >job
step what a file here says of links goes along
ssh b1 'cat isthmus-jobs/*/job.toml' | grep -q 'latency = "2.5 ms"' || exit 17
step seen from here
isthmus ps 2>&1 | grep -q 'no jobs are running on this machine' || exit 2
until isthmus ps --json --site b1 --site home >ps.json && grep -q running ps.json; do :; done
isthmus ps --long --site b1 >ps.out && grep -q "^$job  *tides .*running" ps.out && grep -q c1 ps.out || exit 3
until isthmus where --json b1/tides >where.json && grep -q '"rank":1' where.json; do :; done
isthmus top --once b1/tides >top.out && grep -q 'b1' top.out || exit 4
step one that has this name is refused there
! isthmus run --detach --at b1 --name tides --site c1:1 ./moved "$signs/go" "$signs/x" >twice.out 2>&1 && grep -q 'runs here already' twice.out || exit 5
step this machine goes away
isthmus-testbed cut a b && isthmus-testbed cut a c || exit 6
touch "$signs/go"
until [ -e "$signs/through.0" ] && [ -e "$signs/through.1" ]; do sleep 0.05; done
isthmus-testbed restore a b && isthmus-testbed restore a c || exit 6
step and comes back
isthmus attach "$job" >attach.out || exit 7
isthmus logs b1/tides >logs.out && cmp attach.out logs.out || exit 8
isthmus report b1/tides >report.out && grep -q 'tides.*ended well' report.out || exit 9
isthmus report --html page.html b1/tides && grep -q '<title>Isthmus job' page.html || exit 10
step its outputs are there
ssh b1 'cat isthmus-jobs/*/out.0 isthmus-jobs/*/isthmus-results/*/c1/out.1' >outputs || exit 11
step ended from here
job=$(isthmus run --detach --at b1 --site c1:1 ./moved "$signs/never" "$signs/x") || exit 12
isthmus kill "$job" || exit 12
isthmus attach "$job" >ended.out 2>&1
[ $? = 143 ] || exit 13
step what cannot be
! isthmus run --detach --at b1 --site home:1 --site c1:1 ./moved a b >home.out 2>&1 || exit 14
! isthmus run --detach --at b1 --site c1:1 --site nowhere:1 ./moved a b >reach.out 2>&1 || exit 15
isthmus ps --json --site b1 --site nowhere >some.json 2>some.out
[ $? = 1 ] || exit 16
S
isthmus-testbed run --sites 3x1 --rtt 5ms --hide "$work" -- sh away.sh >away.out 2>&1 ||
    { status=$?; cat away.out ./*.out; fail "status $status: see away.sh"; }
cat away.out; sort attach.out >sorted
printf 'rank %d of 2 read depth\n' 0 1 | cmp - sorted || { cat attach.out; fail "the job has lost output"; }
printf '0\n1\n' | cmp - outputs || fail "the outputs are not where the job is said to leave them"
grep -q 'takes no part' home.out || { cat home.out; fail "home is not refused"; }
grep -q "does not reach all sites" reach.out && grep -q "'nowhere':" reach.out && grep -q 'ssh configuration' reach.out ||
    { cat reach.out; fail "a site that the launcher cannot reach is not named"; }
grep -q "site 'nowhere'" some.out || { cat some.out; fail "ps does not name the site that it did not reach"; }
python3 "$top/tests/system/schema.py" ps.json where.json some.json || fail "JSON is not as the book says"
echo "a job at another site outlives this machine and is seen from it: $(cat job)"
