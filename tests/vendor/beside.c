/* SPDX-License-Identifier: Apache-2.0 */
/* Two MPI libraries in one process: this program is linked to ours and opens an adaptor to another, whose functions have the same
 * names. Started by the other's mpiexec; for ours every process is a world of one. usage: beside ADAPTOR */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "../../adaptors/vendor.h"
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                                                 \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define LONG (6 << 20)

static void ours(void)
{
    int rank = -1, size = 0, length;
    double sum = 0, one = 1;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    CHECK(MPI_Get_library_version(text, &length) == MPI_SUCCESS && strstr(text, "Isthmus"));
    CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank) == MPI_SUCCESS && rank == 0);
    CHECK(MPI_Comm_size(MPI_COMM_WORLD, &size) == MPI_SUCCESS && size == 1);
    CHECK(MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS && sum == 1);
    MPI_Comm copy;
    CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &copy) == MPI_SUCCESS && MPI_Comm_free(&copy) == MPI_SUCCESS);
}

static void theirs(const struct isthmus_vendor *vendor, int rank, int count)
{
    unsigned long long comm, pair, request;
    CHECK(vendor->duplicate(1, &comm) == 0 && comm > 1);
    double mine = rank + 1, sum = 0;
    CHECK(vendor->allreduce(comm, &mine, &sum, 1, ISTHMUS_VENDOR_DOUBLE, ISTHMUS_VENDOR_SUM) == 0);
    CHECK(sum == count * (count + 1) / 2.0);
    /* Short and long ones around the ring. */
    static char out[LONG], in[LONG];
    for (long long bytes = 8; bytes <= LONG; bytes *= LONG / 8) {
        struct isthmus_vendor_arrival arrival;
        int complete = 0;
        memset(out, rank + 1, sizeof out);
        CHECK(vendor->start_send(comm, out, bytes, (rank + 1) % count, 7, 0, &request) == 0);
        CHECK(vendor->receive(comm, in, LONG, (rank + count - 1) % count, ISTHMUS_VENDOR_ANY, &arrival) == 0);
        CHECK(arrival.bytes == bytes && arrival.tag == 7 && in[bytes - 1] == (rank + count - 1) % count + 1);
        /* Without a request the message has left. */
        while (request && !complete)
            CHECK(vendor->test(&request, &complete, &arrival) == 0);
    }
    int members[2] = { 1, 0 };
    if (rank < 2) {
        CHECK(vendor->among(members, 2, 9, &pair) == 0 && pair > 0);
        long long value = rank == 1 ? 4242 : 0;
        CHECK(vendor->bcast(pair, &value, sizeof value, 0) == 0 && value == 4242);
        CHECK(vendor->release(pair) == 0);
    }
    /* Errors come back as codes with texts. */
    char text[200];
    int code = vendor->send(comm, out, 1, count + 5, 0);
    CHECK(code != 0 && vendor->explain(code, text, sizeof text) == 0 && text[0]);
    CHECK(vendor->release(comm) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    const struct isthmus_vendor *(*entry)(void);
    *(void **)&entry = dlsym(library, "isthmus_vendor");
    CHECK(entry);
    const struct isthmus_vendor *vendor = entry();
    CHECK(vendor->interface == ISTHMUS_VENDOR_INTERFACE && vendor->size == sizeof *vendor);
    int rank = -1, count = 0;
    CHECK(MPI_Init(&argc, &argv) == MPI_SUCCESS);
    CHECK(vendor->begin(1, &rank, &count) == 0 && count >= 2);
    for (int i = 0; i < 3; i++) {
        ours();
        theirs(vendor, rank, count);
    }
    CHECK(vendor->barrier(1) == 0);
    CHECK(vendor->end() == 0);
    ours();
    CHECK(MPI_Finalize() == MPI_SUCCESS);
    char name[200];
    vendor->version(name, sizeof name);
    name[strcspn(name, "\n")] = 0;
    printf("rank %d of %d: both work beside %s\n", rank, count, name);
    return 0;
}
