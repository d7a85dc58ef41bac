/* SPDX-License-Identifier: Apache-2.0 */
/* For made.sh: each process makes a program that only its machine has, and spawns two of it. `child`: one of these. */
#include "check.h"
#include <unistd.h>

static void copy(const char *to)
{
    char command[400];
    snprintf(command, sizeof command, "cp /proc/%d/exe %s", (int)getpid(), to);
    CHECK(system(command) == 0);
}

int main(int argc, char **argv)
{
    char host[MPI_MAX_PROCESSOR_NAME], parents[MPI_MAX_PROCESSOR_NAME] = "";
    char made[300], *arguments[] = {"child", NULL}, *both[] = {made, made}, **each[] = {arguments, arguments};
    const int counts[] = {1, 1};
    const MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    int length;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Get_processor_name(host, &length));
    MPI_Comm other;
    if (argc > 1 && !strcmp(argv[1], "child")) {
        OK(MPI_Comm_get_parent(&other));
        OK(MPI_Bcast(parents, sizeof parents, MPI_CHAR, 0, other));
        /* It runs where its parent is, who alone has it. */
        CHECK(!strcmp(parents, host));
        OK(MPI_Comm_disconnect(&other));
    } else {
        snprintf(made, sizeof made, "/tmp/made-at-%s", host);
        copy(made);
        for (int several = 0; several < 2; several++) {
            if (several)
                OK(MPI_Comm_spawn_multiple(2, both, each, counts, infos, 0, MPI_COMM_SELF, &other, MPI_ERRCODES_IGNORE));
            else
                OK(MPI_Comm_spawn(made, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other, MPI_ERRCODES_IGNORE));
            OK(MPI_Bcast(host, sizeof host, MPI_CHAR, MPI_ROOT, other));
            OK(MPI_Comm_disconnect(&other));
        }
        /* What nobody has is an error of the call. */
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        int error = MPI_Comm_spawn("/tmp/nowhere", arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other, MPI_ERRCODES_IGNORE);
        int class;
        OK(MPI_Error_class(error, &class));
        CHECK(class == MPI_ERR_SPAWN);
        char text[MPI_MAX_ERROR_STRING];
        OK(MPI_Error_string(error, text, &length));
        CHECK(strstr(text, "/tmp/nowhere"));
        printf("good at %s\n", host);
    }
    OK(MPI_Finalize());
    return 0;
}
