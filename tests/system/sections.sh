#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Several programs on one machine are one subjob: their processes share memory, have the numbers of their programs, and their own directories and
# variables; by command line, by job file, spawned, on top of a machine's own MPI, and on two hosts. What is missing is named.
. "$(dirname "$0")/common.sh"
for tool in isthmus mpicc; do command -v $tool >/dev/null 2>&1 || skip "no $tool in PATH"; done
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -I"$top/tests/c" "$top/tests/system/sections.c" -o atm || fail "mpicc sections.c"
cp atm ocn
mkdir -p deep/sea

# said FILE LINE...: these lines and no others, in any order.
said() {
    file=$1
    shift
    printf '%s\n' "$@" | sort >wanted
    sort "$file" | cmp -s - wanted || { cat "$file"; fail "$file: not what was expected"; }
}

timeout 100 mpiexec -n 2 -x GRID=T63 ./atm 0 5 5 : -n 2 -wdir deep/sea ../../ocn 1 5 5 : -n 1 ./atm 2 5 5 >out 2>&1 || { cat out; fail "three programs"; }
here=$(basename "$PWD")
said out "atm 0 in $here with T63" "atm 1 in $here with T63" "ocn 2 in sea with none" "ocn 3 in sea with none" "atm 4 in $here with none"
ISTHMUS_STATS=1 timeout 100 mpiexec -n 2 ./atm 0 4 4 : -n 2 ./ocn 1 4 4 >out 2>joined.err || { cat out joined.err; fail "with counts"; }
ISTHMUS_STATS=1 timeout 100 mpiexec -separate -n 2 ./atm 0 2 4 : -n 2 ./ocn 1 2 4 >out 2>apart.err || { cat out apart.err; fail "-separate"; }
for operation in allgather fence; do
    [ "$(counted joined.err "$operation" local)" = 0 ] || { cat joined.err; fail "$operation: messages over TCP on one machine"; }
done
[ "$(counted apart.err allgather local)" != 0 ] || { cat apart.err; fail "-separate: no messages over TCP"; }
echo "programs on one machine share its memory, unless they are to be apart"

for line in 'mpiexec -n 2 ./atm 0 3 3 : -n 1 ./nowhere' 'mpiexec -n 1 -wdir /nowhere ./atm 0 2 2 : -n 1 ./ocn 1 2 2'; do
    $line >out 2>&1 && { cat out; fail "$line ended well"; }
    grep -q "nowhere'" out || { cat out; fail "$line: what is missing is not named"; }
    grep -q ' in ' out && { cat out; fail "$line: something ran"; }
done
mpiexec -n 1 true : -n 2 sh -c 'exit 7' >out 2>&1
[ $? = 7 ] || { cat out; fail "the exit status of the second program is lost"; }
mpiexec -l -n 1 echo one : -n 2 echo two >out 2>&1 || { cat out; fail "labels"; }
said out '[0] one' '[1] two' '[2] two'

cat >job.toml <<'T'
environment = { GRID = "T21" }
[[subjob]]
site = "home"
[[subjob.section]]
count = 2
program = "./atm"
arguments = ["0", "3", "3"]
[[subjob.section]]
program = "./ocn"
arguments = ["1", "3", "3"]
environment = { GRID = "T63" }
directory = "deep"
T
timeout 100 isthmus run job.toml >out 2>&1 || { cat out; fail "a job file"; }
said out "atm 0 in $here with T21" "atm 1 in $here with T21" "ocn 2 in deep with T63"
isthmus run --dry-run job.toml >out 2>&1 || { cat out; fail "--dry-run"; }
grep -q 'program *./ocn, rank 2' out || { cat out; fail "--dry-run does not say which ranks run a program"; }
isthmus job convert job.toml --to rsl >job.rsl 2>out || { cat out; fail "as RSL"; }
grep -q 'its programs are in one subjob' out || { cat out; fail "RSL cannot say it, and nobody says so"; }
grep -c resourceManagerContact job.rsl | grep -q 2 || { cat job.rsl; fail "as RSL: not two subjobs"; }
echo "job files say what each program is"

timeout 100 mpiexec -n 1 ./atm spawn ./ocn >out 2>&1 || { cat out; fail "MPI_Comm_spawn_multiple"; }
said out "ocn 0 in $here with none" "ocn 1 in $here with none" "ocn 2 in $here with T42"
echo "programs that are spawned at once share memory"

for vendor in mpich openmpi; do
    command -v "mpiexec.$vendor" >/dev/null 2>&1 && command -v "mpicc.$vendor" >/dev/null 2>&1 || continue
    sed "s/^site = .*/site = \"home\"\nmpi = \"mpiexec.$vendor\"/" job.toml >"$vendor.toml"
    timeout -k 5 200 isthmus run "$vendor.toml" >out 2>&1 || { cat out; fail "on top of $vendor"; }
    said out "atm 0 in $here with T21" "atm 1 in $here with T21" "ocn 2 in deep with T63"
    echo "two programs are one job of $vendor"
done

isthmus-testbed run --sites 2x1 --rtt 1ms -- ssh b1 true >testbed.log 2>&1 || { echo "no testbed here, hosts not tried"; exit 0; }
cat >run.sh <<'S'
set -eu
mpiexec -host a1 -n 2 ./atm 0 4 6 : -host a1 -n 2 ./ocn 1 4 6 : -host b1 -n 2 ./atm 2 2 6 >hosts.out
mpiexec -host b1 -n 1 ./atm 0 3 3 : -host b1 -n 2 -wdir deep/sea ./ocn 1 3 3 >far.out
S
timeout 200 isthmus-testbed run --sites 2x1 --rtt 5ms -- sh run.sh >out 2>&1 || { cat out ./*.out; fail "on two hosts"; }
[ "$(wc -l <hosts.out)" = 6 ] && [ "$(grep -c 'in sea' far.out)" = 2 ] || { cat hosts.out far.out; fail "on two hosts: what the programs say"; }
echo "hosts have a subjob each, whatever they run"
