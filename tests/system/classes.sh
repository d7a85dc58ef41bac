#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What communicators ask for is seen on the wire: with isthmus_path their messages go straight or through the gateways, and packets are
# marked by class (DSCP: AF21 for latency, LE for bulk).
. "$(dirname "$0")/common.sh"
need_testbed
command -v ss >/dev/null 2>&1 || skip "no ss (package iproute2)"
command -v python3 >/dev/null 2>&1 || skip "no python3"
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra "$top/tests/system/classes.c" -o classes || fail "mpicc classes.c"

# The port of the gateway of the host that this runs on.
cat >listening.sh <<'S'
ss -Hltnp | while read -r _ _ _ at _ who; do
    pid=${who##*pid=}
    case $(tr '\0' ' ' <"/proc/${pid%%,*}/cmdline" 2>/dev/null) in *' gateway ') echo "${at##*:}" ;; esac
done
S
cat >all.sh <<'S'
# Nothing is there that an earlier job has said.
: >out
isthmus run --site home:1 --site b1:1 ./classes "$PWD/stop" >out 2>err </dev/null &
job=$!
until grep -q hold out; do kill -0 $job 2>/dev/null || exit 1; sleep 0.2; done
for place in a1 b1; do ssh "$place" sh "$PWD/listening.sh"; done >gateways
touch stop
wait $job
S
cat >look.py <<'P'
import struct, sys
gateways = {int(line) for line in open("gateways")}
assert 1 <= len(gateways) <= 2, gateways
parts = {}
for line in open("out"):
    words = line.split()
    if words[:1] == ["part"]:
        parts[words[1]] = (float(words[2]), float(words[3]))
blob = open("wide.pcap", "rb").read()
packets, at = [], 24
while at + 16 <= len(blob):
    seconds, fraction, length, _ = struct.unpack_from("<IIII", blob, at)
    packet = blob[at + 16 : at + 16 + length]
    at += 16 + length
    if packet[0] >> 4 != 4 or packet[9] != 6:
        continue
    ports = struct.unpack_from(">HH", packet, (packet[0] & 15) * 4)
    if 22 not in ports:
        packets.append((seconds + fraction * 1e-9, packet[1] >> 2, bool(gateways & set(ports)), len(packet)))
def share(part, pick):
    begin, end = parts[part]
    inside = [p for p in packets if begin <= p[0] <= end]
    return sum(p[3] for p in inside if pick(p)) / max(1, sum(p[3] for p in inside))
through = {part: share(part, lambda p: p[2]) for part in ("direct", "gateway", "common")}
AF21, LE = 18, 1
marked = {part: {code: share(part, lambda p: p[1] == code) for code in (0, AF21, LE)} for part in ("common", "latency", "bulk")}
print("part of the bytes that went through the gateways:", {k: round(v, 3) for k, v in through.items()})
print("part of the bytes that were marked:", {k: {c: round(x, 3) for c, x in v.items()} for k, v in marked.items()})
assert through["direct"] < 0.05 and through["common"] < 0.05 and through["gateway"] > 0.95
assert marked["common"][0] > 0.9 and marked["latency"][AF21] > 0.5 and marked["bulk"][LE] > 0.8
P
isthmus-testbed run --sites 2x1 --rtt 10ms --rate 200mbit --capture wide.pcap -- sh all.sh || { cat out err; fail "the job failed"; }
python3 look.py || { cat out gateways; fail "not treated as asked"; }
