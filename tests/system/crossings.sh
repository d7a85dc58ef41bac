#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Collectives over 3 sites x 2 machines x 4 processes cross each level the fewest times possible, for every root.
. "$(dirname "$0")/common.sh"
need_testbed

cat >roots.c <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int in[256], out[256], all[256 * 64];
int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int root = 0; root < size; root++) {
        for (int i = 0; i < 256; i++) in[i] = rank == root ? root * 1000 + i : -1;
        if (!strcmp(argv[1], "bcast")) {
            MPI_Bcast(in, 256, MPI_INT, root, MPI_COMM_WORLD);
            for (int i = 0; i < 256; i++) if (in[i] != root * 1000 + i) MPI_Abort(MPI_COMM_WORLD, 3);
        } else if (!strcmp(argv[1], "reduce")) {
            for (int i = 0; i < 256; i++) in[i] = rank + i;
            MPI_Reduce(in, out, 256, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
            if (rank == root) for (int i = 0; i < 256; i++)
                if (out[i] != size * (size - 1) / 2 + size * i) MPI_Abort(MPI_COMM_WORLD, 3);
        } else if (!strcmp(argv[1], "gather")) {
            for (int i = 0; i < 4; i++) in[i] = rank * 4 + i;
            MPI_Gather(in, 4, MPI_INT, all, 4, MPI_INT, root, MPI_COMM_WORLD);
            if (rank == root) for (int i = 0; i < 4 * size; i++) if (all[i] != i) MPI_Abort(MPI_COMM_WORLD, 3);
        } else if (!strcmp(argv[1], "scatter")) {
            for (int i = 0; i < 4 * size; i++) all[i] = i;
            MPI_Scatter(all, 4, MPI_INT, in, 4, MPI_INT, root, MPI_COMM_WORLD);
            for (int i = 0; i < 4; i++) if (in[i] != rank * 4 + i) MPI_Abort(MPI_COMM_WORLD, 3);
        }
    }
    MPI_Finalize();
    if (rank == 0) printf("%d roots are right\n", size);
    return 0;
}
C
mpicc -O2 roots.c -o roots || fail "mpicc"
{
    printf 'program = "%s/roots"\narguments = ["OPERATION"]\n' "$work"
    printf '[[subjob]]\nsite = "home"\ncount = 4\nlan = "a"\n'
    for host in a2 b1 b2 c1 c2; do
        printf '[[subjob]]\nsite = "%s"\ncount = 4\nlan = "%s"\n' "$host" "${host%?}"
    done
} >job.toml
cat >all.sh <<'S'
set -eu
for operation in bcast reduce gather scatter; do
    sed "s/OPERATION/$operation/" job.toml >"$operation.toml"
    ISTHMUS_STATS=1 isthmus run "$operation.toml" >"$operation.out" 2>"$operation.err" </dev/null || { cat "$operation.out" "$operation.err"; exit 1; }
    grep -q '24 roots are right' "$operation.out" || { cat "$operation.out" "$operation.err"; exit 1; }
done
S
isthmus-testbed run --sites 3x2 --rtt 10ms -- sh all.sh || fail "the jobs"
for operation in bcast reduce gather scatter; do
    cat "$operation.out" "$operation.err" >"$operation.all"
    wide=$(counted "$operation.all" "$operation" 'wide area')
    near=$(counted "$operation.all" "$operation" 'local area')
    # Two other sites, three second machines: the least there can be for one root, and so for 24.
    [ "$wide" = 48 ] && [ "$near" = 72 ] || { cat "$operation.all"; fail "$operation: $wide wide-area and $near local-area messages of 24 roots, not 48 and 72"; }
    echo "$operation: 2 wide-area and 3 local-area messages for each of 24 roots"
done
