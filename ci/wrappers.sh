#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mpicc, mpicxx, pkg-config and CMake's FindMPI, against the build tree and against a moved copy of it.
. "$(dirname "$0")/../scripts/common.sh"
[ -x "$build/bin/mpicc" ] || sh scripts/build.sh || exit 1
passed=0 failed=0
work=$(mktemp -d)
expect() {
    what=$1
    shift
    if "$@" >"$work/out" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        say "FAILED: $what: $*"
        tail -20 "$work/out"
    fi
}
uses_runpath() { readelf -d "$1" | grep RUNPATH | grep -qF "$2/lib"; }
says() { "$@" | grep -q -- -lmpi_abi; }
silent() { ! "$@" | grep -q -- -lmpi_abi; }

check_tree() {
    prefix=$1
    for compiler in mpicc mpicc_abi mpicxx mpicxx_abi mpic++ mpiCC; do
        source=tests/cmake/main.c
        case $compiler in mpicxx* | mpic++ | mpiCC) source=tests/cmake/main.cpp ;; esac
        have c++ || [ "$source" = tests/cmake/main.c ] || continue
        program=$work/$compiler
        expect "$compiler compiles and links" "$prefix/bin/$compiler" "$source" -o "$program"
        expect "the program finds the library" uses_runpath "$program" "$prefix"
        expect "the program runs alone" "$program"
        expect "$compiler -c" "$prefix/bin/$compiler" -c "$source" -o "$program.o"
        expect "$compiler links objects" "$prefix/bin/$compiler" "$program.o" -o "$program"
        expect "$compiler -show" says "$prefix/bin/$compiler" -show
        expect "$compiler -link-info" says "$prefix/bin/$compiler" -link-info
        expect "$compiler -compile-info" silent "$prefix/bin/$compiler" -compile-info
        expect "$compiler --version" "$prefix/bin/$compiler" --version
    done
    expect "ISTHMUS_CC" env ISTHMUS_CC="cc -O1" "$prefix/bin/mpicc" tests/cmake/main.c -o "$work/chosen"
    if [ "$prefix" != "${prefix% *}" ]; then
        say "skipped: pkg-config in a directory with a space: pkgconf does not quote what it does not know, such as -Wl,-rpath"
    elif have pkg-config; then
        expect "pkg-config" sh -c "cc tests/cmake/main.c -o '$work/pc' \$(PKG_CONFIG_PATH='$prefix/lib/pkgconfig' pkg-config --cflags --libs mpi) && '$work/pc'"
    else
        say "skipped: no pkg-config"
    fi
    if have cmake && have make && have c++; then
        rm -rf "$work/cmake"
        expect "CMake finds MPI" env PATH="$prefix/bin:$PATH" cmake -S tests/cmake -B "$work/cmake"
        expect "CMake builds" cmake --build "$work/cmake"
        expect "the program in C runs" "$work/cmake/in_c"
        expect "the program in C++ runs" "$work/cmake/in_cxx"
    else
        say "skipped: no cmake, make or C++ compiler"
    fi
}

check_tree "$build"
cp -a "$build" "$work/moved tree"
rm -rf "$work/moved"
mv "$work/moved tree" "$work/moved"
check_tree "$work/moved"
rm -rf "$work"
say "$passed passed, $failed failed"
[ $failed -eq 0 ]
