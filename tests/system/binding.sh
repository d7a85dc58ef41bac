#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Processes are bound as the options say, by both commands, on top of another MPI too; what cannot be is refused with what to do.
. "$(dirname "$0")/common.sh"
for tool in isthmus mpiexec; do
    command -v "$tool" >/dev/null 2>&1 || skip "no $tool in PATH"
done
# The processors that this test may use; what follows is right for one hardware thread a core.
allowed=$(awk '/^Cpus_allowed_list/ { n = split($2, ranges, ","); for (i = 1; i <= n; i++) { m = split(ranges[i], ends, "-"); for (c = ends[1]; c <= ends[m]; c++) printf "%d ", c } }' /proc/self/status)
# shellcheck disable=SC2086 # words
set -- $allowed
[ $# -ge 2 ] || skip "one processor only"
first=$1 second=$2 count=$#
for cpu in $allowed; do
    siblings=$(cat "/sys/devices/system/cpu/cpu$cpu/topology/thread_siblings_list" 2>/dev/null || echo "$cpu")
    [ "$siblings" = "$cpu" ] || skip "cores have several hardware threads"
done

# said WORDS...: runs a job of two processes that do nothing and gives the processors of process 0 and 1.
said() {
    timeout -k 5 60 "$@" true </dev/null >out 2>&1 || { cat out; fail "$*: exit status $?"; }
    sed -n 's/.*isthmus: process \([01]\) on [^ ]*: processors \(.*\)/\1 \2/p' out | sort | cut -d ' ' -f 2 | tr '\n' ' '
}
refused() {
    pattern=$1
    shift
    timeout -k 5 60 "$@" true </dev/null >out 2>&1 && fail "$* was not refused"
    grep -q -e "$pattern" out || { cat out; fail "$*: the message lacks '$pattern'"; }
}
is() { [ "$1" = "$2" ] || { cat out; fail "$3: processors '$1', not '$2'"; }; }

is "$(said isthmus run -n 2 --bind-to core --report-bindings)" "$first $second " "bound to cores"
is "$(said mpiexec -n 2 -bind-to hwthread -report-bindings)" "$first $second " "bound to hardware threads"
all=$(echo "$allowed" | sed 's/ *$//; s/ /,/g')
is "$(said mpiexec -n 2 --bind-to none --report-bindings)" "$all $all " "not bound"
is "$(said mpiexec -n 2 --map-by slot:oversubscribe --report-bindings)" "$(said mpiexec -n 2 --report-bindings)" "mapped by slot"
is "$(said mpiexec -n 2 --map-by core --report-bindings)" "$first $second " "mapped by core"
is "$(said mpiexec -n 2 -bycore -bind-to-core --report-bindings)" "$first $second " "the same in old words"
is "$(said isthmus run -n 2 --map-by ppr:2:core --report-bindings)" "$first $first " "two on a core"
is "$(said mpiexec -n 2 --map-by ppr:1:core:pe=1 --report-bindings)" "$first $second " "one on a core"
is "$(said isthmus run --site "home:2,map_by=core,map_each=2" --report-bindings)" "$first $first " "two on a core, by options of the site"
refused "have room for $count" mpiexec -n $((count + 1)) --map-by ppr:1:core
refused "user:0,1', which Isthmus does not support" mpiexec -n 2 --bind-to user:0,1
refused "not known here" mpiexec -host a,b --map-by ppr:1:socket
# More processes than cores, and nobody has said that each has one of its own.
timeout -k 5 60 mpiexec -n $((count + 1)) --map-by core true || fail "more processes than cores"
is "$(said isthmus run --site "home:2,bind_to=core" --report-bindings)" "$first $second " "bound by an option of the site"
is "$(said taskset -c "$second" isthmus run -n 2 --report-bindings)" "$second $second " "two on one processor"
is "$(said isthmus run --ppn 2 --bind-to core --report-bindings)" "$first $second " "--ppn"

# Several processors for each process, for its threads.
both=$(echo $allowed | cut -d ' ' -f 1,2 | tr ' ' ',')
is "$(said mpiexec -n 1 --map-by slot:pe=2 --bind-to hwthread --report-bindings | tr -d ' ')" "$both" "two processors for a process"
is "$(said isthmus run -n 1 --map-by core:pe=2 --bind-to hwthread --report-bindings | tr -d ' ')" "$both" "the same of isthmus run"
refused "cannot each be bound to $count .* of their own" mpiexec -n 2 --map-by "node:pe=$count" --bind-to hwthread
is "$(said mpiexec -n 2 --map-by slot:pe=2 --bind-to none --report-bindings)" "$all $all " "pe without binding"
refused "fewer processes there" mpiexec -n $((count + 1)) --bind-to core
refused "did you mean 'socket'" isthmus run -n 2 --bind-to sockets
refused "bound to nothing" isthmus run -n 2 --bind-to none --map-by core
refused "3 more than there is room for" isthmus run -n 5 --ppn 2

# Processes that share processors are told for how many threads there is room. What is said stays.
# threads WORDS...: what the processes of a job find, smallest first.
threads() { timeout -k 5 60 "$@" sh -c 'echo "[${OMP_NUM_THREADS-none}]"' </dev/null 2>err | sort | tr -d '\n'; }
unset OMP_NUM_THREADS
told() { [ "$(threads "$@")" = "$wanted" ] || { cat err; fail "$*: threads $(threads "$@"), not $wanted"; }; }
share=$((count / 2))
wanted="[$share][$share]" told isthmus run -n 2
wanted="[none]" told isthmus run -n 1
wanted="[none][none]" told mpiexec -n 2 --bind-to core
wanted="[7][7]" told mpiexec -n 2 -x OMP_NUM_THREADS=7
wanted="[1][1]" told taskset -c "$second" isthmus run -n 2
export OMP_NUM_THREADS=3
wanted="[3][3]" told isthmus run -n 2
unset OMP_NUM_THREADS
cat >team.c <<'C'
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
int main(void) {
    MPI_Init(0, 0);
    printf("%d\n", omp_get_max_threads());
    MPI_Finalize();
}
C
mpicc -fopenmp team.c -o team || fail "team.c does not compile"
isthmus run -n 2 ./team >out 2>err || { cat err; fail "a program of OpenMP"; }
[ "$(tr '\n' ' ' <out)" = "$share $share " ] || { cat out; fail "threads of OpenMP"; }
[ "$(grep -c 'share the processors of a node' err)" = 1 ] || { cat err; fail "the share is said once"; }
isthmus run -n 2 -x OMP_NUM_THREADS=1 ./team >out 2>err || { cat err; fail "a program of OpenMP"; }
[ -s err ] && { cat err; fail "a note about what was said"; }

for mpi in mpich openmpi; do
    command -v "mpicc.$mpi" >/dev/null 2>&1 || { echo "without $mpi" >&2; continue; }
    bound=$(said isthmus run --site "home:2,mpi=mpiexec.$mpi" --bind-to core --report-bindings)
    is "$bound" "$first $second " "on $mpi"
done
echo "processes are bound as the options say"
