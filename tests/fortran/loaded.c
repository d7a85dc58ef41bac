/* SPDX-License-Identifier: Apache-2.0 */
/* Loads shared libraries with parts in Fortran, each for itself, as Python loads extensions.
 *
 *   loaded LIBRARY PROCEDURE [LIBRARY PROCEDURE...]
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

#define MOST 8

static int good(void *opened, const char *name)
{
    int size, sum = 0;
    void (*part)(int *) = opened ? (void (*)(int *))dlsym(opened, name) : NULL;
    if (!part) {
        printf("%s: %s\n", name, dlerror());
        return 0;
    }
    part(&sum);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (sum != size)
        printf("%s: %d instead of %d\n", name, sum, size);
    return sum == size;
}

int main(int argc, char **argv)
{
    void *opened[MOST];
    int bad = 0, many = (argc - 1) / 2;
    if (many > MOST)
        return 2;
    MPI_Init(&argc, &argv);
    /* All there at once; then anew, when some may stand at other addresses. */
    for (int twice = 0; twice < 2; twice++) {
        for (int n = 0; n < many; n++) {
            opened[n] = dlopen(argv[1 + 2 * n], RTLD_NOW | RTLD_LOCAL);
            bad |= !good(opened[n], argv[2 + 2 * n]);
        }
        for (int n = 0; n < many; n++) {
            bad |= !good(opened[n], argv[2 + 2 * n]);
            if (opened[n])
                dlclose(opened[n]);
        }
    }
    MPI_Finalize();
    return bad;
}
