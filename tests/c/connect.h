/* SPDX-License-Identifier: Apache-2.0 */
/* What two groups of different jobs do with each other once they have an intercommunicator. */
#include "check.h"
#include <isthmus.h>
#include <unistd.h>

enum { SEVERAL = 3, LONG = 1 << 18 };

/* Everybody of the other group hears from all of this one, who are any source; short and long messages. */
static inline void between_groups(MPI_Comm inter)
{
    int rank, remote, *data = malloc(LONG * sizeof *data), *got = malloc(LONG * sizeof *got);
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_remote_size(inter, &remote));
    for (int tag = 5; tag < 7; tag++) {
        int length = tag == 5 ? 1 : LONG;
        MPI_Request *requests = malloc(remote * sizeof *requests);
        for (int i = 0; i < length; i++)
            data[i] = rank * 7 + i;
        for (int to = 0; to < remote; to++)
            OK(MPI_Isend(data, length, MPI_INT, to, tag, inter, &requests[to]));
        for (int n = 0; n < remote; n++) {
            MPI_Status status;
            OK(MPI_Recv(got, length, MPI_INT, MPI_ANY_SOURCE, tag, inter, &status));
            CHECK(got[0] == status.MPI_SOURCE * 7 && got[length - 1] == status.MPI_SOURCE * 7 + length - 1);
        }
        OK(MPI_Waitall(remote, requests, MPI_STATUSES_IGNORE));
        free(requests);
    }
    free(data);
    free(got);
}

/* Windows over both jobs, in every kind of epoch. `together`: all share memory, as halves of one job on a node do. */
static inline void exposed(MPI_Comm all, int together)
{
    int rank, size, one = 1, before, *part, *data = malloc(LONG * sizeof *data), *brought = malloc(LONG * sizeof *brought);
    MPI_Win win, shared;
    MPI_Group everybody, next, last;
    OK(MPI_Comm_rank(all, &rank));
    OK(MPI_Comm_size(all, &size));
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (int i = 0; i < LONG; i++) {
        data[i] = rank * 7 + i;
        brought[i] = -1;
    }
    OK(MPI_Win_allocate((MPI_Aint)(size + 2) * sizeof *part, sizeof *part, MPI_INFO_NULL, all, &part, &win));
    memset(part, 0, (size + 2) * sizeof *part);
    OK(MPI_Win_fence(0, win));
    for (int other = 0; other < size; other++)
        OK(MPI_Put(&rank, 1, MPI_INT, other, rank, 1, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    for (int other = 0; other < size; other++)
        CHECK(part[other] == other);
    /* The target computes: it calls nothing that receives. */
    OK(MPI_Win_lock_all(0, win));
    for (int n = 0; n < 10; n++) {
        OK(MPI_Accumulate(&one, 1, MPI_INT, 0, size, 1, MPI_INT, MPI_SUM, win));
        OK(MPI_Fetch_and_op(&one, &before, MPI_INT, 0, size + 1, MPI_SUM, win));
        OK(MPI_Win_flush(0, win));
        CHECK(before >= n && before < 10 * size);
    }
    if (rank == 0)
        while (((volatile int *)part)[size] < 10 * size || ((volatile int *)part)[size + 1] < 10 * size)
            OK(MPI_Win_sync(win));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    /* Long data, memory of the program. */
    OK(MPI_Win_create(brought, LONG * sizeof *brought, sizeof *brought, MPI_INFO_NULL, all, &win));
    OK(MPI_Comm_group(all, &everybody));
    OK(MPI_Group_incl(everybody, 1, &to, &next));
    OK(MPI_Group_incl(everybody, 1, &from, &last));
    OK(MPI_Win_post(last, 0, win));
    OK(MPI_Win_start(next, 0, win));
    OK(MPI_Put(data, LONG, MPI_INT, to, 0, LONG, MPI_INT, win));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    CHECK(brought[0] == from * 7 && brought[LONG - 1] == from * 7 + LONG - 1);
    OK(MPI_Barrier(all));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win));
    OK(MPI_Get(data, LONG, MPI_INT, to, 0, LONG, MPI_INT, win));
    OK(MPI_Win_unlock(to, win));
    CHECK(data[0] == rank * 7 && data[LONG - 1] == rank * 7 + LONG - 1);
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN));
    OK(MPI_Error_class(MPI_Win_allocate_shared(8, 8, MPI_INFO_NULL, all, &part, &shared), &before));
    CHECK(before == (together ? MPI_SUCCESS : MPI_ERR_RMA_SHARED));
    if (together)
        OK(MPI_Win_free(&shared));
    OK(MPI_Group_free(&last));
    OK(MPI_Group_free(&next));
    OK(MPI_Group_free(&everybody));
    free(data);
    free(brought);
}

static inline int class_of_error(int code)
{
    int class;
    OK(MPI_Error_class(code, &class));
    return class;
}

/* One file for the members of both jobs: every kind of access. */
struct stored {
    MPI_Comm all;
    MPI_File file;
    int rank, size, next, *data, *got;
};

enum { RECORD = 1000, LEFT = 300 };

/* In blocks, then element by element. */
static inline void stored_together(struct stored *s)
{
    int value;
    MPI_Status status;
    MPI_Request request;
    MPI_Datatype strided;
    OK(MPI_File_write_at_all(s->file, (MPI_Offset)s->rank * LONG * sizeof value, s->data, LONG, MPI_INT, &status));
    OK(MPI_Get_count(&status, MPI_INT, &value));
    CHECK(value == LONG);
    OK(MPI_File_sync(s->file));
    OK(MPI_File_read_at_all(s->file, (MPI_Offset)s->next * LONG * sizeof value, s->got, LONG, MPI_INT, &status));
    CHECK(s->got[0] == s->next * 7 && s->got[LONG - 1] == s->next * 7 + LONG - 1);
    OK(MPI_Type_vector(RECORD, 1, s->size, MPI_INT, &strided));
    OK(MPI_Type_commit(&strided));
    OK(MPI_File_set_view(s->file, s->rank * sizeof value, MPI_INT, strided, "native", MPI_INFO_NULL));
    OK(MPI_File_write_all(s->file, s->data, RECORD, MPI_INT, &status));
    OK(MPI_File_seek(s->file, 0, MPI_SEEK_SET));
    OK(MPI_File_iread_all(s->file, s->got, RECORD, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    CHECK(memcmp(s->got, s->data, RECORD * sizeof value) == 0);
    OK(MPI_File_set_view(s->file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(s->file, s->next, &value, 1, MPI_INT, &status));
    CHECK(value == s->next * 7);
    OK(MPI_Type_free(&strided));
}

/* Each by itself. */
static inline void stored_alone(struct stored *s)
{
    MPI_Request requests[2];
    MPI_Status status;
    OK(MPI_Barrier(s->all));
    OK(MPI_File_iwrite_at(s->file, (MPI_Offset)s->rank * RECORD, s->data, RECORD, MPI_INT, &requests[0]));
    OK(MPI_File_iwrite_at(s->file, (MPI_Offset)(s->size + s->rank) * RECORD, s->data + 1, RECORD, MPI_INT, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    OK(MPI_File_sync(s->file));
    OK(MPI_Barrier(s->all));
    OK(MPI_File_sync(s->file));
    OK(MPI_File_read_at(s->file, (MPI_Offset)(s->size + s->next) * RECORD, s->got, RECORD, MPI_INT, &status));
    CHECK(s->got[0] == s->next * 7 + 1 && s->got[RECORD - 1] == s->next * 7 + RECORD);
    OK(MPI_Barrier(s->all));
}

/* At the shared pointer: in any order, and by rank. */
static inline void stored_shared(struct stored *s)
{
    int sum = 0, value;
    MPI_Offset at;
    MPI_Status status;
    MPI_Request request;
    OK(MPI_File_set_size(s->file, 0));
    OK(MPI_File_seek_shared(s->file, 0, MPI_SEEK_SET));
    for (int n = 0; n < 10; n++)
        OK(MPI_File_write_shared(s->file, &s->rank, 1, MPI_INT, &status));
    OK(MPI_Barrier(s->all));
    OK(MPI_File_get_position_shared(s->file, &at));
    CHECK(at == 10 * s->size);
    OK(MPI_File_write_ordered(s->file, &s->rank, 1, MPI_INT, &status));
    OK(MPI_File_iwrite_shared(s->file, &s->rank, 1, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_File_sync(s->file));
    OK(MPI_Barrier(s->all));
    OK(MPI_File_sync(s->file));
    OK(MPI_File_read_at(s->file, 0, s->got, 12 * s->size, MPI_INT, &status));
    for (int i = 0; i < 12 * s->size; i++)
        sum += s->got[i];
    CHECK(sum == 12 * s->size * (s->size - 1) / 2);
    for (int i = 0; i < s->size; i++)
        CHECK(s->got[10 * s->size + i] == i);
    OK(MPI_File_seek_shared(s->file, 10 * s->size, MPI_SEEK_SET));
    OK(MPI_File_read_ordered_begin(s->file, &value, 1, MPI_INT));
    OK(MPI_File_read_ordered_end(s->file, &value, &status));
    CHECK(value == s->rank);
}

/* Split, atomic, sizes, hints. */
static inline void stored_states(struct stored *s)
{
    int flag;
    char site[256];
    MPI_Offset bytes;
    MPI_Status status;
    MPI_Info info;
    OK(MPI_File_write_at_all_begin(s->file, s->rank, s->data, 1, MPI_INT));
    OK(MPI_File_write_at_all_end(s->file, s->data, &status));
    OK(MPI_File_set_atomicity(s->file, 1));
    OK(MPI_File_get_atomicity(s->file, &flag));
    CHECK(flag);
    for (int i = 0; i < LEFT; i++)
        s->got[i] = s->rank;
    OK(MPI_File_write_at(s->file, 0, s->got, LEFT, MPI_INT, &status));
    OK(MPI_File_read_at(s->file, 0, s->got, LEFT, MPI_INT, &status));
    for (int i = 1; i < LEFT; i++)
        CHECK(s->got[i] == s->got[0]);
    OK(MPI_File_set_atomicity(s->file, 0));
    OK(MPI_File_preallocate(s->file, LONG));
    OK(MPI_File_get_size(s->file, &bytes));
    CHECK(bytes == LONG);
    OK(MPI_Barrier(s->all));
    OK(MPI_File_set_size(s->file, LEFT * sizeof(int)));
    OK(MPI_File_get_size(s->file, &bytes));
    CHECK(bytes == LEFT * sizeof(int));
    OK(MPI_File_get_info(s->file, &info));
    OK(MPI_Info_get(info, "isthmus_site", sizeof site - 1, site, &flag));
    CHECK(flag);
    OK(MPI_Info_free(&info));
}

/* One name is one file, also for who opens it alone or deletes it. */
static inline void stored_again(struct stored *s, const char *name)
{
    int value;
    MPI_Offset bytes;
    MPI_Status status;
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR, MPI_INFO_NULL, &s->file));
    OK(MPI_File_get_size(s->file, &bytes));
    CHECK(bytes >= (MPI_Offset)(LEFT * sizeof value));
    OK(MPI_File_read_at(s->file, 0, s->got, LEFT, MPI_INT, &status));
    CHECK(s->got[0] >= 0 && s->got[0] < s->size && s->got[LEFT - 1] == s->got[0]);
    OK(MPI_File_write_at(s->file, (LEFT + s->rank) * sizeof value, &s->rank, 1, MPI_INT, &status));
    OK(MPI_File_close(&s->file));
    OK(MPI_Barrier(s->all));
    OK(MPI_File_open(s->all, name, MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &s->file));
    OK(MPI_File_read_at(s->file, (LEFT + s->next) * sizeof value, &value, sizeof value, MPI_BYTE, &status));
    CHECK(value == s->next);
    OK(MPI_File_close(&s->file));
    CHECK(class_of_error(MPI_File_open(s->all, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &s->file)) == MPI_ERR_NO_SUCH_FILE);
    OK(MPI_File_open(s->all, name, MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &s->file));
    OK(MPI_File_close(&s->file));
    if (s->rank == s->size - 1)
        OK(MPI_File_delete(name, MPI_INFO_NULL));
    OK(MPI_Barrier(s->all));
    CHECK(class_of_error(MPI_File_delete(name, MPI_INFO_NULL)) == MPI_ERR_NO_SUCH_FILE);
    OK(MPI_Barrier(s->all));
}

/* Rank 0 says what it is called, in a directory for such things if there is one. */
static inline void name_for_all(MPI_Comm all, const char *one, char *name, int length)
{
    int rank;
    const char *directory = getenv("ISTHMUS_TEST_FILES");
    if (!directory)
        directory = getenv("TMPDIR");
    OK(MPI_Comm_rank(all, &rank));
    if (rank == 0)
        snprintf(name, length, "%s/isthmus-%s.%d", directory ? directory : "/tmp", one, (int)getpid());
    OK(MPI_Bcast(name, length, MPI_CHAR, 0, all));
}

static inline void stored(MPI_Comm all, const char *one)
{
    char name[1024];
    int value;
    MPI_Group group;
    struct stored s = { .all = all, .data = malloc(LONG * sizeof value), .got = malloc(LONG * sizeof value) };
    OK(MPI_Comm_rank(all, &s.rank));
    OK(MPI_Comm_size(all, &s.size));
    s.next = (s.rank + 1) % s.size;
    for (int i = 0; i < LONG; i++)
        s.data[i] = s.rank * 7 + i;
    name_for_all(all, one, name, sizeof name);
    CHECK(class_of_error(MPI_File_open(all, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &s.file)) == MPI_ERR_NO_SUCH_FILE);
    if (s.size > 1)
        CHECK(class_of_error(MPI_File_open(all, name, s.rank ? MPI_MODE_RDWR : MPI_MODE_RDONLY, MPI_INFO_NULL, &s.file)) == MPI_ERR_NOT_SAME);
    OK(MPI_File_open(all, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, MPI_INFO_NULL, &s.file));
    OK(MPI_File_get_group(s.file, &group));
    OK(MPI_Group_size(group, &value));
    CHECK(value == s.size);
    OK(MPI_Group_rank(group, &value));
    CHECK(value == s.rank);
    OK(MPI_Group_free(&group));
    stored_together(&s);
    stored_alone(&s);
    stored_shared(&s);
    stored_states(&s);
    OK(MPI_File_close(&s.file));
    stored_again(&s, name);
    free(s.data);
    free(s.got);
}

/* Neither job shares anything: what is in the home's directories is used by nobody of the other job who does not see it. */
static inline void withheld(MPI_Comm all)
{
    char name[1024], text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_File file;
    name_for_all(all, "kept", name, sizeof name);
    int code = MPI_File_open(all, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
    CHECK(class_of_error(code) == MPI_ERR_ACCESS && file == MPI_FILE_NULL);
    OK(MPI_Error_string(code, text, &length));
    CHECK(strstr(text, "--share"));
}

/* A file that is still open when the groups disconnect keeps its processes connected until it is closed. */
static inline MPI_File opened_on_both(MPI_Comm inter, int high, MPI_File *alone)
{
    MPI_Comm all;
    MPI_File file;
    char name[1024];
    OK(MPI_Intercomm_merge(inter, high, &all));
    name_for_all(all, "kept", name, sizeof name);
    OK(MPI_File_open(all, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_Barrier(all));
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR, MPI_INFO_NULL, alone));
    OK(MPI_Comm_free(&all));
    return file;
}

static inline void used_after(MPI_File file, MPI_File alone)
{
    int rank, value = -1;
    MPI_Group group;
    OK(MPI_File_get_group(file, &group));
    OK(MPI_Group_rank(group, &rank));
    OK(MPI_Group_free(&group));
    OK(MPI_File_write_ordered(file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    OK(MPI_File_read_ordered(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(value == rank);
    OK(MPI_File_close(&file));
    /* Who has it open by itself at the other job is the last one that is connected. */
    OK(MPI_File_write_at(alone, rank * sizeof rank, &rank, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&alone));
}

/* Communicators of groups with members of both jobs, without a communicator of all. */
static inline void from_groups(MPI_Comm inter, MPI_Comm all)
{
    MPI_Group everybody, local, remote;
    MPI_Comm again, between;
    int rank, size, sum, result, mine;
    OK(MPI_Comm_rank(all, &rank));
    OK(MPI_Comm_size(all, &size));
    OK(MPI_Comm_rank(inter, &mine));
    OK(MPI_Comm_group(all, &everybody));
    OK(MPI_Comm_create_from_group(everybody, "both", MPI_INFO_NULL, MPI_ERRORS_RETURN, &again));
    OK(MPI_Comm_compare(all, again, &result));
    CHECK(result == MPI_CONGRUENT);
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, again));
    CHECK(sum == size * (size - 1) / 2);
    OK(MPI_Comm_free(&again));
    OK(MPI_Comm_group(inter, &local));
    OK(MPI_Comm_remote_group(inter, &remote));
    OK(MPI_Intercomm_create_from_groups(local, 0, remote, 0, "between", MPI_INFO_NULL, MPI_ERRORS_RETURN, &between));
    if (mine == 0)
        OK(MPI_Sendrecv(&rank, 1, MPI_INT, 0, 3, &result, 1, MPI_INT, 0, 3, between, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(between));
    OK(MPI_Comm_disconnect(&between));
    OK(MPI_Group_free(&remote));
    OK(MPI_Group_free(&local));
    OK(MPI_Group_free(&everybody));
}

static void doubled(isthmus_call *call, const void *data, MPI_Count bytes, void *user)
{
    int value = 2 * *(const int *)data;
    (void)user;
    CHECK(bytes == sizeof value);
    OK(isthmus_call_reply(call, &value, sizeof value));
}

/* Requests to processes of both jobs, by rank and by pointers that have come in messages. */
static inline void asked(MPI_Comm all)
{
    int rank, size, value;
    isthmus_handler handler;
    isthmus_pointer mine, *every;
    OK(MPI_Comm_rank(all, &rank));
    OK(MPI_Comm_size(all, &size));
    OK(isthmus_handler_register("doubled", doubled, NULL, ISTHMUS_SHORT, &handler));
    OK(isthmus_pointer_to_process(rank, all, &mine));
    every = malloc(size * sizeof *every);
    OK(MPI_Allgather(&mine, ISTHMUS_POINTER_BYTES, MPI_BYTE, every, ISTHMUS_POINTER_BYTES, MPI_BYTE, all));
    for (int other = 0; other < size; other++) {
        MPI_Request request;
        isthmus_pointer seen;
        value = -1;
        OK(isthmus_pointer_to_process(other, all, &seen));
        CHECK(memcmp(&seen, &every[other], sizeof seen) == 0);
        OK(isthmus_request_ask_to(&other, sizeof other, &value, sizeof value, &every[other], handler, 0, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(value == 2 * other);
        OK(isthmus_request_ask(&rank, sizeof rank, &value, sizeof value, other, handler, all, 0, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(value == 2 * rank);
    }
    OK(MPI_Barrier(all));
    OK(isthmus_handler_unregister(&handler));
    free(every);
}

/* All of both groups in one communicator. */
static inline void merged(MPI_Comm inter, int high)
{
    MPI_Comm all, copy, half, node;
    int rank, size, local, sum, flag, result;
    OK(MPI_Intercomm_merge(inter, high, &all));
    OK(MPI_Comm_rank(all, &rank));
    OK(MPI_Comm_size(all, &size));
    OK(MPI_Comm_rank(inter, &local));
    /* Any source, whichever job it is of. */
    for (int turn = 0; turn < size; turn++) {
        if (rank == turn) {
            int heard = 0;
            for (int n = 1; n < size; n++) {
                MPI_Status status;
                int value;
                OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, all, &status));
                CHECK(value == status.MPI_SOURCE && status.MPI_TAG == value + 1);
                heard += value;
            }
            CHECK(heard == size * (size - 1) / 2 - rank);
        } else {
            OK(MPI_Send(&rank, 1, MPI_INT, turn, rank + 1, all));
        }
    }
    /* Collective operations: several times, so that memory of nodes is used where there is some. */
    for (int n = 0; n < 5; n++) {
        MPI_Request request;
        int *every = malloc(size * sizeof *every);
        OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, all));
        CHECK(sum == size * (size - 1) / 2);
        OK(MPI_Iallgather(&rank, 1, MPI_INT, every, 1, MPI_INT, all, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        for (int i = 0; i < size; i++)
            CHECK(every[i] == i);
        free(every);
        int *block = malloc(LONG * sizeof *block);
        for (int i = 0; i < LONG; i++)
            block[i] = rank == n % size ? i * n : -1;
        OK(MPI_Bcast(block, LONG, MPI_INT, n % size, all));
        CHECK(block[LONG - 1] == (LONG - 1) * n);
        free(block);
        OK(MPI_Barrier(all));
    }
    OK(MPI_Comm_dup(all, &copy));
    OK(MPI_Comm_compare(all, copy, &result));
    CHECK(result == MPI_CONGRUENT);
    OK(MPI_Comm_split(copy, rank % 2, -rank, &half));
    OK(MPI_Comm_size(half, &result));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_MAX, half));
    CHECK(sum % 2 == rank % 2);
    OK(MPI_Comm_split_type(copy, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    OK(MPI_Comm_size(node, &result));
    CHECK(result <= size);
    exposed(copy, result == size);
    from_groups(inter, copy);
    asked(copy);
    if (getenv("ISTHMUS_TEST_KEPT")) {
        withheld(copy);
    } else {
        stored(copy, "both");
        stored(half, "half");
    }
    OK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, node));
    /* Levels: all are in one wide area; colours are equal at all members. */
    int *depths, **colors;
    OK(MPI_Comm_get_attr(all, MPICHX_TOPOLOGY_DEPTHS, &depths, &flag));
    CHECK(flag);
    OK(MPI_Comm_get_attr(all, MPICHX_TOPOLOGY_COLORS, &colors, &flag));
    CHECK(flag);
    for (int i = 0; i < size; i++) {
        int mine[3] = { depths[i], colors[i][0], colors[i][2] }, theirs[3] = { depths[i], colors[i][0], colors[i][2] };
        OK(MPI_Bcast(theirs, 3, MPI_INT, 0, all));
        CHECK(memcmp(mine, theirs, sizeof mine) == 0 && mine[1] == 0);
    }
    OK(MPI_Comm_free(&node));
    OK(MPI_Comm_free(&half));
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_free(&all));
}

/* Collective operations between the groups. */
static inline void collective(MPI_Comm inter)
{
    int rank, size, remote, sum = -1, root_rank = -1;
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_size(inter, &size));
    OK(MPI_Comm_remote_size(inter, &remote));
    MPI_File file;
    CHECK(class_of_error(MPI_File_open(inter, "between", MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file)) == MPI_ERR_COMM);
    OK(MPI_Barrier(inter));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter));
    CHECK(sum == remote * (remote - 1) / 2);
    MPI_Request request;
    OK(MPI_Iallreduce(&size, &root_rank, 1, MPI_INT, MPI_MAX, inter, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(root_rank == remote);
}
