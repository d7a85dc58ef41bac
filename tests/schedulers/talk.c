/* SPDX-License-Identifier: Apache-2.0
 * A program without MPI that prints, copies, sleeps or ends as it is told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char host[256] = "";
    const char *what = argc > 1 ? argv[1] : "", *value = argc > 2 ? argv[2] : "0";
    gethostname(host, sizeof host - 1);
    if (!strcmp(what, "lines")) {
        for (int i = 0; i < atoi(value); i++)
            printf("%s %ld line %d %.80s\n", host, (long)getpid(), i,
                   "................................................................................");
    } else if (!strcmp(what, "status")) {
        return atoi(value);
    } else if (!strcmp(what, "copy")) {
        for (int c; (c = getchar()) != EOF;)
            putchar(c);
    } else if (!strcmp(what, "variable")) {
        printf("%s\n", getenv(value) ? getenv(value) : "(not set)");
    } else if (!strcmp(what, "sleep")) {
        printf("sleeping at %s\n", host);
        fflush(stdout);
        sleep(600);
    } else {
        return 2;
    }
    return 0;
}
