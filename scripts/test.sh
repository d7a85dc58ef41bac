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

all="format tidy headers units wrappers fortran finders c-tests profiling counted docs system threads loom oldest bare fuzz clippy"
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

# Tests of whole jobs mostly wait: checks that compile and compute, and the one that runs for a minute, go beside them, with what the processors have left.
beside=
for name in threads loom oldest bare fuzz clippy; do
    case " $all " in *" system "*) ;; *) break ;; esac
    case " $all " in *" $name "*) beside="$beside $name" ;; esac
done
waited=

# check NAME [COMMAND...]: runs one check, by way of COMMAND; its exit status and its seconds are kept beside its log.
check() {
    name=$1
    shift
    start=$(date +%s)
    "$@" sh "ci/$name.sh" >"$logs/$name.log" 2>&1 </dev/null
    echo "$? $(($(date +%s) - start))" >"$logs/$name.end"
}

# The checks beside the others, one after the other.
check_beside() {
    for name in $beside; do
        check "$name" timeout -k 10 1800 nice -n 19
    done
}

# These compile with both processors themselves.
before_jobs() {
    case $1 in format | tidy | headers | units) return 0 ;; esac
    return 1
}

# failures_of LOG: what a log says of its failures, on one line; otherwise its last words.
failures_of() {
    { grep -E '^(FAILED: |test .* FAILED$|error(\[|:))' "$1" || tail -4 "$1"; } | head -5 | cut -c1-200 | tr '\n' ';'
}

passed=0 failed=0 failures=
for name in $all; do
    if [ -n "$beside" ] && [ -z "$waited" ] && ! before_jobs "$name"; then
        check_beside &
        waited=$!
    fi
    case " $beside " in
    *" $name "*)
        wait "$waited"
        ;;
    *) check "$name" ;;
    esac
    read -r status seconds <"$logs/$name.end"
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
    say "$(printf '%-9s' "$name") $verdict ($p passed, $f failed, $seconds s)"
    grep -E '^skipped: ' "$logs/$name.log" | sort -u | head -10 | sed 's/^/          /'
    if [ "$verdict" = FAILED ]; then
        tail -30 "$logs/$name.log" | sed 's/^/    /'
        say "          whole log: target/ci/$name.log"
        failures="$failures
    $name: $(failures_of "$logs/$name.log")"
    fi
done
# Once more at the end: whoever sees only that should know what to look at.
[ -z "$failures" ] || say "failed:$failures"
say "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
