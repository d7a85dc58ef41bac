/* SPDX-License-Identifier: Apache-2.0 */
/* Predefined attributes have values; keys made at run time never equal a predefined one, ours included.
   ranks: 1 2 */
#include "check.h"

enum { KEYS = 64 };

int main(int argc, char **argv)
{
    const int predefined[] = {MPI_TAG_UB, MPI_IO, MPI_HOST, MPI_WTIME_IS_GLOBAL, MPI_APPNUM, MPI_LASTUSEDCODE,
                              MPI_UNIVERSE_SIZE, MPI_WIN_BASE, MPI_WIN_MODEL, MPICHX_TOPOLOGY_DEPTHS,
                              MPICHX_TOPOLOGY_COLORS, MPI_KEYVAL_INVALID};
    int keys[KEYS], flag = 0, *tag_limit = NULL, *last_code = NULL;

    OK(MPI_Init(&argc, &argv));
    for (int i = 0; i < KEYS; i++) {
        OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keys[i], NULL));
        for (size_t j = 0; j < sizeof predefined / sizeof *predefined; j++)
            CHECK(keys[i] != predefined[j]);
    }
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_limit, &flag));
    CHECK(flag && *tag_limit >= 32767);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last_code, &flag));
    CHECK(flag && *last_code >= MPI_ERR_LASTCODE);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, keys[3], &tag_limit, &flag));
    CHECK(!flag);
    for (int i = 0; i < KEYS; i++) {
        OK(MPI_Comm_free_keyval(&keys[i]));
        CHECK(keys[i] == MPI_KEYVAL_INVALID);
    }
    OK(MPI_Finalize());
    return 0;
}
