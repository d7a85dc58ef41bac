/* SPDX-License-Identifier: Apache-2.0 */
/* A sum that is the same to the last bit however the numbers are spread: over any number of ranks, nodes and sites. Every number is added to a row of
   integers as wide as the range of double, exactly; integers may be added in any order. MPI_SUM of doubles is printed beside it.
   usage: same-sum [COUNT] */
/* ranks: 1 3 */
/* arguments: 20000 */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bits of a digit; digit i counts 2^(DIGIT * i - LOWEST). 2^31 numbers fit before a digit overflows. */
enum { DIGIT = 32, LOWEST = 1152, DIGITS = (1024 + LOWEST) / DIGIT + 2 };

static void add(int64_t *sum, double value)
{
    int exponent;
    /* value = mantissa * 2^(exponent - 53), the mantissa an integer of 53 bits. */
    int64_t mantissa = (int64_t)ldexp(frexp(value, &exponent), 53);
    int at = exponent - 53 + LOWEST, low = at % DIGIT;
    uint64_t size = (uint64_t)llabs(mantissa);
    int64_t sign = mantissa < 0 ? -1 : 1, *digit = sum + at / DIGIT;
    unsigned __int128 shifted = (unsigned __int128)size << low;
    for (; shifted; shifted >>= DIGIT)
        *digit++ += sign * (int64_t)(uint32_t)shifted;
}

/* The nearest double, by one rule everywhere. Carries first, so that each digit has one value. */
static double value(const int64_t *sum)
{
    int64_t digits[DIGITS], carry = 0;
    int sign = 1, top;
    memcpy(digits, sum, sizeof digits);
    for (int pass = 0; pass < 2; pass++) {
        carry = 0;
        for (int i = 0; i < DIGITS; i++) {
            int64_t whole = digits[i] + carry;
            carry = whole >> DIGIT;
            digits[i] = whole - carry * ((int64_t)1 << DIGIT);
        }
        if (carry >= 0)
            break;
        sign = -1;
        for (int i = 0; i < DIGITS; i++)
            digits[i] = -sum[i];
    }
    for (top = DIGITS - 1; top > 0 && digits[top] == 0; top--)
        ;
    /* What is below the upper 64 bits counts as one bit that is not zero: enough to round rightly. */
    uint64_t rest = 0;
    for (int i = 0; i < top - 2; i++)
        rest |= (uint64_t)digits[i];
    unsigned __int128 upper = (unsigned __int128)digits[top] << 64;
    upper |= (unsigned __int128)(top > 0 ? digits[top - 1] : 0) << 32 | (unsigned __int128)(top > 1 ? digits[top - 2] : 0);
    int shift = 0;
    while (upper >> 64) {
        rest |= (uint64_t)upper & 1;
        upper >>= 1;
        shift++;
    }
    return sign * ldexp((double)((uint64_t)upper | (rest != 0)), (top - 2) * DIGIT - LOWEST + shift);
}

/* Number i of a series whose terms differ by 30 orders of magnitude and nearly cancel. */
static double term(uint64_t i)
{
    uint64_t x = i * 0x9e3779b97f4a7c15u;
    x ^= x >> 29, x *= 0xbf58476d1ce4e5b9u, x ^= x >> 32;
    double unit = (double)(x >> 11) / 9007199254740992.0 - 0.5;
    return ldexp(unit, (int)(x % 100) - 50);
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    uint64_t first = count * (uint64_t)rank / (uint64_t)size, last = count * ((uint64_t)rank + 1) / (uint64_t)size;
    int64_t exact[DIGITS] = {0};
    double plain = 0;
    for (uint64_t i = first; i < last; i++) {
        double x = term(i);
        add(exact, x);
        plain += x;
    }
    /* Digits of at most 2^31 ranks' sums fit after one round of carries; fewer terms than that need none. */
    MPI_Allreduce(MPI_IN_PLACE, exact, DIGITS, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &plain, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double sum = value(exact);
    if (rank == 0)
        printf("same everywhere %a\nMPI_SUM         %a\n", sum, plain);
    MPI_Finalize();
    return 0;
}
