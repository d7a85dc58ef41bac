#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The programs of tests/c about collective operations over 2 sites x 2 machines and over 3 sites, 2 ms apart.
. "$(dirname "$0")/common.sh"
need_testbed
programs="collectives empty empty_groups collective_persistent collective_groups collective_neighbours collective_order disagree_far"
for program in $programs; do
    mpicc -std=c11 -D_GNU_SOURCE -O2 -w -I"$top/tests/c" "$top/tests/c/$program.c" -o "$program" || fail "mpicc $program.c"
done

# job NAME HOST:COUNT...: a job file; the first letter of a host is its site.
job() {
    name=$1
    shift
    printf 'program = "PROGRAM"\n' >"$name.toml"
    for part; do
        host=${part%:*}
        printf '[[subjob]]\nsite = "%s"\ncount = %s\nlan = "%s"\n' "$host" "${part#*:}" "${host%?}" >>"$name.toml"
    done
}
job one home1:6
sed -i 's/site = "home1"/site = "home"/; s/lan = "home"/lan = "a"/' one.toml
job four home1:1 a2:2 b1:2 b2:1
sed -i 's/site = "home1"/site = "home"/; s/lan = "home"/lan = "a"/' four.toml
job three home1:1 b1:3 c1:2
sed -i 's/site = "home1"/site = "home"/; s/lan = "home"/lan = "a"/' three.toml

cat >run.sh <<'S'
set -eu
for job in "$@"; do
    for program in $PROGRAMS; do
        sed "s|PROGRAM|$WORK/$program|" "$job.toml" >"$program.toml"
        # It counts on more than MPI promises, but for this.
        [ $program != empty ] || sed -i '1a arguments = ["together"]' "$program.toml"
        isthmus run "$program.toml" >"$job.$program.out" 2>"$job.$program.err" </dev/null || { cat "$job.$program.out" "$job.$program.err"; exit 1; }
    done
done
S
PROGRAMS=$programs WORK=$work
export PROGRAMS WORK
isthmus-testbed run --sites 2x2 --rtt 2ms -- sh run.sh one four || fail "2 sites x 2 machines"
isthmus-testbed run --sites 3x1 --rtt 2ms -- sh run.sh three || fail "3 sites"
cat one.collective_order.out four.collective_order.out three.collective_order.out | grep '^6 processes: ' | sort -u >bits
[ "$(wc -l <bits)" = 1 ] || { cat bits; fail "the bits of sums depend on the sites"; }
echo "collectives over 2 sites x 2 machines and over 3 sites are right; sums have the bits of one site: $(cat bits)"
