/* SPDX-License-Identifier: Apache-2.0 */
/* What tests/system/slow-client.sh runs: `server FILE` opens a port, writes its name and serves two clients; `client FILE` connects; `slow FILE` does, and
   stops while it waits to be accepted, until somebody lets it go on. */
#include <mpi.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int before;

/* Open files of this process. */
static int files(void)
{
    int n = 0;
    DIR *all = opendir("/proc/self/fd");
    while (all && readdir(all))
        n++;
    if (all)
        closedir(all);
    return n;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen("new", "w");
    fputs(text, file);
    fclose(file);
    rename("new", name);
}

/* When a connection has been made and there was time for a greeting. */
static void *stop(void *none)
{
    char pid[32];
    while (files() <= before)
        usleep(1000);
    usleep(500000);
    snprintf(pid, sizeof pid, "%d\n", (int)getpid());
    write_file("stopped", pid);
    kill(getpid(), SIGSTOP);
    return none;
}

int main(int argc, char **argv)
{
    char port[MPI_MAX_PORT_NAME] = "";
    int level, is_server = !strcmp(argv[1], "server"), is_slow = !strcmp(argv[1], "slow");
    MPI_Comm other;
    pthread_t thread;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    if (is_server) {
        MPI_Open_port(MPI_INFO_NULL, port);
        write_file(argv[2], port);
        while (access("stopped", R_OK))
            usleep(10000);
        for (int i = 0; i < 2; i++) {
            MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
            MPI_Comm_disconnect(&other);
            printf("served %d\n", i);
            fflush(stdout);
        }
        MPI_Close_port(port);
    } else {
        FILE *file = fopen(argv[2], "r");
        if (!file || !fgets(port, sizeof port, file))
            return 1;
        fclose(file);
        before = files();
        if (is_slow)
            pthread_create(&thread, NULL, stop, NULL);
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
        MPI_Comm_disconnect(&other);
        if (is_slow)
            pthread_join(thread, NULL);
        printf("%s: was served\n", argv[1]);
    }
    MPI_Finalize();
    return 0;
}
