#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Three machines at two sites, described in RSL as users of MPICH-G2 did: without GLOBUS_LAN_ID every machine is a local area
# of its own, with it those that share one are one; the program finds that in MPICHX_TOPOLOGY_COLORS. The same job as a
# job file is the same.
. "$(dirname "$0")/common.sh"
need_testbed

mkdir -p desert forest
mpicc -O2 "$top/examples/topology-show.c" -o desert/waves || fail "the example does not compile"
cp desert/waves forest/waves

# request LAN: the subjobs of the second site with this in their environment
request() {
    echo +
    i=0
    for machine in "a1 3 desert" "b1 2 forest" "b2 2 forest"; do
        set -- "$1" $machine
        lan=$1
        [ $i -eq 0 ] && lan=
        echo "( & (resourceManagerContact=\"$2\") (count=$3) (jobtype=mpi) (label=\"subjob $i\")"
        echo "    (environment=(GLOBUS_DUROC_SUBJOB_INDEX $i) $lan)"
        echo "    (directory=$work/$4) (executable=$work/$4/waves) )"
        i=$((i + 1))
    done
}
request "" >two.rsl
request "(GLOBUS_LAN_ID woods)" >three.rsl

expect() {
    isthmus-testbed run --sites 2x2 --rtt 20ms -- isthmus run "$1" >out 2>err || fail "$1: $(cat err)"
    grep -q "^local area *$2\$" out || fail "$1: the local areas are $(grep '^local area  ' out), not $2"
    grep -q "^machine *0 *0 *0 *1 *1 *2 *2\$" out || fail "$1: $(grep ^machine out)"
    grep -q ': right$' out || fail "$1: the sum is wrong"
}
expect two.rsl   " *0   0   0   1   1   2   2"
expect three.rsl " *0   0   0   1   1   1   1"
isthmus job convert three.rsl --to toml >three.toml || fail "no job file"
expect three.toml " *0   0   0   1   1   1   1"
isthmus run --dump-rsl three.toml >again.rsl || fail "no RSL"
expect again.rsl " *0   0   0   1   1   1   1"

printf '+ (& (resourceManagerContact = a1) (cuont = 2) (executable = x))\n  (& (executable = x) (arguments = --a=b))\n' >bad.rsl
isthmus run bad.rsl 2>err && fail "a bad request ran"
[ "$(grep -c 'error: bad.rsl:' err)" -eq 2 ] || fail "not all mistakes at once: $(cat err)"
echo "RSL runs, with the local areas that it names"
