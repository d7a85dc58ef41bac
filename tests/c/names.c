/* SPDX-License-Identifier: Apache-2.0 */
/* Names of services: published, found by all, taken back; scopes; errors; several threads that ask at once. */
/* ranks: 1 2 4 */

#include "check.h"

#include <pthread.h>
#include <unistd.h>

#define THREADS 8
#define ROUNDS 20

static int rank, size;
static MPI_Info job, user, global;

static MPI_Info with(const char *key, const char *value)
{
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, key, value));
    return info;
}

static int class_of(int code)
{
    int class;
    OK(MPI_Error_class(code, &class));
    return class;
}

/* The sentence of the last error has this in it. */
static void says(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    OK(MPI_Error_string(code, text, &length));
    if (!strstr(text, what)) {
        fprintf(stderr, "'%s' is not in '%s'\n", what, text);
        CHECK(0);
    }
}

static void finds(const char *name, MPI_Info info, const char *port)
{
    char found[MPI_MAX_PORT_NAME] = "?";
    int code = MPI_Lookup_name(name, info, found);
    if (port) {
        OK(code);
        CHECK(!strcmp(found, port));
    } else {
        if (code == MPI_SUCCESS)
            fprintf(stderr, "'%s' stands for '%s'\n", name, found);
        CHECK(code != MPI_SUCCESS);
        says(code, name);
        CHECK(class_of(code) == MPI_ERR_NAME);
    }
}

/* One publishes, all find it, all ask again after it was taken back. */
static void scope(MPI_Info info, MPI_Info other, const char *name)
{
    char port[64];
    snprintf(port, sizeof port, "a port of %s", name);
    if (rank == 0) {
        OK(MPI_Publish_name(name, info, port));
        int code = MPI_Publish_name(name, info, "another");
        CHECK(class_of(code) == MPI_ERR_SERVICE);
        says(code, "published");
        CHECK(class_of(MPI_Unpublish_name(name, info, "another")) == MPI_ERR_SERVICE);
        CHECK(class_of(MPI_Unpublish_name(name, other, port)) == MPI_ERR_SERVICE);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    finds(name, info, port);
    finds(name, MPI_INFO_NULL, port);
    finds(name, other, NULL);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == size - 1 && size > 1)
        CHECK(class_of(MPI_Unpublish_name(name, info, port)) == MPI_ERR_SERVICE);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0)
        OK(MPI_Unpublish_name(name, MPI_INFO_NULL, port));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    finds(name, info, NULL);
    /* The next one may publish the same name. */
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void errors(void)
{
    char port[MPI_MAX_PORT_NAME], longest[2000];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    MPI_Info wrong = with("isthmus_scope", "world");
    int code = MPI_Publish_name("x", wrong, "p");
    CHECK(class_of(code) == MPI_ERR_INFO_VALUE);
    says(code, "expected job or user");
    OK(MPI_Info_free(&wrong));
    CHECK(class_of(MPI_Publish_name("", job, "p")) == MPI_ERR_ARG);
    CHECK(class_of(MPI_Publish_name(longest, job, "p")) == MPI_ERR_ARG);
    CHECK(class_of(MPI_Publish_name(NULL, job, "p")) == MPI_ERR_ARG);
    CHECK(class_of(MPI_Publish_name("x", job, "")) == MPI_ERR_PORT);
    CHECK(class_of(MPI_Publish_name("x", job, longest)) == MPI_ERR_PORT);
    CHECK(class_of(MPI_Lookup_name("", job, port)) == MPI_ERR_ARG);
    CHECK(class_of(MPI_Unpublish_name("x", job, NULL)) == MPI_ERR_PORT);
    CHECK(class_of(MPI_Unpublish_name("never", MPI_INFO_NULL, "p")) == MPI_ERR_SERVICE);
}

/* Names need not be text. */
static void bytes(void)
{
    char name[32], port[] = "\xff port \x01\xe4";
    snprintf(name, sizeof name, "\xfe\xf8%d", rank);
    OK(MPI_Publish_name(name, job, port));
    finds(name, job, port);
    OK(MPI_Unpublish_name(name, job, port));
}

static void *thread(void *argument)
{
    int me = *(int *)argument;
    for (int round = 0; round < ROUNDS; round++) {
        char name[64], port[64];
        snprintf(name, sizeof name, "thread %d of %d", me, rank);
        snprintf(port, sizeof port, "%s, round %d", name, round);
        OK(MPI_Publish_name(name, job, port));
        finds(name, job, port);
        /* Who waits for a message lets the others hear their answers. */
        int out = round, in = -1, to = (rank + 1) % size, from = (rank + size - 1) % size;
        OK(MPI_Sendrecv(&out, 1, MPI_INT, to, me, &in, 1, MPI_INT, from, me, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(in == round);
        OK(MPI_Unpublish_name(name, job, port));
    }
    return NULL;
}

static void threads(void)
{
    pthread_t all[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK(!pthread_create(&all[i], NULL, thread, &numbers[i]));
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_join(all[i], NULL));
}

int main(int argc, char **argv)
{
    int provided;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    job = with("isthmus_scope", "job");
    user = with("isthmus_scope", "user");
    global = with("ompi_global_scope", "true");
    /* Several of these programs may run at once. */
    int pid = (int)getpid();
    OK(MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD));
    char name[64];
    snprintf(name, sizeof name, "isthmus-test-names-%d", pid);
    scope(job, user, "ocean");
    scope(user, job, name);
    scope(global, job, name);
    errors();
    bytes();
    if (provided == MPI_THREAD_MULTIPLE)
        threads();
    OK(MPI_Info_free(&job));
    OK(MPI_Info_free(&user));
    OK(MPI_Info_free(&global));
    OK(MPI_Finalize());
    return 0;
}
