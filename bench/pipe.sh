#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How well channels fill a link between two sites, and what their classes, limits and compression do, over the testbed; beside it
# iperf3 with its best number of streams, in the same run. Everything in PATH: isthmus, isthmus-testbed, mpicc, iperf3.
# usage: sh bench/pipe.sh [fill|ping|limit|compress]...
cd "$(dirname "$0")" || exit 1
here=$PWD
work=$(mktemp -d /var/tmp/isthmus-pipe.XXXXXX)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cd "$work" || exit 1
mpicc -std=c11 -D_GNU_SOURCE -O2 "$here/pipe.c" -o pipe -lm || exit 1
seconds=${SECONDS_EACH:-12}

# ours RANKS ARGUMENTS...
cat >ours.sh <<'EOF'
ranks=$1
shift
isthmus run --site "home:$((ranks / 2))" --site "b1:$((ranks / 2))" ./pipe "$@" 2>ours.err </dev/null || { cat ours.err >&2; exit 1; }
EOF
# The best of some numbers of streams, Mbit/s that arrive.
cat >theirs.sh <<'EOF'
for streams in 1 4 16 64; do
    ssh b1 iperf3 -s -1 -D >/dev/null 2>&1
    sleep 0.5
    iperf3 -c b1 -t "$1" -O 4 -P "$streams" -J 2>/dev/null | awk -v streams="$streams" '
        /"sum_received"/ { in_sum = 1 } in_sum && /"bits_per_second"/ { gsub(/[^0-9.e+]/, "", $2); printf "%.2f %d\n", $2 / 1e6, streams; exit }'
done | sort -g | tail -1
EOF

# Messages of 4 MiB, 64 MiB under way: what the send buffers of 16 streams of iperf3 hold at most (4 MiB each). With 16 MiB the wait for a lost
# packet shows.
fill() {
    for rate in 100 500; do
        for loss in 0% 0.1%; do
            printf 'link %s Mbit/s, 75 ms, loss %s (payload of TCP: %s):\n' "$rate" "$loss" "$(awk -v r="$rate" 'BEGIN { print r * 0.9415 }')"
            isthmus-testbed run --sites 2x1 --rtt 75ms --rate "${rate}mbit" --loss "$loss" -- sh -c '
                echo "  iperf3, best (Mbit/s, streams): $(sh theirs.sh '"$seconds"')"
                echo "  one pair:   $(sh ours.sh 2 rate '"$seconds"',4 random)"
                echo "  four pairs: $(sh ours.sh 8 rate '"$seconds"',4 random)"'
        done
    done
}

ping() {
    for path in direct gateway; do
        for load in bulk normal; do
            echo "ping of class latency, load of class $load, 40 ms, 100 Mbit/s, path $path:"
            ISTHMUS_PATH=$path isthmus-testbed run --sites 2x1 --rtt 40ms --rate 100mbit -- sh ours.sh 4 ping 16 latency $load
        done
    done
}

limit() {
    for rate in 8 40; do
        echo "isthmus_rate ${rate}mbit on 100 Mbit/s:"
        isthmus-testbed run --sites 2x1 --rtt 40ms --rate 100mbit -- sh ours.sh 2 rate "$seconds" random "isthmus_rate=${rate}mbit"
    done
}

compress() {
    for rate in 10 100 1000; do
        for data in field random; do
            echo "$data data on $rate Mbit/s, without and with compression:"
            isthmus-testbed run --sites 2x1 --rtt 20ms --rate "${rate}mbit" -- sh -c '
                sh ours.sh 2 rate '"$seconds $data"' isthmus_compress=false
                sh ours.sh 2 rate '"$seconds $data"' isthmus_compress=true'
        done
    done
}

for part in ${*:-fill ping limit compress}; do
    "$part"
done
