/* SPDX-License-Identifier: Apache-2.0 */
/* Windows (MPI 5.0 section 12.2): shared memory, attributes, names, hints, groups, error handlers, freeing.
   ranks: 1 2 4 */
#include "check.h"
#include <stdint.h>

static int rank, size;

#define ERROR(call, expected) \
    do { \
        int class_, code_ = (call); \
        OK(MPI_Error_class(code_, &class_)); \
        CHECK(class_ == (expected)); \
    } while (0)

/* Processes of this node. */
static int together;

/* Memory of the program: each process finds its own, and MPI_PROC_NULL is the first part, wherever that is. */
static void own_memory(void)
{
    MPI_Win win;
    MPI_Aint bytes;
    int unit, k, memory[4];
    int *at;
    OK(MPI_Win_create(memory, sizeof memory, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    for (k = -1; k < size; k++) {
        int target = k < 0 ? 0 : k;
        OK(MPI_Win_shared_query(win, k < 0 ? MPI_PROC_NULL : k, &bytes, &unit, &at));
        CHECK(unit == 4);
        CHECK(target == rank ? bytes == sizeof memory && at == memory : bytes == 0 && at == NULL);
    }
    OK(MPI_Win_free(&win));
}

/* As p4est does: one array of all processes of a node, which each fills in part and reads whole. */
static void one_array(void)
{
    MPI_Comm node;
    MPI_Win win;
    MPI_Aint bytes;
    int unit, me, all, i, k;
    int *mine, *first;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    OK(MPI_Comm_rank(node, &me));
    OK(MPI_Comm_size(node, &all));
    together = all;
    OK(MPI_Win_allocate_shared(me == 0 ? (MPI_Aint)(all * 1000 * sizeof(int)) : 0, sizeof(int), MPI_INFO_NULL, node,
                               &mine, &win));
    OK(MPI_Win_shared_query(win, 0, &bytes, &unit, &first));
    CHECK(bytes == (MPI_Aint)(all * 1000 * sizeof(int)) && unit == sizeof(int));
    CHECK(me != 0 || first == mine);
    OK(MPI_Win_fence(0, win));
    for (i = 0; i < 1000; i++)
        CHECK(first[me * 1000 + i] == 0);
    for (i = 0; i < 1000; i++)
        first[me * 1000 + i] = me * 10000 + i;
    OK(MPI_Win_fence(0, win));
    for (k = 0; k < all; k++)
        for (i = 0; i < 1000; i++)
            CHECK(first[k * 1000 + i] == k * 10000 + i);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    OK(MPI_Win_free(&win));
    CHECK(win == MPI_WIN_NULL);
    OK(MPI_Comm_free(&node));
}

/* Parts follow each other without gaps, or are apart where that is allowed; MPI_PROC_NULL is the first that has any. */
static void parts(void)
{
    MPI_Win win;
    MPI_Info info;
    MPI_Aint bytes;
    int unit, k;
    char *mine, *at, *next = NULL;
    OK(MPI_Win_allocate_shared(rank == 0 ? 0 : 3 + rank, 1 + rank, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
    for (k = 0; k < size; k++) {
        OK(MPI_Win_shared_query(win, k, &bytes, &unit, &at));
        CHECK(bytes == (k == 0 ? 0 : 3 + k) && unit == 1 + k);
        CHECK(k == 0 ? at == NULL : k == 1 || at == next);
        CHECK(k != rank || k == 0 || at == mine);
        next = at + bytes;
    }
    OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &at));
    CHECK(bytes == (size == 1 ? 0 : 4) && (size == 1 || unit == 2));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    ERROR(MPI_Win_shared_query(win, size, &bytes, &unit, &at), MPI_ERR_RANK);
    OK(MPI_Win_free(&win));
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "alloc_shared_noncontig", "true"));
    OK(MPI_Win_allocate_shared(5, 1, info, MPI_COMM_WORLD, &mine, &win));
    CHECK((uintptr_t)mine % 64 == 0);
    memset(mine, 'a' + rank, 5);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (k = 0; k < size; k++) {
        OK(MPI_Win_shared_query(win, k, &bytes, &unit, &at));
        CHECK(bytes == 5 && at[0] == 'a' + k && at[4] == 'a' + k);
    }
    OK(MPI_Win_free(&win));
    OK(MPI_Info_free(&info));
}

static int deleted;

static int on_delete(MPI_Win win, int key, void *value, void *extra)
{
    (void)win, (void)key, (void)extra;
    CHECK(value == &deleted);
    deleted++;
    return MPI_SUCCESS;
}

static void attributes(MPI_Win win, void *base, MPI_Aint bytes, int unit, int flavor)
{
    void *value;
    int found, key;
    OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &value, &found));
    CHECK(found && value == base);
    OK(MPI_Win_get_attr(win, MPI_WIN_SIZE, &value, &found));
    CHECK(found && *(MPI_Aint *)value == bytes);
    OK(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &value, &found));
    CHECK(found && *(int *)value == unit);
    OK(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &found));
    CHECK(found && *(int *)value == flavor);
    OK(MPI_Win_get_attr(win, MPI_WIN_MODEL, &value, &found));
    CHECK(found && *(int *)value == MPI_WIN_UNIFIED);
    OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_delete, &key, NULL));
    OK(MPI_Win_get_attr(win, key, &value, &found));
    CHECK(!found);
    OK(MPI_Win_set_attr(win, key, &deleted));
    OK(MPI_Win_get_attr(win, key, &value, &found));
    CHECK(found && value == &deleted);
    deleted = 0;
    OK(MPI_Win_delete_attr(win, key));
    CHECK(deleted == 1);
    OK(MPI_Win_set_attr(win, key, &deleted));
    OK(MPI_Win_free_keyval(&key));
    CHECK(key == MPI_KEYVAL_INVALID);
    /* The second one goes with the window. */
}

static void names_and_info(MPI_Win win)
{
    char name[MPI_MAX_OBJECT_NAME] = "x";
    char value[MPI_MAX_INFO_VAL + 1];
    int length = -1, found;
    MPI_Info info;
    MPI_Group group, world;
    OK(MPI_Win_get_name(win, name, &length));
    CHECK(length == 0 && name[0] == 0);
    OK(MPI_Win_set_name(win, "my window"));
    OK(MPI_Win_get_name(win, name, &length));
    CHECK(length == 9 && !strcmp(name, "my window"));
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "no_locks", "true"));
    OK(MPI_Info_set(info, "not_known", "1"));
    OK(MPI_Win_set_info(win, info));
    OK(MPI_Info_free(&info));
    OK(MPI_Win_get_info(win, &info));
    OK(MPI_Info_get(info, "no_locks", MPI_MAX_INFO_VAL, value, &found));
    CHECK(found && !strcmp(value, "true"));
    OK(MPI_Info_get(info, "accumulate_ordering", MPI_MAX_INFO_VAL, value, &found));
    CHECK(found && !strcmp(value, "rar,raw,war,waw"));
    OK(MPI_Info_get(info, "accumulate_ops", MPI_MAX_INFO_VAL, value, &found));
    CHECK(found && !strcmp(value, "same_op_no_op"));
    OK(MPI_Info_get(info, "not_known", MPI_MAX_INFO_VAL, value, &found));
    CHECK(!found);
    OK(MPI_Info_free(&info));
    OK(MPI_Win_get_group(win, &group));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_compare(group, world, &found));
    CHECK(found == MPI_IDENT);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&world));
}

static int called;
static MPI_Win expected;

static void handler(MPI_Win *win, int *code, ...)
{
    int class;
    OK(MPI_Error_class(*code, &class));
    CHECK(*win == expected && class == MPI_ERR_RMA_SYNC);
    called++;
}

/* A new window ends the job on errors; another handler hears of errors of the window, and its name is in the sentence. */
static void handlers(MPI_Win win)
{
    MPI_Errhandler own, found;
    char text[MPI_MAX_ERROR_STRING];
    int length;
    OK(MPI_Win_get_errhandler(win, &found));
    CHECK(found == MPI_ERRORS_ARE_FATAL);
    OK(MPI_Win_create_errhandler(handler, &own));
    OK(MPI_Win_set_errhandler(win, own));
    OK(MPI_Win_get_errhandler(win, &found));
    CHECK(found == own);
    OK(MPI_Errhandler_free(&found));
    expected = win, called = 0;
    ERROR(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);
    CHECK(called == 1);
    OK(MPI_Win_call_errhandler(win, MPI_ERR_RMA_SYNC));
    CHECK(called == 2);
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    ERROR(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);
    OK(MPI_Error_string(MPI_ERR_RMA_SYNC, text, &length));
    CHECK(strstr(text, "window \"my window\"") && strstr(text, "rank 0 is not locked"));
    OK(MPI_Errhandler_free(&own));
}

/* Errors while a window is made go to the communicator, and all processes have one if one has. */
static void wrong_arguments(void)
{
    MPI_Win win;
    char *base, memory[8];
    MPI_Errhandler before;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    ERROR(MPI_Win_allocate(rank == size - 1 ? -1 : 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), MPI_ERR_SIZE);
    CHECK(win == MPI_WIN_NULL);
    ERROR(MPI_Win_create(memory, 8, rank == 0 ? 0 : 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_DISP);
    ERROR(MPI_Win_create(NULL, 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_BASE);
    ERROR(MPI_Win_create(memory, 8, 1, MPI_INFO_NULL, MPI_COMM_NULL, &win), MPI_ERR_COMM);
    /* More than there is: an error, and nothing is left. */
    ERROR(MPI_Win_allocate((MPI_Aint)1 << 52, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), MPI_ERR_NO_MEM);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, before));
}

int main(int argc, char **argv)
{
    MPI_Win win, none = MPI_WIN_NULL;
    int i, *memory;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    one_array();
    if (together == size)
        parts();
    own_memory();
    memory = malloc(40);
    OK(MPI_Win_create(memory, 40, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    attributes(win, memory, 40, 4, MPI_WIN_FLAVOR_CREATE);
    names_and_info(win);
    handlers(win);
    deleted = 0;
    OK(MPI_Win_free(&win));
    CHECK(deleted == 1);
    free(memory);
    OK(MPI_Win_allocate(48, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    attributes(win, memory, 48, 8, MPI_WIN_FLAVOR_ALLOCATE);
    OK(MPI_Win_free(&win));
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    attributes(win, MPI_BOTTOM, 0, 1, MPI_WIN_FLAVOR_DYNAMIC);
    OK(MPI_Win_free(&win));
    OK(MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, MPI_COMM_SELF, &memory, &win));
    attributes(win, memory, 8, 1, MPI_WIN_FLAVOR_SHARED);
    OK(MPI_Win_free(&win));
    wrong_arguments();
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    ERROR(MPI_Win_free(&none), MPI_ERR_WIN);
    for (i = 0; i < 100; i++) {
        OK(MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
        OK(MPI_Win_free(&win));
    }
    OK(MPI_Finalize());
    return 0;
}
