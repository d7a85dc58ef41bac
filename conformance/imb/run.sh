#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The Intel MPI Benchmarks with short blocks, several MPIs in turns, and how their times compare.
#
#   sh conformance/imb/run.sh [--mpi NAME[=BIN]]... [--ranks N] [--rounds N] [--bytes "8 64"] [--mpi1 "Bcast ..."] [--nbc "Ibcast_pure ..."]
#
# NAME is isthmus, mpich or openmpi (default: all three), or any other name with the bin directory of a build of Isthmus, to compare two of
# them. Gets the source (IMB_SOURCE: a directory with it instead), builds IMB-MPI1 and IMB-NBC with each mpicc, and runs them in turns: in each
# round all of them, so that what else the machine does hits all alike. Prints for each benchmark and length the median of the rounds and [the
# smallest and the largest], microseconds (t_avg). Everything is made below target/imb.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=imb
. "$here/../common.sh"

mpi='' ranks=2 rounds=5 bytes='0 8 64 1024 4096' iterations=2000
mpi1='Bcast Allreduce Reduce Gather Scatter Allgather Alltoall Gatherv Scatterv Allgatherv Alltoallv Reduce_scatter'
nbc='Ibcast_pure Iallreduce_pure Ireduce_pure Igather_pure Iscatter_pure Iallgather_pure Ialltoall_pure Ibarrier_pure
    Igatherv_pure Iscatterv_pure Iallgatherv_pure Ialltoallv_pure Ireduce_scatter_pure'
options 'mpi+ ranks= rounds= bytes= iterations= mpi1= nbc=' "$@"
mpis=$mpi
[ -n "$mpis" ] || mpis='isthmus mpich openmpi'
need gcc gcc
need git git
install_missing

# cc_of MPI, launch_of MPI: its compiler and its launcher.
cc_of() {
    case $1 in
    isthmus) echo "$bin/mpicc" ;;
    *=*) echo "${1#*=}/mpicc" ;;
    *) echo "mpicc.$1" ;;
    esac
}
launch_of() {
    case $1 in
    isthmus) echo "$bin/mpiexec -n $ranks" ;;
    *=*) echo "${1#*=}/mpiexec -n $ranks" ;;
    mpich) echo "mpiexec.mpich -n $ranks" ;;
    openmpi) echo "mpirun.openmpi --allow-run-as-root --oversubscribe -n $ranks" ;;
    *) die "no MPI named \"$1\" (isthmus, mpich, openmpi, or a name with =DIRECTORY)" ;;
    esac
}

mkdir -p "$work"
source=${IMB_SOURCE:-$work/source}
[ -d "$source" ] || git clone -q --depth 1 https://github.com/intel/mpi-benchmarks "$source" || die "the source cannot be had; name it in IMB_SOURCE"
for mpi in $mpis; do
    name=${mpi%%=*}
    cc=$(cc_of "$mpi")
    need_mpicc "$cc"
    build=$work/build-$name
    [ ! -x "$build/IMB-NBC" ] || continue
    rm -rf "$build"
    cp -r "$source/src_c" "$build"
    for target in MPI1 NBC; do
        make -C "$build" CC="$cc" TARGET="$target" CFLAGS="-O2 -w" >"$work/build-$name-$target.log" 2>&1 ||
            { tail -n 20 "$work/build-$name-$target.log" >&2; die "the build failed; all of it: $work/build-$name-$target.log"; }
    done
done

for length in $bytes; do echo "$length"; done >"$work/lengths"
rm -f "$work"/*.times
round=0
while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    for mpi in $mpis; do
        name=${mpi%%=*}
        for target in MPI1 NBC; do
            list=$mpi1
            [ "$target" = MPI1 ] || list=$nbc
            [ -n "$list" ] || continue
            # shellcheck disable=SC2046,SC2086 # commands and names are words
            timeout -k 5 300 $(launch_of "$mpi") "$work/build-$name/IMB-$target" -npmin "$ranks" -msglen "$work/lengths" \
                -iter "$iterations" -time 0.1 $list >"$work/out" 2>&1 ||
                { tail -n 20 "$work/out" >&2; die "$name: IMB-$target failed"; }
            # Lines of numbers end in the average; barriers have no length.
            awk '/Benchmarking/ { what = $3 } /^ *[0-9]+ +[0-9]/ { print what, (NF == 5 ? $1 : 0), $NF }' "$work/out" >>"$work/$name.times"
        done
    done
done
names=
for mpi in $mpis; do names="$names ${mpi%%=*}"; done
awk -v names="$names" -f "$here/compare.awk" $(for name in $names; do echo "$work/$name.times"; done)
