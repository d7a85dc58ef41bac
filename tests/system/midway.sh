#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A process is killed while all make communicators, windows, files and children, connect, or are in epochs: those who are left get an error, revoke the
# communicator and end, and so do the children; on one node, and between two subjobs.
. "$(dirname "$0")/common.sh"
for tool in isthmus mpicc; do command -v $tool >/dev/null 2>&1 || skip "no $tool in PATH"; done
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra "$top/tests/system/midway.c" -o midway || fail "mpicc midway.c"
tried=0
for what in dup idup split group groups merge create allocate shared dynamic fence lock-all lock file pointer spawn accept; do
    for where in '-n 4' '--site home:2 --site other=home:2'; do
        # What is shared by a node has members on one node only.
        [ $what != shared ] || [ "$where" = '-n 4' ] || continue
        for lost in 0 -1; do
            # shellcheck disable=SC2086 # several words
            timeout -k 5 30 isthmus run --on-loss go-on $where ./midway $what $lost 100 </dev/null >out 2>err
            status=$?
            [ $status = 142 ] && [ "$(grep -c 'went on as one of 3$' out)" = 3 ] || fail "$what, rank $lost, $where: exit status $status: $(cat out err)"
            tried=$((tried + 1))
        done
    done
done
echo "in $tried ways: those who are left hear of it, and end as usual"
