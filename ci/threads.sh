#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Several threads in MPI at once (MPI_THREAD_MULTIPLE): tests/threads/stress.c, random operations against an oracle, between two processes
# of one machine, of two sites, and under ThreadSanitizer. The sanitizer watches the program; the library is not instrumented (its
# compiler has no stable sanitizer), so what it does inside is left out by name.
# usage: sh ci/threads.sh [SECONDS [SEED]]     (60; a new seed each time, which is printed)
seconds=${1:-60}
seed=${2:-$(date +%s)}
set --
. "$(dirname "$0")/../scripts/common.sh"
[ -x "$build/bin/mpiexec" ] || sh scripts/build.sh || exit 1
threads=${ISTHMUS_TEST_THREADS:-8}
third=$(((seconds + 2) / 3))
passed=0 failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run WHAT COMMAND...: for a third of the time.
run() {
    what=$1
    shift
    timeout -k 10 $((2 * third + 120)) "$@" "$threads" "$third" "$seed" >"$work/out" 2>&1 </dev/null
    status=$?
    if [ $status -eq 0 ]; then
        passed=$((passed + 1))
        say "$what: $(grep '^stress:' "$work/out" | tail -1)"
    else
        failed=$((failed + 1))
        say "FAILED: $what, seed $seed: exit status $status"
        tail -40 "$work/out" | sed 's/^/    /'
    fi
    seed=$((seed + 1))
}

compile() { "$build/bin/mpicc" -std=c11 -O2 -g -Wall -Wextra "$@" tests/threads/stress.c -lpthread; }

compile -o "$work/stress" || exit 1
run "one machine" "$build/bin/mpiexec" -n 2 "$work/stress"
run "two sites" "$build/bin/isthmus" run --site a=home:1 --site b=home:1 "$work/stress"
if compile -fsanitize=thread -o "$work/watched" 2>"$work/out"; then
    echo "called_from_lib:libmpi_abi" >"$work/suppressions"
    TSAN_OPTIONS="suppressions=$work/suppressions halt_on_error=1 exitcode=66 report_signal_unsafe=0"
    export TSAN_OPTIONS
    run "ThreadSanitizer" "$build/bin/mpiexec" -n 2 "$work/watched"
else
    say "skipped: the compiler has no ThreadSanitizer: $(tail -1 "$work/out")"
fi
say "$passed passed, $failed failed"
[ $failed -eq 0 ]
