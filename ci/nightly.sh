#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Long versions of checks, for the night. Exit status 0 if all that were asked for are good.
# usage: sh ci/nightly.sh [threads [SECONDS]] [windows [SECONDS]] [memory] [changed] [wrappers] [vendor] [unlike] [fuzz] [codes] [losses] [fortran] [files] [docs] [miri] [checkers]     (all; four hours)
. "$(dirname "$0")/../scripts/common.sh"
[ $# -gt 0 ] || set -- threads windows memory changed wrappers vendor unlike fuzz codes losses fortran files docs miri checkers
bad=0
# try FILE: a check that may say that this machine cannot do it (77).
try() {
    status=0
    sh "$1" || status=$?
    case $status in 0 | 77) ;; *) bad=1 ;; esac
}
while [ $# -gt 0 ]; do
    name=$1
    shift
    case $name in
    # Random operations of eight threads a rank.
    threads)
        seconds=3600
        case ${1:-} in [0-9]*) seconds=$1 && shift ;; esac
        sh ci/threads.sh "$seconds" || bad=1
        ;;
    # Accumulate operations of all processes on the same cells, by all ways at once; targets that sleep.
    windows)
        seconds=120
        case ${1:-} in [0-9]*) seconds=$1 && shift ;; esac
        sh ci/windows.sh "$seconds" || bad=1
        ;;
    # A million objects of each kind.
    memory)
        work=$(mktemp -d)
        "$build/bin/mpicc" -std=c11 -D_GNU_SOURCE -O2 -Itests/c tests/c/memory.c -o "$work/memory" &&
            "$build/bin/mpiexec" -n 1 "$work/memory" 1000000 && "$build/bin/mpiexec" -n 2 "$work/memory" 1000000 || bad=1
        rm -rf "$work"
        ;;
    # Ten thousand jobs with a rank whose frames, or bytes on the way, are changed at random.
    changed)
        ISTHMUS_TEST_CHANGED=10000 cargo test -q -p isthmus-engine --test changed || bad=1
        ISTHMUS_TEST_CHANGED=10000 cargo test -q -p isthmus-gateway --test changed || bad=1
        ;;
    # Every name, option and interface by which build systems and programs in Fortran find the library.
    wrappers)
        sh ci/finders.sh all || bad=1
        sh ci/fortran.sh all || bad=1
        ;;
    # All programs on top of other MPIs. 77: there are none here.
    vendor) try ci/vendor.sh ;;
    # Processes of x86-64 and s390x in one job. 77: there is no emulator here.
    unlike) try ci/unlike.sh ;;
    # Every fuzz target, an hour in all.
    fuzz) sh ci/fuzz.sh 3600 || bad=1 ;;
    # Solvers and libraries that people use, with their own checks.
    codes)
        sh conformance/codes/run.sh || bad=1
        for where in '' --sites; do sh conformance/onesided/run.sh $where || bad=1; done
        ;;
    # A stencil that loses processes at random for a minute, a machine and a site; the tests of others, where there is a copy of them.
    losses)
        ISTHMUS_TEST_LONG=1 ISTHMUS_TEST_LIMIT=900 sh ci/system.sh tests/system/faults-random.sh || bad=1
        if [ -d "${ULFM_TESTING:-}" ]; then
            for where in '' --sites; do sh conformance/ulfm/run.sh --source "$ULFM_TESTING" $where || bad=1; done
        else
            say "skipped: conformance/ulfm: ULFM_TESTING names no copy of ulfm-testing"
        fi
        ;;
    # Codes in Fortran and what they stand on, on one node and over two sites.
    fortran)
        for suite in npb mumps scalapack espresso; do
            for where in '' --sites; do sh "conformance/$suite/run.sh" $where || bad=1; done
        done
        ;;
    # What others test their files with, on one node and over two sites without a common directory.
    files)
        ISTHMUS_TEST_IO_CASES=100000 cargo test -q -p isthmus-io --test model || bad=1
        sh conformance/external32/run.sh || bad=1
        for suite in romio pnetcdf hdf5 netcdf h5py; do
            for where in '' --sites; do sh "conformance/$suite/run.sh" --limit 1800 $where || bad=1; done
        done
        # Files that two jobs have open together.
        for suite in romio hdf5 pnetcdf; do sh "conformance/$suite/run.sh" --met --limit 1800 || bad=1; done
        ;;
    # The commands of the book that take longer.
    docs) ISTHMUS_TEST_DOCS=all sh ci/docs.sh || bad=1 ;;
    # Undefined behaviour and data races, by interpretation. 77: there is no Miri here.
    miri) try ci/miri.sh ;;
    # Programs under valgrind and ThreadSanitizer, with the suppressions that are shipped.
    checkers) try ci/checkers.sh ;;
    *) die "$name is not a nightly check; there are: threads, windows, memory, changed, wrappers, vendor, unlike, fuzz, codes, losses, fortran, files, docs, miri, checkers" ;;
    esac
done
exit $bad
