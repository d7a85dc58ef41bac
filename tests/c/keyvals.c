/* SPDX-License-Identifier: Apache-2.0 */
/* Predefined attributes have values; keys made at run time never equal a predefined one, ours included; keys of another kind are errors.
   ranks: 1 2 */
#include "check.h"

enum { KEYS = 64 };

/* A key of another kind of object is an error, and no key that happens to have its number. */
static void kinds(void)
{
    int of_comm, of_type, of_win, class, flag;
    MPI_Win win;
    void *value;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    OK(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    for (int i = 0; i < 4; i++) {
        int wrong[9], n = 0;
        OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &of_comm, NULL));
        OK(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &of_type, NULL));
        OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &of_win, NULL));
        wrong[n++] = MPI_Comm_set_attr(MPI_COMM_SELF, of_type, &n);
        wrong[n++] = MPI_Comm_get_attr(MPI_COMM_SELF, of_win, &value, &flag);
        wrong[n++] = MPI_Comm_free_keyval(&(int){of_type});
        wrong[n++] = MPI_Type_set_attr(MPI_INT, of_comm, &n);
        wrong[n++] = MPI_Type_get_attr(MPI_INT, of_win, &value, &flag);
        wrong[n++] = MPI_Type_free_keyval(&(int){of_win});
        wrong[n++] = MPI_Win_set_attr(win, of_type, &n);
        wrong[n++] = MPI_Win_delete_attr(win, of_comm);
        wrong[n++] = MPI_Win_free_keyval(&(int){of_comm});
        for (int j = 0; j < n; j++) {
            OK(MPI_Error_class(wrong[j], &class));
            CHECK(class == MPI_ERR_KEYVAL);
        }
        OK(MPI_Comm_set_attr(MPI_COMM_SELF, of_comm, &n));
        OK(MPI_Comm_delete_attr(MPI_COMM_SELF, of_comm));
    }
    OK(MPI_Win_free(&win));
}

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
    kinds();
    OK(MPI_Finalize());
    return 0;
}
