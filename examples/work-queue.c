/* SPDX-License-Identifier: Apache-2.0 */
/* A work queue over several sites with remote service requests (isthmus.h): rank 0 has packets of work. All ranks take
 * some and work, rank 0 too: its handlers are short, so they run beside its own work. Counts primes.
 * usage: work-queue [PACKETS]
 * ranks: 1 2 4 */
#include <isthmus.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 1000 };

/* Of rank 0. Only handlers touch them while there is work, and they run one at a time. */
static int64_t next_packet, packets, found;

/* Gives the number of the next packet, -1: there is none left. */
static void take(isthmus_call *call, const void *data, MPI_Count bytes, void *user)
{
    int64_t packet = next_packet < packets ? next_packet++ : -1;
    (void)data, (void)bytes, (void)user;
    isthmus_call_reply(call, &packet, sizeof packet);
}

/* Takes the result of a packet. */
static void done(isthmus_call *call, const void *data, MPI_Count bytes, void *user)
{
    int64_t primes;
    (void)call, (void)user;
    if (bytes == sizeof primes) {
        memcpy(&primes, data, sizeof primes);
        found += primes;
    }
}

static int64_t primes_in(int64_t packet)
{
    int64_t count = 0;
    for (int64_t n = packet * NUMBERS; n < (packet + 1) * NUMBERS; n++) {
        int prime = n > 1;
        for (int64_t d = 2; prime && d * d <= n; d++)
            prime = n % d != 0;
        count += prime;
    }
    return count;
}

int main(int argc, char **argv)
{
    int rank, size, worked = 0, *all;
    isthmus_handler take_one, result;
    MPI_Request request;
    int64_t packet;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    packets = argc > 1 ? atol(argv[1]) : 200;
    /* All give the names; rank 0 alone has functions for them. */
    isthmus_handler_register("take", rank == 0 ? take : NULL, NULL, ISTHMUS_SHORT, &take_one);
    isthmus_handler_register("done", rank == 0 ? done : NULL, NULL, ISTHMUS_SHORT, &result);
    MPI_Barrier(MPI_COMM_WORLD);
    isthmus_request_ask(NULL, 0, &packet, sizeof packet, 0, take_one, MPI_COMM_WORLD, 0, &request);
    for (;;) {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        int64_t mine = packet;
        if (mine < 0)
            break;
        /* The next packet is on its way while this one is worked on. */
        isthmus_request_ask(NULL, 0, &packet, sizeof packet, 0, take_one, MPI_COMM_WORLD, 0, &request);
        int64_t primes = primes_in(mine);
        isthmus_request_send(&primes, sizeof primes, 0, result, MPI_COMM_WORLD, 0);
        worked++;
    }
    /* Until rank 0 has all results of this rank. */
    isthmus_request_flush(0, MPI_COMM_WORLD);
    all = malloc(size * sizeof *all);
    MPI_Gather(&worked, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        for (int i = 0; i < size; i++)
            printf("rank %d: %d packets\n", i, all[i]);
        printf("%lld primes below %lld\n", (long long)found, (long long)packets * NUMBERS);
    }
    free(all);
    MPI_Finalize();
    return 0;
}
