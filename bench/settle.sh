#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How long it takes to settle the paths between eight sites, 75 ms apart, of which some let nobody in: between the moment when the last gateway
# is there and that at which the last pair is known. Everything in PATH: isthmus, isthmus-testbed, mpicc.
# usage: sh bench/settle.sh [REPETITIONS]
work=$(mktemp -d /var/tmp/isthmus-settle.XXXXXX)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cd "$work" || exit 1
cat >hello.c <<'C'
#include <mpi.h>
int main(void)
{
    MPI_Init(0, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Finalize();
}
C
mpicc -O1 hello.c -o hello || exit 1
cat >all.sh <<'S'
for round in $(seq "$1"); do
    ISTHMUS_STATS=1 ISTHMUS_LINKS_MEASURE=0 isthmus run --site home:1 --site b1:1 --site c1:1 --site d1:1 --site e1:1 --site f1:1 --site g1:1 --site h1:1 ./hello 2>err </dev/null ||
        { cat err; exit 1; }
    awk '/^isthmus: path / {
        pairs++; split($0, half, ": "); split(half[3], word, " "); kinds[word[1]]++
        if (match($0, /settled after [0-9.]+ [a-z]+/)) {
            split(substr($0, RSTART, RLENGTH), word, " ")
            time = word[3] * (word[4] == "us" ? 1e-6 : word[4] == "ms" ? 1e-3 : 1); known++
            if (time > longest) longest = time
        }
    }
    END { printf "%d pairs, %d settled, the last after %.2f s;", pairs, known, longest; for (k in kinds) printf " %s %d", k, kinds[k]; print "" }' err
done
S
for access in "" "--access c=denied,e=nat,g=nat-ssh,h=denied"; do
    echo "eight sites, 75 ms ${access:-, all open}:"
    # shellcheck disable=SC2086 # words
    isthmus-testbed run --sites 8x1 --rtt 75ms --rate 200mbit $access -- sh all.sh "${1:-3}" || exit 1
done
