/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of two processes accept and connect at one port at the same time, again and again. Some stay connected with what they have freed,
 * others disconnect, while others still meet. concurrent server|client FILE THREADS ROUNDS; used by connect.sh. */
#include "check.h"
#include <pthread.h>
#include <unistd.h>

static char port[MPI_MAX_PORT_NAME];
static int serves, rounds;

static void *meet(void *argument)
{
    int thread = *(int *) argument;
    for (int round = 0; round < rounds; round++) {
        MPI_Comm own, inter, merged;
        int stays = thread == 0 && round % 3 == 0, one = 1, sum = 0;
        OK(MPI_Comm_dup(MPI_COMM_SELF, &own));
        if (serves)
            OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, own, &inter));
        else
            OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, own, &inter));
        OK(MPI_Intercomm_merge(inter, serves, &merged));
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, merged));
        CHECK(sum == 2);
        /* The client says how they part. */
        OK(MPI_Bcast(&stays, 1, MPI_INT, 0, merged));
        if (stays)
            OK(MPI_Comm_free(&merged));
        else
            OK(MPI_Comm_disconnect(&merged));
        OK(MPI_Comm_disconnect(&inter));
        OK(MPI_Comm_free(&own));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    enum { MOST = 64 };
    pthread_t threads[MOST];
    int numbers[MOST], provided, count;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    CHECK(argc == 5 && provided == MPI_THREAD_MULTIPLE);
    serves = strcmp(argv[1], "server") == 0;
    count = atoi(argv[3]);
    rounds = atoi(argv[4]);
    CHECK(count > 0 && count <= MOST);
    if (serves) {
        char name[4096];
        OK(MPI_Open_port(MPI_INFO_NULL, port));
        snprintf(name, sizeof name, "%s.new", argv[2]);
        FILE *file = fopen(name, "w");
        CHECK(file && fputs(port, file) >= 0 && fclose(file) == 0 && rename(name, argv[2]) == 0);
    } else {
        FILE *file;
        while (!(file = fopen(argv[2], "r")))
            usleep(10000);
        CHECK(fgets(port, sizeof port, file) && fclose(file) == 0);
    }
    for (int i = 0; i < count; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, meet, &numbers[i]) == 0);
    }
    for (int i = 0; i < count; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    OK(MPI_Finalize());
    printf("%s: all is well\n", argv[1]);
    return 0;
}
