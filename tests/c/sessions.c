/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: before, beside and after the world model; process sets; communicators from groups; error handlers. */
/* ranks: 1 2 4 */

#include "check.h"

static int handled;

static void handler(MPI_Session *session, int *code, ...)
{
    CHECK(*session != MPI_SESSION_NULL);
    handled = *code;
}

static MPI_Comm comm_of(MPI_Session session, const char *set, const char *tag)
{
    MPI_Group group;
    MPI_Comm comm;
    OK(MPI_Group_from_session_pset(session, set, &group));
    OK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Group_free(&group));
    return comm;
}

/* The members of a set talk to each other; gives their number. */
static int talk(MPI_Comm comm)
{
    int rank, size, sum, one = 1, in = -1;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == size);
    OK(MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &in, 1, MPI_INT, (rank + size - 1) % size, 0, comm,
                    MPI_STATUS_IGNORE));
    CHECK(in == (rank + size - 1) % size);
    return size;
}

static void check_sets(MPI_Session session)
{
    int n, world = 0, self = 0, site = 0, machine = 0;
    OK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &n));
    for (int i = 0; i < n; i++) {
        int length = 0, found;
        OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, NULL));
        CHECK(length > 1);
        char name[length], text[32];
        OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, name));
        CHECK((int)strlen(name) == length - 1);
        world += !strcmp(name, "mpi://WORLD");
        self += !strcmp(name, "mpi://SELF");
        site += !strncmp(name, "isthmus://site/", 15);
        machine += !strncmp(name, "isthmus://machine/", 18);
        MPI_Info info;
        OK(MPI_Session_get_pset_info(session, name, &info));
        length = sizeof text;
        OK(MPI_Info_get_string(info, "mpi_size", &length, text, &found));
        CHECK(found);
        OK(MPI_Info_free(&info));
        MPI_Comm comm = comm_of(session, name, name);
        CHECK(talk(comm) == atoi(text));
        OK(MPI_Comm_free(&comm));
    }
    CHECK(world == 1 && self == 1 && site == 1 && machine == 1);
}

static void check_errors(MPI_Session session)
{
    MPI_Errhandler made, got;
    MPI_Group group;
    int n;
    OK(MPI_Session_create_errhandler(handler, &made));
    OK(MPI_Session_set_errhandler(session, made));
    CHECK(MPI_Group_from_session_pset(session, "isthmus://site/nowhere", &group) == MPI_ERR_ARG);
    CHECK(handled == MPI_ERR_ARG);
    handled = 0;
    OK(MPI_Session_call_errhandler(session, MPI_ERR_OTHER));
    CHECK(handled == MPI_ERR_OTHER);
    OK(MPI_Errhandler_free(&made));
    OK(MPI_Session_get_errhandler(session, &got));
    CHECK(got != MPI_ERRHANDLER_NULL);
    OK(MPI_Errhandler_free(&got));
    OK(MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN));
    CHECK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 99, &n, NULL) == MPI_ERR_ARG);
}

static MPI_Session open_session(const char *level)
{
    MPI_Session session;
    MPI_Info info, used;
    char text[64];
    int length = sizeof text, found;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "thread_level", level));
    OK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
    OK(MPI_Info_free(&info));
    OK(MPI_Session_get_info(session, &used));
    OK(MPI_Info_get_string(used, "thread_level", &length, text, &found));
    CHECK(found && !strcmp(text, level));
    OK(MPI_Info_free(&used));
    return session;
}

/* Groups of the first and the others, known to each other through their leaders only. */
static void check_intercomm(MPI_Session session)
{
    MPI_Group all, first, rest;
    MPI_Comm inter;
    int rank, size, zero = 0;
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &all));
    OK(MPI_Group_rank(all, &rank));
    OK(MPI_Group_size(all, &size));
    if (size > 1) {
        OK(MPI_Group_incl(all, 1, &zero, &first));
        OK(MPI_Group_excl(all, 1, &zero, &rest));
        MPI_Group mine = rank == 0 ? first : rest, theirs = rank == 0 ? rest : first;
        OK(MPI_Intercomm_create_from_groups(mine, 0, rank > 1 ? MPI_GROUP_EMPTY : theirs, 0, "tests/inter",
                                            MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter));
        int remote;
        OK(MPI_Comm_remote_size(inter, &remote));
        CHECK(remote == (rank == 0 ? size - 1 : 1));
        OK(MPI_Barrier(inter));
        OK(MPI_Comm_free(&inter));
        OK(MPI_Group_free(&first));
        OK(MPI_Group_free(&rest));
    }
    OK(MPI_Group_free(&all));
}

int main(int argc, char **argv)
{
    int flag, rank;
    /* Without the world model, twice, with nobody using MPI in between. */
    MPI_Session session = open_session("MPI_THREAD_SINGLE");
    OK(MPI_Initialized(&flag));
    CHECK(!flag);
    check_sets(session);
    OK(MPI_Session_finalize(&session));
    CHECK(session == MPI_SESSION_NULL);
    session = open_session("MPI_THREAD_MULTIPLE");
    MPI_Comm early = comm_of(session, "mpi://WORLD", "early");

    /* Beside it. */
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    MPI_Session second = open_session("MPI_THREAD_FUNNELED");
    MPI_Comm both = comm_of(second, "mpi://world", "both");
    talk(early);
    talk(both);
    talk(MPI_COMM_WORLD);
    check_errors(second);
    check_intercomm(second);
    OK(MPI_Comm_free(&both));
    OK(MPI_Session_finalize(&second));
    OK(MPI_Finalize());

    /* After it. */
    OK(MPI_Finalized(&flag));
    CHECK(flag);
    talk(early);
    OK(MPI_Comm_free(&early));
    OK(MPI_Session_finalize(&session));
    session = open_session("MPI_THREAD_SINGLE");
    check_sets(session);
    OK(MPI_Session_finalize(&session));
    if (rank == 0)
        printf("sessions before, beside and after the world model\n");
    return 0;
}
