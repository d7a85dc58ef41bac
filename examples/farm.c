/* SPDX-License-Identifier: Apache-2.0 */
/* A Monte-Carlo farm over several sites: rank 0 hands out packets of samples, the others work. How large must a packet be so that a distant
   worker is worth its link? For several sizes the farm prints, per site, which part of the time its workers computed; with the next packet
   asked for while the present one is worked on ("ahead"), and without. Then it computes pi with packets of the break-even size.
   usage: farm [SECONDS of each measurement] */
/* ranks: 3 */
/* arguments: 0.02 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ASK, PACKET, SITES = 64 };
static const double sizes[] = {1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1};
#define COUNT ((int)(sizeof sizes / sizeof *sizes))
#define ENOUGH 0.95

static int rank, size, *site;

static uint64_t hits(uint64_t samples, uint64_t seed)
{
    uint64_t inside = 0, x = seed * 0x9e3779b97f4a7c15u + 1;
    for (uint64_t i = 0; i < samples; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        double a = (double)(uint32_t)x / 4294967296.0, b = (double)(x >> 32) / 4294967296.0;
        inside += a * a + b * b < 1;
    }
    return inside;
}

/* Answers every request until the time is over; then with an empty packet. A request brings the result of the last packet. */
static void hand_out(double seconds, uint64_t *inside, uint64_t *samples, int requests)
{
    double until = MPI_Wtime() + seconds;
    uint64_t seed = 1;
    for (int left = requests; left > 0;) {
        uint64_t result[3], packet[2] = {0, seed++};
        MPI_Status status;
        MPI_Recv(result, 3, MPI_UINT64_T, MPI_ANY_SOURCE, ASK, MPI_COMM_WORLD, &status);
        *inside += result[0], *samples += result[1];
        if (MPI_Wtime() < until)
            packet[0] = result[2];
        else
            left--;
        MPI_Send(packet, 2, MPI_UINT64_T, status.MPI_SOURCE, PACKET, MPI_COMM_WORLD);
    }
}

/* Works on packets of this many samples, so many of them asked for at a time; which part of the time it computed. */
static double work(uint64_t samples, int ahead)
{
    uint64_t packet[2][2], none[3] = {0, 0, samples};
    MPI_Request coming[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    double began = MPI_Wtime(), computed = 0, first = 0;
    for (int i = 0; i <= ahead; i++) {
        MPI_Irecv(packet[i], 2, MPI_UINT64_T, 0, PACKET, MPI_COMM_WORLD, &coming[i]);
        MPI_Send(none, 3, MPI_UINT64_T, 0, ASK, MPI_COMM_WORLD);
    }
    for (int at = 0, left = ahead + 1; left > 0; at = ahead ? !at : 0) {
        if (coming[at] == MPI_REQUEST_NULL)
            continue;
        MPI_Wait(&coming[at], MPI_STATUS_IGNORE);
        if (packet[at][0] == 0) {
            left--;
            continue;
        }
        double start = MPI_Wtime();
        first = first > 0 ? first : start;
        uint64_t result[3] = {hits(packet[at][0], packet[at][1]), packet[at][0], samples};
        computed += MPI_Wtime() - start;
        MPI_Irecv(packet[at], 2, MPI_UINT64_T, 0, PACKET, MPI_COMM_WORLD, &coming[at]);
        MPI_Send(result, 3, MPI_UINT64_T, 0, ASK, MPI_COMM_WORLD);
    }
    return computed / (MPI_Wtime() - (first > 0 ? first : began));
}

int main(int argc, char **argv)
{
    int *depths, **colors, found;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPICHX_TOPOLOGY_DEPTHS, &depths, &found);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPICHX_TOPOLOGY_COLORS, &colors, &found);
    site = malloc(size * sizeof(int));
    for (int i = 0; i < size; i++)
        site[i] = found ? colors[i][1] % SITES : 0;
    double seconds = argc > 1 ? atof(argv[1]) : 1, speed = 0, *part = malloc(size * sizeof(double));
    if (size < 2) {
        fprintf(stderr, "farm: start at least 2 processes\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    double start = MPI_Wtime();
    uint64_t inside = hits(3000000, 7), samples = 0;
    speed = 3e6 / (MPI_Wtime() - start) + (double)(inside == 0);
    double best[SITES][2];
    for (int i = 0; i < SITES; i++)
        best[i][0] = best[i][1] = 0;
    if (rank == 0)
        printf("%8s %6s  part of the time that workers compute, by site\n", "packet", "ahead");
    inside = 0;
    for (int i = 0; i < COUNT; i++)
        for (int ahead = 0; ahead < 2; ahead++) {
            double mine = 1;
            MPI_Barrier(MPI_COMM_WORLD);
            if (rank == 0)
                hand_out(seconds, &inside, &samples, (size - 1) * (ahead + 1));
            else
                mine = work((uint64_t)(sizes[i] * speed), ahead);
            MPI_Gather(&mine, 1, MPI_DOUBLE, part, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
            if (rank > 0)
                continue;
            printf("%5.0f ms %6s ", 1e3 * sizes[i], ahead ? "yes" : "no");
            for (int s = 0; s < SITES; s++) {
                double sum = 0;
                int workers = 0;
                for (int r = 1; r < size; r++)
                    if (site[r] == s)
                        sum += part[r], workers++;
                if (workers == 0)
                    continue;
                printf("  site %d: %5.1f %%", s, 100 * sum / workers);
                if (best[s][ahead] == 0 && sum / workers >= ENOUGH)
                    best[s][ahead] = sizes[i];
            }
            printf("\n");
        }
    for (int s = 0; rank == 0 && s < SITES; s++)
        for (int r = 1; r < size; r++)
            if (site[r] == s) {
                char words[2][32];
                for (int a = 0; a < 2; a++)
                    snprintf(words[a], sizeof words[a], best[s][a] > 0 ? "%.0f ms" : "more", 1e3 * best[s][a]);
                printf("site %d breaks even (%.0f %%) with packets of %s, or %s asked for ahead\n", s, 100 * ENOUGH, words[0], words[1]);
                break;
            }
    if (rank == 0)
        printf("pi is about %.4f after %.1e samples\n", 4.0 * (double)inside / (double)samples, (double)samples);
    MPI_Finalize();
    return 0;
}
