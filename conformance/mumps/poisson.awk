# SPDX-License-Identifier: Apache-2.0
# Input for dsimpletest: the five-point Laplacian on an n x n grid, and the right hand side for the solution 1, 2, 3, 4, 5, 1, 2 ...
function solution(i) { return (i - 1) % 5 + 1 }
BEGIN {
    size = n * n
    print size
    print size + 4 * n * (n - 1)
    for (i = 1; i <= size; i++) {
        entry(i, i, 4)
        if (i % n != 1) entry(i, i - 1, -1)
        if (i % n != 0) entry(i, i + 1, -1)
        if (i > n) entry(i, i - n, -1)
        if (i <= size - n) entry(i, i + n, -1)
    }
    for (i = 1; i <= size; i++) print right[i]
}
function entry(i, j, value) { print i, j, value ".0"; right[i] += value * solution(j) }
