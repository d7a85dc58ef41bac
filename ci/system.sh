#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Whole-system tests: each executable tests/system/*.sh, with the build tree first in PATH. They get what they need
# from the testbed, and exit with 77 after saying why when this machine cannot give it. Those with the line "# beside: …" at their
# head mostly wait, in networks of their own; they run one after the other beside the rest. Those with "# alone: …" measure, and go first.
# usage: sh ci/system.sh [FILE...]
files=$*
. "$(dirname "$0")/../scripts/common.sh"
[ -x "$build/bin/isthmus" ] || sh scripts/build.sh || exit 1
PATH=$build/bin:$PATH
export PATH
limit=${ISTHMUS_TEST_LIMIT:-300}
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# lane NAME FILE...: runs these one after the other; a line "STATUS FILE" of each goes to $logs/NAME, what it says to $logs/FILE's name.
lane() {
    lane=$1
    shift
    for file; do
        start=$(date +%s)
        timeout -k 10 "$limit" sh "$file" >"$logs/$(basename "$file").out" 2>&1 </dev/null
        echo "$? $file" >>"$logs/$lane"
        say "$file: $(($(date +%s) - start)) s"
    done
}

alone='' beside='' rest=''
for file in ${files:-tests/system/*.sh}; do
    case $file in */common.sh | */counted.sh | */agents.sh) continue ;; esac
    [ -e "$file" ] || continue
    case $(sed -n 's/^# \(alone\|beside\): .*/\1/p' "$file") in
    alone) alone="$alone $file" ;;
    beside) beside="$beside $file" ;;
    *) rest="$rest $file" ;;
    esac
done
# shellcheck disable=SC2086 # names are words
lane alone $alone
# shellcheck disable=SC2086
lane beside $beside &
# shellcheck disable=SC2086
lane rest $rest
wait $!

passed=0 failed=0 skipped=0 names=
# One that has ended without a line here has failed as well.
for file in $alone $beside $rest; do
    status=$(cat "$logs/alone" "$logs/beside" "$logs/rest" 2>/dev/null | sed -n "s|^\([0-9]*\) $file\$|\1|p")
    case ${status:-lost} in
    0) passed=$((passed + 1)) ;;
    77)
        skipped=$((skipped + 1))
        say "skipped: $file: $(tail -1 "$logs/$(basename "$file").out")"
        ;;
    *)
        failed=$((failed + 1)) names="$names $file"
        say "FAILED: $file: exit status ${status:-lost}"
        tail -30 "$logs/$(basename "$file").out" | sed 's/^/    /'
        ;;
    esac
done
# What has failed stands at the end, which is what a reader of a long log sees.
[ -z "$names" ] || say "FAILED:$names"
say "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
