#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What operations cost, counted: instructions of bench/counted.sh are at most a tenth more than in bench/counted/expected.txt, and
# system calls no more. What stands there has room for waking the other process: 340 instructions and a system call.
. "$(dirname "$0")/../scripts/common.sh"
counted=$(mktemp)
trap 'rm -f "$counted"' EXIT
sh bench/counted.sh >"$counted"
status=$?
[ $status -ne 77 ] || { cat "$counted"; exit 77; }
[ $status -eq 0 ] || exit 1
# A few dozen instructions are no tenth of anything: what is that cheap may vary by so many.
awk '
    FNR == NR { instructions[$1] = $2; calls[$1] = $3; next }
    { seen[$1] = 1 }
    !($1 in instructions) { printf "%s is not in bench/counted/expected.txt\n", $1; failed++; next }
    $2 > instructions[$1] * 1.1 + 40 { printf "%s: %d instructions, expected %d\n", $1, $2, instructions[$1]; failed++; next }
    $3 > calls[$1] { printf "%s: %d system calls, expected %d\n", $1, $3, calls[$1]; failed++; next }
    $2 < instructions[$1] * 0.9 - 380 { printf "%s: %d instructions, fewer than the expected %d\n", $1, $2, instructions[$1] }
    { passed++ }
    END {
        for (name in instructions) if (!(name in seen)) { printf "%s was not counted\n", name; failed++ }
        printf "%d passed, %d failed\n", passed, failed
        exit failed > 0
    }' bench/counted/expected.txt "$counted"
