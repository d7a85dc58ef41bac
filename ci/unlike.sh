#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two processes of x86-64 and two of s390x, a big-endian machine that qemu emulates, in one job: tests/unlike/*.c and *.f90, and
# tests/c/connect.c, in which two groups meet as those of two jobs do.
# The library for s390x is built here with the oldest Rust compiler that it is for (scripts/oldest-rust.sh). Exits with 77 after saying why where this cannot be had.
# usage: sh ci/unlike.sh [FILE...]
files=$*
. "$(dirname "$0")/../scripts/common.sh"
triple=s390x-unknown-linux-gnu
cross=s390x-linux-gnu
place=$top/target/unlike
tools=$place/tools
logs=$place/log
mkdir -p "$logs"
skip() { say "skipped: $*"; exit 77; }

[ "$(uname -m)" = x86_64 ] || skip "this test is of x86-64 with s390x"
wanted "$cross-gcc" "gcc-$cross" libc6-dev-s390x-cross
wanted qemu-s390x-static qemu-user-static
# A subshell: that these packages cannot be had is no failure of the test.
[ -z "$missing" ] || (install_missing) || skip "the packages $missing cannot be installed"
[ -x "$build/bin/isthmus" ] || sh scripts/build.sh || exit 1

. "$top/scripts/oldest-rust.sh"
oldest_rust "$place" >"$logs/tools.log" 2>&1 || skip "no Rust compiler for s390x: $(tail -n 1 "$logs/tools.log")"

# Optimized a little: everything is emulated. xtask itself is of this machine and its compiler.
cargo build -q -p xtask || exit 1
target=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
if ! RUSTC="$tools/rustc" CC="$cross-gcc" NM="$cross-nm" CARGO_TARGET_DIR="$place" CARGO_PROFILE_DEV_OPT_LEVEL=1 \
    CARGO_PROFILE_DEV_DEBUG=0 CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER="$cross-gcc" \
    "$target/debug/xtask" dist --target "$triple" --out "$place/dist" >"$logs/build.log" 2>&1; then
    tail -30 "$logs/build.log"
    say "FAILED: the library does not build for s390x"
    exit 1
fi

limit=${ISTHMUS_TEST_LIMIT:-120}
passed=0 failed=0
work=$(mktemp -d)
# The program of here and the one of there.
compile() {
    flags="-std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Itests/c"
    # shellcheck disable=SC2086 # options are words
    "$build/bin/mpicc" $flags "$1" -o "$2" -lm && "$cross-gcc" $flags -I"$place/dist/include" "$1" -o "$2.s390x" -L"$place/dist/lib" -lmpi_abi -lm
}
compile_fortran() {
    "$build/bin/mpifort" -O1 -g -Wall "$1" -o "$2" && "$build/bin/mpifort" -fc="$cross-gfortran" -O1 -g -c "$1" -o "$2.o" &&
        "$cross-gfortran" "$2.o" -o "$2.s390x" -L"$place/dist/lib" -lmpifort_abi -lmpi_abi
}
for file in ${files:-tests/unlike/*.c tests/unlike/*.f90 tests/c/connect.c}; do
    name=$(basename "${file%.*}")
    compiler=compile
    case $file in
    *.f90)
        compiler=compile_fortran
        (wanted gfortran gfortran && wanted "$cross-gfortran" "gfortran-$cross" && install_missing) || { say "skipped: $file: no gfortran for both"; continue; }
        ;;
    esac
    if ! "$compiler" "$file" "$work/$name" >"$work/out" 2>&1; then
        failed=$((failed + 1))
        say "FAILED: $file does not compile"
        tail -20 "$work/out"
        continue
    fi
    for order in "here there" "there here"; do
        for subjob in $order; do
            printf '[[subjob]]\nsite = "%s"\ncontact = "home"\ncount = 2\n' "$subjob"
            case $subjob in
            here) printf 'program = "%s"\n' "$work/$name" ;;
            there)
                printf 'program = "%s"\n' "$(command -v qemu-s390x-static)"
                printf 'arguments = ["-L", "/usr/%s", "-E", "LD_LIBRARY_PATH=%s", "%s"]\n' "$cross" "$place/dist/lib" "$work/$name.s390x"
                ;;
            esac
        done >"$work/job.toml"
        timeout -k 5 "$limit" "$build/bin/isthmus" run "$work/job.toml" >"$work/out" 2>&1 </dev/null
        status=$?
        if [ $status -eq 0 ]; then
            passed=$((passed + 1))
            say "$name, $order: $(tail -n 1 "$work/out")"
        else
            failed=$((failed + 1))
            say "FAILED: $file ($order): exit status $status"
            tail -25 "$work/out" | sed 's/^/    /'
        fi
    done
    [ "$name" = connect ] || continue
    # Two jobs, one of each machine.
    timeout -k 5 "$limit" "$build/bin/isthmus" run -n 2 "$work/connect" server "$work/port" 2 >"$work/server" 2>&1 </dev/null &
    server=$!
    status=0
    timeout -k 5 "$limit" "$build/bin/isthmus" run -n 2 "$(command -v qemu-s390x-static)" -L "/usr/$cross" -E "LD_LIBRARY_PATH=$place/dist/lib" \
        "$work/connect.s390x" client "$work/port" 2 >"$work/out" 2>&1 </dev/null || status=$?
    wait $server || status=$?
    if [ $status -eq 0 ] && grep -q 'server: all is well' "$work/server" && grep -q 'client: all is well' "$work/out"; then
        passed=$((passed + 1))
        say "$name, two jobs: all is well"
    else
        failed=$((failed + 1))
        say "FAILED: $file (two jobs): exit status $status"
        tail -25 "$work/server" "$work/out" | sed 's/^/    /'
    fi
done
rm -rf "$work"
say "$passed passed, $failed failed"
[ $failed -eq 0 ]
