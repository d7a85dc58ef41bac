/* SPDX-License-Identifier: Apache-2.0 */
/* What is there once, whichever name a procedure is called by: sentinels, texts, lengths of arrays, what the compiler is like. */
#include "fortran.h"
#include "sentinels.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Aligned as compilers align COMMON blocks. */
#define PLACE __attribute__((aligned(64)))
PLACE int isthmus_mpi_bottom_, isthmus_mpi_in_place_ PLACE, isthmus_mpi_buffer_automatic_ PLACE;
PLACE int isthmus_mpi_status_ignore_[8], isthmus_mpi_statuses_ignore_[8] PLACE;
PLACE MPI_Status isthmus_mpi_f08_status_ignore, isthmus_mpi_f08_statuses_ignore[1] PLACE;
PLACE int isthmus_mpi_errcodes_ignore_[1], isthmus_mpi_unweighted_[1] PLACE, isthmus_mpi_weights_empty_[1] PLACE;
PLACE char isthmus_mpi_argv_null_[1], isthmus_mpi_argvs_null_[1] PLACE;

/* Those of shared libraries that have others; a lock, because one may be unloaded while another calls. */
int isthmus_fortran_others;
static struct sentinels *others;
static int lock;
static const void *const own[SENTINELS] = OWN_SENTINELS;

static void take(void)
{
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
        ;
}
static void give(void) { __atomic_store_n(&lock, 0, __ATOMIC_RELEASE); }

__attribute__((visibility("default"))) void isthmus_mpi_sentinels(struct sentinels *set, int come)
{
    struct sentinels **place = &others;
    if (memcmp(set->all, own, sizeof own) == 0)
        return;
    take();
    while (*place && *place != set)
        place = &(*place)->next;
    if (come && !*place) {
        set->next = others;
        others = set;
    } else if (!come && *place) {
        *place = set->next;
    }
    __atomic_store_n(&isthmus_fortran_others, others != NULL, __ATOMIC_RELEASE);
    give();
}

static const void *found(const void *address)
{
    for (const struct sentinels *set = others; set; set = set->next)
        for (int n = 0; n < SENTINELS; n++)
            if (address == set->all[n])
                return own[n];
    return address;
}

const void *isthmus_fortran_ours(const void *address)
{
    take();
    address = found(address);
    give();
    return address;
}

void *isthmus_fortran_memory(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory) {
        fprintf(stderr, "isthmus: no memory for %zu bytes of arguments of a Fortran program\n", bytes);
        PMPI_Abort(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
        abort();
    }
    return memory;
}

void isthmus_fortran_release(void *memory) { free(memory); }

void isthmus_fortran_text_in(struct text *to, const char *from, size_t length, int both)
{
    while (length && from[length - 1] == ' ')
        length--;
    while (both && length && *from == ' ') {
        from++;
        length--;
    }
    to->text = length < sizeof to->few ? to->few : isthmus_fortran_memory(length + 1);
    memcpy(to->text, from, length);
    to->text[length] = '\0';
}

void isthmus_fortran_text_out(char *to, size_t length, const char *from)
{
    size_t given = strlen(from);
    if (given > length)
        given = length;
    memcpy(to, from, given);
    memset(to + given, ' ', length - given);
}

int isthmus_fortran_peers(int number)
{
    MPI_Comm comm = PMPI_Comm_fromint(number);
    int inter = 0, size = 0;
    if (PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS)
        return 0;
    if (inter)
        PMPI_Comm_remote_size(comm, &size);
    else
        PMPI_Comm_size(comm, &size);
    return size;
}

int isthmus_fortran_dimensions(int number)
{
    int count = 0;
    return PMPI_Cartdim_get(PMPI_Comm_fromint(number), &count) == MPI_SUCCESS ? count : 0;
}

int isthmus_fortran_neighbours(int number, int sending)
{
    MPI_Comm comm = PMPI_Comm_fromint(number);
    int topology = MPI_UNDEFINED, in = 0, out = 0, weighted, rank;
    PMPI_Topo_test(comm, &topology);
    if (topology == MPI_CART)
        return 2 * isthmus_fortran_dimensions(number);
    if (topology == MPI_DIST_GRAPH)
        PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    else if (topology == MPI_GRAPH && PMPI_Comm_rank(comm, &rank) == MPI_SUCCESS && PMPI_Graph_neighbors_count(comm, rank, &in) == MPI_SUCCESS)
        out = in;
    return sending ? out : in;
}

int isthmus_fortran_not_whole(const struct descriptor *array, const char *function, const char *argument)
{
    static int known = MPI_SUCCESS;
    char text[MPI_MAX_ERROR_STRING];
    int code = known;
    if (code == MPI_SUCCESS && PMPI_Add_error_code(MPI_ERR_BUFFER, &code) == MPI_SUCCESS)
        known = code;
    snprintf(text, sizeof text,
             array->version == FLEETING
                 ? "%s: gfortran passes a copy of argument %s, which is gone when the call returns, as of a component of all elements (a%%x), a part "
                   "of texts, an expression; use a blocking call, or pass a(1)%%x with a datatype whose extent is the distance of the elements"
                 : "%s: argument %s is an array section that is not contiguous, which this call cannot use after it returns; pass a contiguous array",
             function, argument);
    PMPI_Add_error_string(code, text);
    PMPI_Comm_call_errhandler(MPI_COMM_SELF, code);
    return code;
}

/* Tells the C library what Fortran is like here (MPI 5.0 section 20.3): default kinds of 4 bytes, which the compiler wrappers insist on. It is no
 * error if another library has told it before. */
__attribute__((constructor)) static void tell(void)
{
    static const char *const sizes[][2] = {
        {"mpi_logical_size", "4"}, {"mpi_integer_size", "4"}, {"mpi_real_size", "4"}, {"mpi_double_precision_size", "8"}};
    static const char *const types[] = {"logical1", "logical2", "logical4", "logical8", "integer1", "integer2", "integer4", "integer8",
                                        "integer16", "real4", "real8", "real16", "complex8", "complex16", "complex32", "double_complex"};
    int yes = 1, no = 0, known = 0;
    char key[64];
    MPI_Info info = MPI_INFO_NULL;
    if (PMPI_Abi_get_fortran_booleans((int)sizeof yes, &yes, &no, &known) == MPI_SUCCESS && !known) {
        yes = 1;
        no = 0;
        PMPI_Abi_set_fortran_booleans((int)sizeof yes, &yes, &no);
    }
    if (PMPI_Abi_get_fortran_info(&info) != MPI_SUCCESS)
        return;
    if (info != MPI_INFO_NULL) {
        PMPI_Info_free(&info);
        return;
    }
    if (PMPI_Info_create(&info) != MPI_SUCCESS)
        return;
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++)
        PMPI_Info_set(info, sizes[n][0], sizes[n][1]);
    for (size_t n = 0; n < sizeof types / sizeof *types; n++) {
        snprintf(key, sizeof key, "mpi_%s_supported", types[n]);
        PMPI_Info_set(info, key, "true");
    }
    PMPI_Abi_set_fortran_info(info);
    PMPI_Info_free(&info);
}
