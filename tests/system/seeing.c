// SPDX-License-Identifier: Apache-2.0
// Something passes between all ranks until the file that is named appears: short messages, long ones of class bulk, collective operations.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// A counter of our own by its name.
static unsigned long long counter(const char *name)
{
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    int index, count;
    unsigned long long value = 0;
    if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS)
        return 0;
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
    MPI_T_pvar_read(session, handle, &value);
    MPI_T_pvar_handle_free(session, &handle);
    MPI_T_pvar_session_free(&session);
    return value;
}

int main(int argc, char **argv)
{
    int rank, size, level;
    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Info info;
    MPI_Comm bulk;
    MPI_Info_create(&info);
    MPI_Info_set(info, "isthmus_class", "bulk");
    MPI_Info_set(info, "isthmus_compress", "false");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &bulk);
    int peer = (rank + size / 2) % size, length = 200000;
    char *out = calloc(1, length), *in = calloc(1, length);
    for (int go = 1, met = 0; go;) {
        if (rank == 0 && access(argv[1], F_OK) == 0)
            go = 0;
        MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Sendrecv(out, 100, MPI_CHAR, peer, 7, in, 100, MPI_CHAR, peer, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(out, length, MPI_CHAR, peer, 8, in, length, MPI_CHAR, peer, 8, bulk, MPI_STATUS_IGNORE);
        // All have found each other: a link that is cut now is resumed, where a first connection would give up.
        if (!met++) {
            MPI_Barrier(MPI_COMM_WORLD);
            if (rank == 0) {
                printf("going\n");
                fflush(stdout);
            }
        }
        usleep(20000);
    }
    unsigned long long sent = counter("isthmus_wide_sent_bytes"), cuts = counter("isthmus_wide_cuts");
    printf("rank %d: %s, cuts %llu\n", rank, sent > 1000000 ? "counted" : "counted too little", cuts);
    MPI_Comm_free(&bulk);
    MPI_Finalize();
    return 0;
}
