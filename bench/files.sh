#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How full collective access to a file keeps a link: 4 + 4 ranks at two sites without a common directory, 64 KiB blocks of each rank in
# turn, everything at the first site. Shares are those of the link's 200 Mbit/s, at 40 ms, for the half that crosses it. CAPTURE=FILE keeps all
# packets there and tells bytes, throughput and pauses of both directions. In PATH: isthmus, isthmus-testbed, mpicc, python3.
# usage: sh bench/files.sh [MEBIBYTES [REPETITIONS]]
set -eu
cd "$(dirname "$0")"
here=$PWD mebibytes=${1:-256} repetitions=${2:-3}
work=$(mktemp -d /var/tmp/isthmus-files.XXXXXX)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cd "$work"
mpicc -std=c11 -D_GNU_SOURCE -O2 "$here/files.c" -o files
cat >judge.py <<'P'
import sys
total, rate = int(sys.argv[1]) << 20, 200e6
for line in sys.stdin:
    way, written, read = line.split()
    shares = [total / 2 * 8 / float(seconds) / rate for seconds in (written, read)]
    print(f"{way} {total >> 20} MiB: written in {float(written):.2f} s, {shares[0]:.1%} of the link; read in {float(read):.2f} s, {shares[1]:.1%}")
P
for _ in $(seq "$repetitions"); do
    isthmus-testbed run --sites 2x1 --rtt 40ms --rate 200mbit --private-tmp ${CAPTURE:+--capture "$CAPTURE"} -- \
        isthmus run --share /tmp --site home:4 --site b1:4 ./files /tmp/shared "$mebibytes" blocks-all >out 2>err </dev/null || { cat out err; exit 1; }
    cat err >&2
    python3 judge.py "$mebibytes" <out
    if [ -n "${CAPTURE:-}" ]; then
        echo "written:"
        python3 "$here/idle_gaps.py" "$CAPTURE" 10.2.
        echo "read:"
        python3 "$here/idle_gaps.py" "$CAPTURE" 10.1.
    fi
done
