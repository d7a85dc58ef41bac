#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Names of ports between jobs of the user on this machine, with launchers and without: who finds what, and that a name
# goes with its job, whichever way that ends.
. "$(dirname "$0")/common.sh"
for tool in isthmus mpicc; do
    command -v "$tool" >/dev/null 2>&1 || skip "no $tool in PATH"
done
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME
mpicc -std=c11 -O2 "$top/tests/system/names.c" -o names || fail "mpicc names.c"
run() { timeout -k 5 60 "$@"; }
# finds WHAT COMMAND...: what it prints.
finds() {
    what=$1
    shift
    found=$(run "$@" 2>&1 </dev/null)
    [ "$found" = "$what" ] || fail "$*: '$found' instead of '$what'"
}
# publishes PID-FILE COMMAND...: in the background, until its input, the pipe `hold`, is closed.
publishes() {
    rm -f hold out
    mkfifo hold
    timeout -k 5 120 "$@" <hold >out 2>&1 &
    publisher=$!
    exec 3>hold
    while ! grep -q published out; do
        kill -0 $publisher 2>/dev/null || { cat out; fail "$* ended"; }
        sleep 0.05
    done
}
ends() {
    exec 3>&-
    wait $publisher
}

# A job for all jobs: another job and a program without a launcher find it, and it goes with the job.
publishes isthmus run -n 2 ./names publish ocean 'a port' user
finds 'port a port' isthmus run -n 1 ./names find ocean
finds 'port a port' ./names find ocean
finds 'unknown 1' isthmus run -n 1 ./names find ocean job
run isthmus run -n 1 ./names publish ocean other user </dev/null >taken 2>&1 && fail "two jobs have one name"
grep -q '^class ' taken || fail "a taken name: $(cat taken)"
run ./names publish ocean other user </dev/null >taken 2>&1 && fail "a program alone takes the name of a job"
isthmus names >list || fail "isthmus names"
grep -q '^ocean *user .* a port$' list || fail "isthmus names: $(cat list)"
isthmus names --json | grep -q '"scope": *"user"' || fail "isthmus names --json: $(isthmus names --json)"
[ "$(stat -c %a "$XDG_CACHE_HOME/isthmus/names")" = 700 ] || fail "others can see the names"
ends || { cat out; fail "the publishing job"; }
finds 'unknown 1' isthmus run -n 1 ./names find ocean
[ -z "$(find "$XDG_CACHE_HOME/isthmus/names" -type f)" ] || fail "left: $(find "$XDG_CACHE_HOME/isthmus/names" -type f)"
echo "a name of a job: found by another job and by a program without a launcher, and gone with its job"

# For its own job: nobody else finds it, and the list has it.
publishes isthmus run -n 2 ./names publish lake 'p' job
finds 'unknown 1' isthmus run -n 1 ./names find lake
isthmus names | grep -q '^lake *job ' || fail "isthmus names: $(isthmus names 2>&1)"
ends || fail "the publishing job"

# A launcher that is killed takes its names along.
publishes isthmus run -n 1 ./names publish ocean p user
kill -KILL "$(isthmus ps --json | sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' | head -1)"
ends
finds 'unknown 1' ./names find ocean
[ "$(isthmus names 2>&1)" = "isthmus: no names are published on this machine" ] || fail "isthmus names: $(isthmus names 2>&1)"
echo "a launcher that was killed: its name is given to nobody"

# Without a launcher: other programs and jobs find it; SIGKILL takes it along.
publishes ./names publish river 'alone'
finds 'port alone' ./names find river
finds 'port alone' isthmus run -n 2 ./names find river
exec 3>&-
wait $publisher || fail "the publishing program"
finds 'unknown 1' ./names find river
publishes sh -c 'echo $$ >pid; exec ./names publish river alone'
kill -KILL "$(cat pid)"
ends
finds 'unknown 1' ./names find river
echo "names of programs without a launcher: found by all, and gone with their programs"
chmod 755 "$XDG_CACHE_HOME/isthmus/names"
run ./names publish x y user </dev/null >refused 2>&1 && fail "names in a place that others see"
echo "a place that others can see is not used"
