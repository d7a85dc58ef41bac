#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Files on one node beside MPICH and Open MPI: 4 ranks, 64 MiB, independent and collective, contiguous, strided and segmented. The three libraries take
# turns, each round begins with another one, and the table is of all rounds that RESULTS has: it can be measured in pieces. BUSY=1 lets a process compute
# beside. In PATH: mpicc and mpiexec of Isthmus, mpicc.mpich, mpicc.openmpi and theirs, python3.
# usage: sh bench/files-node.sh DIRECTORY RESULTS [ROUNDS]
set -eu
[ $# -ge 2 ] || { sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
place=$1 results=$2 rounds=${3:-5}
work=$(mktemp -d)
busy=
trap '[ -z "$busy" ] || kill "$busy"; rm -rf "$work" "$place"/isthmus-files.*' EXIT
trap 'exit 130' INT TERM
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for compiler in mpicc mpicc.mpich mpicc.openmpi; do "$compiler" -std=gnu11 -O2 -w "$here/files.c" -o "$work/$compiler"; done
if [ -n "${BUSY:-}" ]; then (while :; do :; done) & busy=$!; fi
measure() {
    name=$1 compiler=$2
    shift 2
    "$@" -n 4 "$work/$compiler" "$place/isthmus-files.$name" 64 contiguous-alone contiguous-all strided-alone strided-all segmented-alone segmented-all \
        2>"$work/err" </dev/null | sed "s/^/$name /" >>"$results" || { cat "$work/err" >&2; exit 1; }
}
for round in $(seq "$rounds"); do
    order="isthmus mpich openmpi isthmus mpich"
    for name in $(echo "$order" | cut -d ' ' -f "$((round % 3 + 1))-$((round % 3 + 3))"); do
        case $name in
        isthmus) measure isthmus mpicc mpiexec ;;
        mpich) measure mpich mpicc.mpich mpiexec.mpich ;;
        openmpi) measure openmpi mpicc.openmpi mpirun.openmpi --oversubscribe ;;
        esac
    done
done
python3 - "$results" <<'P'
import collections
import statistics
import sys

cells = collections.defaultdict(list)
for line in open(sys.argv[1]):
    library, way, written, read = line.split()
    cells[way, "write", library].append(float(written) * 1000)
    cells[way, "read", library].append(float(read) * 1000)
print("| access | Isthmus | MPICH | Open MPI | ratio |\n| --- | --- | --- | --- | --- |")
for way, what, library in list(cells):
    if library != "isthmus":
        continue
    times = [cells[way, what, name] for name in ("isthmus", "mpich", "openmpi")]
    medians = [statistics.median(those) for those in times]
    shown = " | ".join(f"{median:.0f} [{min(those):.0f}, {max(those):.0f}]" for median, those in zip(medians, times))
    layout, access = way.split("-")
    access = {"alone": "independent", "all": "collective"}[access]
    layout = layout.replace("strided", "strided 1 KiB")
    print(f"| {layout}, {access}, {what} | {shown} | {medians[0] / min(medians[1:]):.2f} |")
P
