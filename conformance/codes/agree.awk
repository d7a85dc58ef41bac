# SPDX-License-Identifier: Apache-2.0
# Compares every number with a fraction of an expected output (first file) with that of a run (second file), in order:
# they agree if they differ by less than 1e-3 relative, or by less than 1e-8. Words, counts and sizes of steps are left
# out: these depend on the order of sums.
function numbers(line, into,   n, words, i, count) {
    if (line ~ /stepsize/) return 0
    n = split(line, words, /[^-+0-9.eE]+/)
    count = 0
    for (i = 1; i <= n; i++) if (words[i] ~ /^[-+]?[0-9]+\.[0-9]+([eE][-+]?[0-9]+)?$/) into[++count] = words[i]
    return count
}
FNR == NR { n = numbers($0, found); for (i = 1; i <= n; i++) expected[++wanted] = found[i]; next }
{
    n = numbers($0, found)
    for (i = 1; i <= n; i++) {
        was = expected[++seen]
        gap = found[i] - was; if (gap < 0) gap = -gap
        size = was < 0 ? -was : was
        if (gap > 1e-8 && gap > 1e-3 * size) { print FILENAME ":" FNR ": " found[i] " instead of " was; bad = 1 }
    }
}
END {
    if (wanted == 0) { print "no numbers in the expected output"; exit 1 }
    if (seen != wanted) { print FILENAME ": " seen " numbers instead of " wanted; exit 1 }
    exit bad
}
