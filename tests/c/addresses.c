/* SPDX-License-Identifier: Apache-2.0 */
/* Absolute addresses with MPI_BOTTOM, types without data, types larger than an int can say.
   ranks: 1 2 */
#include "check.h"
int main(int argc, char **argv)
{
    int a = 5, x = 0, r, len[2] = {1, 1};
    double b = 2.5, y = 0;
    MPI_Aint at[2];
    MPI_Datatype t[2] = {MPI_INT, MPI_DOUBLE}, s, d, big, z;
    MPI_Request q;
    MPI_Count n;
    MPI_Status st;
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &r);
    OK(MPI_Get_address(&a, &at[0]));
    OK(MPI_Get_address(&b, &at[1]));
    OK(MPI_Type_create_struct(2, len, at, t, &s));
    OK(MPI_Type_commit(&s));
    OK(MPI_Get_address(&x, &at[0]));
    OK(MPI_Get_address(&y, &at[1]));
    OK(MPI_Type_create_struct(2, len, at, t, &d));
    OK(MPI_Type_commit(&d));
    OK(MPI_Irecv(MPI_BOTTOM, 1, d, r, 0, MPI_COMM_WORLD, &q));
    OK(MPI_Send(MPI_BOTTOM, 1, s, r, 0, MPI_COMM_WORLD));
    OK(MPI_Wait(&q, &st));
    CHECK(x == 5 && y == 2.5);
    OK(MPI_Type_contiguous(0, MPI_INT, &z));
    OK(MPI_Type_commit(&z));
    OK(MPI_Sendrecv(NULL, 5, z, r, 1, NULL, 5, z, r, 1, MPI_COMM_WORLD, &st));
    OK(MPI_Type_contiguous_c(1LL << 40, MPI_DOUBLE, &big));
    OK(MPI_Type_size_x(big, &n));
    CHECK(n == 8LL << 40);
    OK(MPI_Type_size(big, &x));
    CHECK(x == MPI_UNDEFINED);
    OK(MPI_Bcast(MPI_BOTTOM, 1, s, 0, MPI_COMM_WORLD));
    x = 3; OK(MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    OK(MPI_Finalize());
    return 0;
}
