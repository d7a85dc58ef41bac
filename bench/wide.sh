#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What gateways cost many short messages, and what a reduction over the wide area takes, over the testbed; two experiments of the
# PACX-MPI papers. Everything in PATH: isthmus, isthmus-testbed, mpicc, python3.
#   many    16 to 28 senders at one site, 1 KiB each to one receiver at the other (table V), and 64 bytes each, of which gateways make
#           few packets: directly and through the gateways
#   reduce  1 KiB MPI_Reduce of 64 ranks at the splits of table III, 150 ms round trip, 10 Mbit/s
# usage: sh bench/wide.sh [many|reduce]...
cd "$(dirname "$0")" || exit 1
here=$PWD
work=$(mktemp -d /var/tmp/isthmus-wide.XXXXXX)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cd "$work" || exit 1
mpicc -std=c11 -D_GNU_SOURCE -O2 "$here/collectives.c" -o collectives -lm || exit 1

# Median over the repetitions, from the agreed start: until the root was done, and until the median sender was; and how long the median sender
# was in its call (it may have begun late, where processes outnumber processors).
cat >median.py <<'P'
import statistics, sys
ends, senders, calls = [], [], []
for line in sys.stdin:
    if line.startswith("TIME"):
        words = line.split()
        root, first, last = int(words[2]), *([float(t) for t in w.split(",")] for w in words[4:6])
        ends.append(last[root])
        senders.append(statistics.median(t for i, t in enumerate(last) if i != root))
        calls.append(statistics.median(t - first[i] for i, t in enumerate(last) if i != root))
if not ends:
    sys.exit("no times")
print(f"{statistics.median(ends) / 1000:.2f} ms at the receiver, {statistics.median(senders) / 1000:.3f} ms at the median sender, "
      f"{statistics.median(calls) / 1000:.3f} ms in its call "
      f"({len(ends)} repetitions, spread {min(ends) / 1000:.2f} to {max(ends) / 1000:.2f})")
P

# The receiver is rank 0, alone at its site.
many() {
    for senders in 16 20 24 28; do
        for bytes in 1024 64; do
            for path in direct gateway direct gateway; do
                printf '%s senders of %4s bytes, %-7s: ' "$senders" "$bytes" "$path"
                isthmus-testbed run --sites 2x1 --rtt 7ms --rate 10mbit -- sh -c "
                    ISTHMUS_PATH=$path isthmus run --site home:1 --site b1:$senders ./collectives -r ${REPETITIONS:-30} incast@0:$bytes 2>err </dev/null ||
                        cat err >&2" | python3 median.py
            done
        done
    done
}

reduce() {
    for first in 1 2 4 8 16 32; do
        printf '%2s + %s ranks: ' "$first" "$((64 - first))"
        isthmus-testbed run --sites 2x1 --rtt 150ms --rate 10mbit -- sh -c "
            isthmus run --site home:$first --site b1:$((64 - first)) ./collectives -r ${REPETITIONS:-20} reduce@0:1024 2>err </dev/null ||
                cat err >&2" | python3 median.py
    done
}

for part in ${*:-many reduce}; do
    "$part"
done
