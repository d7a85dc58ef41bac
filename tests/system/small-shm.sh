#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A memory file system that is too small for what processes of a node share: the job ends with an error that says what to do, or works;
# never a signal, never silence.
. "$(dirname "$0")/common.sh"
for tool in mpiexec mpicc unshare; do
    command -v "$tool" >/dev/null 2>&1 || skip "no $tool in PATH"
done
unshare -rm true 2>/dev/null || skip "no mount namespaces here"
mpicc -std=c11 -D_GNU_SOURCE -O2 -I"$top/tests/c" "$top/tests/c/together.c" -o together || fail "mpicc together.c"
mkdir small
ended() { # KILOBYTES: exit status of the test of all shared-memory collectives with so little
    ISTHMUS_SHM_DIRECTORY=$work/small timeout -k 5 120 unshare -rm sh -c "mount -t tmpfs -o size=${1}k none small && exec mpiexec -n 4 ./together" </dev/null >out 2>&1
}
for size in 16 64 256 1024 2048 65536; do
    ended $size
    status=$?
    case $status in
    0) echo "$size KiB: enough" ;;
    124 | 137) cat out; fail "$size KiB: no end" ;;
    *)
        grep -q "enlarge the memory file system" out || { cat out; fail "$size KiB: status $status without saying what to do"; }
        ! grep -q -i -e "SIGBUS" -e "bus error" -e "signal 7" out || { cat out; fail "$size KiB: a signal"; }
        echo "$size KiB: refused"
        ;;
    esac
done
[ $status -eq 0 ] || fail "64 MiB must be enough for 4 processes"
# Whoever ends the job, its error says what to do.
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra "$top/tests/system/lacking.c" -o lacking || fail "mpicc lacking.c"
ISTHMUS_SHM_DIRECTORY=$work/small timeout -k 5 60 unshare -rm sh -c "mount -t tmpfs -o size=600k none small && exec mpiexec -n 4 ./lacking" </dev/null >out 2>&1
for rank in 0 1 2 3; do
    grep "^rank $rank: class MPI_ERR_NO_MEM: .*enlarge the memory file system" out >/dev/null || { cat out; fail "rank $rank is not told what to do"; }
done
# From next to nothing to nearly enough: an answer to a peer for which there is no memory is not waited for.
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra "$top/tests/system/full.c" -o full || fail "mpicc full.c"
for size in 200 400 500 700 900 1000 1024 1100 1300 1600 2000 3000; do
    ISTHMUS_SHM_DIRECTORY=$work/small timeout -k 5 60 unshare -rm sh -c "mount -t tmpfs -o size=${size}k none small && exec mpiexec -n 4 ./full $size" </dev/null >out 2>&1
    status=$?
    case $status in
    0) ;;
    124 | 137) cat out; fail "$size KiB, messages: no end" ;;
    *) grep -q "enlarge the memory file system" out || { cat out; fail "$size KiB, messages: status $status without saying what to do"; } ;;
    esac
done
