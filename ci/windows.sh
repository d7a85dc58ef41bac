#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Windows for longer than a check may take: every accumulate operation from all processes on the same cells, while they hold locks of several
# targets (tests/windows/stress.c), in a node's memory, copied, in messages, over TCP and TLS, all of them at once, and under ThreadSanitizer;
# random programs on windows of all kinds of memory that come and go, against a model (model.c); and a target that sleeps (asleep.c).
# The sanitizer watches the program; what the library does inside is left out by name, as in threads.sh.
# usage: sh ci/windows.sh [SECONDS]     (120: of the stress in each place)
seconds=${1:-120}
set --
. "$(dirname "$0")/../scripts/common.sh"
[ -x "$build/bin/mpiexec" ] || sh scripts/build.sh || exit 1
passed=0 failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run WHAT COMMAND...
run() {
    what=$1
    shift
    timeout -k 10 $((seconds + 300)) "$@" >"$work/out" 2>&1 </dev/null
    status=$?
    if [ $status -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        say "FAILED: $what: exit status $status"
    fi
    say "$what:"
    tail -40 "$work/out" | sed 's/^/    /'
}
# machines PROGRAM LAN...: a job file, with two processes on each of these machines.
machines() {
    printf 'program = "%s"\narguments = ["%s"]\n' "$work/$1" "$seconds"
    shift
    for lan in "$@"; do
        site=$((${site:-0} + 1))
        printf '[[subjob]]\nsite = "s%s"\ncontact = "home"\ncount = 2\nlan = "%s"\n' "$site" "$lan"
    done
}

compile() {
    program=$1
    shift
    "$build/bin/mpicc" -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra "$@" "tests/windows/$program.c"
}
for program in stress model asleep; do compile "$program" -o "$work/$program" || exit 1; done
# As in a container that forbids it.
cat >"$work/forbidden.c" <<'C'
#include <errno.h>
#include <sys/types.h>
ssize_t process_vm_readv(void) { errno = EPERM; return -1; }
ssize_t process_vm_writev(void) { errno = EPERM; return -1; }
C
"$build/bin/mpicc" -shared -fPIC "$work/forbidden.c" -o "$work/forbidden.so" || exit 1
machines stress a a >"$work/tcp.toml"
machines stress a b >"$work/tls.toml"
machines stress a a b >"$work/all.toml"
machines model a a b >"$work/model.toml"
run "memory and copies" "$build/bin/mpiexec" -n 4 "$work/stress" "$seconds"
run "memory and messages" env LD_PRELOAD="$work/forbidden.so" "$build/bin/mpiexec" -n 4 "$work/stress" "$seconds"
run "memory, copies and TCP" "$build/bin/isthmus" run "$work/tcp.toml"
run "memory, copies and TLS" "$build/bin/isthmus" run "$work/tls.toml"
run "memory, copies, TCP and TLS" "$build/bin/isthmus" run "$work/all.toml"
for ranks in 2 3 5; do run "random programs, $ranks on a node" "$build/bin/mpiexec" -n $ranks "$work/model" "$seconds"; done
run "random programs, memory and messages" env LD_PRELOAD="$work/forbidden.so" "$build/bin/mpiexec" -n 4 "$work/model" "$seconds"
run "random programs, TCP and TLS" "$build/bin/isthmus" run "$work/model.toml"
if compile stress -fsanitize=thread -o "$work/watched" 2>"$work/out"; then
    echo "called_from_lib:libmpi_abi" >"$work/suppressions"
    TSAN_OPTIONS="suppressions=$work/suppressions halt_on_error=1 exitcode=66 report_signal_unsafe=0"
    export TSAN_OPTIONS
    run "ThreadSanitizer, memory" setarch -R "$build/bin/mpiexec" -n 2 "$work/watched" "$seconds"
    run "ThreadSanitizer, TLS" setarch -R "$build/bin/isthmus" run --site a=home:1 --site b=home:1 "$work/watched" "$seconds"
else
    say "skipped: the compiler has no ThreadSanitizer: $(tail -1 "$work/out")"
fi
printf 'program = "%s"\narguments = ["10", "1000"]\n' "$work/asleep" >"$work/asleep.toml"
for site in a b; do printf '[[subjob]]\nsite = "%s"\ncontact = "home"\ncount = 1\nlan = "l"\n' $site; done >>"$work/asleep.toml"
run "a target that sleeps, on the node" "$build/bin/mpiexec" -n 2 "$work/asleep" 10 1000
run "a target that sleeps, over TCP" "$build/bin/isthmus" run "$work/asleep.toml"
run "a target that sleeps, over TLS" "$build/bin/isthmus" run --site a=home:1 --site b=home:1 "$work/asleep" 10 2000
say "$passed passed, $failed failed"
[ $failed -eq 0 ]
