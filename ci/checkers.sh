#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs under valgrind and ThreadSanitizer, with the suppressions that are shipped: no report in shared memory, over TCP and over TLS.
# usage: sh ci/checkers.sh     Exit status 77: neither of the two is here.
. "$(dirname "$0")/../scripts/common.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PATH=$build/bin:$PATH
share=$build/share/isthmus
flags="-std=c11 -D_GNU_SOURCE -g -O1 -w -Itests/c"
bad=0 tried=0

# try TOOL NAME COMMAND...: the command, before whose program stands $work/TOOL, in each transport.
try() {
    tool=$1 name=$2
    shift 2
    tried=1
    {
        printf 'program = "%s"\narguments = ["%s"]\n' "$work/$tool" "$work/$name"
        for site in a b; do printf '[[subjob]]\nsite = "%s"\ncontact = "home"\ncount = 1\nlan = "l"\n' $site; done
    } >"$work/job.toml"
    for way in memory TCP TLS; do
        case $way in
        memory) set -- -n 2 "$work/$tool" "$work/$name" ;;
        TCP) set -- "$work/job.toml" ;;
        TLS) set -- --site a=home:1 --site b=home:1 "$work/$tool" "$work/$name" ;;
        esac
        if timeout -k 5 300 isthmus run "$@" </dev/null >"$work/out" 2>&1 && ! grep -q '^==[0-9]*== [A-Z]\|WARNING: ThreadSanitizer' "$work/out"; then
            echo "$tool: $name over $way: nothing to report"
        else
            echo "FAIL: $tool: $name over $way:" && head -n 60 "$work/out"
            bad=1
        fi
    done
}

for name in p2p collectives; do
    # shellcheck disable=SC2086 # flags are words
    if command -v valgrind >/dev/null && mpicc $flags "tests/c/$name.c" -o "$work/$name"; then
        printf '#!/bin/sh\nexec valgrind -q --error-exitcode=9 --suppressions=%s/valgrind.supp "$@"\n' "$share" >"$work/valgrind"
        chmod +x "$work/valgrind"
        try valgrind "$name"
    fi
    # The addresses that ThreadSanitizer wants are taken where the system puts things at random.
    # shellcheck disable=SC2086 # flags are words
    if mpicc $flags -fsanitize=thread "tests/c/$name.c" -o "$work/$name" 2>/dev/null; then
        printf '#!/bin/sh\nexport TSAN_OPTIONS=suppressions=%s/tsan.supp:exitcode=66\nexec setarch -R "$@"\n' "$share" >"$work/ThreadSanitizer"
        chmod +x "$work/ThreadSanitizer"
        try ThreadSanitizer "$name"
    fi
done
[ $tried = 1 ] || { echo "skipped: neither valgrind nor ThreadSanitizer is here"; exit 77; }
exit $bad
