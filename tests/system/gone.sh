#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A process dies on a node, where no connection breaks: the others hear from their agent who it was, whatever they wait in, before
# the job ends; communicators of theirs go on.
. "$(dirname "$0")/common.sh"
for tool in mpiexec mpicc; do
    command -v "$tool" >/dev/null 2>&1 || skip "no $tool in PATH"
done
mpicc -std=c11 -D_GNU_SOURCE -O2 "$top/tests/system/gone.c" -o gone || fail "mpicc gone.c"
timeout -k 5 60 mpiexec -n 4 ./gone </dev/null >out 2>err
status=$?
[ $status = 137 ] || fail "exit status $status: $(cat out err)"
for rank in 0 1 2; do
    grep -q "^rank $rank of 3 survivors heard: .*rank 3.*signal 9" out || fail "rank $rank did not hear of it: $(cat out err)"
done
grep -q 'error: rank 3 .*signal 9' err || fail "the user is not told who died: $(cat err)"
echo "three processes heard of the death of the fourth, and went on among themselves"
