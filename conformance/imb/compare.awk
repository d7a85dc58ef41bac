# SPDX-License-Identifier: Apache-2.0
# Times of several MPIs (suite, benchmark, bytes, MPI, microseconds): a table of medians, geometric means of the first to the best of the others, and
# what is behind. Ranges of the rounds that overlap are marked with "~".
function sorted(key, name,    n, i, j, t) {
    n = split(times[key, name], all, " ")
    for (i = 2; i <= n; i++)
        for (j = i; j > 1 && all[j - 1] + 0 > all[j] + 0; j--) { t = all[j]; all[j] = all[j - 1]; all[j - 1] = t }
    return n
}
# Adds a ratio to the mean with this name.
function add(what, ratio) { logs[what] += log(ratio); counts[what]++ }
function mean(what) { return counts[what] ? sprintf("%.2f (%d)", exp(logs[what] / counts[what]), counts[what]) : "-" }
BEGIN { count = split(names, name, " ") }
{
    key = $1 " " $2 " " $3
    if (!(key in known)) { known[key] = 1; order[++keys] = key }
    if (!($1 in suites)) { suites[$1] = 1; suite[++parts] = $1 }
    if ($3 + 0 > 0 && !($3 in lengths)) { lengths[$3] = 1; length_of[++sizes] = $3 }
    times[key, $4] = times[key, $4] " " $5
}
END {
    printf "%-12s %-24s %8s", "suite-ranks", "benchmark", "bytes"
    for (i = 1; i <= count; i++) printf "  %10s", name[i]
    print "   ratio"
    for (k = 1; k <= keys; k++) {
        key = order[k]
        split(key, part, " ")
        printf "%-12s %-24s %8s", part[1], part[2], part[3]
        best = 0
        for (i = 1; i <= count; i++) {
            n = sorted(key, name[i])
            if (n == 0) { printf "  %10s", "-"; continue }
            middle = all[int((n + 1) / 2)]
            printf "  %10.2f", middle
            if (i == 1) { own = middle; own_least = all[1]; own_most = all[n] }
            else if (!best || middle < best) { best = middle; least = all[1]; most = all[n] }
        }
        if (!best || !((key, name[1]) in times)) { print ""; continue }
        ratio = own / best
        overlap = own_least <= most && least <= own_most
        printf "  %6.2f%s\n", ratio, overlap ? " ~" : ""
        # Kernels have no length, and barriers no other one.
        if (part[1] ~ /^KERNELS/ || part[3] > 0 || part[2] ~ /arrier/) {
            add(part[1], ratio)
            add(part[1] " " part[3], ratio)
        }
        if (ratio > 1 && !overlap) behind[++late] = sprintf("%6.2f  %s", ratio, key)
    }
    print "\nGeometric means to the best of the others, without zero bytes (lines):"
    for (p = 1; p <= parts; p++) {
        printf "%-12s all %s", suite[p], mean(suite[p])
        for (i = 1; i <= sizes; i++)
            if (counts[suite[p] " " length_of[i]]) printf ", %s bytes %s", length_of[i], mean(suite[p] " " length_of[i])
        print ""
    }
    print "\nSlower than the best of the others by more than the rounds differ:"
    for (i = 2; i <= late; i++)
        for (j = i; j > 1 && behind[j - 1] + 0 < behind[j] + 0; j--) { t = behind[j]; behind[j] = behind[j - 1]; behind[j - 1] = t }
    for (i = 1; i <= late; i++) print behind[i]
    if (!late) print "  none"
}
