# SPDX-License-Identifier: Apache-2.0
# What IMB and kernels.c print, as lines: suite, benchmark, bytes, MPI, microseconds. The head of a table says which column has the time; where there
# are messages a second, it is the time of a message. Operations on windows of which several go before one flush have a name of their own.
/^# Benchmarking / { what = $3; sub(/_pure$/, "", what) }
/MODE: AGGREGATE/ { what = what "+" }
/#bytes|#repetitions/ {
    first = at = rate = 0
    for (i = 1; i <= NF; i++) {
        if ($i == "#bytes") first = i
        if ($i ~ /^t_avg/ || ($i ~ /^(t|t_ovrl)\[usec\]/ && !at)) at = i
        if ($i == "Msg/sec") rate = i
    }
}
/^ *[0-9]+ +[0-9.]+/ && (at || rate) {
    time = rate ? ($rate > 0 ? 1e6 / $rate : 0) : $at
    if (time > 0) print suite, what, (first ? $first : 0), name, time
}
