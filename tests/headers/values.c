/* SPDX-License-Identifier: Apache-2.0 */
/* Uses of mpi.h that must compile as C and as C++, and sizes and values that the ABI fixes. */
#include <mpi.h>
#include <stddef.h>

#define FIXED(name, condition) typedef char name[(condition) ? 1 : -1]

FIXED(status_is_32_bytes, sizeof(MPI_Status) == 32);
FIXED(source_is_first, offsetof(MPI_Status, MPI_SOURCE) == 0);
FIXED(tag_is_second, offsetof(MPI_Status, MPI_TAG) == 4);
FIXED(error_is_third, offsetof(MPI_Status, MPI_ERROR) == 8);
FIXED(handles_are_pointers, sizeof(MPI_Comm) == sizeof(void *));
FIXED(aint_is_as_wide_as_a_pointer, sizeof(MPI_Aint) == sizeof(void *));
FIXED(counts_have_64_bits, sizeof(MPI_Count) == 8 && sizeof(MPI_Offset) == 8);
FIXED(fortran_handles_are_ints, sizeof(MPI_Fint) == sizeof(int));
FIXED(any_source, MPI_ANY_SOURCE == -1);
FIXED(proc_null, MPI_PROC_NULL == -3);
FIXED(thread_levels_rise, MPI_THREAD_SINGLE < MPI_THREAD_FUNNELED && MPI_THREAD_SERIALIZED < MPI_THREAD_MULTIPLE);
FIXED(universe_size_key, MPI_UNIVERSE_SIZE == 507);

#if MPI_VERSION < 5 || MPI_ABI_VERSION != 1
#error "the version must be usable by the preprocessor"
#endif

static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)key, (void)extra;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Datatype type = MPI_DOUBLE;
    MPI_Op op = MPI_SUM;
    MPI_Comm_copy_attr_function *function = MPI_COMM_DUP_FN;
    MPI_Comm_errhandler_fn *handler = NULL;
    int key = MPICHX_TOPOLOGY_DEPTHS, other = MPICHX_TOPOLOGY_COLORS;
    MPI_Comm (*from_fortran)(MPI_Fint) = MPI_Comm_f2c;
    double value = 0, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_create_keyval(function, MPI_COMM_NULL_DELETE_FN, &other, NULL);
    MPI_Reduce(MPI_IN_PLACE, &sum, 1, type, op, 0, comm);
    PMPI_Recv(&value, 1, type, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE);
    MPI_Pcontrol(1, handler);
    return from_fortran(MPI_Comm_c2f(comm)) == MPI_COMM_NULL;
}
