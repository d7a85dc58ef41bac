#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Counts what operations cost: a line "NAME INSTRUCTIONS SYSTEM-CALLS" each, of one call, the fewest of ROUNDS (12).
# usage: sh bench/counted.sh [--with DIR] [ROUNDS]     DIR: another MPI, with bin/mpicc and bin/mpiexec
. "$(dirname "$0")/../scripts/common.sh"
mpi=$build
if [ "${1:-}" = --with ]; then
    mpi=$2
    shift 2
fi
rounds=${1:-12}
have valgrind && have strace || { echo "skipped: no valgrind or no strace"; exit 77; }
[ -e /usr/include/valgrind/callgrind.h ] || { echo "skipped: no header of valgrind"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$mpi/bin/mpicc" -O2 -Wall bench/counted/counted.c -o "$work/counted" || die "cannot compile"

# Who waits keeps looking: waking it would count.
ISTHMUS_SPIN=10000000
export ISTHMUS_SPIN

# counted COMMAND: the program, rank 1 below this command. One program, so that they share memory.
counted() {
    {
        echo '#!/bin/sh'
        echo "under='$*' program='$work/counted'"
        # As this library, MPICH and Open MPI name a rank.
        echo 'case ${ISTHMUS_RANK:-${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-}}} in 1) exec $under $program "$@" ;; esac'
        echo 'exec $program "$@"'
    } >"$work/either"
    chmod +x "$work/either"
    timeout 900 "$mpi/bin/mpiexec" -n 2 "$work/either" "$rounds" >"$work/log" 2>&1 || {
        tail -20 "$work/log" >&2
        die "the program failed"
    }
}
counted valgrind --tool=callgrind --collect-atstart=no "--callgrind-out-file=$work/dump"
counted strace -f -qq -s 64 -o "$work/calls"

cat "$work"/dump.* | awk '
    /^desc: Trigger: Client Request: / { name = $NF }
    /^totals: / && name != "" { if (!(name in least) || $2 < least[name]) least[name] = $2; name = "" }
    END { for (name in least) printf "%s %d\n", name, least[name] }' | sort >"$work/instructions"
awk '
    /write\(-1, "mark -"/ { if (name != "" && (!(name in least) || calls < least[name])) least[name] = calls; name = ""; next }
    /write\(-1, "mark / { split($0, part, "\""); name = substr(part[2], 6); calls = 0; next }
    name != "" && !/ resumed>/ { calls++ }
    END { for (name in least) printf "%s %d\n", name, least[name] }' "$work/calls" | sort >"$work/systemcalls"
join "$work/instructions" "$work/systemcalls"
