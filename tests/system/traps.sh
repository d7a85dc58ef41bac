#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program whose floating-point exceptions trap (-ffpe-trap, feenableexcept): on a node, inside a site (TCP) and between sites (TLS). What the
# library reckons with, in its own threads and in the program's, never traps.
. "$(dirname "$0")/common.sh"
command -v mpicc >/dev/null 2>&1 || skip "no mpicc in PATH"
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -I "$top/tests/c" "$top/tests/c/traps.c" -o traps -lm || fail "mpicc traps.c"
{
    printf 'program = "%s/traps"\n' "$work"
    printf '[[subjob]]\nsite = "%s"\ncontact = "home"\ncount = 1\nlan = "campus"\n' a b
} >inside.toml
timeout -k 5 60 isthmus run -n 2 ./traps >out 2>&1 || { cat out; fail "on a node"; }
timeout -k 5 60 isthmus run inside.toml >out 2>&1 || { cat out; fail "inside a site"; }
timeout -k 5 60 isthmus run --site a=home:1 --site b=home:1 ./traps >out 2>&1 || { cat out; fail "between sites"; }
