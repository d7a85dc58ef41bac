#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# NetPIPE between two ranks over its whole range of sizes: once with its integrity check, once for its times.
#
#   sh conformance/netpipe/run.sh [--mpi isthmus|mpich|openmpi] [--most BYTES] [--tcp]
#
# Gets Debian's source package netpipe, builds its MPI program with the chosen mpicc and runs it. --most: the largest
# message (default 8 MiB, NetPIPE's own). --tcp (isthmus): the two ranks on two hosts of a testbed, over TCP. Everything
# is made below target/netpipe; the package lists are private to it, the system's are not touched.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=netpipe
. "$here/../common.sh"

mpi=isthmus most=8388608 tcp=
options 'mpi= most= tcp' "$@"
case $mpi in
isthmus) cc=$bin/mpicc launch="$bin/mpiexec -n 2" ;;
mpich) cc=mpicc.mpich launch='mpiexec.mpich -n 2' ;;
openmpi) cc=mpicc.openmpi launch='mpirun.openmpi --allow-run-as-root --oversubscribe -n 2' ;;
*) die "no MPI named \"$mpi\" (isthmus, mpich, openmpi)" ;;
esac
need gcc gcc
need dpkg-source dpkg-dev
install_missing
need_mpicc "$cc"
build=$work/build-$mpi
if [ ! -x "$build/NPmpi" ] || [ "$(command -v "$cc")" -nt "$build/NPmpi" ]; then
    [ -d "$work/source" ] || debian_source netpipe
    rm -rf "$build"
    cp -r "$work/source" "$build"
    say "building with $cc"
    # As its makefile does for `make mpi`; the program is older than today's defaults of compilers.
    (cd "$build/src" && "$cc" -std=gnu89 -w -O2 -DMPI netpipe.c mpi.c -o ../NPmpi) >"$work/build-$mpi.log" 2>&1 ||
        { head -n 20 "$work/build-$mpi.log" >&2; die "the build failed; all of it: $work/build-$mpi.log"; }
fi
if [ -n "$tcp" ]; then
    [ "$mpi" = isthmus ] || die "--tcp is for isthmus"
    printf 'program = "%s"\n[[subjob]]\nsite = "home"\ncount = 1\nlan = "one"\n[[subjob]]\nsite = "a2"\ncount = 1\nlan = "one"\n' \
        "$build/NPmpi" >"$work/job.head"
fi

# run NAME ARGUMENTS...
run() {
    name=$1
    shift
    if [ -n "$tcp" ]; then
        arguments=$(for word in "$@"; do printf '"%s", ' "$word"; done)
        { echo "arguments = [$arguments]"; cat "$work/job.head"; } >"$work/job.toml"
        (cd "$work" && timeout -k 5 300 "$bin/isthmus-testbed" run --sites 1x2 -- "$bin/isthmus" run job.toml) >"$work/$name-$mpi.out" 2>&1
    else
        # shellcheck disable=SC2086 # a command with its words
        (cd "$work" && timeout -k 5 300 $launch "$build/NPmpi" "$@") >"$work/$name-$mpi.out" 2>&1
    fi || { tail -n 20 "$work/$name-$mpi.out" >&2; die "NPmpi $* failed; all of it: $work/$name-$mpi.out"; }
}

run check -i -u "$most"
tests=$(grep -c 'Integrity check passed' "$work/check-$mpi.out") || true
grep -qi 'integrity check failed' "$work/check-$mpi.out" && die "wrong data: $work/check-$mpi.out"
[ "$tests" -ge 40 ] || { tail -n 20 "$work/check-$mpi.out" >&2; die "only $tests sizes were checked"; }
run times -u "$most" -o "times-$mpi.dat"
sizes=$(grep -c 'bytes .* times' "$work/times-$mpi.out") || true
[ "$sizes" -gt 50 ] || { tail -n 20 "$work/times-$mpi.out" >&2; die "only $sizes sizes were measured"; }
say "$tests sizes with the right data, $sizes sizes measured; times: $work/times-$mpi.out"
