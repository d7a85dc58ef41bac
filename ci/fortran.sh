#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fortran with gfortran: the programs of tests/fortran, mpif.h in both forms, the wrappers, the modules in the cache, a program in C with parts
# in Fortran, a profiling library in C, CMake and pkg-config.
# usage: sh ci/fortran.sh        one row of each
#        sh ci/fortran.sh all    every interface, option and name, and the programs with every flang that is there (nightly)
all=${1:-}
. "$(dirname "$0")/../scripts/common.sh"
[ -x "$build/bin/mpifort" ] || sh scripts/build.sh || exit 1
if ! have gfortran; then
    say "skipped: no gfortran"
    exit 77
fi
limit=${ISTHMUS_TEST_LIMIT:-60}
passed=0 failed=0
work=$(mktemp -d)
# Modules are made anew.
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME
mpifort=$build/bin/mpifort
expect() {
    what=$1
    shift
    if "$@" >"$work/out" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        say "FAILED: $what: $*"
        tail -20 "$work/out" | sed 's/^/    /'
    fi
}
run() { timeout -k 5 "$limit" "$build/bin/mpiexec" "$@" </dev/null; }
says() { pattern=$1; shift; "$@" 2>&1 | grep -q -e "$pattern"; }
refuses() { ! "$@"; }
# some COUNT WORD...: all of them, or the first COUNT.
some() {
    count=$1
    shift
    for word in "$@"; do
        [ -n "$all" ] || [ "$count" -gt 0 ] || break
        count=$((count - 1))
        echo "$word"
    done
}

# The programs. Four compilers at once find no modules, one makes them.
programs="basic.f90 modern.f90 sections.f90 elements.F90 windows.f90 names.f90 connect.f90 spawn.f90 faults.f90 old.f"
for file in $programs; do
    mkdir "$work/in-$file"
    # Hundreds of calls in one line each: they would be optimized for half a minute.
    case $file in *.F90) level=-O0 ;; *) level=-O2 ;; esac
    "$mpifort" $level -g -Wall -ffree-line-length-none -J "$work/in-$file" "tests/fortran/$file" -o "$work/${file%.*}" >"$work/$file.log" 2>&1 &
done
wait
# runs NAME DIRECTORY FILE: what was compiled of it, with as many processes as it asks for.
runs() {
    for ranks in $(sed -n 's/^! ranks: //p' "tests/fortran/$3"); do
        expect "$1: $3 with $ranks processes" run -n "$ranks" "$2/${3%.*}"
    done
}
for file in $programs; do
    expect "$file compiles" test -x "$work/${file%.*}"
    if [ -x "$work/${file%.*}" ]; then runs gfortran "$work" "$file"; else tail -20 "$work/$file.log"; fi
done
expect "one directory of modules, whole" sh -c "set -- '$work'/cache/isthmus/fortran/gfortran-*[!k]; [ \$# = 1 ] && [ -f \"\$1/mpi_f08.mod\" ]"
# flang 16 has no arguments of any type and rank, so neither sections nor mpi_f08.
for flang in $(some 0 flang-new-16 flang-new-19 flang-22); do
    have "$flang" || { say "skipped: the programs with $flang, which is not here"; continue; }
    mkdir "$work/$flang"
    # Debian's flang 16 does not look for its own libraries where they are.
    LIBRARY_PATH=$(dirname "$(readlink -f "$(command -v "$flang")")")/../lib
    export LIBRARY_PATH
    case $flang in *-16) chosen="basic.f90 old.f" ;; *) chosen=$programs ;; esac
    for file in $chosen; do
        expect "$flang: $file compiles" env ISTHMUS_FC="$flang" "$mpifort" -O2 -J "$work/$flang" "tests/fortran/$file" -o "$work/$flang/${file%.*}"
        runs "$flang" "$work/$flang" "$file"
    done
    expect "$flang: mpif.h stops longer INTEGERs" refuses env ISTHMUS_FC="$flang" "$mpifort" -fdefault-integer-8 -c tests/fortran/old.f -o "$work/old.o"
    unset LIBRARY_PATH
done
# A copy of the compiler that would be used after the call: the program ends, with the reason.
cat >"$work/copied.f90" <<'END'
use mpi_f08
type element
  integer :: number
  real(8) :: value
end type
type(element), allocatable :: a(:)
type(MPI_Request) :: request
call MPI_Init()
allocate (a(3))
call MPI_Irecv(a%value, 3, MPI_REAL8, 0, 0, MPI_COMM_WORLD, request)
end
END
expect "a component in a nonblocking receive" "$mpifort" -J "$work" "$work/copied.f90" -o "$work/copied"
expect "it is refused with the reason" says "MPI_Irecv: gfortran passes a copy of argument buf" run -n 1 "$work/copied"
for example in examples/*.f90; do
    expect "$example compiles" "$mpifort" -O1 -J "$work" "$example" -o "$work/example"
    expect "$example runs" run -n 2 "$work/example"
done

# mpif.h in both forms, strictly.
printf '      program f\n      implicit none\n      include "mpif.h"\n      integer i\n      call mpi_init(i)\n      call mpi_finalize(i)\n      end\n' >"$work/form.f"
sed 's/^ *//' "$work/form.f" >"$work/free.f90"
expect "mpif.h in fixed form" "$mpifort" -c "$work/form.f" -o "$work/form.o"
expect "mpif.h in free form" "$mpifort" -c -std=f2008 "$work/free.f90" -o "$work/free.o"

# C and Fortran in one program, linked by either.
expect "the part in Fortran" "$mpifort" -c -J "$work" tests/fortran/mixed_part.f90 -o "$work/part.o"
expect "the part in C" "$build/bin/mpicc" -c tests/fortran/mixed.c -o "$work/mixed.o"
expect "linked by mpifort" "$mpifort" "$work/mixed.o" "$work/part.o" -o "$work/mixed"
expect "a program in C and Fortran" run -n 3 "$work/mixed"
expect "linked by mpicc" "$build/bin/mpicc" "$work/mixed.o" "$work/part.o" -lmpifort_abi -lgfortran -o "$work/mixed2"
expect "a program in C and Fortran, linked by mpicc" run -n 2 "$work/mixed2"
expect "the library in C" "$build/bin/mpicc" -DMIXED_LIBRARY -fPIC -shared tests/fortran/mixed.c -o "$work/libmixed.so" -lmpifort_abi
expect "a program in Fortran with it" "$mpifort" -J "$work" tests/fortran/mixed_main.f90 -L"$work" -Wl,-rpath,"$work" -lmixed -o "$work/mixed3"
expect "a program in Fortran with a library in C" run -n 3 "$work/mixed3"

# Statuses of Fortran in C: mpi.h alone, in a program with the Fortran library, and mpi_f2c.h.
expect "statuses with mpi.h" "$build/bin/mpicc" -Wall -Wextra -Werror -pedantic -std=c99 tests/fortran/statuses.c -o "$work/statuses"
expect "a program in C alone" run -n 2 "$work/statuses"
for options in "" -DSTATUSES_F2C; do
    expect "statuses with Fortran $options" "$build/bin/mpicc" -Wall $options tests/fortran/statuses.c -lmpifort_abi -o "$work/statuses"
    expect "a program with Fortran $options" run -n 2 "$work/statuses"
done

# Shared libraries in Fortran that a program in C loads.
for part in one two; do
    expect "a shared library" "$mpifort" -cpp -DPART=part_$part -fPIC -shared tests/fortran/loaded.f -o "$work/$part.so"
done
expect "a program that loads them" "$build/bin/mpicc" tests/fortran/loaded.c -o "$work/loaded" -ldl
expect "their COMMON blocks are known" run -n 2 "$work/loaded" "$work/one.so" part_one_ "$work/two.so" part_two_

# A profiling library in C sees each call once, and none that the layer makes for itself.
cat >"$work/expected" <<'END'
MPI_Allreduce 1
MPI_Barrier 1
MPI_Buffer_attach 1
MPI_Buffer_detach 1
MPI_Comm_create_errhandler 1
MPI_Comm_create_keyval 1
MPI_Comm_delete_attr 1
MPI_Comm_dup 1
MPI_Comm_free 1
MPI_Comm_free_keyval 1
MPI_Comm_get_attr 1
MPI_Comm_get_name 1
MPI_Comm_rank 1
MPI_Comm_set_attr 1
MPI_Comm_set_errhandler 1
MPI_Errhandler_free 1
MPI_Finalize 1
MPI_Ibsend 1
MPI_Info_create 1
MPI_Info_free 1
MPI_Info_get_string 1
MPI_Info_set 1
MPI_Init 1
MPI_Irecv 1
MPI_Op_create 1
MPI_Op_free 1
MPI_Reduce 1
MPI_Sendrecv 1
MPI_Type_contiguous 1
MPI_Type_free 1
MPI_Type_size 1
MPI_Waitall 1
END
seen() {
    set -- "$work"/calls.*
    [ $# = 2 ] || return 1
    for file; do
        LC_ALL=C sort "$file" | diff "$work/expected" - || return 1
        rm "$file"
    done
}
cargo run -q -p xtask -- profiler >"$work/profiler.c" || exit 1
expect "the profiling library" "$build/bin/mpicc" -O1 -fPIC -shared -Wno-deprecated-declarations "$work/profiler.c" -o "$work/libprofiler.so"
expect "known.f90 compiles" "$mpifort" -J "$work" tests/fortran/known.f90 -o "$work/known"
expect "preloaded" run -n 2 env LD_PRELOAD="$work/libprofiler.so" PROFILE="$work/calls" "$work/known"
expect "calls as they were made, preloaded" seen
expect "linked before" "$mpifort" -J "$work" tests/fortran/known.f90 -L"$work" -Wl,-rpath,"$work" -profile=profiler -o "$work/known2"
expect "linked before the library" run -n 2 env PROFILE="$work/calls" "$work/known2"
expect "calls as they were made, linked before" seen

# Wrappers.
for name in $(some 2 mpifort mpif77 mpif90 mpifort_abi); do
    expect "$name -show" says "gfortran .*-lmpifort_abi" "$build/bin/$name" -show
    expect "$name -link_info" says -lmpifort_abi "$build/bin/$name" -link_info
    expect "$name --version" says "GNU Fortran" "$build/bin/$name" --version
done
expect "-f90=" says "^other " "$build/bin/mpif90" -f90=other -show -c a.f90
expect "ISTHMUS_FC" says "^gfortran -O1 " env ISTHMUS_FC="gfortran -O1" "$mpifort" -show
expect "MPICH_FC" says "^gfortran -O2 " env MPICH_FC="gfortran -O2" "$mpifort" -show
for option in $(some 1 -finteger-4-integer-8 -freal-8-real-4 -fsecond-underscore -ff2c); do
    expect "$option is refused" refuses "$mpifort" $option -c "$work/form.f" -o "$work/form.o"
done
# Longer REALs and INTEGERs: right with kinds that the program names, said once a command, and mpif.h stops longer INTEGERs.
for options in -fdefault-real-8 "-fdefault-real-8 -fdefault-double-8" -freal-4-real-8; do
    [ -n "$all" ] || [ "$options" = -fdefault-real-8 ] || continue
    expect "$options with mpif.h" "$mpifort" $options -w tests/fortran/longer.f -o "$work/longer"
    expect "$options: MPI_REAL of mpif.h is as long" "$work/longer"
done
expect "mpif.h without the wrapper" gfortran -fdefault-real-8 -fallow-argument-mismatch -w "-I$build/include" \
    tests/fortran/longer.f "-L$build/lib" "-Wl,-rpath,$build/lib" -lmpifort_abi -lmpi_abi -o "$work/longer"
expect "MPI_REAL is as long" "$work/longer"
long="-fdefault-real-8 -fdefault-double-8 -fdefault-integer-8"
for compiler in "gfortran $long" "gfortran"; do
    [ -n "$all" ] || [ "$compiler" != gfortran ] || continue
    expect "kinds with $compiler" env ISTHMUS_FC="$compiler" "$mpifort" $long -ffree-line-length-none tests/fortran/kinds.f90 -o "$work/kinds"
    for ranks in 1 2; do expect "$ranks processes with longer kinds" run -n $ranks "$work/kinds"; done
done
echo "-O1 '-fdefault-integer-8' -fdefault-real-8" >"$work/options"
expect "what to mind with REALs" says "note: with -fdefault-real-8, do not use MPI_REAL" "$mpifort" "@$work/options" -c "$work/form.f" -o "$work/form.o"
expect "what to mind with INTEGERs" says "note: with -fdefault-integer-8, declare" "$mpifort" "@$work/options" -c "$work/form.f" -o "$work/form.o"
expect "nothing to mind in linking" refuses says "note:" "$mpifort" -fdefault-real-8 "$work/form.o" -o "$work/form"
expect "mpif.h stops longer INTEGERs" refuses "$mpifort" -fdefault-integer-8 -c "$work/form.f" -o "$work/form.o"

# Names of the libraries of other MPIs.
for names in "-lmpifort -lmpi" "-lmpichf90 -lfmpich -lmpich" "-lmpichfort -lmpich" "-lmpi_usempif08 -lmpi_usempi_ignore_tkr -lmpi_mpifh -lmpi" "-lmpi_usempi -lmpi_f90 -lmpi_f77"; do
    case $all$names in -lmpifort* | -lmpichfort* | "-lmpi_usempi "*) continue ;; esac
    expect "$names" "$mpifort" tests/fortran/known.f90 -J "$work" $names -o "$work/named"
    expect "$names links ours only" sh -c "! LC_ALL=C readelf -d '$work/named' | grep NEEDED | grep -e 'libmpi' | grep -v -e libmpifort_abi.so.1 -e libmpi_abi.so.1"
done
expect "a program linked by their names" run -n 2 "$work/named"
expect "no cache can be written" env XDG_CACHE_HOME=/dev/null TMPDIR="$work" "$mpifort" -J "$work" -c tests/fortran/known.f90 -o "$work/known.o"
expect "modules among the temporary files" sh -c "set -- '$work'/isthmus-*/fortran/gfortran-*/mpi_f08.mod; [ -f \"\$1\" ]"
expect "isthmus fortran --to" "$build/bin/isthmus" fortran --compiler gfortran --to "$work/modules"
expect "its modules" test -f "$work/modules/mpi.mod"
mkdir "$work/there"
expect "isthmus fortran --to a directory that exists" "$build/bin/isthmus" fortran --to "$work/there"
expect "its modules" test -f "$work/there/mpi_f08.mod"
expect "without a known compiler mpif.h is left" says "mpif.h only" "$mpifort" -fc=true -show a.f

if have pkg-config; then
    # A tree of its own, as an administrator installs it.
    mkdir -p "$work/tree/bin" && cp "$build/bin/isthmus" "$work/tree/bin" && cp -R "$build/lib" "$build/include" "$build/share" "$work/tree"
    expect "modules for everybody" "$work/tree/bin/isthmus" fortran
    expect "pkg-config finds them" sh -c "gfortran tests/fortran/known.f90 -J '$work' -o '$work/known3' \$(PKG_CONFIG_PATH='$work/tree/lib/pkgconfig' pkg-config --cflags --libs mpi-fort) && '$work/known3'"
    [ "$build" = "${build% *}" ] || say "skipped: pkg-config in a directory with a space: pkgconf does not quote what it does not know, such as -Wl,-rpath"
    [ "$build" != "${build% *}" ] || expect "pkg-config" sh -c "gfortran '$work/form.f' -o '$work/pc' \$(PKG_CONFIG_PATH='$build/lib/pkgconfig' pkg-config --cflags --libs mpi-fort) && '$work/pc'"
fi
if have cmake && have make; then
    expect "CMake finds mpif.h and the modules" env PATH="$build/bin:$PATH" cmake -S tests/fortran/cmake -B "$work/cmake"
    expect "CMake builds" cmake --build "$work/cmake"
    expect "the program runs" run -n 2 "$work/cmake/found"
fi
rm -rf "$work"
say "$passed passed, $failed failed"
[ $failed -eq 0 ]
