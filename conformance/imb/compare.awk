# SPDX-License-Identifier: Apache-2.0
# Times of several MPIs, a file each (benchmark, bytes, microseconds): medians [smallest, largest] side by side, in the order of the first file.
function median(key, name,    n, all, i, j, t) {
    n = split(times[key, name], all, " ")
    for (i = 2; i <= n; i++)
        for (j = i; j > 1 && all[j - 1] + 0 > all[j] + 0; j--) { t = all[j]; all[j] = all[j - 1]; all[j - 1] = t }
    if (n == 0) return "-"
    return sprintf("%.2f [%.2f %.2f]", all[int((n + 1) / 2)], all[1], all[n])
}
BEGIN { count = split(names, name, " ") }
FNR == 1 { file++ }
{
    key = $1 " " $2
    if (!(key in known)) { known[key] = 1; order[++keys] = key }
    times[key, name[file]] = times[key, name[file]] " " $3
}
END {
    printf "%-24s %8s", "benchmark", "bytes"
    for (i = 1; i <= count; i++) printf "  %22s", name[i]
    print ""
    for (k = 1; k <= keys; k++) {
        split(order[k], part, " ")
        printf "%-24s %8s", part[1], part[2]
        for (i = 1; i <= count; i++) printf "  %22s", median(order[k], name[i])
        print ""
    }
}
