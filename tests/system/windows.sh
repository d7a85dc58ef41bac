#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Windows: the lock of a process that has died goes on to who waits, what needs it is an error; shared memory over several nodes is refused,
# by name, while other windows work; no more memory than there is; memory that may not be copied; random programs on windows of all kinds
# of memory are as a model says; and nothing is left in the memory file system, however the job ended.
. "$(dirname "$0")/common.sh"
for tool in mpiexec mpicc isthmus; do
    command -v "$tool" >/dev/null 2>&1 || skip "no $tool in PATH"
done
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra "$top/tests/system/windows.c" -o windows || fail "mpicc windows.c"
mkdir shared
ISTHMUS_SHM_DIRECTORY=$work/shared
export ISTHMUS_SHM_DIRECTORY
clean() { [ -z "$(ls -A shared)" ] || { ls -R shared; fail "$1: something is left"; }; }

timeout -k 5 60 mpiexec -n 3 ./windows held </dev/null >out 2>&1
status=$?
[ $status -ne 124 ] && [ $status -ne 0 ] || { cat out; fail "held: status $status"; }
for rank in 0 1; do
    for call in writer reader; do
        grep -q "^rank $rank: $call: fine" out || { cat out; fail "rank $rank does not get the lock that a dead process had ($call)"; }
    done
    for call in complete fence; do
        grep -q "^rank $rank: $call: .*MPI_Win_$call failed.*SIGKILL" out || { cat out; fail "rank $rank does not hear in MPI_Win_$call of the process that died"; }
    done
done
clean held

timeout -k 5 60 mpiexec -n 2 ./windows large </dev/null >out 2>&1 || { cat out; fail "large: status $?"; }
for rank in 0 1; do
    grep -q "^rank $rank: large: MPI_ERR_NO_MEM: .*bytes of memory that processes share" out || { cat out; fail "rank $rank is not told that there is no memory"; }
done
clean large

for place in "mpiexec -n 2" "isthmus run --site home:1 --site second=home:1"; do
    # shellcheck disable=SC2086 # a command
    timeout -k 5 100 $place ./windows many </dev/null >out 2>&1 || { cat out; fail "many, $place: status $?"; }
    [ "$(grep -c '^rank .: many: fine' out)" = 2 ] || { cat out; fail "1,000 windows take more than 1 MiB of a process ($place)"; }
done
clean many

mpicc -std=c11 -D_GNU_SOURCE -O2 "$top/tests/windows/model.c" -o model || fail "mpicc model.c"
timeout -k 5 100 mpiexec -n 3 ./model 1 </dev/null >out 2>&1 || { cat out; fail "random programs: status $?"; }
clean model

# As in a container that forbids it.
cat >forbidden.c <<'C'
#include <errno.h>
#include <sys/types.h>
ssize_t process_vm_readv(void) { errno = EPERM; return -1; }
ssize_t process_vm_writev(void) { errno = EPERM; return -1; }
C
mpicc -shared -fPIC forbidden.c -o forbidden.so || fail "mpicc forbidden.c"
LD_PRELOAD=$work/forbidden.so timeout -k 5 60 mpiexec -n 2 ./windows refused </dev/null >out 2>&1 || { cat out; fail "refused: status $?"; }
for rank in 0 1; do
    grep -q "^rank $rank: refused: fine" out || { cat out; fail "rank $rank: memory that may not be copied"; }
done
clean refused
for program in rma windows window_errors; do
    mpicc -std=c11 -D_GNU_SOURCE -O2 -w -I"$top/tests/c" "$top/tests/c/$program.c" -o "$program-c" || fail "mpicc $program.c"
    LD_PRELOAD=$work/forbidden.so timeout -k 5 100 mpiexec -n 3 "./$program-c" </dev/null >out 2>&1 || { cat out; fail "$program without copying: status $?"; }
done

# Two sites on this machine: their processes are on nodes of their own.
timeout -k 5 60 isthmus run --site home:2 --site second=home:1 ./windows nodes </dev/null >out 2>&1 || { cat out; fail "nodes: status $?"; }
for rank in 0 1 2; do
    grep -q "rank $rank: create: fine" out || { cat out; fail "rank $rank: a window over nodes"; }
    grep -q "rank $rank: shared: MPI_ERR_RMA_SHARED: .*MPI_COMM_TYPE_SHARED" out || { cat out; fail "rank $rank: shared memory over nodes"; }
done
clean nodes
