#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Jobs that go on when processes, machines and sites of theirs are lost (--on-loss go-on): the survivors end as usual, each loss is told
# once, and the status is that of the first one.
. "$(dirname "$0")/common.sh"
for tool in isthmus mpiexec mpicc; do
    command -v "$tool" >/dev/null 2>&1 || skip "no $tool in PATH"
done
mpicc -std=c11 -D_GNU_SOURCE -O2 "$top/tests/system/faults.c" -o faults || fail "mpicc faults.c"

# went_on SURVIVORS LOST STATUS WORDS: what the last job, whose status is in $status, has printed.
went_on() {
    [ "$status" = "$3" ] || fail "exit status $status and not $3: $(cat out err)"
    [ "$(grep -c "went on as one of $1\$" out)" = "$1" ] || fail "not all $1 survivors went on: $(cat out err)"
    [ "$(grep -c 'the job goes on without' err)" = "$2" ] || fail "not $2 losses are told, each once: $(cat err)"
    grep -q "error: .*$4" err || fail "the end is not '$4': $(cat err)"
}

while read -r how lost expected words; do
    timeout -k 5 60 isthmus run --on-loss go-on -n 4 ./faults "$how" "$lost" </dev/null >out 2>err
    status=$?
    went_on $((4 - lost)) "$lost" "$expected" "$words"
done <<'EOF'
signal 1 137 1 of 4 processes was lost: rank 3 (site 'home') was killed by signal 9
status 2 3 2 of 4 processes were lost; the first loss: rank . (site 'home') exited with status 3
silent 1 1 rank 3 (site 'home') exited with status 0 without calling MPI_Finalize
EOF

# The words of a job file and the variable say the same, and MPI_Abort ends all the same.
printf 'program = "./faults"\non_loss = "go-on"\n[[subjob]]\nsite = "home"\ncount = 3\n' >job.toml
timeout -k 5 60 isthmus run job.toml </dev/null >out 2>err
status=$?
went_on 2 1 137 "1 of 3 processes was lost"
ISTHMUS_ON_LOSS=go-on timeout -k 5 60 mpiexec -n 3 ./faults </dev/null >out 2>err
status=$?
went_on 2 1 137 "1 of 3 processes was lost"
timeout -k 5 60 isthmus run --on-loss go-on -n 3 ./faults abort </dev/null >out 2>err
status=$?
[ $status = 5 ] && ! grep -q 'goes on' err || fail "MPI_Abort: exit status $status: $(cat out err)"
timeout -k 5 60 isthmus run --on-loss end -n 3 ./faults </dev/null >out 2>err
status=$?
[ $status = 137 ] && ! grep -q 'goes on' err || fail "--on-loss end: exit status $status: $(cat out err)"

# A machine is lost with its agent, which takes its processes along.
timeout -k 5 60 isthmus run --on-loss go-on --site home:2 --site other=home:2 ./faults agent 2 </dev/null >out 2>err
status=$?
went_on 2 1 1 "2 of 4 processes were lost; the first loss: site 'other': "

# Operations of all kinds that wait for the dead, or begin afterwards, in shared memory and over two subjobs.
mpicc -std=c11 -D_GNU_SOURCE -O2 "$top/tests/system/faults-operations.c" -o operations || fail "mpicc faults-operations.c"
for elements in 1 1000 100000; do
    for where in '-n 4' '--site home:2 --site other=home:2'; do
        # shellcheck disable=SC2086 # several words
        timeout -k 5 60 isthmus run --on-loss go-on $where ./operations $elements </dev/null >out 2>err
        status=$?
        went_on 3 1 137 "1 of 4 processes was lost"
    done
done

# After a loss, who has the shared pointer of a file closes it and another one still asks for it; the same with a window.
mpicc -std=c11 -D_GNU_SOURCE -O2 "$top/tests/system/faults-opened.c" -o opened || fail "mpicc faults-opened.c"
for where in '-n 3' '--site home:2 --site other=home:1' '--site home:1 --site other=home:2'; do
    # shellcheck disable=SC2086 # several words
    timeout -k 5 60 isthmus run --on-loss go-on $where ./opened </dev/null >out 2>err
    status=$?
    went_on 2 1 137 "1 of 3 processes was lost"
done

# Threads that wait for anybody at the same time.
mpicc -std=c11 -D_GNU_SOURCE -O2 "$top/tests/system/faults-threads.c" -o threads -lpthread || fail "mpicc faults-threads.c"
for where in '-n 3' '--site home:1 --site other=home:2'; do
    timeout -k 5 60 isthmus run --on-loss go-on $where ./threads </dev/null >out 2>err
    status=$?
    [ $status = 137 ] && grep -q '^6 threads went on$' out || fail "threads, $where: exit status $status: $(cat out err)"
done

# Parents and children lose somebody who is of another world, has never sent anything, has not come yet, or just comes: those who are left are
# told, go on and part, and nobody waits. HOW STATUS LINES WORDS: so many lines with these words.
mpicc -std=c11 -D_GNU_SOURCE -O2 "$top/tests/system/faults-children.c" -o children || fail "mpicc faults-children.c"
while read -r how loss expected lines words; do
    timeout -k 5 60 isthmus run --on-loss "$loss" -n 3 ./children "$how" </dev/null >out 2>err
    status=$?
    [ $status = "$expected" ] && [ "$(grep -c "$words" out)" = "$lines" ] || fail "children, $how: exit status $status: $(cat out err)"
done <<'END'
waiting end 137 3 heard: .*rank 1 of site .home+1. was killed by signal 9
revoked end 0 3 parted
parent go-on 137 2 went on
apart end 137 3 went on
beginning end 142 3 went on
replaced end 137 3 went on
END

# What is seen of it: which ranks are where, who was lost and why, as text and as JSON.
: >out
timeout -k 5 60 isthmus run --name "seen-$$" -n 2 ./children held </dev/null >out 2>err &
job=$!
until [ "$(grep -c waits out)" = 2 ]; do
    kill -0 $job 2>/dev/null || fail "held children: $(cat out err)"
    sleep 0.1
done
why="rank 1 of site 'home+1' was killed by signal 9 (SIGKILL)"
isthmus where "seen-$$" >where && grep -q '4 ranks: 0-1 home, 2-3 home+1$' where && grep -q "^rank 3: lost: $why\$" where || fail "where: $(cat where)"
isthmus ps --long >ps && grep -q "home+1 .* running  *1 of 2 processes lost: $why\$" ps || fail "ps --long: $(cat ps)"
isthmus where --json "seen-$$" >where.json && grep -q "\"lost\": *\"$why\"" where.json || fail "where --json: $(cat where.json)"
isthmus ps --json >ps.json && grep -q "\"detail\": *\"1 of 2 processes lost: $why\"" ps.json || fail "ps --json: $(cat ps.json)"
isthmus top --once --interval 0.5 "seen-$$" >top && grep -q '^lost: 1 process$' top && grep -q "^  rank 3 (home+1): $why\$" top || fail "top: $(cat top)"
isthmus top --once --interval 0.5 --json "seen-$$" >top.json && grep -q "\"reason\": *\"$why\"" top.json || fail "top --json: $(cat top.json)"
! command -v python3 >/dev/null 2>&1 || python3 "$top/tests/system/schema.py" where.json ps.json top.json || fail "the JSON is not as described"
touch seen
wait $job
[ $? = 137 ] || fail "held children: $(cat out err)"
# Programs that never set an error handler begin with the one that the command line names, and children with that of their key.
mpicc -std=c11 -O2 "$top/tests/system/first-handler.c" -o first-handler || fail "mpicc first-handler.c"
for launch in "isthmus run --initial-errhandler MPI_Errors_Return -n 1" "mpiexec -initial-errhandler mpi_errors_return -n 1"; do
    timeout -k 5 60 $launch ./first-handler </dev/null >out 2>err || fail "$launch: exit status $?: $(cat out err)"
    for line in "parent mpi_errors_return return return" "went on: 1" "child mpi_errors_are_fatal fatal fatal" "child mpi_errors_abort abort abort"; do
        grep -qx "$line" out || fail "$launch: no line '$line': $(cat out err)"
    done
done
timeout -k 5 60 isthmus run -n 1 ./first-handler </dev/null >out 2>err
status=$?
[ $status = 6 ] && grep -qx "parent mpi_errors_are_fatal fatal fatal" out && ! grep -q 'went on' out || fail "without a word: exit status $status: $(cat out err)"
echo "survivors of lost processes and of a lost machine went on and ended as usual"
