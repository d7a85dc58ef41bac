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

# within SECONDS: these on a machine that has nothing else to do; where more processes want to run than it has processors, so many times as long.
within() { awk -v limit="$1" -v cores="$(nproc)" '{ many = $1 / cores; print limit * (many > 1 ? many : 1) }' /proc/loadavg; }

# The whole machinery: namespaces, ssh between hosts, our commands.
need_testbed() {
    for tool in isthmus isthmus-testbed mpicc; do
        command -v "$tool" >/dev/null 2>&1 || skip "no $tool in PATH"
    done
    isthmus-testbed run --sites 2x1 --rtt 1ms -- ssh b1 true >testbed.log 2>&1 || skip "no testbed here: $(tail -n 2 testbed.log | tr '\n' ' ')"
}

# A script that ends the gateway of the host that it runs on, by its process; other jobs on this machine have hosts, and networks, of their own.
ends_gateways() {
    cat <<'EOF'
here=$(readlink /proc/self/ns/net)
for process in /proc/[0-9]*; do
    [ "$(readlink "$process/ns/net" 2>/dev/null)" = "$here" ] || continue
    case $(tr '\0' ' ' <"$process/cmdline" 2>/dev/null) in
    *isthmus*' gateway ') kill -9 "${process#/proc/}" && echo "killed the gateway at $(hostname)" ;;
    esac
done
EOF
}

. "$top/tests/system/counted.sh"
