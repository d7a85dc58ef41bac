#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mpi4py built with our mpicc: its benchmarks, its own test suite, and an extension in Fortran.
#
#   sh conformance/mpi4py/run.sh [--ranks "1 2 3 5"] [--sites] [TEST...]
#
# Builds mpi4py from its source package in a virtual environment below target/mpi4py and runs `mpi4py.bench helloworld`, `ringtest`,
# an extension in Fortran (extension.f90, by f2py), its tests and those of mpi4py.futures on each of these numbers of ranks; then its server and a
# client of it, which are jobs of their own. --sites: spread over the two of SPREAD_SITES (../spread), without it over two sites on
# this machine. TEST: only these (test_p2p_buf ...).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=mpi4py
. "$here/../common.sh"

version=4.1.2 ranks="1 2 3 5" sites=
options 'ranks= sites *' "$@"
counts=$ranks only=$words launch=$bin/mpiexec
[ -z "$sites" ] || launch=$here/../spread
need gcc gcc
need_python
install_missing
need_mpicc "$bin/mpicc"
python=$work/env/bin/python
# mpi4py knows the functions of mpi-ext.h with Open MPI only, or when it is told that they are there.
extensions='-include mpi-ext.h'
for name in ERR_REVOKED ERR_PROC_FAILED ERR_PROC_FAILED_PENDING Comm_revoke Comm_is_revoked Comm_agree Comm_iagree Comm_shrink Comm_ishrink Comm_get_failed Comm_ack_failed; do
    extensions="$extensions -DPyMPI_HAVE_MPIX_$name=1"
done
build() {
    rm -rf "$work/source"
    mkdir -p "$work/source"
    python3 -m venv --clear "$work/env" && "$python" -m pip install -q numpy &&
        "$python" -m pip download -q --no-deps --no-binary mpi4py -d "$work" "mpi4py==$version" &&
        tar -xf "$work/mpi4py-$version.tar.gz" -C "$work/source" --strip-components 1 &&
        CFLAGS="$extensions" MPI4PY_BUILD_MPICC="$bin/mpicc" "$python" -m pip install -q --no-deps "$work/source"
}
build_once
export ISTHMUS_TEST_BIN="$bin" SPREAD_SITES="${SPREAD_SITES:-a=home b=home}"
LD_LIBRARY_PATH=$(cd "$bin/../lib" && pwd)
export LD_LIBRARY_PATH
if [ -n "$sites" ]; then
    # A copy of Python at a site does not know that it belongs to an environment.
    PYTHONPATH=$("$python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
    export PYTHONPATH SPREAD_OPTIONS="--env PYTHONPATH=$PYTHONPATH ${SPREAD_OPTIONS:-}"
fi
set -f
failed=0
# A Fortran extension, made as users make it, and made anew each time. f2py links with the compiler for C, so it is told the library for Fortran.
extension() {
    export PATH="$work/env/bin:$bin:$PATH"
    rm -rf "$work/extension" && mkdir -p "$work/extension" && cd "$work/extension" && cp "$here/extension.f90" "$here/extension.py" . &&
        "$python" -m pip install -q meson ninja &&
        FC=mpifort CC=mpicc LDFLAGS="$(mpifort -link-info | cut -d ' ' -f 2-)" "$python" -m numpy.f2py -c --backend meson -m extension extension.f90
}
if command -v gfortran >/dev/null 2>&1; then
    if (extension) >"$work/extension.log" 2>&1 </dev/null; then
        for n in $counts; do
            (cd "$work/extension" && timeout 120 "$launch" -n "$n" "$python" extension.py </dev/null) || { say "the Fortran extension failed on $n ranks"; failed=1; }
        done
    else
        say "the Fortran extension cannot be built; all output: $work/extension.log"
        failed=1
    fi
else
    say "skipped: no gfortran for the Fortran extension"
fi
for n in $counts; do
    for bench in helloworld ringtest; do
        timeout 120 "$launch" -n "$n" "$python" -m mpi4py.bench $bench </dev/null || { say "$bench on $n ranks failed"; failed=1; }
    done
    log=$work/test-$n.log
    status=0
    # shellcheck disable=SC2086 # names of tests
    timeout "${MPI4PY_TIMEOUT:-900}" "$launch" -n "$n" "$python" "$work/source/test/main.py" -v ${only:+-i "^($(echo $only | tr ' ' '|'))\.py\$"} >"$log" 2>&1 </dev/null || status=$?
    ran=$(sed -n 's/^Ran \([0-9]* tests\) in.*/\1/p' "$log" | head -n 1)
    verdict=$(grep -E '^(OK|FAILED)( |$)' "$log" | sort | uniq -c | tr -s ' ' | paste -s -d ';')
    echo "mpi4py: $n ranks: ${ran:-no result}, status $status,$verdict"
    if [ $status != 0 ] || [ -z "$ran" ]; then
        grep -E '^(ERROR|FAIL):|isthmus: error' "$log" | sort | uniq -c | head -n 40 >&2
        say "$n ranks failed; all output: $log"
        failed=1
    fi
done
# Pools of workers: spawned on one rank, split off on several, and the program's own on several.
futures=$work/source/demo/futures
for n in $counts; do
    for module in "" "-m mpi4py.futures"; do
        log=$work/futures-$n${module:+-module}.log
        # shellcheck disable=SC2086 # words
        if timeout "${MPI4PY_TIMEOUT:-900}" "$launch" -n "$n" "$python" $module "$futures/test_futures.py" >"$log" 2>&1 </dev/null; then
            echo "mpi4py.futures: $n ranks${module:+, $module}: $(sed -n 's/^Ran \([0-9]* tests\) in.*/\1/p' "$log" | head -n 1)"
        else
            say "mpi4py.futures on $n ranks failed; all output: $log"
            failed=1
        fi
    done
done
# A server, and a client that finds it by its name.
service=mpi4py-$$
timeout 300 "$launch" -n 2 "$python" -m mpi4py.futures.server --service "$service" --info isthmus_scope=user >"$work/server.log" 2>&1 </dev/null &
server=$!
until "$bin/isthmus" names 2>/dev/null | grep -q "^$service " || ! kill -0 $server 2>/dev/null; do sleep 0.2; done
if timeout 200 "$launch" -n 1 "$python" "$futures/test_service.py" --service "$service" --info isthmus_scope=user </dev/null && wait $server; then
    echo "mpi4py.futures: a client has found its server"
else
    say "the server of mpi4py.futures failed; its output: $work/server.log"
    failed=1
fi
exit $failed
