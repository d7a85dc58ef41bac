#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A process that waits in MPI_Finalize for the others does what they need of it: on a node, inside a site, between sites, and on top of another MPI.
. "$(dirname "$0")/common.sh"
command -v mpicc >/dev/null 2>&1 || skip "no mpicc in PATH"
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra "$top/tests/system/leaving.c" -o leaving || fail "mpicc leaving.c"
# Two machines of one local area reach each other with TCP.
inside() {
    printf 'program = "%s/leaving"\narguments = ["%s"]\n' "$work" "$1"
    printf '[[subjob]]\nsite = "%s"\ncontact = "home"\ncount = 1\nlan = "campus"\n' a b
}
for mode in cancelled many; do
    timeout -k 5 30 isthmus run -n 2 ./leaving $mode >out 2>&1 || { cat out; fail "$mode on a node"; }
    inside $mode >inside.toml
    timeout -k 5 30 isthmus run inside.toml >out 2>&1 || { cat out; fail "$mode inside a site"; }
    timeout -k 5 30 isthmus run --site a=home:1 --site b=home:1 ./leaving $mode >out 2>&1 || { cat out; fail "$mode between sites"; }
done
# With little room in its queues this MPI has to say later what it has no room for now.
UCX_MM_FIFO_SIZE=8 UCX_POSIX_FIFO_SIZE=8 UCX_SYSV_FIFO_SIZE=8
export UCX_MM_FIFO_SIZE UCX_POSIX_FIFO_SIZE UCX_SYSV_FIFO_SIZE
for vendor in mpich openmpi; do
    if ! command -v "mpiexec.$vendor" >/dev/null 2>&1 || ! command -v "mpicc.$vendor" >/dev/null 2>&1; then
        echo "not over $vendor: no mpiexec.$vendor or mpicc.$vendor in PATH"
        continue
    fi
    for comms in 0 1; do
        for round in 1 2 3 4; do
            ISTHMUS_VENDOR_COMMS=$comms timeout -k 5 30 isthmus run --site "home:2,mpi=mpiexec.$vendor" ./leaving many >out 2>&1 ||
                { cat out; fail "many messages over $vendor, ISTHMUS_VENDOR_COMMS=$comms, round $round"; }
        done
    done
    echo "leaving over $vendor"
done
