/* SPDX-License-Identifier: Apache-2.0
 *
 * Data to send: finite doubles that no compression makes shorter, so that what links carry is what is measured.
 */
#ifndef BENCH_FILL_H
#define BENCH_FILL_H
#include <stdint.h>
#include <string.h>

static void fill(void *room, size_t bytes, int rank)
{
    uint64_t word = UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)rank;
    for (size_t at = 0; at + sizeof word <= bytes; at += sizeof word) {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        /* Without this bit of the exponent it is neither infinite nor not a number, nor is a sum of some. */
        uint64_t finite = word & ~(UINT64_C(1) << 62);
        memcpy((char *)room + at, &finite, sizeof finite);
    }
}
#endif
