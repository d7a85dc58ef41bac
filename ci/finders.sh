#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What build systems find, with our commands first in PATH and other MPIs installed: makefiles that say -lmpi, meson, autoconf's AX_MPI,
# scons, CMake, pkg-config by the names of other MPIs. Every program that they build must be linked with our library.
# usage: sh ci/finders.sh        one row of each
#        sh ci/finders.sh all    every name and variable, and all of it in a directory whose name has a space (nightly)
all=${1:-}
. "$(dirname "$0")/../scripts/common.sh"
[ -x "$build/bin/mpicc" ] || sh scripts/build.sh || exit 1
passed=0 failed=0
work=$(mktemp -d)
if [ -n "$all" ]; then
    mkdir "$work/a tree"
    cp -a "$build/bin" "$build/lib" "$build/include" "$work/a tree/"
fi
source=$top/tests/cmake/main.c
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
# The program needs our library and no other MPI.
ours() { readelf -d "$1" | grep -q 'NEEDED.*\[libmpi_abi\.so\.1\]' && ! readelf -d "$1" | grep -qE 'NEEDED.*\[lib(mpi|mpich)\.so'; }
built() {
    expect "$1 builds" sh -c "$2"
    expect "$1 links our library" ours "$3"
}
known() {
    for tool in "$@"; do
        have "$tool" || { say "skipped: $*: no $tool" && return 1; }
    done
}

# some WORD...: all of them, or the first.
some() {
    [ -n "$all" ] || set -- "$1"
    echo "$@"
}

# check_tree PREFIX: with the tree there.
check_tree() {
    prefix=$1 there=$work/there
    rm -rf "$there"
    mkdir "$there"
    PATH=$prefix/bin:$PATH PKG_CONFIG_PATH=$prefix/lib/pkgconfig
    export PATH PKG_CONFIG_PATH
    cd "$there" || exit 1
    for name in $(some mpich mpi pmpich mpi_cxx mpicxx mpichcxx); do
        built "mpicc -l$name" "mpicc '$source' -l$name -o $name" $name
    done
    # What -show prints is pasted into a shell, as build systems do.
    built "mpicc -show" "eval \"\$(mpicc -show '$source' -o shown)\"" shown
    built "mpicc --showme:compile, :link" "eval cc '$source' -o parts \"\$(mpicc --showme:compile)\" \"\$(mpicc --showme:link)\"" parts
    for variable in $(some MPICH_CC ISTHMUS_CC OMPI_CC I_MPI_CC); do
        expect "$variable" sh -c "env $variable='cc -DCHOSEN' mpicc -show | grep -q '^cc -DCHOSEN '"
    done
    for variable in $(some OMPI_CXX ISTHMUS_CXX MPICH_CXX I_MPI_CXX); do
        expect "$variable" sh -c "env $variable=chosen mpicxx -show | grep -q '^chosen '"
    done
    expect "mpicc -showme:version" sh -c "mpicc -showme:version | grep -qE '[0-9]+\.[0-9]+\.[0-9]+'"
    expect "mpiexec.isthmus" sh -c "mpiexec.isthmus --version | grep -qi isthmus"
    if [ "$prefix" != "${prefix% *}" ]; then
        say "skipped: pkg-config and meson in a directory with a space: pkgconf does not quote what it does not know, such as -Wl,-rpath"
    elif known pkg-config; then
        for name in $(some mpich isthmus mpi mpi-c mpi-cxx mpi_abi ompi ompi-c ompi-cxx); do
            built "pkg-config $name" "eval cc '$source' -o pc-$name \"\$(pkg-config --cflags --libs $name)\"" "pc-$name"
        done
        expect "pkg-config --atleast-version" pkg-config --atleast-version=3.1 mpi
    fi
    if known meson ninja; then
        cp "$source" main.c
        if [ -n "$all" ] && [ "$prefix" = "${prefix% *}" ]; then
            printf "project('found', 'c')\nexecutable('found', 'main.c', dependencies: dependency('mpi', version: '>=3'))\n" >meson.build
            built meson "meson setup with-meson && meson compile -C with-meson" with-meson/found
        fi
        # Without pkg-config's path only the wrapper is found.
        printf "project('found', 'c')\nexecutable('found', 'main.c', dependencies: dependency('mpi', method: 'config-tool'))\n" >meson.build
        built "meson, by the wrapper" "meson setup by-wrapper && meson compile -C by-wrapper" by-wrapper/found
    fi
    if known autoconf autoreconf automake && [ -e /usr/share/aclocal/ax_mpi.m4 ]; then
        mkdir ax && cp "$source" ax/main.c
        printf 'AC_INIT([found],[1])\nAM_INIT_AUTOMAKE([foreign])\nAC_PROG_CC\nAX_MPI([CC=$MPICC LIBS="$MPILIBS $LIBS"],[AC_MSG_ERROR([no MPI])])\nAC_CONFIG_FILES([Makefile])\nAC_OUTPUT\n' >ax/configure.ac
        printf 'bin_PROGRAMS = found\nfound_SOURCES = main.c\n' >ax/Makefile.am
        built "autoconf's AX_MPI" "cd ax && autoreconf -i && ./configure && make" ax/found
    else
        say "skipped: AX_MPI: no autoconf, automake or autoconf-archive"
    fi
    if known scons; then
        mkdir with-scons && cp "$source" with-scons/main.c
        printf "import os\ne = Environment(ENV=os.environ)\ne.ParseConfig('mpicc -showme:compile')\ne.ParseConfig('mpicc -showme:link')\ne.Program('found', 'main.c')\n" >with-scons/SConstruct
        built scons "scons -C with-scons" with-scons/found
    fi
    if known cmake make c++; then
        built CMake "cmake -S '$top/tests/cmake' -B with-cmake && cmake --build with-cmake" with-cmake/in_c
    fi
    cd "$top" || exit 1
}

path=$PATH
check_tree "$build"
PATH=$path
# The same in a directory whose name has a space.
[ -z "$all" ] || check_tree "$work/a tree"
rm -rf "$work"
say "$passed passed, $failed failed"
[ $failed -eq 0 ]
