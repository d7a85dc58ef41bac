/* SPDX-License-Identifier: Apache-2.0 */
/* What tests/system/slow-client.sh runs: `server FILE` opens a port, writes its name and serves two clients; `client FILE` connects; `slow FILE` does, and
   stops while it waits to be accepted, until somebody lets it go on. */
#include <mpi.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 256 };

/* Which descriptors this process had before it connected. */
static char before[MOST];

/* Whether a connection that was made since has brought the answer of the other end, and whoever is there has all that was sent in return: the greeting
   is with what ends the handshake. */
static int has_greeted(void)
{
    for (int fd = 0; fd < MOST; fd++) {
        struct tcp_info known = {0};
        socklen_t length = sizeof known;
        if (!before[fd] && getsockopt(fd, IPPROTO_TCP, TCP_INFO, &known, &length) == 0 && known.tcpi_bytes_received > 0 &&
            known.tcpi_data_segs_out > 1 && known.tcpi_unacked == 0 && known.tcpi_notsent_bytes == 0)
            return 1;
    }
    return 0;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen("new", "w");
    fputs(text, file);
    fclose(file);
    rename("new", name);
}

static void *stop(void *none)
{
    char pid[32];
    while (!has_greeted())
        usleep(1000);
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
        for (int fd = 0; fd < MOST; fd++)
            before[fd] = fcntl(fd, F_GETFD) != -1;
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
