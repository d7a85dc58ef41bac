#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Nothing readable of what programs send appears on the wire between sites.
. "$(dirname "$0")/common.sh"
need_testbed

cat >secret.c <<'C'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
/* Long and short messages full of the marker, both ways, and a broadcast; the marker is not in the program's text. */
static char text[1 << 20], got[1 << 20];
int main(int argc, char **argv)
{
    int rank, size, lengths[] = {64, 4096, 1 << 20};
    char marker[] = "NZQLFSJO.UIF.DMFBS";
    for (char *c = marker; *c; c++) if (*c != '.') *c = (char)(*c - 1);
    for (size_t i = 0; i < sizeof text; i++) text[i] = marker[i % (sizeof marker - 1)];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 3; i++) {
        MPI_Sendrecv(text, lengths[i], MPI_CHAR, size - 1 - rank, 0, got, lengths[i], MPI_CHAR, size - 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (memcmp(text, got, (size_t)lengths[i])) MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Bcast(text, 4096, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0) printf("%s\n", marker);
    return 0;
}
C
mpicc -O2 secret.c -o secret || fail "mpicc"
cat >all.sh <<'S'
set -eu
isthmus run --site home:2 --site b1:2 "$PWD/secret" >out </dev/null
# The control: the capture does see what is not encrypted.
bash -c 'exec 3<>/dev/tcp/b1/22; echo CONTROL.IN.THE.CLEAR >&3; read -r -t 2 line <&3' || true
S
isthmus-testbed run --sites 2x1 --rtt 4ms --capture wide.pcap --stats-json stats.json -- sh all.sh || { cat out; fail "the job"; }
marker=$(cat out)
[ "${#marker}" -ge 16 ] || fail "no marker: $marker"
grep -q '"capture_missed": 0' stats.json || fail "the capture is not complete"
grep -qa 'CONTROL.IN.THE.CLEAR' wide.pcap || fail "the capture does not hold the control"
[ "$(wc -c <wide.pcap)" -gt 2000000 ] || fail "the capture is too small to hold the messages"
if grep -qaF "$marker" wide.pcap; then fail "the marker $marker crossed the wide area in the clear"; fi
echo "a capture of $(wc -c <wide.pcap) bytes does not hold $marker"
