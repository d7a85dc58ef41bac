# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests here: a scratch directory, the testbed or a visible skip, small checks. POSIX sh.

top=$(cd "$(dirname "$0")/../.." && pwd)
# Not below /tmp, which some tests make private to each host.
work=$(mktemp -d "${ISTHMUS_TEST_WORK:-/var/tmp}/isthmus-system.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cd "$work" || exit 1

fail() { printf 'FAIL: %s\n' "$*" >&2; exit 1; }
skip() { printf 'SKIP: %s\n' "$*" >&2; exit 77; }

# The whole machinery: namespaces, ssh between hosts, our commands.
need_testbed() {
    for tool in isthmus isthmus-testbed mpicc; do
        command -v "$tool" >/dev/null 2>&1 || skip "no $tool in PATH"
    done
    isthmus-testbed run --sites 2x1 --rtt 1ms -- ssh b1 true >testbed.log 2>&1 || skip "no testbed here: $(tail -n 2 testbed.log | tr '\n' ' ')"
}

. "$top/tests/system/counted.sh"
