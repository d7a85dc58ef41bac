#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Quantum ESPRESSO's layer over MPI and its program pw.x, built with our mpif90 from Debian's source package.
#
#   sh conformance/espresso/run.sh [--layer] [--sites] [--limit SECONDS] [TEST...]
#
# Builds UtilXlib, its tests and pw.x below target/espresso, and compares pw.x' energies of silicon with those of its test suite. --layer: without
# pw.x, whose building takes long. --sites: over two testbed sites. Failures that are expected stand in expected.tsv.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=espresso
. "$here/../common.sh"
. "$here/../listed.sh"
# Inside a testbed this script runs again.
layer=${ESPRESSO_LAYER:-}
listed_options layer "$@"
export ESPRESSO_LAYER="$layer"
need gcc gcc
need gfortran gfortran
need make make
need python3 python3
need dpkg-source dpkg-dev
need_file /usr/lib/x86_64-linux-gnu/liblapack.so liblapack-dev
install_missing
need_mpicc "$bin/mpif90"
mkdir -p "$work"

build() {
    cp -R "$work/source/." "$work/build" && cd "$work/build" && export PATH="$bin:$PATH" || return 1
    # Little optimization: that these are right is what is asked.
    ./configure --enable-parallel --with-scalapack=no FFLAGS='-O1 -w' FCFLAGS='-O1 -w' MPIF90="$bin/mpif90" || return 1
    sed -i 's/^CFLAGS  *= -O3/CFLAGS = -O1/' make.inc || return 1
    # What its script for tests sets: the words for the preprocessor.
    export DFLAGMATRIX=-D__MPI
    # Beside what pw.x is built of, because the words differ.
    mkdir layer && cp -R UtilXlib make.inc layer && make -C layer/UtilXlib -f Makefile.test || return 1
    cd layer/UtilXlib/tests && rm -f ./*_gpu.* && python3 gen_tests.py || return 1
    make common || return 1
    for source in test_mp_*.f90 autotest_mp_*.f90; do
        make "${source%.f90}.x" || return 1
    done
}
# What pw.x needs, in the order of its own Makefile.
build_pw() {
    cd "$work/build" && export PATH="$bin:$PATH" && make pwlibs && make pw
}
build_once espresso
[ -n "$layer" ] || [ -x "$work/build/bin/pw.x" ] || (build_pw) >"$work/pw.log" 2>&1 </dev/null || die "pw.x was not built; all of it: $work/pw.log"
listed_inside
# All tests that were built, each on 3 ranks as its script has it.
listed_list=$work/list.txt
(cd "$work/build/layer/UtilXlib/tests" && ls ./*.x) | sed 's|^\./\(.*\)|\1 3|' >"$listed_list"
listed_good() { [ "$2" = 0 ] && grep -q ' 0  *error(s)' "$1" && ! grep -q '[1-9][0-9]*  *error(s)' "$1"; }
bad=0
listed_run "$work/build/layer/UtilXlib/tests" || bad=1
[ -z "$layer" ] || exit $bad

# Self-consistent fields of silicon, the plane waves and then the k points divided among the processes. Energy (Ry) and pressure (kbar) must be those
# of one process, and those of the reference within what its test suite allows between versions. Debian's packaging has the pseudopotential.
export ESPRESSO_PSEUDO="$work/source/debian/pseudo"
inputs=$work/build/test-suite/pw_scf
figures() { sed -n -e 's/^!  *total energy *= *\([-0-9.]*\) Ry.*/energy \1/p' -e 's/.*(kbar) *P= *\([-0-9.]*\).*/pressure \1/p' "$1" >"$2"; }
# agree WANTED FOUND ENERGY PRESSURE: all figures are there, and differ by less.
agree() {
    awk -v energy="$3" -v pressure="$4" 'NR == FNR { want[$1] = $2; next }
        { d = $2 - want[$1]; if (d < 0) d = -d; if (d < ($1 == "energy" ? energy : pressure)) delete want[$1] }
        END { left = NR == FNR; for (name in want) left = 1; exit left }' "$1" "$2"
}
# pw LAUNCHER RANKS POOLS INPUT LOG: runs it, and takes its figures to LOG.figures.
pw() {
    (cd "$work/$place" && timeout -k 5 "$limit" "$1" -n "$2" "$work/build/bin/pw.x" -npool "$3" -input "$inputs/$4") >"$5" 2>&1 </dev/null &&
        grep -q 'JOB DONE' "$5" && figures "$5" "$5.figures"
}
passed=0 failed=0
for run in 'scf 1' 'scf 2' 'scf-kauto 2'; do
    input=${run% *}.in pools=${run#* } log="$work/$place/pw-${run% *}-${run#* }.log"
    figures "$inputs/benchmark.out.git.inp=$input" "$work/reference"
    if pw "$bin/mpiexec" 1 1 "$input" "$log.alone" && pw "$launch" 4 "$pools" "$input" "$log" && agree "$work/reference" "$log.figures" 1e-5 0.9 &&
        agree "$log.alone.figures" "$log.figures" 1e-6 0.1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1)) bad=1
        say "pw.x with $input in $pools pools failed: $log"
    fi
done
echo "pw.x ($place): $passed passed, $failed failed"
exit $bad
