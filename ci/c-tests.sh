#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The programs of tests/c and examples, compiled with our mpicc and run with our mpiexec.
# A program says on a line of its own which sizes it wants: `/* ranks: 1 2 4 */` (the default), and may give
# arguments with `/* arguments: … */`. It passes if it exits with 0 within the time limit.
# usage: sh ci/c-tests.sh [FILE...]
files=$*
. "$(dirname "$0")/../scripts/common.sh"
[ -x "$build/bin/mpiexec" ] || sh scripts/build.sh || exit 1
limit=${ISTHMUS_TEST_LIMIT:-60}
passed=0 failed=0
work=$(mktemp -d)
for file in ${files:-tests/c/*.c examples/*.c}; do
    [ -e "$file" ] || continue
    program=$work/$(basename "$file" .c)
    if ! "$build/bin/mpicc" -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Itests/c "$file" -o "$program" -lm >"$work/out" 2>&1; then
        failed=$((failed + 1))
        say "FAILED: $file does not compile"
        tail -20 "$work/out"
        continue
    fi
    ranks=$(sed -n 's/.*ranks: \([0-9 ]*\).*/\1/p' "$file" | head -1)
    arguments=$(sed -n 's/.*arguments: \(.*[^ ]\) *\*\/.*/\1/p' "$file" | head -1)
    for n in ${ranks:-1 2 4}; do
        # shellcheck disable=SC2086 # arguments are words
        timeout -k 5 "$limit" "$build/bin/mpiexec" -n "$n" "$program" $arguments >"$work/out" 2>&1 </dev/null
        status=$?
        if [ $status -eq 0 ]; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            say "FAILED: $file with $n ranks: exit status $status"
            tail -15 "$work/out" | sed 's/^/    /'
        fi
    done
done
rm -rf "$work"
say "$passed passed, $failed failed"
[ $failed -eq 0 ]
