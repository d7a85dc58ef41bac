#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# LAMMPS (molecular dynamics) over two sites, its energies compared with those of a serial run.
#
#   sh conformance/lammps/run.sh [--ranks N] [--steps N] [--rtt TIME] [--rate RATE] [--local]
#
# Gets Debian's source package lammps, builds it with our mpicxx and runs `melt` (Lennard-Jones, examples/melt) and `rhodo` (a protein:
# bonds, long-range forces by FFT, rigid constraints; bench/in.rhodo) once on one process without a launcher and once on N ranks over two
# testbed sites (--local: on this machine alone). Everything is made below target/lammps. The build takes some minutes.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=lammps
. "$here/../common.sh"

ranks=4 steps=20 rtt=2ms rate=1gbit local='' wide=1
options 'ranks= steps= rtt= rate= local' "$@"
[ -z "$local" ] || wide=
need g++ g++
need make make
need cmake cmake
need dpkg-source dpkg-dev
install_missing
need_mpicc "$bin/mpicxx"
build=$work/build
if [ ! -x "$build/lmp" ]; then
    [ -e "$work/source/bench/in.rhodo" ] || debian_source lammps
    mkdir -p "$build"
    say "building with $bin/mpicxx"
    {
        cmake -S "$work/source/cmake" -B "$build" "-DCMAKE_CXX_COMPILER=$bin/mpicxx" "-DCMAKE_C_COMPILER=$bin/mpicc" \
            -DBUILD_MPI=on -DBUILD_OMP=off -DPKG_KSPACE=on -DPKG_MOLECULE=on -DPKG_RIGID=on -DFFT=KISS -DCMAKE_BUILD_TYPE=None \
            -DCMAKE_CXX_FLAGS=-O1 -DWITH_JPEG=off -DWITH_PNG=off -DWITH_GZIP=off -DWITH_FFMPEG=off &&
            make -C "$build" -j "$(nproc)" lmp
    } >"$work/build.log" 2>&1 || { grep -E -A 3 "error|undefined" "$work/build.log" | head -n 20 >&2; die "the build failed; all of it: $work/build.log"; }
fi

# The inputs as they are, but for the number of steps and how often the energies are printed.
run=$work/run
rm -rf "$run"
mkdir -p "$run"
cp "$work/source/bench/data.rhodo" "$run/"
every=$((steps < 5 ? 1 : steps / 5))
sed "s/^thermo[ \t].*/thermo $every/; s/^run[ \t].*/run $steps/" "$work/source/bench/in.rhodo" >"$run/in.rhodo"
sed "s/^thermo[ \t].*/thermo 50/" "$work/source/examples/melt/in.melt" >"$run/in.melt"
cd "$run"
export ISTHMUS_TEST_BIN="$bin"
failed=0
for case in melt rhodo; do
    timeout "${LAMMPS_TIMEOUT:-1800}" "$build/lmp" -in "in.$case" -log "log.$case.1" >"out.$case.1" 2>&1 </dev/null ||
        die "the serial run of $case failed: $run/out.$case.1"
    set -- "$bin/mpiexec" -n "$ranks"
    [ -z "$wide" ] || set -- "$bin/isthmus-testbed" run --sites 2x1 --rtt "$rtt" --rate "$rate" -- "$here/../spread" -n "$ranks"
    timeout "${LAMMPS_TIMEOUT:-1800}" "$@" "$build/lmp" -in "in.$case" -log "log.$case.n" >"out.$case.n" 2>&1 </dev/null ||
        { tail -n 5 "out.$case.n" >&2; die "$case on $ranks ranks failed: $run/out.$case.n"; }
    awk -v "name=$case" -f "$here/compare.awk" "log.$case.1" "log.$case.n" || failed=1
done
[ $failed = 0 ] || die "energies differ from the serial run"
