#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a call takes from C, from `use mpi` and from `use mpi_f08`.
# usage: sh bench/calls.sh [ROUNDS]      nanoseconds, medians [smallest, largest] of so many rounds in turn (default 5);
#        sh bench/calls.sh --count       instructions, by valgrind
. "$(dirname "$0")/../scripts/common.sh"
have gfortran || die "no gfortran"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$build/bin/mpicc" -O2 bench/calls.c -o "$work/c" && "$build/bin/mpifort" -O2 -J "$work" bench/calls.F90 -o "$work/mpi" &&
    "$build/bin/mpifort" -O2 -DF08 -J "$work" bench/calls.F90 -o "$work/mpi_f08" || die "cannot compile"

# instructions INTERFACE WHAT REPETITIONS
instructions() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$work/$1" "$2" "$3" 2>&1 | sed -n 's/.*Collected : //p'
}
if [ "${1:-}" = --count ]; then
    have valgrind || die "no valgrind"
    for what in rank self; do
        for interface in c mpi mpi_f08; do
            few=$(instructions $interface $what 1000) many=$(instructions $interface $what 11000)
            echo "$what $interface $(((many - few) / 10000)) instructions"
        done
    done
    exit
fi
for round in $(seq "${1:-5}"); do
    for what in rank self; do
        repetitions=20000000
        [ $what = rank ] || repetitions=400000
        for interface in c mpi mpi_f08; do
            echo "$what $interface $("$work/$interface" $what $repetitions)"
        done
    done
done | sort -k1,1 -k2,2 -k3,3n | awk '{ key = $1 " " $2; if (key != last) { if (n) tell(); n = 0; last = key } value[++n] = $3 }
    function tell() { printf "%s %s [%s %s] ns\n", last, value[int((n + 1) / 2)], value[1], value[n] }
    END { tell() }'
