/* SPDX-License-Identifier: Apache-2.0 */
/* Before, during and after MPI: what may be called at any time, error classes and codes that are added and removed, memory,
   Fortran's part of the ABI, parametric datatypes, and what MPI_Finalize does first.
   ranks: 1 2 */
#include "check.h"

#include <stdint.h>

static int deleted;

static int on_delete(MPI_Comm comm, int keyval, void *value, void *extra)
{
    int finalized = 1, size = 0, expected = (int)(intptr_t)value;
    (void)keyval, (void)extra;
    OK(MPI_Finalized(&finalized));
    CHECK(!finalized && comm == MPI_COMM_SELF);
    /* MPI still works, and the last attribute goes first. */
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(size > 0 && deleted == expected);
    deleted++;
    return MPI_SUCCESS;
}

static void any_time(int initialized, int finalized)
{
    int flag, major, minor, length, class;
    char text[MPI_MAX_LIBRARY_VERSION_STRING], error[MPI_MAX_ERROR_STRING], value[8];
    MPI_Info info;
    OK(MPI_Initialized(&flag));
    CHECK(flag == initialized);
    OK(MPI_Finalized(&flag));
    CHECK(flag == finalized);
    OK(MPI_Get_version(&major, &minor));
    CHECK(major == MPI_VERSION && minor == MPI_SUBVERSION);
    OK(MPI_Abi_get_version(&major, &minor));
    CHECK(major == MPI_ABI_VERSION && minor == MPI_ABI_SUBVERSION);
    OK(MPI_Get_library_version(text, &length));
    CHECK(length == (int)strlen(text) && strstr(text, "Isthmus"));
    OK(MPI_Error_class(MPI_ERR_TAG, &class));
    OK(MPI_Error_string(MPI_ERR_TAG, error, &length));
    CHECK(class == MPI_ERR_TAG && length == (int)strlen(error) && strstr(error, "tag"));
    OK(MPI_Abi_get_info(&info));
    length = sizeof value;
    OK(MPI_Info_get_string(info, "mpi_aint_size", &length, value, &flag));
    CHECK(flag && atoi(value) == (int)sizeof(MPI_Aint));
    OK(MPI_Info_free(&info));
    /* In C keys and values keep their spaces. */
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, " a ", " b "));
    length = sizeof value;
    OK(MPI_Info_get_string(info, "a", &length, value, &flag));
    CHECK(!flag && length == sizeof value);
    OK(MPI_Info_get_string(info, " a ", &length, value, &flag));
    CHECK(flag && length == 4 && strcmp(value, " b ") == 0);
    OK(MPI_Info_free(&info));
}

static void error_codes(void)
{
    int class, code, other, found, flag, *last;
    char text[MPI_MAX_ERROR_STRING];
    OK(MPI_Add_error_class(&class));
    CHECK(class > MPI_ERR_LASTCODE);
    OK(MPI_Add_error_code(class, &code));
    OK(MPI_Add_error_code(MPI_ERR_TAG, &other));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag));
    CHECK(flag && *last >= other && *last >= code);
    OK(MPI_Add_error_string(code, "of our own"));
    OK(MPI_Error_string(code, text, &found));
    CHECK(strcmp(text, "of our own") == 0);
    OK(MPI_Error_class(code, &found));
    CHECK(found == class);
    OK(MPI_Error_class(other, &found));
    CHECK(found == MPI_ERR_TAG);
    CHECK(MPI_Remove_error_class(class) != MPI_SUCCESS);
    CHECK(MPI_Remove_error_code(code) != MPI_SUCCESS);
    OK(MPI_Remove_error_string(code));
    OK(MPI_Error_string(code, text, &found));
    CHECK(found == 0);
    OK(MPI_Remove_error_code(code));
    OK(MPI_Remove_error_code(other));
    OK(MPI_Add_error_string(class, "a class of our own"));
    CHECK(MPI_Remove_error_class(class) != MPI_SUCCESS);
    OK(MPI_Remove_error_string(class));
    OK(MPI_Remove_error_class(class));
    CHECK(MPI_Error_class(class, &found) != MPI_SUCCESS);
}

static void memory(void)
{
    void *base;
    MPI_Info info;
    MPI_Aint a, b;
    char data[10];
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", "65536"));
    OK(MPI_Alloc_mem(100, info, &base));
    CHECK((uintptr_t)base % 65536 == 0);
    memset(base, 1, 100);
    OK(MPI_Free_mem(base));
    OK(MPI_Info_free(&info));
    OK(MPI_Get_address(data, &a));
    OK(MPI_Get_address(data + 7, &b));
    CHECK(MPI_Aint_diff(b, a) == 7 && MPI_Aint_add(a, 7) == b);
    CHECK(MPI_Wtick() > 0 && MPI_Wtick() < 1 && MPI_Wtime() <= MPI_Wtime());
}

static void fortran(void)
{
    int yes = 0, no = 0, one = 1, zero = 0, set, flag, length;
    char value[8];
    MPI_Info info;
    OK(MPI_Abi_get_fortran_info(&info));
    CHECK(info == MPI_INFO_NULL);
    OK(MPI_Abi_get_fortran_booleans(4, &yes, &no, &set));
    CHECK(!set);
    OK(MPI_Abi_set_fortran_booleans(4, &one, &zero));
    OK(MPI_Abi_get_fortran_booleans(4, &yes, &no, &set));
    CHECK(set && yes == 1 && no == 0);
    CHECK(MPI_Abi_set_fortran_booleans(4, &one, &zero) == MPI_ERR_ABI);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_logical_size", "4"));
    OK(MPI_Abi_set_fortran_info(info));
    CHECK(MPI_Abi_set_fortran_info(info) == MPI_ERR_ABI);
    OK(MPI_Info_free(&info));
    OK(MPI_Abi_get_fortran_info(&info));
    length = sizeof value;
    OK(MPI_Info_get_string(info, "mpi_logical_size", &length, value, &flag));
    CHECK(flag && strcmp(value, "4") == 0);
    OK(MPI_Info_free(&info));
}

static void parametric(void)
{
    MPI_Datatype a, b, c, pair;
    int integers, addresses, types, combiner, list[2], size;
    double in = 2, out = 0;
    OK(MPI_Type_create_f90_real(15, MPI_UNDEFINED, &a));
    OK(MPI_Type_create_f90_real(15, MPI_UNDEFINED, &b));
    OK(MPI_Type_create_f90_real(15, 200, &c));
    CHECK(a == b && a != c && a != MPI_REAL8);
    OK(MPI_Type_size(a, &size));
    CHECK(size == 8);
    OK(MPI_Type_get_envelope(a, &integers, &addresses, &types, &combiner));
    CHECK(combiner == MPI_COMBINER_F90_REAL && integers == 2 && addresses == 0 && types == 0);
    OK(MPI_Type_get_contents(a, 2, 0, 0, list, NULL, NULL));
    CHECK(list[0] == 15 && list[1] == MPI_UNDEFINED);
    OK(MPI_Allreduce(&in, &out, 1, a, MPI_SUM, MPI_COMM_SELF));
    CHECK(out == 2);
    OK(MPI_Type_contiguous(2, a, &pair));
    OK(MPI_Type_get_contents(pair, 1, 0, 1, list, NULL, &b));
    CHECK(b == a);
    OK(MPI_Type_free(&pair));
    CHECK(MPI_Type_free(&a) != MPI_SUCCESS);
    OK(MPI_Type_create_f90_complex(6, 30, &b));
    OK(MPI_Type_size(b, &size));
    CHECK(size == 8);
    OK(MPI_Type_create_f90_integer(9, &b));
    OK(MPI_Type_get_envelope(b, &integers, &addresses, &types, &combiner));
    CHECK(combiner == MPI_COMBINER_F90_INTEGER && integers == 1);
}

int main(int argc, char **argv)
{
    int key, main_thread, provided;
    any_time(0, 0);
    OK(MPI_Init(&argc, &argv));
    any_time(1, 0);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Query_thread(&provided));
    OK(MPI_Is_thread_main(&main_thread));
    CHECK(provided >= MPI_THREAD_SINGLE && main_thread);
    error_codes();
    memory();
    fortran();
    parametric();
    for (intptr_t i = 2; i >= 0; i--) {
        OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &key, NULL));
        OK(MPI_Comm_set_attr(MPI_COMM_SELF, key, (void *)i));
        OK(MPI_Comm_free_keyval(&key));
    }
    OK(MPI_Finalize());
    CHECK(deleted == 3);
    any_time(1, 1);
    return 0;
}
