#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Whole-system tests: each executable tests/system/*.sh, with the build tree first in PATH. They get what they need
# from the testbed, and exit with 77 after saying why when this machine cannot give it.
# usage: sh ci/system.sh [FILE...]
files=$*
. "$(dirname "$0")/../scripts/common.sh"
[ -x "$build/bin/isthmus" ] || sh scripts/build.sh || exit 1
PATH=$build/bin:$PATH
export PATH
limit=${ISTHMUS_TEST_LIMIT:-300}
passed=0 failed=0 skipped=0 names=
out=$(mktemp)
for file in ${files:-tests/system/*.sh}; do
    [ -e "$file" ] || continue
    case $file in */common.sh) continue ;; esac
    start=$(date +%s)
    timeout -k 10 "$limit" sh "$file" >"$out" 2>&1 </dev/null
    status=$?
    say "$file: $(($(date +%s) - start)) s"
    case $status in
    0) passed=$((passed + 1)) ;;
    77)
        skipped=$((skipped + 1))
        say "skipped: $file: $(tail -1 "$out")"
        ;;
    *)
        failed=$((failed + 1)) names="$names $file"
        say "FAILED: $file: exit status $status"
        tail -30 "$out" | sed 's/^/    /'
        ;;
    esac
done
rm -f "$out"
# What has failed stands at the end, which is what a reader of a long log sees.
[ -z "$names" ] || say "FAILED:$names"
say "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
