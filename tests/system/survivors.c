/* SPDX-License-Identifier: Apache-2.0 */
/* For survivors.sh: ranks fail one after the other while all work together, and those that are left go on until two are left.
   The first argument is where they fail: "between" operations, "while" they wait, in an "agreement", in a "shrink", with a
   "revoke" that only they have called, on an "inter"communicator, or in several of these ("any"); or all of one job at once ("job").
   With two more, the name of a service and "serve" or "visit", two jobs with a launcher each work together. With "host", "guest" and
   "third" it is three: the third one connects to what the other two have become, in which it has met nobody before. */
#include <mpi-ext.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* visits: all of its job fail at once, where a whole job does. */
static int world_rank, world_size, visits;

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: rank %d: not true: %s\n", __FILE__, __LINE__, world_rank, #condition); \
            fflush(stderr); \
            MPI_Abort(MPI_COMM_WORLD, 9); \
        } \
    } while (0)

static int class_of(int code)
{
    int class = -1;
    MPI_Error_class(code, &class);
    return class;
}

static int is_loss(int code)
{
    int class = class_of(code);
    return class == MPI_SUCCESS || class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED;
}

static void die(void)
{
    raise(SIGKILL);
}

static void die_waiting(MPI_Comm comm)
{
    MPI_Request request;
    int never;
    MPI_Irecv(&never, 1, MPI_INT, MPI_ANY_SOURCE, 77, comm, &request);
    usleep(20000);
    die();
}

/* All work together; whoever sees a loss lets the others know. */
static int step(MPI_Comm comm)
{
    int one = 1, sum = 0, size, rank, got = 0;
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    for (int round = 0; round < 20; round++) {
        int code = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        if (code == MPI_SUCCESS)
            code = MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 1, &got, 1, MPI_INT, (rank + size - 1) % size, 1, comm,
                                MPI_STATUS_IGNORE);
        if (code == MPI_SUCCESS)
            code = MPI_Barrier(comm);
        CHECK(is_loss(code));
        if (code != MPI_SUCCESS)
            return 0;
        CHECK(sum == size && got == (rank + size - 1) % size);
    }
    return 1;
}

static int is_subset(MPI_Group part, MPI_Group all)
{
    MPI_Group both;
    int common, size;
    MPI_Group_intersection(part, all, &both);
    MPI_Group_size(both, &common);
    MPI_Group_size(part, &size);
    if (both != MPI_GROUP_EMPTY)
        MPI_Group_free(&both);
    return common == size;
}

/* Those that are left, and that all have the same. */
static MPI_Comm shrunk(MPI_Comm comm, int with_request)
{
    MPI_Comm made;
    MPI_Group before, after, failed;
    MPI_Request request;
    int result, n, acked;
    if (with_request) {
        CHECK(MPIX_Comm_ishrink(comm, &made, &request) == MPI_SUCCESS);
        CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    } else
        CHECK(MPIX_Comm_shrink(comm, &made) == MPI_SUCCESS);
    MPI_Comm_group(comm, &before);
    MPI_Comm_group(made, &after);
    CHECK(is_subset(after, before));
    /* What was agreed on is known. */
    CHECK(MPIX_Comm_get_failed(comm, &failed) == MPI_SUCCESS);
    MPI_Group_difference(before, failed, &failed);
    CHECK(is_subset(failed, after));
    MPI_Group_compare(failed, after, &result);
    CHECK(result == MPI_IDENT || result == MPI_UNEQUAL);
    CHECK(MPIX_Comm_ack_failed(comm, 1, &acked) == MPI_SUCCESS && acked <= 1 + world_size);
    CHECK(MPIX_Comm_failure_ack(comm) == MPI_SUCCESS);
    CHECK(MPIX_Comm_failure_get_acked(comm, &failed) == MPI_SUCCESS);
    MPI_Group_size(failed, &n);
    CHECK(MPIX_Comm_ack_failed(comm, world_size, &acked) == MPI_SUCCESS && acked >= n);
    MPI_Group_free(&before);
    MPI_Group_free(&after);
    return made;
}

/* Where this process fails, if it is its turn. */
static int fails(const char *how, const char *where, int turn)
{
    static const char *const all[] = {"between", "while", "agreement", "shrink", "revoke"};
    if (strcmp(how, "any") == 0)
        how = all[turn % 5];
    return strcmp(how, where) == 0;
}

/* A process waits until a service has a port. */
static void await_port(const char *service, MPI_Comm comm, char *port)
{
    int found = 0, rank;
    MPI_Comm_rank(comm, &rank);
    for (int tries = 0; tries < 600 && !found; tries++) {
        if (rank == 0)
            found = MPI_Lookup_name(service, MPI_INFO_NULL, port) == MPI_SUCCESS;
        MPI_Bcast(&found, 1, MPI_INT, 0, comm);
        if (!found)
            usleep(100000);
    }
    CHECK(found);
}

/* The processes of this communicator and of another job. */
static MPI_Comm met(MPI_Comm comm, const char *service, int is_visitor)
{
    char port[MPI_MAX_PORT_NAME] = "";
    int rank;
    MPI_Comm between, all;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (is_visitor) {
        await_port(service, comm, port);
        CHECK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, comm, &between) == MPI_SUCCESS);
    } else {
        if (rank == 0) {
            CHECK(MPI_Open_port(MPI_INFO_NULL, port) == MPI_SUCCESS);
            MPI_Info user;
            MPI_Info_create(&user);
            MPI_Info_set(user, "isthmus_scope", "user");
            CHECK(MPI_Publish_name(service, user, port) == MPI_SUCCESS);
            MPI_Info_free(&user);
        }
        CHECK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, comm, &between) == MPI_SUCCESS);
    }
    CHECK(MPI_Intercomm_merge(between, is_visitor, &all) == MPI_SUCCESS);
    MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
    MPI_Comm_free(&between);
    MPI_Comm_rank(all, &world_rank);
    MPI_Comm_size(all, &world_size);
    return all;
}

/* The processes of three jobs: the second one meets the first one, and the third one both. */
static MPI_Comm chained(const char *service, const char *who)
{
    char second[256];
    MPI_Comm both = MPI_COMM_WORLD, all;
    snprintf(second, sizeof second, "%s-third", service);
    if (strcmp(who, "third") != 0)
        both = met(MPI_COMM_WORLD, service, strcmp(who, "guest") == 0);
    all = met(both, second, strcmp(who, "third") == 0);
    if (both != MPI_COMM_WORLD)
        MPI_Comm_free(&both);
    return all;
}

int main(int argc, char **argv)
{
    MPI_Comm comm, smaller;
    const char *how = argc > 1 ? argv[1] : "any";
    int size, rank, turn = 0, losses = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    visits = argc > 3 && (strcmp(argv[3], "visit") == 0 || strcmp(argv[3], "host") == 0);
    if (argc > 3 && (strcmp(argv[3], "serve") == 0 || strcmp(argv[3], "visit") == 0))
        comm = met(MPI_COMM_WORLD, argv[2], visits);
    else if (argc > 3)
        comm = chained(argv[2], argv[3]);
    else
        CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &comm) == MPI_SUCCESS);
    /* Nobody fails before all have it. */
    int all_have_it = 1;
    CHECK(is_loss(MPIX_Comm_agree(comm, &all_have_it)));
    for (;;) {
        MPI_Comm_size(comm, &size);
        MPI_Comm_rank(comm, &rank);
        if (size <= 2 || (strcmp(how, "job") == 0 && turn > 0))
            break;
        /* Another one each time: the last, the first, one in the middle. */
        int victim = turn % 3 == 0 ? size - 1 : turn % 3 == 1 ? 0 : size / 2;
        int mine = rank == victim;
        if (strcmp(how, "job") == 0 && visits)
            die();
        if (mine && fails(how, "between", turn))
            die();
        if (mine && fails(how, "while", turn))
            die_waiting(comm);
        if (mine && fails(how, "revoke", turn)) {
            CHECK(MPIX_Comm_revoke(comm) == MPI_SUCCESS);
            die();
        }
        int ok = step(comm), all = ok;
        if (!ok)
            CHECK(MPIX_Comm_revoke(comm) == MPI_SUCCESS);
        if (mine && fails(how, "agreement", turn)) {
            MPI_Request request;
            MPIX_Comm_iagree(comm, &all, &request);
            die();
        }
        int code = MPIX_Comm_agree(comm, &all);
        CHECK(is_loss(code));
        /* All that live know the same: a second agreement says so. */
        int same = all, other = ~all;
        CHECK(is_loss(MPIX_Comm_agree(comm, &same)) && is_loss(MPIX_Comm_agree(comm, &other)));
        CHECK(same == all && other == ~all);
        if (mine && fails(how, "shrink", turn)) {
            MPI_Request request;
            MPIX_Comm_ishrink(comm, &smaller, &request);
            die();
        }
        MPIX_Comm_revoke(comm);
        smaller = shrunk(comm, turn % 2);
        /* Whoever fails after it has taken part is a lost member of the new one. */
        for (int whole = 1; MPIX_Comm_agree(smaller, &whole) != MPI_SUCCESS; whole = 1) {
            MPI_Comm again;
            MPIX_Comm_revoke(smaller);
            again = shrunk(smaller, 0);
            CHECK(MPI_Comm_free(&smaller) == MPI_SUCCESS);
            smaller = again;
        }
        int now;
        MPI_Comm_size(smaller, &now);
        losses += size - now;
        CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS);
        comm = smaller;
        turn++;
    }
    CHECK(step(comm));
    CHECK(losses == world_size - size);
    printf("rank %d is left, one of %d\n", world_rank, size);
    MPI_Finalize();
    return 0;
}
