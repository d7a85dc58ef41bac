# SPDX-License-Identifier: Apache-2.0
"""Throughput and pauses of one direction of a link, from a capture of the testbed. usage: idle_gaps.py CAPTURE SOURCE-PREFIX"""
import collections
import struct
import sys


def packets(name):
    """Time in seconds, source address and length of every packet."""
    with open(name, "rb") as capture:
        magic, _, _, _, _, _, link = struct.unpack("<IHHiIII", capture.read(24))
        unit = 1e-9 if magic == 0xA1B23C4D else 1e-6
        skip = {1: 14, 101: 0, 12: 0}[link]
        while header := capture.read(16):
            seconds, fraction, kept, length = struct.unpack("<IIII", header)
            data = capture.read(kept)
            if data[skip] >> 4 == 4:
                yield seconds + fraction * unit, ".".join(map(str, data[skip + 12:skip + 16])), length


def main(name, prefix):
    seen, last, pauses, slots = 0, None, [], collections.Counter()
    for at, source, length in packets(name):
        if not source.startswith(prefix):
            continue
        if last is not None and at - last > 0.01:
            pauses.append((last, at - last))
        last = at
        seen += length
        slots[int(at * 5)] += length
    first = min(slots)
    print(f"{seen / 1e6:.1f} MB from {prefix}*; Mbit/s by fifth of a second:")
    print(" ".join(f"{slots[slot] * 8 * 5 / 1e6:.0f}" for slot in range(first, max(slots) + 1)))
    print("pauses above 10 ms:", ", ".join(f"{(at - first / 5):.2f} s: {length * 1000:.0f} ms" for at, length in pauses) or "none")


main(*sys.argv[1:3])
