#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Files in the representation external32, written and read by Isthmus, MPICH and Open MPI.
#
#   sh conformance/external32/run.sh
#
# Each writes eight kinds of data, and each reads what each has written. What Isthmus writes is compared with the bytes that the standard says as well.
# expected.tsv names what others cannot do, with the reason. Any other difference: exit status 1.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=external32
. "$here/../common.sh"
need gcc gcc
need mpicc.mpich libmpich-dev
need mpirun.mpich mpich
need mpicc.openmpi libopenmpi-dev
need mpirun.openmpi openmpi-bin
install_missing
need_mpicc "$bin/mpicc"
mkdir -p "$work"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
compiler() { case $1 in isthmus) echo "$bin/mpicc" ;; *) echo "mpicc.$1" ;; esac; }
# forms WHO WORD...
forms() {
    who=$1
    shift
    case $who in isthmus) launch=$bin/mpiexec ;; *) launch=mpirun.$who ;; esac
    timeout 60 "$launch" -n 1 "$work/forms.$who" "$@" </dev/null
}
all="isthmus mpich openmpi" kinds="int short longlong unsigned float double char mixed"
for who in $all; do
    "$(compiler "$who")" -std=gnu99 -O1 -w "$here/forms.c" -o "$work/forms.$who" 2>"$work/build.log" || { cat "$work/build.log" >&2; die "forms.c does not compile with $(compiler "$who")"; }
done
passed=0 failed=0 expected=0
# judge WHAT STATUS
judge() {
    reason=$(awk -F '\t' -v what="$1" '$1 == what { print $2 }' "$here/expected.tsv")
    case $2-${reason:+known} in
    0-) passed=$((passed + 1)) ;;
    0-known) failed=$((failed + 1)); say "$1 passes, but is expected to fail: $reason" ;;
    *-known) expected=$((expected + 1)) ;;
    *) failed=$((failed + 1)); say "$1: $(head -n 3 "$work/out" | tr '\n' ' ')" ;;
    esac
}
for writer in $all; do
    for kind in $kinds; do
        file=$work/$writer.$kind
        rm -f "$file"
        status=0
        forms "$writer" write "$file" "$kind" >"$work/out" 2>&1 || status=$?
        judge "$writer writes $kind" $status
        [ $status = 0 ] || continue
        # The bytes of the standard.
        status=0
        od -An -v -tx1 "$file" | tr -d ' \n' >"$work/bytes"
        wanted=$(awk -v kind="$kind" '$1 == kind { print $2 }' "$here/bytes.txt")
        [ "$(cat "$work/bytes")" = "$wanted" ] || { status=1; { echo "wrote $(cat "$work/bytes") and not $wanted"; } >"$work/out"; }
        judge "$writer has the bytes of $kind" $status
        [ $status = 0 ] || continue
        for reader in $all; do
            status=0
            forms "$reader" read "$file" "$kind" >"$work/out" 2>&1 || status=$?
            judge "$reader reads $kind of $writer" $status
        done
    done
done
echo "external32: $passed passed, $failed failed, $expected expected to fail"
[ "$failed" = 0 ]
