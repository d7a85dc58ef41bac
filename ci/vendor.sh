#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The programs of tests/c and examples, in worlds on top of machines' own MPIs: each with the most processes up to 4 that it takes, half
# of them on one MPI and half on another, or all on one. `sh bench/peers.sh` installs some; worlds that cannot be are named.
# usage: sh ci/vendor.sh [FILE...]; ISTHMUS_TEST_VENDOR_PAIRS='mpich:openmpi' chooses worlds
files=$*
. "$(dirname "$0")/../scripts/common.sh"
[ -x "$build/bin/isthmus" ] || sh scripts/build.sh || exit 1
limit=${ISTHMUS_TEST_LIMIT:-120}
passed=0 failed=0
work=$(mktemp -d)

# Command of an MPI by its name here; nothing if it is not installed.
command_of() {
    case $1 in
    mpich | openmpi) command -v "mpiexec.$1" ;;
    mpich-5.0.2-abi) ls "$PWD/target/peers/mpich-5.0.2/bin/mpicc_abi" 2>/dev/null ;;
    *) ls "$PWD/target/peers/$1/bin/mpiexec" 2>/dev/null ;;
    esac
}

# run PROGRAM WORLD PROCESSES ARGUMENT...
run() {
    program=$1 world=$2 n=$3
    shift 3
    first=${world%:*} second=${world#*:}
    if [ "$first" = "$second" ]; then
        sites="--site home:$n,mpi=$(command_of "$first")"
    else
        sites="--site one=home:$(((n + 1) / 2)),mpi=$(command_of "$first") --site two=home:$((n / 2)),mpi=$(command_of "$second")"
    fi
    # shellcheck disable=SC2086 # options are words
    timeout -k 5 "$limit" "$build/bin/isthmus" run $sites "$program" "$@" >"$work/out" 2>&1 </dev/null
}

# Programs that say of one machine of ours what they find: true for that only, and tested there and in tests/system. copying.c forbids system
# calls, without which MPICH (UCX) ends the process.
of_one_machine() {
    case $1 in
    tests/c/copying.c) return 0 ;;
    tests/c/crossings.c | tests/c/disagree.c | tests/c/links.c | tests/c/topology.c) return 0 ;;
    esac
    return 1
}

# Programs that ask for a send to be cancelled after it has left, which the standard allows to fail, and fails where it was another MPI's.
of_our_messages() {
    case $1 in
    tests/c/requests.c | tests/c/memory.c | tests/c/to_self.c) return 0 ;;
    esac
    return 1
}

worlds=
for world in ${ISTHMUS_TEST_VENDOR_PAIRS:-mpich:openmpi mpich:mpich openmpi:openmpi mpich-5.0.2-abi:openmpi-5.0.11 mpich-5.0.2:mpich-5.0.2-abi}; do
    if [ -n "$(command_of "${world%:*}")" ] && [ -n "$(command_of "${world#*:}")" ]; then
        worlds="$worlds $world"
    else
        say "not installed, not tried: $world"
    fi
done
[ -n "$worlds" ] || { say "SKIP: no two other MPIs are installed"; exit 77; }
for file in ${files:-tests/c/*.c examples/*.c}; do
    [ -e "$file" ] || continue
    if of_one_machine "$file"; then
        say "not for these worlds: $file"
        continue
    fi
    program=$work/$(basename "$file" .c)
    if ! "$build/bin/mpicc" -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Itests/c "$file" -o "$program" -lm >"$work/out" 2>&1; then
        failed=$((failed + 1))
        say "FAILED: $file does not compile"
        tail -20 "$work/out"
        continue
    fi
    sizes=$(sed -n 's/.*ranks: \([0-9 ]*\).*/\1/p' "$file" | head -1)
    arguments=$(sed -n 's/.*arguments: \(.*[^ ]\) *\*\/.*/\1/p' "$file" | head -1)
    n=1
    for size in ${sizes:-1 2 4}; do
        [ "$size" -gt "$n" ] && [ "$size" -le 4 ] && n=$size
    done
    # A program for one process says nothing about communication.
    [ "$n" -gt 1 ] || continue
    for world in $worlds; do
        if of_our_messages "$file" && [ "${world%:*}" = "${world#*:}" ]; then
            say "not for $world: $file"
            continue
        fi
        # shellcheck disable=SC2086 # arguments are words
        if run "$program" "$world" "$n" $arguments; then
            passed=$((passed + 1))
        else
            status=$?
            failed=$((failed + 1))
            say "FAILED: $file with $n processes on $world: exit status $status"
            tail -15 "$work/out" | sed 's/^/    /'
        fi
    done
done
rm -rf "$work"
say "$passed passed, $failed failed on:$worlds"
[ $failed -eq 0 ]
