#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The Intel MPI Benchmarks and kernels of applications, several MPIs in turns, and how their times compare.
#
#   sh conformance/imb/run.sh [--mpi NAME[=BIN]]... [--ranks "2 4"] [--suites "MPI1 NBC P2P KERNELS CALLS"] [--rounds N] [--bytes "8 64"]
#                             [--time SECONDS] [--only "Bcast ..."] [--over tcp] [--off-cache] [--crowded]
#
# NAME is isthmus, mpich or openmpi (Debian's), mpich5 or openmpi5 (PyPI's, by bench/peers.sh), or any other name with the bin directory of a build
# of Isthmus. All five by default; the first is compared with the best of the others. Suites: also RMA, EXT and IO of IMB. Gets the source
# (IMB_SOURCE: a directory with it instead), builds with each mpicc, and runs them in turns: in each round all of them, so that what else the
# machine does hits all alike. Prints a table (microseconds, the median of the rounds; P2P: of a message), the geometric means by length, and
# what is slower than the best of the others by more than the rounds differ. With more ranks than processors MPICH takes minutes, because its
# waits never give way: it is left out there without --crowded. --over tcp: ranks do not share memory; with ours half of them are another machine
# of the same network. Everything is made below target/imb.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=imb
. "$here/../common.sh"

mpi='' ranks='2 4' rounds=5 bytes='0 8 64 1024 4096 65536 1048576' suites='MPI1 NBC P2P KERNELS CALLS' time=0.03 only='' crowded='' over=''
nbc='Ibcast_pure Iallreduce_pure Ireduce_pure Igather_pure Iscatter_pure Iallgather_pure Ialltoall_pure Ibarrier_pure
    Igatherv_pure Iscatterv_pure Iallgatherv_pure Ialltoallv_pure Ireduce_scatter_pure'
mpi1='PingPong PingPing Sendrecv Exchange Bcast Allreduce Reduce Reduce_local Reduce_scatter Reduce_scatter_block Gather Gatherv Scatter
    Scatterv Allgather Allgatherv Alltoall Alltoallv Barrier'
off=
# A name with a hyphen is no name of a variable.
for word in "$@"; do
    shift
    if [ "$word" = --off-cache ]; then off='-off_cache -1'; else set -- "$@" "$word"; fi
done
options 'mpi+ ranks= rounds= bytes= suites= time= only= over= crowded' "$@"
case $over in '' | tcp) ;; *) usage ;; esac
mpis=${mpi:-isthmus mpich openmpi mpich5 openmpi5}
need gcc gcc
need g++ g++
need git git
install_missing
case " $mpis " in *5\ *) sh "$top/bench/peers.sh" >&2 ;; esac

# place_of MPI: the directory of its commands.
place_of() {
    case $1 in
    isthmus) echo "$bin" ;;
    mpich5) echo "$top/target/peers/mpich-5.0.2/bin" ;;
    openmpi5) echo "$top/target/peers/openmpi-5.0.11/bin" ;;
    *=*) echo "${1#*=}" ;;
    *) die "no MPI named \"$1\" (isthmus, mpich, openmpi, mpich5, openmpi5, or a name with =DIRECTORY)" ;;
    esac
}
compiler_of() {
    case $1 in
    mpich | openmpi) echo "$2.$1" ;;
    *) echo "$(place_of "$1")/$2" ;;
    esac
}
# launched MPI RANKS PROGRAM ARGUMENT...
launched() {
    one=$1 n=$2
    shift 2
    case $over$one in
    tcpmpich*) export MPIR_CVAR_NOLOCAL=1 FI_PROVIDER=tcp UCX_TLS=tcp,self ;;
    tcpopenmpi*) export OMPI_MCA_btl=tcp,self OMPI_MCA_pml=ob1 OMPI_MCA_osc=rdma ;;
    esac
    case $one in
    mpich) set -- mpiexec.mpich -n "$n" "$@" ;;
    openmpi) set -- mpirun.openmpi --allow-run-as-root --oversubscribe -n "$n" "$@" ;;
    openmpi5) set -- "$(place_of "$one")/mpirun" --allow-run-as-root --oversubscribe -n "$n" "$@" ;;
    mpich5) set -- "$(place_of "$one")/mpiexec" -n "$n" "$@" ;;
    *)
        if [ -n "$over" ]; then
            machines "$n" "$@" >"$work/machines.toml"
            set -- "$(place_of "$one")/isthmus" run "$work/machines.toml"
        else
            set -- "$(place_of "$one")/mpiexec" -n "$n" "$@"
        fi
        ;;
    esac
    timeout -k 5 300 "$@"
}
# machines RANKS PROGRAM ARGUMENT...: a job file, with half of the ranks on each of two machines.
machines() {
    n=$1 at=0
    printf 'program = "%s"\narguments = [' "$2"
    shift 2
    for word in "$@"; do printf '"%s", ' "$word"; done
    printf ']\n'
    for half in $((n - n / 2)) $((n / 2)); do
        printf '[[subjob]]\nsite = "m%s"\ncontact = "home"\nlan = "l"\ncount = %s\n' "$at" "$half"
        at=$((at + 1))
    done
}

mkdir -p "$work"
source=${IMB_SOURCE:-$work/source}
[ -d "$source" ] || git clone -q --depth 1 https://github.com/intel/mpi-benchmarks "$source" || die "the source cannot be had; name it in IMB_SOURCE"

# made SUITE MPI: builds a suite in $work/build-MPI, once.
made() {
    build=$work/build-${2%%=*}
    cc=$(compiler_of "$2" mpicc) cxx=$(compiler_of "$2" mpicxx)
    need_mpicc "$cc"
    newest=$(ls -t "$here"/*.[ch] | head -n 1)
    [ ! -x "$build/$1" ] || [ "$build/$1" -ot "$newest" ] || return 0
    mkdir -p "$build"
    [ -d "$build/src_c" ] || cp -r "$source/src_c" "$source/src_cpp" "$build/"
    log=$build/$1.log
    case $1 in
    KERNELS) "$cc" -O2 -fopenmp "$here/kernels.c" -o "$build/$1" -lm ;;
    CALLS) "$cc" -O2 "$here/calls.c" -o "$build/$1" ;;
    P2P) make -C "$build/src_c/P2P" CC="$cc" && cp "$build/src_c/P2P/IMB-P2P" "$build/$1" ;;
    *) make -C "$build/src_cpp" CC="$cc" CXX="$cxx" TARGET="$1" CFLAGS="-O2 -w" CXXFLAGS="-O2 -w" && cp "$build/src_cpp/IMB-$1" "$build/$1" ;;
    esac >"$log" 2>&1 || { tail -n 20 "$log" >&2; die "the build failed; all of it: $log"; }
}
for one in $mpis; do for suite in $suites; do made "$suite" "$one"; done; done

# arguments SUITE RANKS
arguments() {
    case $1 in
    KERNELS | CALLS) echo "$time $only" ;;
    P2P) echo "-msglen $work/lengths -iter 2000 $only" ;;
    *)
        list=$only
        [ -n "$list" ] || case $1 in MPI1) list=$mpi1 ;; NBC) list=$nbc ;; esac
        echo "-npmin $2 -msglen $work/lengths -iter 4000 -time $time $off $list"
        ;;
    esac
}
for length in $bytes; do echo "$length"; done >"$work/lengths"
rm -f "$work"/*.times
processors=$(nproc)
for round in $(seq "$rounds"); do
    for n in $ranks; do
        for suite in $suites; do
            for one in $mpis; do
                name=${one%%=*}
                case $name in mpich*) [ "$n" -le "$processors" ] || [ -n "$crowded" ] || continue ;; esac
                # shellcheck disable=SC2046 # arguments are words
                if ! (launched "$one" "$n" "$work/build-$name/$suite" $(arguments "$suite" "$n")) >"$work/out" 2>&1 </dev/null; then
                    say "$name: $suite with $n ranks failed in round $round; its last lines:"
                    tail -n 5 "$work/out" >&2
                    [ "$one" != "${mpis%% *}" ] || exit 1
                    continue
                fi
                awk -v suite="$suite-$n" -v name="$name" -f "$here/read.awk" "$work/out" >>"$work/all.times"
            done
        done
    done
    say "round $round of $rounds is over"
done
names=
for one in $mpis; do names="$names ${one%%=*}"; done
awk -v names="$names" -f "$here/compare.awk" "$work/all.times"
