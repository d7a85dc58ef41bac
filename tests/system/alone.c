/* SPDX-License-Identifier: Apache-2.0 */
/* For connect.sh: started without a launcher it spawns. What is missing is an error with a sentence; children are told apart by MPI_APPNUM,
   spawn as well, and talk with their parent. */
#include "check.h"
#include <stdlib.h>

static int number(int key)
{
    int *value, found;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &found));
    CHECK(found);
    return *value;
}

static void child(MPI_Comm parent, char *program, int deep)
{
    int rank, appnum = number(MPI_APPNUM), sum;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK(getenv("MPI_LOCALRANKID") && getenv("OMPI_COMM_WORLD_LOCAL_SIZE"));
    OK(MPI_Reduce(&appnum, &sum, 1, MPI_INT, MPI_SUM, 0, parent));
    if (deep && rank == 0) {
        char *arguments[] = {"child", NULL};
        MPI_Comm below;
        OK(MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &below, MPI_ERRCODES_IGNORE));
        OK(MPI_Reduce(NULL, &sum, 1, MPI_INT, MPI_SUM, MPI_ROOT, below));
        CHECK(sum == 0);
        OK(MPI_Comm_disconnect(&below));
    }
    OK(MPI_Comm_disconnect(&parent));
}

static void parent(char *program)
{
    char *deep[] = {"deep", NULL}, *flat[] = {"child", NULL}, **arguments[] = {deep, flat};
    char *programs[] = {program, program};
    int most[] = {2, 1}, codes[3] = {-1, -1, -1}, sum = -1, many;
    MPI_Info hints[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm children;
    for (int turn = 0; turn < 2; turn++) {
        OK(MPI_Comm_spawn_multiple(2, programs, arguments, most, hints, 0, MPI_COMM_WORLD, &children, codes));
        OK(MPI_Comm_remote_size(children, &many));
        CHECK(many == 3 && codes[0] == MPI_SUCCESS && codes[2] == MPI_SUCCESS);
        OK(MPI_Reduce(NULL, &sum, 1, MPI_INT, MPI_SUM, MPI_ROOT, children));
        CHECK(sum == 1); /* the second program has number 1 */
        OK(MPI_Comm_disconnect(&children));
    }
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    for (int wrong = 0; wrong < 2; wrong++) {
        char text[MPI_MAX_ERROR_STRING];
        int length, class, code;
        MPI_Info where;
        OK(MPI_Info_create(&where));
        OK(MPI_Info_set(where, "isthmus_site", wrong ? "home" : "mars"));
        code = MPI_Comm_spawn(wrong ? "./nowhere" : program, flat, 1, where, 0, MPI_COMM_SELF, &children, codes);
        OK(MPI_Info_free(&where));
        OK(MPI_Error_class(code, &class));
        CHECK(class == MPI_ERR_SPAWN && codes[0] == MPI_ERR_SPAWN);
        OK(MPI_Error_string(code, text, &length));
        printf("refused: %s\n", text);
    }
    CHECK(number(MPI_UNIVERSE_SIZE) >= 1);
    printf("all is well\n");
}

int main(int argc, char **argv)
{
    MPI_Comm above;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_get_parent(&above));
    if (above == MPI_COMM_NULL)
        parent(argv[0]);
    else
        child(above, argv[0], argv[1][0] == 'd');
    OK(MPI_Finalize());
    return 0;
}
