#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests of fault tolerance against Isthmus: those that the authors of ULFM keep (ICLDisco/ulfm-testing: api, stress), or MPICH's.
#
#   sh conformance/ulfm/run.sh --source DIRECTORY [--sites] [PROGRAM...]
#
# DIRECTORY is a copy of https://github.com/ICLDisco/ulfm-testing, or the directory test/mpi of MPICH's source. Each row of programs.tsv (mpich/programs.tsv)
# is run: on this machine, or, with --sites, spread over two sites of the testbed. PROGRAM: only these (revoke isend-err ...). A program is
# good when it ends with the status of its row, in time, and has printed the row's words. Exit status 0: all are good.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=ulfm
. "$here/../common.sh"
source='' sites=''
options 'source= sites *' "$@"
only=$words
table=$here
[ ! -d "$source/ft" ] || table=$here/mpich
[ -d "$source/api" ] || [ -d "$source/ft" ] || usage
source=$(cd "$source" && pwd)
need gcc gcc
install_missing
need_mpicc "$bin/mpicc"
mkdir -p "$work/bin"
PATH=$bin:$PATH
export PATH
if [ -n "$sites" ] && [ -z "${ULFM_IN_TESTBED:-}" ]; then
    # shellcheck disable=SC2086 # names are words
    ULFM_IN_TESTBED=1 exec isthmus-testbed run --sites 2x1 --rtt 2ms -- sh "$here/run.sh" --source "$source" --sites $only
fi
# What a source needs to be compiled as it was meant.
hint() {
    case $table/$name in
    "$here/mpich/"*) hint="-I $here/mpich -include mpitest.h" ;;
    # It uses its error handler before it has declared it.
    */isend-err)
        printf '#include <mpi.h>\nstatic void verbose_errhandler(MPI_Comm *, int *, ...);\n' >"$work/handler.h"
        hint='-include handler.h'
        ;;
    # A process kills itself right behind an operation of all, and the program wants that to be over elsewhere, too: it dies when the others have long
    # left it. One of the two has a name that no library has.
    */getack | */shrink)
        printf '#include <signal.h>\n#include <unistd.h>\nstatic int later(int number) { sleep(1); return raise(number); }\n#define raise later\n' >"$work/later.h"
        hint='-DMPI_ERR_PROC_FAILED=MPIX_ERR_PROC_FAILED -include later.h'
        ;;
    *) hint= ;;
    esac
}
tab=$(printf '\t')
good=0 bad=0 left=0
while IFS="$tab" read -r name where ranks seconds status words arguments environment why; do
    case $name in '' | \#*) continue ;; esac
    case " $only " in *[a-z]*) case " $only " in *" $name "*) ;; *) continue ;; esac ;; esac
    if [ "$where" = none ] || { [ "$where" = node ] && [ -n "$sites" ]; } || { [ "$where" = sites ] && [ -z "$sites" ]; }; then
        say "left out: $name: $why"
        left=$((left + 1))
        continue
    fi
    file=$(ls "$source/api/$name.c" "$source/stress/$name.c" "$source/ft/$name.c" 2>/dev/null | head -n 1)
    hint
    # shellcheck disable=SC2086 # options are words
    (cd "$work" && mpicc -std=gnu99 -O1 -w $hint "$file" -o "bin/$name" -lm) >"$work/$name.build" 2>&1 || { cat "$work/$name.build" >&2; say "$name cannot be built"; bad=$((bad + 1)); continue; }
    place="-n $ranks"
    [ -z "$sites" ] || place="--site home:$(((ranks + 1) / 2)) --site b1:$((ranks / 2))"
    [ "$environment" = - ] && environment=
    [ "$arguments" = - ] && arguments=
    got=0
    # shellcheck disable=SC2086 # options, arguments and variables are words
    (cd "$work/bin" && exec env $environment timeout -k 10 "$seconds" isthmus run --on-loss go-on $place "./$name" $arguments) </dev/null >"$work/$name.out" 2>"$work/$name.err" || got=$?
    if [ "$got" = "$status" ] && { [ "$words" = - ] || grep -q "$words" "$work/$name.out"; }; then
        good=$((good + 1))
    else
        bad=$((bad + 1))
        say "$name: status $got and not $status, or no '$words'; all output: $work/$name.out, $name.err"
        tail -n 3 "$work/$name.err" >&2
    fi
done <"$table/programs.tsv"
echo "ulfm: $good good, $bad bad, $left left out"
[ $bad = 0 ]
