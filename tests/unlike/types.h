/* SPDX-License-Identifier: Apache-2.0 */
/* Every predefined datatype with values that can be made and compared on any machine. */
#ifndef TYPES_H
#define TYPES_H

#include "check.h"
#include <complex.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <wchar.h>

/* binary128, whatever it is called. */
#if __LDBL_MANT_DIG__ == 113
typedef long double quad;
#else
typedef __float128 quad;
#endif
typedef struct { quad re, im; } quad_complex;
typedef struct { uint16_t re, im; } half_complex;

struct kind {
    const char *name;
    MPI_Datatype type;
    size_t extent;
    /* Number `i` of a series. */
    void (*make)(void *place, long i);
    int (*same)(const void *place, long i);
    /* 's' integer, 'f' floating, 'c' complex, 'l' logical, 'p' pair, ' ' no reductions. */
    char group;
};

/* Small numbers of both signs with four binary digits behind the point. */
static double number(long i) { return (double)((i * 37 + 11) % 203 - 100) / 16; }
static long whole(long i) { return (i * 37 + 11) % 203 - 100; }

/* binary16 of number(i), which needs 8 digits. */
static uint16_t half(long i)
{
    float f = (float)number(i);
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return f == 0 ? 0 : (uint16_t)((bits >> 16 & 0x8000) | (((bits >> 23 & 0xff) - 112) << 10) | (bits >> 13 & 0x3ff));
}

#define KIND(id, ctype, value) \
    static void make_##id(void *place, long i) { ctype v = (ctype)(value); (void)i; memcpy(place, &v, sizeof v); } \
    static int same_##id(const void *place, long i) { ctype v = (ctype)(value), w; memcpy(&w, place, sizeof w); return v == w; }
#define PAIR(id, first, second, value) \
    typedef struct { first v; second i; } pair_##id; \
    static void make_##id(void *place, long i) { pair_##id p; memset(&p, 0, sizeof p); p.v = (first)(value); p.i = (second)(i * 3 + 1); memcpy(place, &p, sizeof p); } \
    static int same_##id(const void *place, long i) { pair_##id p; memcpy(&p, place, sizeof p); return p.v == (first)(value) && p.i == (second)(i * 3 + 1); }
#define PARTS(id, ctype, value, other) \
    static void make_##id(void *place, long i) { ctype v = {value, other}; memcpy(place, &v, sizeof v); } \
    static int same_##id(const void *place, long i) { ctype v; memcpy(&v, place, sizeof v); return v.re == (value) && v.im == (other); }

/* Values that use all bytes where there is room for that. */
KIND(byte, unsigned char, i * 73 + 5)
KIND(char, char, i % 90 + 33)
KIND(schar, signed char, whole(i))
KIND(uchar, unsigned char, i * 73 + 5)
KIND(short, short, whole(i) * 291)
KIND(ushort, unsigned short, i * 40503 + 7)
KIND(int, int, whole(i) * 20030401)
KIND(unsigned, unsigned, (unsigned)i * 2654435761u + 9)
KIND(long, long, whole(i) * (sizeof(long) == 8 ? 80238174129038141L : 20030401L))
KIND(ulong, unsigned long, (unsigned long)i * 11400714819323198485ul + 3)
KIND(llong, long long, whole(i) * 80238174129038141LL)
KIND(ullong, unsigned long long, (unsigned long long)i * 11400714819323198485ull + 3)
KIND(float, float, number(i) * 1.25e10)
KIND(double, double, number(i) * 1.0000000001e200)
KIND(ldouble, long double, (long double)number(i) + (i % 2 ? 0x1p-50L : 0))
KIND(fcomplex, float complex, number(i) + number(i + 1) * I)
KIND(dcomplex, double complex, number(i) * 1e100 + number(i + 1) * I)
KIND(ldcomplex, long double complex, (long double)number(i) + (long double)number(i + 1) * I)
KIND(bool, bool, i % 3 == 0)
KIND(wchar, wchar_t, 0x10000 + i % 7000)
KIND(logical, int32_t, i % 3 == 0)
KIND(logical1, int8_t, i % 3 == 0)
KIND(logical2, int16_t, i % 3 == 0)
KIND(logical8, int64_t, i % 3 == 0)
KIND(int128, __int128, ((__int128)whole(i) << 70) + i)
KIND(logical16, __int128, i % 3 == 0)
KIND(half, uint16_t, half(i))
KIND(quad, quad, (quad)number(i) + (i % 2 ? (quad)0x1p-100 : 0))
PARTS(hcomplex, half_complex, half(i), half(i + 1))
PARTS(qcomplex, quad_complex, (quad)number(i), (quad)number(i + 1))
PAIR(floatint, float, int, number(i))
PAIR(doubleint, double, int, number(i))
PAIR(longint, long, int, whole(i))
PAIR(twoint, int, int, whole(i))
PAIR(shortint, short, int, whole(i))
PAIR(ldoubleint, long double, int, number(i))
PAIR(tworeal, float, float, number(i))
PAIR(twodouble, double, double, number(i))

#define T(constant, id, ctype, group) {#constant, constant, sizeof(ctype), make_##id, same_##id, group}
static const struct kind kinds[] = {
    T(MPI_BYTE, byte, char, ' '), T(MPI_CHAR, char, char, ' '), T(MPI_CHARACTER, char, char, ' '),
    T(MPI_SIGNED_CHAR, schar, char, 's'), T(MPI_UNSIGNED_CHAR, uchar, char, 's'),
    T(MPI_SHORT, short, short, 's'), T(MPI_UNSIGNED_SHORT, ushort, short, 's'),
    T(MPI_INT, int, int, 's'), T(MPI_UNSIGNED, unsigned, int, 's'),
    T(MPI_LONG, long, long, 's'), T(MPI_UNSIGNED_LONG, ulong, long, 's'),
    T(MPI_LONG_LONG, llong, long long, 's'), T(MPI_UNSIGNED_LONG_LONG, ullong, long long, 's'),
    T(MPI_INT8_T, schar, char, 's'), T(MPI_UINT8_T, uchar, char, 's'),
    T(MPI_INT16_T, short, int16_t, 's'), T(MPI_UINT16_T, ushort, int16_t, 's'),
    T(MPI_INT32_T, int, int32_t, 's'), T(MPI_UINT32_T, unsigned, int32_t, 's'),
    T(MPI_INT64_T, llong, int64_t, 's'), T(MPI_UINT64_T, ullong, int64_t, 's'),
    T(MPI_AINT, long, MPI_Aint, 's'), T(MPI_OFFSET, llong, MPI_Offset, 's'), T(MPI_COUNT, llong, MPI_Count, 's'),
    T(MPI_FLOAT, float, float, 'f'), T(MPI_DOUBLE, double, double, 'f'), T(MPI_LONG_DOUBLE, ldouble, long double, 'f'),
    T(MPI_C_FLOAT_COMPLEX, fcomplex, float complex, 'c'), T(MPI_C_DOUBLE_COMPLEX, dcomplex, double complex, 'c'),
    T(MPI_C_LONG_DOUBLE_COMPLEX, ldcomplex, long double complex, 'c'),
    T(MPI_CXX_FLOAT_COMPLEX, fcomplex, float complex, 'c'), T(MPI_CXX_DOUBLE_COMPLEX, dcomplex, double complex, 'c'),
    T(MPI_CXX_LONG_DOUBLE_COMPLEX, ldcomplex, long double complex, 'c'),
    T(MPI_C_BOOL, bool, bool, 'l'), T(MPI_CXX_BOOL, bool, bool, 'l'), T(MPI_WCHAR, wchar, wchar_t, ' '),
    T(MPI_INTEGER, int, int32_t, 's'), T(MPI_REAL, float, float, 'f'), T(MPI_DOUBLE_PRECISION, double, double, 'f'),
    T(MPI_COMPLEX, fcomplex, float complex, 'c'), T(MPI_DOUBLE_COMPLEX, dcomplex, double complex, 'c'),
    T(MPI_LOGICAL, logical, int32_t, 'l'),
    T(MPI_LOGICAL1, logical1, char, 'l'), T(MPI_LOGICAL2, logical2, int16_t, 'l'), T(MPI_LOGICAL4, logical, int32_t, 'l'),
    T(MPI_LOGICAL8, logical8, int64_t, 'l'), T(MPI_LOGICAL16, logical16, __int128, 'l'),
    T(MPI_INTEGER1, schar, char, 's'), T(MPI_INTEGER2, short, int16_t, 's'), T(MPI_INTEGER4, int, int32_t, 's'),
    T(MPI_INTEGER8, llong, int64_t, 's'), T(MPI_INTEGER16, int128, __int128, 's'),
    T(MPI_REAL2, half, int16_t, 'f'), T(MPI_REAL4, float, float, 'f'), T(MPI_REAL8, double, double, 'f'), T(MPI_REAL16, quad, quad, 'f'),
    T(MPI_COMPLEX4, hcomplex, half_complex, 'c'), T(MPI_COMPLEX8, fcomplex, float complex, 'c'),
    T(MPI_COMPLEX16, dcomplex, double complex, 'c'), T(MPI_COMPLEX32, qcomplex, quad_complex, 'c'),
    T(MPI_FLOAT_INT, floatint, pair_floatint, 'p'), T(MPI_DOUBLE_INT, doubleint, pair_doubleint, 'p'),
    T(MPI_LONG_INT, longint, pair_longint, 'p'), T(MPI_2INT, twoint, pair_twoint, 'p'),
    T(MPI_SHORT_INT, shortint, pair_shortint, 'p'), T(MPI_LONG_DOUBLE_INT, ldoubleint, pair_ldoubleint, 'p'),
    T(MPI_2REAL, tworeal, pair_tworeal, 'p'), T(MPI_2DOUBLE_PRECISION, twodouble, pair_twodouble, 'p'),
    T(MPI_2INTEGER, twoint, pair_twoint, 'p'),
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static int rank, size;

static void *memory(size_t bytes)
{
    void *p = malloc(bytes + 16);
    CHECK(p);
    memset(p, 0xa5, bytes + 16);
    return p;
}

/* The values `first`, `first + 1`, … */
static void make(const struct kind *k, void *buffer, long n, long first)
{
    for (long i = 0; i < n; i++) k->make((char *)buffer + (size_t)i * k->extent, first + i);
}

static void must_be(const struct kind *k, const void *buffer, long n, long first, const char *what)
{
    for (long i = 0; i < n; i++)
        if (!k->same((const char *)buffer + (size_t)i * k->extent, first + i)) {
            fprintf(stderr, "rank %d: %s of %s: element %ld of %ld is wrong\n", rank, what, k->name, i, n);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
}

#endif
