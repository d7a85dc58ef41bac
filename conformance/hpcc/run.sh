#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# HPC Challenge as one MPI job over two sites, and its own verdicts as our exit status.
#
#   sh conformance/hpcc/run.sh [--mpi isthmus|mpich|openmpi] [--ranks N] [--rtt TIME] [--rate RATE] [--cuts "1 5 30"] [--local]
#
# Gets Debian's source package hpcc, builds it with the chosen mpicc, runs N ranks on each of two testbed sites
# (--local: all on this machine, no testbed) and checks what the benchmark says about itself. Everything is made
# below target/hpcc; the package lists are private to it, the system's are not touched.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=hpcc
. "$here/../common.sh"

mpi=isthmus ranks=4 rtt=40ms rate=200mbit local='' wide=1 cuts=
options 'mpi= ranks= rtt= rate= cuts= local' "$@"
[ -z "$local" ] || wide=
case $mpi in
isthmus) cc=$bin/mpicc ;;
mpich) cc=mpicc.mpich ;;
openmpi) cc=mpicc.openmpi ;;
*) die "no MPI named \"$mpi\" (isthmus, mpich, openmpi)" ;;
esac

need gcc gcc
need make make
need dpkg-source dpkg-dev
need_file "$(gcc -print-file-name=libblas.so 2>/dev/null)" libblas-dev
install_missing
need_mpicc "$cc"
build=$work/build-$mpi
if [ ! -x "$build/hpcc" ] || [ "$(command -v "$cc")" -nt "$build/hpcc" ]; then
    debian_source hpcc
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
if [ -n "$cuts" ]; then
    # The link is cut for so many seconds each, at random moments, until the job is over.
    # Its launcher is at one end, and has to be as patient as the processes. Its ssh is slow to notice that the link is there again: TCP waits up to
    # two minutes before it sends again when several cuts come one after the other.
    export ISTHMUS_AWAY=300
    seed=${ISTHMUS_TEST_SEED:-$(date +%s)}
    say "ISTHMUS_TEST_SEED=$seed"
    cat >cut.sh <<'S'
seconds=$1 testbed=$2 seed=$3 number=0
shift 3
"$@" &
job=$!
while :; do
    for length in $seconds; do
        number=$((number + 1))
        pause=$(awk -v seed="$seed" -v n=$number 'BEGIN { srand(seed); while (n-- >= 0) r = rand(); printf "%.2f", 3 + 12 * r }')
        sleep "$pause"
        kill -0 $job 2>/dev/null || break 2
        "$testbed" cut a b && sleep "$length" && "$testbed" restore a b
        echo "cut for $length s after $pause s" >>cuts
    done
done
wait $job
S
    set -- sh "$PWD/cut.sh" "$cuts" "${ISTHMUS_TEST_BED:-$bin/isthmus-testbed}" "$seed" "$@"
fi
if [ -n "$wide" ]; then
    set -- "${ISTHMUS_TEST_BED:-$bin/isthmus-testbed}" run --sites 2x1 --rtt "$rtt" --rate "$rate" --stats -- "$@"
fi
say "running: $*"
status=0
timeout "${HPCC_TIMEOUT:-1800}" "$@" </dev/null || status=$?
[ "$status" = 0 ] || die "the job ended with status $status"
[ -f hpccoutf.txt ] || die "the job left no hpccoutf.txt"
[ -z "$cuts" ] || { sort cuts | cut -d ' ' -f 1-4 | uniq -c; }
awk -f "$here/verdict.awk" hpccoutf.txt
