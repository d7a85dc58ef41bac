#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds and runs every check of ci/ and every test, after installing what is missing for that.
# Ends with the line "N passed, N failed"; the exit status is 0 if nothing failed.
# usage: sh scripts/test.sh [NAME...]     only these checks, named as in ci/ without .sh
set -u
. "$(dirname "$0")/common.sh"
want_for_build
want_for_tests
install_missing
logs=$top/target/ci
mkdir -p "$logs"

all="format tidy headers units loom clippy wrappers fortran finders c-tests profiling threads docs system unlike oldest fuzz"
[ $# -eq 0 ] || all=$*

# Everything is compiled once: state that would make a second time quicker only costs.
CARGO_INCREMENTAL=0
export CARGO_INCREMENTAL

say "building (log: target/ci/build.log)"
if ! cargo xtask dist --out "$build" --release --workshop >"$logs/build.log" 2>&1; then
    tail -40 "$logs/build.log"
    say "0 passed, 1 failed"
    exit 1
fi

passed=0 failed=0
for name in $all; do
    start=$(date +%s)
    sh "ci/$name.sh" >"$logs/$name.log" 2>&1 </dev/null
    status=$?
    # A check that counts for itself ends with "P passed, F failed"; any other counts as one.
    counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$logs/$name.log" | tail -1)
    p=$(echo "$counts" | cut -d' ' -f1)
    f=$(echo "$counts" | cut -d' ' -f3)
    if [ -z "$counts" ]; then
        p=0 f=0
        if [ $status -eq 0 ]; then p=1; elif [ $status -ne 77 ]; then f=1; fi
    elif [ $status -ne 0 ] && [ "$f" -eq 0 ]; then
        f=1
    fi
    passed=$((passed + p)) failed=$((failed + f))
    case $status in
    0) verdict=ok ;;
    77) verdict="skipped: $(tail -1 "$logs/$name.log")" ;;
    *) verdict=FAILED ;;
    esac
    say "$(printf '%-9s' "$name") $verdict ($p passed, $f failed, $(($(date +%s) - start)) s)"
    grep -E '^skipped: ' "$logs/$name.log" | sort -u | head -10 | sed 's/^/          /'
    if [ "$verdict" = FAILED ]; then
        tail -30 "$logs/$name.log" | sed 's/^/    /'
        say "          whole log: target/ci/$name.log"
    fi
done
say "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
