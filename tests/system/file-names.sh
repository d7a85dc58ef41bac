#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Processes of two sites that open files of different names are told so; directories may be called otherwise.
. "$(dirname "$0")/common.sh"
for tool in isthmus mpicc; do
    command -v "$tool" >/dev/null 2>&1 || skip "no $tool in PATH"
done
cat >names.c <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, class, size;
    char name[4096], text[MPI_MAX_ERROR_STRING];
    MPI_File file;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    snprintf(name, sizeof name, "%s", argv[1 + rank]);
    int code = MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &size);
    printf("%d %s: %s\n", rank, class == MPI_SUCCESS ? "opened" : class == MPI_ERR_NOT_SAME ? "not the same" : "another error", text);
    if (code == MPI_SUCCESS)
        MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
C
mpicc -std=c11 -O2 names.c -o names || fail "mpicc names.c"
mkdir here there
opens() { # WHAT NAME NAME: what both processes are told
    isthmus run --site home:1 --site other=home:1 -- ./names "$2" "$3" >out 2>&1 </dev/null || { cat out; fail "$2 and $3: the job"; }
    [ "$(grep -c "^[01] $1" out)" = 2 ] || { cat out; fail "$2 and $3: not both $1"; }
}
opens opened "$work/here/x" "$work/here/x"
opens opened "$work/here/x" "$work/there/x"
opens "not the same" "$work/here/x" "$work/here/y"
opens "not the same" "$work/here/x" y
echo "names of different files at two sites are told of"
