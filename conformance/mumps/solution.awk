# SPDX-License-Identifier: Apache-2.0
# Judges what a simpletest printed: after "Solution is" stand as many numbers as `unknowns` says, 1, 2, 3, 4, 5, 1, 2 ..., real or complex.
/Entering/ { seen = 0 }
/Solution is/ { seen = 1; sub(/.*Solution is/, "") }
seen {
    gsub(/[(]|,[^)]*[)]/, " ")
    for (f = 1; f <= NF; f++) {
        gap = $f - (count++ % 5 + 1)
        if (gap < -1e-9 || gap > 1e-9) bad++
    }
}
END {
    if (count != unknowns || bad) { print count + 0 " numbers, " bad + 0 " wrong"; exit 1 }
}
