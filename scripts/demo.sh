#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds Isthmus, compiles an ordinary MPI program with mpicc and runs it over two sites joined by an emulated
# wide-area link of 40 ms round trip; shows the topology and what crossed the link. Installs what is missing.
# usage: sh scripts/demo.sh
set -eu
. "$(dirname "$0")/common.sh"
want_for_build
want_for_testbed
install_missing

say "== building (a few minutes the first time) =="
cargo xtask dist --out "$build" --release --workshop

work=$(mktemp -d "${TMPDIR:-/tmp}/isthmus-demo.XXXXXX")
trap 'rm -rf "$work" "$log"' EXIT
PATH=$build/bin:$PATH
export PATH
cp examples/topology-show.c "$work/"
cd "$work"

say ""
say "== compiling =="
say "\$ mpicc -O2 topology-show.c -o topology-show"
mpicc -O2 topology-show.c -o topology-show
# Under memory pressure or in a container /tmp may be private to a host of the testbed: the program is given by its
# whole path, and the launcher brings it to the other site.

say ""
if isthmus-testbed run --sites 2x1 --rtt 40ms -- ssh b1 true >"$work/testbed.log" 2>&1; then
    say "== two sites, 40 ms apart: 4 processes at each =="
    command="isthmus run --site home:4 --site b1:4 $work/topology-show"
    say "\$ ISTHMUS_STATS=1 $command"
    # shellcheck disable=SC2086 # words
    isthmus-testbed run --sites 2x1 --rtt 40ms --rate 200mbit --stats -- env ISTHMUS_STATS=1 $command
else
    say "== no emulated network here: two sites on this machine instead =="
    sed 's/^/   /' "$work/testbed.log" | tail -3
    say "   (as root, or with unprivileged user namespaces and /dev/net/tun, the sites would be 40 ms apart)"
    command="isthmus run --site a=home:4 --site b=home:4 $work/topology-show"
    say "\$ ISTHMUS_STATS=1 $command"
    # shellcheck disable=SC2086 # words
    ISTHMUS_STATS=1 $command
fi

if have gfortran; then
    say ""
    say "== the same in Fortran =="
    cp "$top/examples/stencil.f90" "$work/"
    say "\$ mpifort -O2 stencil.f90 -o stencil"
    mpifort -O2 stencil.f90 -o stencil
    if [ "${command#*b1}" != "$command" ]; then
        command="isthmus run --site home:2 --site b1:2 $work/stencil"
        say "\$ $command"
        # shellcheck disable=SC2086 # words
        isthmus-testbed run --sites 2x1 --rtt 40ms --rate 200mbit -- $command
    else
        command="isthmus run --site a=home:2 --site b=home:2 $work/stencil"
        say "\$ $command"
        # shellcheck disable=SC2086 # words
        $command
    fi
else
    say "skipped: the same in Fortran (no gfortran)"
fi

cat <<TEXT

== what to try next ==
  PATH=$build/bin:\$PATH
  mpicc -O2 examples/ring.c -o ring && mpiexec -n 4 ./ring
                                     your own program, on this machine
  isthmus run --site home:4 --site HOST:4 ./ring
                                     with any machine that ssh reaches; nothing need be installed there
  isthmus-testbed run --sites 3x2 --rtt 75ms -- isthmus run --site home:2 --site b1:2 --site c1:2 $top/ring
                                     three emulated sites
  isthmus info --functions           which MPI functions are implemented
  sh scripts/install.sh --prefix DIR
TEXT
