#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Profiling libraries (MPI 5.0 section 15.2): one that defines every MPI function is preloaded into programs and linked before the
# library. Each call of the program must reach it once, calls that the library makes inside must not, and the programs of
# tests/c must work as without.
. "$(dirname "$0")/../scripts/common.sh"
[ -x "$build/bin/mpiexec" ] || sh scripts/build.sh || exit 1
limit=${ISTHMUS_TEST_LIMIT:-60}
passed=0 failed=0
work=$(mktemp -d)
library=$(readlink -f "$build/lib/libmpi_abi.so")
good() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); say "FAILED: $*"; }

cargo run -q -p xtask -- profiler >"$work/profiler.c" || exit 1
"$build/bin/mpicc" -O1 -fPIC -shared -Wall -Wno-deprecated-declarations "$work/profiler.c" -o "$work/libprofiler.so" || exit 1

# Every function of the table is defined by the tool, and exported under both names by the library, MPI_X weak.
cut -f1 spec/functions.tsv | grep '^MPI_' | sort >"$work/functions"
nm -D --defined-only "$work/libprofiler.so" | sed -n 's/.* T \(MPI_.*\)/\1/p' | sort >"$work/defined"
nm -D --defined-only "$library" | sed -n 's/.* W \(MPI_[A-Za-z0-9_]*\).*/\1/p' | sort >"$work/weak"
nm -D --defined-only "$library" | sed -n 's/.* T P\(MPI_[A-Za-z0-9_]*\).*/\1/p' | sort >"$work/strong"
for list in defined weak strong; do
    if diff "$work/functions" "$work/$list" >"$work/out"; then good; else bad "names $list are not those of the table"; head -5 "$work/out"; fi
done
# The library refers to no MPI_X through the dynamic linker, so nothing inside it can be intercepted.
if readelf -rW "$library" | grep -E ' P?MPI_[A-Z]' >"$work/out"; then bad "internal calls go through names"; head -5 "$work/out"; else good; fi

# A program whose calls are known, preloaded and linked.
cat >"$work/expected" <<'END'
MPI_Allgather 1
MPI_Allreduce 1
MPI_Barrier 1
MPI_Comm_create_keyval 1
MPI_Comm_dup 1
MPI_Comm_free 1
MPI_Comm_rank 1
MPI_Comm_set_attr 1
MPI_Comm_set_errhandler 1
MPI_Comm_size 1
MPI_Finalize 1
MPI_Ibarrier 1
MPI_Init 1
MPI_Pcontrol 1
MPI_Send 1
MPI_Wait 1
END
expect_known() {
    seen=0
    for file in "$work"/calls.*; do
        [ -e "$file" ] || continue
        seen=$((seen + 1))
        sort "$file" | diff "$work/expected" - >"$work/out" || { bad "$1: calls are not as they were made"; cat "$work/out"; return; }
        rm "$file"
    done
    if [ $seen -eq 3 ]; then good; else bad "$1: $seen of 3 processes were profiled"; fi
}
run() { timeout -k 5 "$limit" "$build/bin/mpiexec" "$@" >"$work/out" 2>&1 </dev/null; }
"$build/bin/mpicc" tests/profiling/known.c -o "$work/plain" || exit 1
run -n 3 env LD_PRELOAD="$work/libprofiler.so" PROFILE="$work/calls" "$work/plain" || { bad "preloaded"; tail -5 "$work/out"; }
expect_known "preloaded"
"$build/bin/mpicc" tests/profiling/known.c -L"$work" -Wl,-rpath,"$work" -lprofiler -o "$work/linked" || exit 1
run -n 3 env PROFILE="$work/calls" "$work/linked" || { bad "linked before"; tail -5 "$work/out"; }
expect_known "linked before the library"
"$build/bin/mpicc" -Wno-deprecated-declarations "$work/profiler.c" tests/profiling/known.c -o "$work/inside" || exit 1
run -n 3 env PROFILE="$work/calls" "$work/inside" || { bad "linked into the program"; tail -5 "$work/out"; }
expect_known "linked into the program"

# Other programs are not disturbed.
for file in tests/c/p2p.c tests/c/collectives.c tests/c/communicators.c tests/c/datatypes.c tests/c/tool.c; do
    "$build/bin/mpicc" -std=c11 -D_GNU_SOURCE -Itests/c "$file" -o "$work/program" -lm || exit 1
    if run -n 2 env LD_PRELOAD="$work/libprofiler.so" "$work/program"; then good; else bad "$file with a profiling library"; tail -5 "$work/out"; fi
done
rm -rf "$work"
say "$passed passed, $failed failed"
[ $failed -eq 0 ]
