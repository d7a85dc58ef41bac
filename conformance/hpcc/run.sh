#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# HPC Challenge as one MPI job over two sites, and its own verdicts as our exit status.
#
#   sh conformance/hpcc/run.sh [--mpi isthmus|mpich|openmpi] [--ranks N] [--rtt TIME] [--rate RATE] [--local]
#
# Gets Debian's source package hpcc, builds it with the chosen mpicc, runs N ranks on each of two testbed sites
# (--local: all on this machine, no testbed) and checks what the benchmark says about itself. Everything is made
# below target/hpcc; the package lists are private to it, the system's are not touched.
set -eu

mpi=isthmus ranks=4 rtt=40ms rate=200mbit wide=1
while [ $# -gt 0 ]; do
    case $1 in
    --mpi) mpi=$2; shift ;;
    --ranks) ranks=$2; shift ;;
    --rtt) rtt=$2; shift ;;
    --rate) rate=$2; shift ;;
    --local) wide= ;;
    *) sed -n '3,9s/^# \{0,1\}//p' "$0"; exit 2 ;;
    esac
    shift
done
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
work=${HPCC_WORK:-$top/target/hpcc}
bin=${ISTHMUS_BIN:-$top/build/bin}
case $mpi in
isthmus) cc=$bin/mpicc ;;
mpich) cc=mpicc.mpich ;;
openmpi) cc=mpicc.openmpi ;;
*) echo "hpcc: no MPI named \"$mpi\" (isthmus, mpich, openmpi)" >&2; exit 2 ;;
esac

say() { echo "hpcc: $*" >&2; }
die() { say "$*"; exit 1; }

# --- what is needed -----------------------------------------------------------------------------------------
need() { command -v "$1" >/dev/null 2>&1 || missing="$missing $2"; }
missing=
need gcc gcc
need make make
need dpkg-source dpkg-dev
[ -e "$(gcc -print-file-name=libblas.so 2>/dev/null)" ] || missing="$missing libblas-dev"
if [ -n "$missing" ]; then
    [ "$(id -u)" = 0 ] || die "missing:$missing; run: sudo apt-get install -y$missing"
    # shellcheck disable=SC2086 # a list of package names
    apt-get install -y -q $missing >&2 || { apt-get update -q >&2 && apt-get install -y -q $missing >&2; } || die "cannot install$missing"
fi
command -v "$cc" >/dev/null 2>&1 || die "$cc is not there; build first (sh scripts/demo.sh) or name the directory in ISTHMUS_BIN"

# --- the source package -------------------------------------------------------------------------------------
fetch() {
    # Package lists of our own: the system's usually have no deb-src, and are not ours to change.
    mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
    mkdir -p "$work/apt/sources"
    # The system's own mirrors, asked for sources instead of packages.
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ ! -e "$list" ] || sed -n 's/^deb /deb-src /p' "$list" >"$work/apt/sources/$(basename "$list" .list).list"
    done
    for list in /etc/apt/sources.list.d/*.sources; do
        [ ! -e "$list" ] || sed 's/^Types:.*/Types: deb-src/' "$list" >"$work/apt/sources/$(basename "$list")"
    done
    set -- -q -o Dir::Etc::sourcelist=- -o "Dir::Etc::sourceparts=$work/apt/sources" -o "Dir::State::lists=$work/apt/lists" \
        -o "Dir::Cache=$work/apt/cache" -o APT::Sandbox::User=root
    apt-get "$@" update >&2 || die "cannot read the package lists"
    (cd "$work" && apt-get "$@" source --download-only hpcc >&2) || say "the package is incomplete on this mirror"
}
unpack() {
    rm -rf "$work/source"
    dsc=$(ls "$work"/hpcc_*.dsc 2>/dev/null | head -n 1)
    [ -n "$dsc" ] || die "the source package hpcc cannot be had"
    if dpkg-source --no-check -x "$dsc" "$work/source" >&2 2>/dev/null; then return; fi
    # Without Debian's packaging the benchmark itself is the same; its checksum is in the .dsc.
    say "Debian's changes are missing (packaging only); using the original archive alone"
    rm -rf "$work/source"
    mkdir -p "$work/source"
    original=$(ls "$work"/hpcc_*.orig.tar.* | head -n 1)
    sum=$(sha256sum "$original" | cut -d ' ' -f 1)
    grep -q "$sum.*$(basename "$original")" "$dsc" || die "$(basename "$original") is damaged"
    tar -xf "$original" -C "$work/source" --strip-components 1
}
mkdir -p "$work"
[ -n "$(ls "$work"/hpcc_*.orig.tar.* 2>/dev/null)" ] || fetch
build=$work/build-$mpi
if [ ! -x "$build/hpcc" ] || [ "$(command -v "$cc")" -nt "$build/hpcc" ]; then
    unpack
    rm -rf "$build"
    cp -r "$work/source" "$build"
    renamed=
    [ "$mpi" = mpich ] || renamed='-DMPI_Address=MPI_Get_address -DMPI_Type_struct=MPI_Type_create_struct'
    sed "s|@CC@|$cc|; s|@RENAMED@|$renamed|" "$here/Make.isthmus" >"$build/hpl/Make.isthmus"
    say "building with $cc"
    make -C "$build" arch=isthmus >"$work/build-$mpi.log" 2>&1 || { grep -iE -A 3 "error|undefined" "$work/build-$mpi.log" | head -n 20 >&2; die "the build failed; all of it: $work/build-$mpi.log"; }
fi

# --- the run ------------------------------------------------------------------------------------------------
run=$work/run-$mpi
rm -rf "$run"
mkdir -p "$run"
total=$ranks
[ -z "$wide" ] || total=$((ranks * 2))
# A process grid of P x Q ranks, P the largest divisor not above the square root.
p=1 q=$total i=1
while [ $((i * i)) -le "$total" ]; do
    [ $((total % i)) -ne 0 ] || { p=$i; q=$((total / i)); }
    i=$((i + 1))
done
sed "s/@P@/$p/; s/@Q@/$q/; s/@N@/${HPCC_N:-1000}/" "$here/hpccinf.txt" >"$run/hpccinf.txt"
export OPENBLAS_NUM_THREADS=1
cd "$run"
case $mpi-$wide in
isthmus-1) set -- "$bin/isthmus" run --site "home:$ranks" --site "b1:$ranks" "$build/hpcc" ;;
isthmus-) set -- "$bin/isthmus" run -n "$ranks" "$build/hpcc" ;;
mpich-1) set -- mpiexec.mpich -launcher ssh -hosts "a1:$ranks,b1:$ranks" -n "$total" "$build/hpcc" ;;
mpich-) set -- mpiexec.mpich -n "$ranks" "$build/hpcc" ;;
openmpi-1) set -- mpirun.openmpi --allow-run-as-root --oversubscribe --mca btl tcp,vader,self --mca pml ob1 --host "a1:$ranks,b1:$ranks" -n "$total" "$build/hpcc" ;;
openmpi-) set -- mpirun.openmpi --allow-run-as-root --oversubscribe -n "$ranks" "$build/hpcc" ;;
esac
if [ -n "$wide" ]; then
    set -- "${ISTHMUS_TESTBED_BIN:-$bin/isthmus-testbed}" run --sites 2x1 --rtt "$rtt" --rate "$rate" --stats -- "$@"
fi
say "running: $*"
status=0
timeout "${HPCC_TIMEOUT:-1800}" "$@" </dev/null || status=$?
[ "$status" = 0 ] || die "the job ended with status $status"
[ -f hpccoutf.txt ] || die "the job left no hpccoutf.txt"
awk -f "$here/verdict.awk" hpccoutf.txt
