/* SPDX-License-Identifier: Apache-2.0 */
/* Windows over memory that the program has brought: of MPI_Alloc_mem, which processes of a node map, of malloc, which they
   copy, and of both. ranks: 1 2 4 */
#include "check.h"

static int rank, size;

/* Whether this process has so many pieces of memory of windows mapped, or more. */
static int maps(int many)
{
    char line[4096];
    int found = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file))
        found += strstr(line, "/window.") != NULL;
    fclose(file);
    return found >= many;
}

/* Everybody does everything to all, itself too, within a window over these. */
static void operate(long *memory, long longs)
{
    MPI_Win win;
    long one = 1, value, got, zero = 0, three[3] = {7, 8, 9}, back[3] = {0, 0, 0};
    MPI_Datatype apart;
    memset(memory, 0, longs * sizeof *memory);
    OK(MPI_Type_vector(3, 1, 2, MPI_LONG, &apart));
    OK(MPI_Type_commit(&apart));
    OK(MPI_Win_create(memory, longs * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_fence(0, win));
    for (int other = 0; other < size; other++) {
        /* Both ways: the first operations on a process are copied. */
        for (int k = 0; k < 12; k++) {
            value = 50 + k;
            OK(MPI_Put(&value, 1, MPI_LONG, other, rank, 1, MPI_LONG, win));
            OK(MPI_Accumulate(&value, 1, MPI_LONG, other, size + 2 + rank, 1, MPI_LONG, MPI_SUM, win));
            OK(MPI_Win_fence(0, win));
            CHECK(other != rank || memory[rank] == value);
            CHECK(other != rank || memory[size + 2 + rank] == (k + 1) * 50 + k * (k + 1) / 2);
            OK(MPI_Win_fence(0, win));
        }
        OK(MPI_Get_accumulate(NULL, 0, MPI_LONG, &got, 1, MPI_LONG, other, size + 2 + rank, 1, MPI_LONG, MPI_NO_OP, win));
        OK(MPI_Win_fence(0, win));
        CHECK(got == 666);
        OK(MPI_Put(&zero, 1, MPI_LONG, other, size + 2 + rank, 1, MPI_LONG, win));
        OK(MPI_Win_fence(0, win));
        value = 100 * rank + other;
        OK(MPI_Put(&value, 1, MPI_LONG, other, rank, 1, MPI_LONG, win));
        OK(MPI_Accumulate(&one, 1, MPI_LONG, other, size, 1, MPI_LONG, MPI_SUM, win));
        /* MPI may read what is put until the fence. */
        OK(MPI_Win_fence(0, win));
    }
    for (int other = 0; other < size; other++)
        CHECK(memory[other] == 100 * other + rank);
    CHECK(memory[size] == size);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    for (int other = 0; other < size; other++) {
        OK(MPI_Get(&got, 1, MPI_LONG, other, rank, 1, MPI_LONG, win));
        OK(MPI_Win_flush(other, win));
        CHECK(got == 100 * rank + other);
        OK(MPI_Fetch_and_op(&one, &got, MPI_LONG, other, size + 1, MPI_SUM, win));
        OK(MPI_Win_flush(other, win));
        CHECK(got >= 0 && got < size);
        OK(MPI_Compare_and_swap(&one, &zero, &got, MPI_LONG, other, size + 2 + rank, win));
        OK(MPI_Win_flush_local(other, win));
        CHECK(got == 0);
        OK(MPI_Get_accumulate(&one, 1, MPI_LONG, &got, 1, MPI_LONG, other, size + 2 + rank, 1, MPI_LONG, MPI_SUM, win));
        OK(MPI_Win_flush(other, win));
        CHECK(got == 1);
        OK(MPI_Put(three, 3, MPI_LONG, other, longs - 6 * (rank + 1), 1, apart, win));
        OK(MPI_Win_flush(other, win));
        OK(MPI_Get(back, 3, MPI_LONG, other, longs - 6 * (rank + 1), 1, apart, win));
        OK(MPI_Win_flush(other, win));
        CHECK(memcmp(three, back, sizeof back) == 0);
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
    CHECK(memory[size + 1] == size);
    for (int other = 0; other < size; other++) {
        CHECK(memory[size + 2 + other] == 2);
        CHECK(memory[longs - 6 * (other + 1) + 4] == 9);
    }
    OK(MPI_Win_unlock(rank, win));
    /* The last element, and one behind it. */
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&one, 1, MPI_LONG, size - 1, longs - 1, 1, MPI_LONG, win));
    CHECK(MPI_Put(&one, 1, MPI_LONG, size - 1, longs, 1, MPI_LONG, win) != MPI_SUCCESS);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_free(&win));
    OK(MPI_Type_free(&apart));
}

enum { LONGS = 5000, MANY = 300, LONG_ONES = (80 << 20) / 8 };

int main(int argc, char **argv)
{
    long *memory, *many[MANY];
    int shared;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));

    OK(MPI_Alloc_mem(LONGS * sizeof *memory, MPI_INFO_NULL, &memory));
    shared = maps(1);
    CHECK(shared == (size > 1 && are_together()) || !are_together());
    /* All of it, and a part that begins on no page. */
    operate(memory, LONGS);
    operate(memory + 777, LONGS - 1000);
    OK(MPI_Free_mem(memory));
    CHECK(!maps(1) || !shared);

    /* One that nobody can map among others. */
    if (rank % 2)
        memory = malloc(LONGS * sizeof *memory);
    else
        OK(MPI_Alloc_mem(LONGS * sizeof *memory, MPI_INFO_NULL, &memory));
    operate(memory, LONGS);
    if (rank % 2)
        free(memory);
    else
        OK(MPI_Free_mem(memory));

    /* More pieces than others can map, and a longer one. */
    for (int k = 0; k < MANY; k++) {
        OK(MPI_Alloc_mem(800, MPI_INFO_NULL, &many[k]));
        memset(many[k], k, 800);
    }
    operate(many[0], 100);
    operate(many[MANY - 1], 100);
    for (int k = 1; k < MANY - 1; k++)
        CHECK(((unsigned char *)many[k])[799] == (unsigned char)k);
    for (int k = 0; k < MANY; k++)
        OK(MPI_Free_mem(many[k]));
    OK(MPI_Alloc_mem(LONG_ONES * sizeof *memory, MPI_INFO_NULL, &memory));
    operate(memory + LONG_ONES - 100, 100);
    OK(MPI_Free_mem(memory));
    OK(MPI_Finalize());
    return 0;
}
