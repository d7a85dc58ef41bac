/* SPDX-License-Identifier: Apache-2.0 */
/* Erroneous calls must return the right class, and the text of the error must name the argument. */
#ifndef ERRONEOUS_H
#define ERRONEOUS_H

#include "check.h"

static int calls, wrong;

static void verify(int line, const char *text, int code, int expected, const char *argument)
{
    int class = 0, length;
    char string[MPI_MAX_ERROR_STRING] = "";
    calls++;
    if (code != MPI_SUCCESS) {
        MPI_Error_class(code, &class);
        MPI_Error_string(code, string, &length);
    }
    if (code == MPI_SUCCESS || (expected != -1 && class != expected)) {
        fprintf(stderr, "line %d: class %d, expected %d: %s (%s)\n", line, class, expected, text, string);
        wrong++;
    } else if (argument && !strstr(string, argument)) {
        fprintf(stderr, "line %d: the text does not name %s: %s (%s)\n", line, argument, text, string);
        wrong++;
    }
}

#define ERR(class, argument, call) verify(__LINE__, #call, (call), class, argument)

/* The last line of such a program. */
static int verdict(int rank)
{
    if (rank == 0)
        printf("%d erroneous calls, %d not reported as they should be\n", calls, wrong);
    return wrong > 0;
}

#endif
