# SPDX-License-Identifier: Apache-2.0
# What IMB and kernels.c print, as lines: suite, benchmark, bytes, MPI, microseconds. The head of a table says which column has the time; where there
# are messages a second, it is the time of a message.
/^# Benchmarking / { what = $3; sub(/_pure$/, "", what) }
/#bytes|#repetitions/ {
    first = at = rate = 0
    for (i = 1; i <= NF; i++) {
        if ($i == "#bytes") first = i
        if ($i ~ /^t_avg/ || ($i ~ /^t\[usec\]/ && !at)) at = i
        if ($i == "Msg/sec") rate = i
    }
}
/^ *[0-9]+ +[0-9.]+/ && (at || rate) {
    time = rate ? ($rate > 0 ? 1e6 / $rate : 0) : $at
    if (time > 0) print suite, what, (first ? $first : 0), name, time
}
