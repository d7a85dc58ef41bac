#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Does a local ping-pong cost the same with peers at another site connected and idle? The same two processes of one site, alone and beside two at
# another site, in turns, so that what the machine does otherwise meets both; bound to cores, since it matters more on which of them they are. Everything in PATH: isthmus, isthmus-testbed, mpicc, python3.
# usage: sh bench/idle.sh [ROUNDS]        PATHS="direct gateway" by default
cd "$(dirname "$0")" || exit 1
here=$PWD
work=$(mktemp -d /var/tmp/isthmus-idle.XXXXXX)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cd "$work" || exit 1
mpicc -std=c11 -O2 "$here/idle.c" -o idle || exit 1
cat >turns.sh <<'S'
for round in $(seq "$1"); do
    isthmus run --bind-to core --site home:2 ./idle 20000 0 8 65536 2>err </dev/null >>alone || cat err >&2
    for path in $2; do
        ISTHMUS_PATH=$path isthmus run --bind-to core --site home:2 --site b1:2 ./idle 20000 0 8 65536 2>err </dev/null >>"$path" || cat err >&2
    done
done
S
cat >compare.py <<'P'
import statistics, sys
def read(name):
    found = {}
    for line in open(name):
        size, time = line.split()
        found.setdefault(int(size), []).append(float(time))
    return found
alone = read("alone")
for path in sys.argv[1:]:
    for size, b in read(path).items():
        a = alone[size]
        ratio = statistics.median(b) / statistics.median(a)
        inside = min(a) <= statistics.median(b) <= max(a)
        print(f"{size:6} B  alone {statistics.median(a):8.3f} us [{min(a):.3f}-{max(a):.3f}]  beside idle peers ({path}) "
              f"{statistics.median(b):8.3f} us [{min(b):.3f}-{max(b):.3f}]  ratio {ratio:.3f}, {'inside' if inside else 'OUTSIDE'} the spread")
P
paths=${PATHS:-direct gateway}
isthmus-testbed run --sites 2x1 --rtt 20ms --rate 100mbit -- sh turns.sh "${1:-7}" "$paths" || exit 1
# shellcheck disable=SC2086 # a list
python3 compare.py $paths
