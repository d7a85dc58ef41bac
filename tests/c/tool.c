/* SPDX-License-Identifier: Apache-2.0 */
/* The tool interface (chapter 15): variables, handles, sessions, categories, enumerations, and the codes of erroneous calls.
   ranks: 1 2 */
#include "check.h"

static int rank, size;

/* MPI_T has codes of its own and calls no error handler. */
#define CODE(expected, call) CHECK((call) == (expected))

static int cvar(const char *name)
{
    int index;
    OK(MPI_T_cvar_get_index(name, &index));
    return index;
}

static int pvar(const char *name, int class)
{
    int index;
    OK(MPI_T_pvar_get_index(name, class, &index));
    return index;
}

static void before_init(void)
{
    int n, provided;
    MPI_T_pvar_session session;
    CODE(MPI_T_ERR_NOT_INITIALIZED, MPI_T_cvar_get_num(&n));
    CODE(MPI_T_ERR_NOT_INITIALIZED, MPI_T_pvar_session_create(&session));
    CODE(MPI_T_ERR_NOT_INITIALIZED, MPI_T_category_changed(&n));
    CODE(MPI_T_ERR_NOT_INITIALIZED, MPI_T_event_get_num(&n));
    CODE(MPI_T_ERR_NOT_INITIALIZED, MPI_T_source_get_num(&n));
    CODE(MPI_T_ERR_NOT_INITIALIZED, MPI_T_enum_get_info(MPI_T_ENUM_NULL, &n, NULL, NULL));
    CODE(MPI_T_ERR_NOT_INITIALIZED, MPI_T_finalize());
    OK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
    CHECK(provided == MPI_THREAD_MULTIPLE);
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_finalize());
    OK(MPI_T_cvar_get_num(&n));
    CHECK(n > 0);
}

static void texts(void)
{
    char name[256], cut[5];
    int length = 0, full, index = cvar("ISTHMUS_SPIN");
    OK(MPI_T_cvar_get_info(index, NULL, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(length == (int)sizeof "ISTHMUS_SPIN");
    full = sizeof name;
    OK(MPI_T_cvar_get_info(index, name, &full, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(full == length && strcmp(name, "ISTHMUS_SPIN") == 0);
    full = sizeof cut;
    OK(MPI_T_cvar_get_info(index, cut, &full, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(full == length && strcmp(cut, "ISTH") == 0);
    strcpy(name, "untouched");
    OK(MPI_T_cvar_get_info(index, name, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(strcmp(name, "untouched") == 0);
}

static void control(void)
{
    int n, count, bind, scope, index;
    char text[512];
    MPI_Datatype type;
    MPI_T_enum names;
    MPI_T_cvar_handle handle;
    unsigned long long old, value = 17, read = 0;

    OK(MPI_T_cvar_get_num(&n));
    CODE(MPI_T_ERR_INVALID_INDEX, MPI_T_cvar_get_info(n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CODE(MPI_T_ERR_INVALID_INDEX, MPI_T_cvar_handle_alloc(-1, NULL, &handle, &count));
    CODE(MPI_T_ERR_INVALID_NAME, MPI_T_cvar_get_index("no such variable", &index));
    CODE(MPI_T_ERR_INVALID, MPI_T_cvar_get_index(NULL, &index));
    CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_read(MPI_T_CVAR_HANDLE_NULL, &value));

    index = cvar("ISTHMUS_SPIN");
    OK(MPI_T_cvar_get_info(index, NULL, NULL, NULL, &type, &names, NULL, NULL, &bind, &scope));
    CHECK(type == MPI_UNSIGNED_LONG_LONG && names == MPI_T_ENUM_NULL);
    CHECK(bind == MPI_T_BIND_NO_OBJECT && scope == MPI_T_SCOPE_LOCAL);
    OK(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count));
    CHECK(count == 1);
    OK(MPI_T_cvar_read(handle, &old));
    OK(MPI_T_cvar_write(handle, &value));
    OK(MPI_T_cvar_read(handle, &read));
    CHECK(read == 17);
    OK(MPI_T_cvar_write(handle, &old));
    OK(MPI_T_cvar_handle_free(&handle));
    CHECK(handle == MPI_T_CVAR_HANDLE_NULL);
    CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_handle_free(&handle));

    /* One that only the environment sets, with names for its values. */
    index = cvar("ISTHMUS_STATS");
    OK(MPI_T_cvar_get_info(index, NULL, NULL, NULL, &type, &names, NULL, NULL, NULL, &scope));
    CHECK(type == MPI_INT && scope == MPI_T_SCOPE_CONSTANT && names != MPI_T_ENUM_NULL);
    count = sizeof text;
    OK(MPI_T_enum_get_info(names, &n, text, &count));
    CHECK(n == 2);
    count = sizeof text;
    OK(MPI_T_enum_get_item(names, 1, &index, text, &count));
    CHECK(index == 1 && strcmp(text, "on") == 0);
    CODE(MPI_T_ERR_INVALID_INDEX, MPI_T_enum_get_item(names, 2, &index, text, &count));
    OK(MPI_T_cvar_handle_alloc(cvar("ISTHMUS_STATS"), NULL, &handle, &count));
    CODE(MPI_T_ERR_CVAR_SET_NEVER, MPI_T_cvar_write(handle, &index));
    OK(MPI_T_cvar_handle_free(&handle));
}

/* The check of arguments is switched off and on again. */
static void check_switch(void)
{
    int value = 0, count, code;
    MPI_T_cvar_handle handle;
    MPI_Datatype uncommitted;
    MPI_Request request;
    OK(MPI_T_cvar_handle_alloc(cvar("ISTHMUS_CHECK"), NULL, &handle, &count));
    OK(MPI_Type_contiguous(2, MPI_INT, &uncommitted));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    code = MPI_Isend(&value, 0, uncommitted, 0, 0, MPI_COMM_SELF, &request);
    MPI_Error_class(code, &code);
    CHECK(code == MPI_ERR_TYPE);
    OK(MPI_T_cvar_write(handle, &value));
    OK(MPI_Isend(&value, 0, uncommitted, 0, 0, MPI_COMM_SELF, &request));
    OK(MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    value = 1;
    OK(MPI_T_cvar_write(handle, &value));
    code = MPI_Isend(&value, 0, uncommitted, 0, 0, MPI_COMM_SELF, &request);
    MPI_Error_class(code, &code);
    CHECK(code == MPI_ERR_TYPE);
    OK(MPI_T_cvar_handle_free(&handle));
    OK(MPI_Type_free(&uncommitted));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
}

/* A message that is longer than the limit waits for its receiver: a send to a peer does not complete before. */
static void eager_limit(void)
{
    static char data[1000];
    int count, done = 1;
    unsigned long long old, none = 0;
    MPI_T_cvar_handle handle;
    MPI_Request request;
    OK(MPI_T_cvar_handle_alloc(cvar("ISTHMUS_EAGER"), NULL, &handle, &count));
    OK(MPI_T_cvar_read(handle, &old));
    OK(MPI_T_cvar_write(handle, &none));
    if (size == 2 && rank == 0) {
        OK(MPI_Isend(data, 1000, MPI_CHAR, 1, 5, MPI_COMM_WORLD, &request));
        OK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        CHECK(!done);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (size == 2 && rank == 1)
        OK(MPI_Recv(data, 1000, MPI_CHAR, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (size == 2 && rank == 0)
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_T_cvar_write(handle, &old));
    OK(MPI_T_cvar_handle_free(&handle));
}

static void performance(void)
{
    int count, class, read_only, continuous, atomic, bind, n;
    unsigned long long before, value = 0;
    MPI_T_pvar_session session, other;
    MPI_T_pvar_handle calls, bound, sleep, queue;
    MPI_Comm comm;

    OK(MPI_T_pvar_session_create(&session));
    OK(MPI_T_pvar_session_create(&other));
    OK(MPI_T_pvar_handle_alloc(session, pvar("isthmus_barrier_calls", MPI_T_PVAR_CLASS_COUNTER), NULL, &calls, &count));
    OK(MPI_T_pvar_read(session, calls, &before));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_T_pvar_read(session, calls, &value));
    CHECK(count == 1 && value == before + 1);
    OK(MPI_T_pvar_readreset(session, calls, &value));
    CHECK(value == before + 1);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_T_pvar_read(session, calls, &value));
    CHECK(value == 1);
    value = 100;
    OK(MPI_T_pvar_write(session, calls, &value));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_T_pvar_read(session, calls, &value));
    CHECK(value == 101);
    CODE(MPI_T_ERR_PVAR_NO_STARTSTOP, MPI_T_pvar_start(session, calls));
    CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(other, calls, &value));
    CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(session, MPI_T_PVAR_ALL_HANDLES, &value));

    /* Bound to a communicator. */
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    n = pvar("isthmus_comm_collectives", MPI_T_PVAR_CLASS_COUNTER);
    OK(MPI_T_pvar_get_info(n, NULL, NULL, NULL, &class, NULL, NULL, NULL, NULL, &bind, &read_only, &continuous, &atomic));
    CHECK(class == MPI_T_PVAR_CLASS_COUNTER && bind == MPI_T_BIND_MPI_COMM && !read_only && continuous && atomic);
    CODE(MPI_T_ERR_INVALID, MPI_T_pvar_handle_alloc(session, n, NULL, &bound, &count));
    OK(MPI_T_pvar_handle_alloc(session, n, &comm, &bound, &count));
    OK(MPI_T_pvar_reset(session, bound));
    OK(MPI_Barrier(comm));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_T_pvar_read(session, bound, &value));
    CHECK(value == 1);
    OK(MPI_Comm_free(&comm));

    /* Started and stopped. */
    OK(MPI_T_pvar_handle_alloc(session, pvar("isthmus_sleep_time", MPI_T_PVAR_CLASS_TIMER), NULL, &sleep, &count));
    OK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    OK(MPI_T_pvar_stop(session, sleep));
    OK(MPI_T_pvar_read(session, sleep, &before));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_T_pvar_read(session, sleep, &value));
    CHECK(value == before);

    /* Only read. */
    OK(MPI_T_pvar_handle_alloc(session, pvar("isthmus_unexpected_messages", MPI_T_PVAR_CLASS_LEVEL), NULL, &queue, &count));
    OK(MPI_T_pvar_read(session, queue, &before));
    OK(MPI_Send(&count, 1, MPI_INT, 0, 0, MPI_COMM_SELF));
    OK(MPI_T_pvar_read(session, queue, &value));
    CHECK(value >= 1);
    OK(MPI_Recv(&count, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    CODE(MPI_T_ERR_PVAR_NO_WRITE, MPI_T_pvar_write(session, queue, &value));
    CODE(MPI_T_ERR_PVAR_NO_WRITE, MPI_T_pvar_reset(session, queue));
    CODE(MPI_T_ERR_PVAR_NO_ATOMIC, MPI_T_pvar_readreset(session, queue, &value));

    OK(MPI_T_pvar_handle_free(session, &queue));
    CHECK(queue == MPI_T_PVAR_HANDLE_NULL);
    CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_handle_free(session, &queue));
    CODE(MPI_T_ERR_INVALID_NAME, MPI_T_pvar_get_index("isthmus_sleep_time", MPI_T_PVAR_CLASS_COUNTER, &n));
    OK(MPI_T_pvar_session_free(&session));
    CHECK(session == MPI_T_PVAR_SESSION_NULL);
    CODE(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_start(session, calls));
    OK(MPI_T_pvar_session_free(&other));
}

/* What the state variables say, by name. */
static void states(void)
{
    int index, count, value, n, number;
    char text[64];
    MPI_T_enum names;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    OK(MPI_T_pvar_session_create(&session));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    index = pvar("isthmus_last_collective", MPI_T_PVAR_CLASS_STATE);
    OK(MPI_T_pvar_get_info(index, NULL, NULL, NULL, NULL, NULL, &names, NULL, NULL, NULL, NULL, NULL, NULL));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
    OK(MPI_T_pvar_read(session, handle, &value));
    OK(MPI_T_enum_get_info(names, &n, NULL, NULL));
    for (int i = 0; i < n; i++) {
        count = sizeof text;
        OK(MPI_T_enum_get_item(names, i, &number, text, &count));
        CHECK((number == value) == (strcmp(text, "barrier") == 0));
    }
    OK(MPI_T_pvar_session_free(&session));
}

static int visited;

static void walk(int category)
{
    int cvars, pvars, children, events, indices[64];
    visited++;
    OK(MPI_T_category_get_info(category, NULL, NULL, NULL, NULL, &cvars, &pvars, &children));
    OK(MPI_T_category_get_num_events(category, &events));
    CHECK(children <= 64 && events <= 64);
    OK(MPI_T_category_get_events(category, events, indices));
    OK(MPI_T_category_get_categories(category, children, indices));
    for (int i = 0; i < children; i++)
        walk(indices[i]);
}

static void categories(void)
{
    int n, root, stamp, again;
    OK(MPI_T_category_changed(&stamp));
    OK(MPI_T_category_get_num(&n));
    OK(MPI_T_category_get_index("isthmus", &root));
    walk(root);
    CHECK(visited == n);
    OK(MPI_T_category_changed(&again));
    CHECK(stamp == again);
    CODE(MPI_T_ERR_INVALID_NAME, MPI_T_category_get_index("none", &root));
    CODE(MPI_T_ERR_INVALID_INDEX, MPI_T_category_get_num_events(n, &root));
}

int main(int argc, char **argv)
{
    int n;
    before_init();
    texts();
    control();
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    control();
    check_switch();
    eager_limit();
    performance();
    states();
    categories();
    OK(MPI_Finalize());
    texts();
    OK(MPI_T_finalize());
    CODE(MPI_T_ERR_NOT_INITIALIZED, MPI_T_pvar_get_num(&n));
    if (rank == 0)
        printf("variables, handles, sessions, categories, enumerations and codes are as chapter 15 says\n");
    return 0;
}
