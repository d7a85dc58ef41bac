#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Parts of one world that are started by hand, with real programs: ranks and programs of all parts, collective operations over them, one after the
# other and at once; a trace of each part; a part with a ticket and a home of its own.
. "$(dirname "$0")/common.sh"
for tool in isthmus mpicc; do command -v $tool >/dev/null 2>&1 || skip "no $tool in PATH"; done
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -I"$top/tests/c" "$top/tests/c/parts.c" -o parts || fail "mpicc parts.c"

# Ends well, and its processes have said so many lines.
ended() {
    wait "$1" || { tail -n 20 "$2"; fail "$2 ended badly"; }
    lines=$(grep -c "all is well" "$2")
    [ "$lines" -eq "$3" ] || { cat "$2"; fail "$2 has $lines lines instead of $3"; }
}

for round in 1 2 3; do
    timeout 100 isthmus run --world sea=3of3 -n 1 ./parts 6 3 >third 2>&1 </dev/null & third=$!
    timeout 100 isthmus run --world sea=1of3 -n 2 ./parts 6 3 >first 2>&1 </dev/null & first=$!
    timeout 100 isthmus run --world sea=2of3 -n 3 ./parts 6 3 >second 2>&1 </dev/null & second=$!
    ended $first first 2
    ended $second second 3
    ended $third third 1
done

# Each part has a trace of its own processes.
timeout 100 isthmus run --world sea=1of2 --trace first.json -n 2 ./parts 3 2 >first 2>&1 </dev/null & first=$!
timeout 100 isthmus run --world sea=2of2 --trace second.json -n 1 ./parts 3 2 >second 2>&1 </dev/null & second=$!
ended $first first 2
ended $second second 1
for trace in 'first 0 1' 'second 2'; do
    # shellcheck disable=SC2086 # words
    set -- $trace
    file=$1.json
    shift
    named=$(grep -o '"rank [0-9]* ([^)]*)"' "$file" | sed 's/"rank \([0-9]*\).*/\1/' | sort -u | tr '\n' ' ')
    [ "$named" = "$* " ] || fail "$file has ranks $named"
    grep -q '"ph":"X"' "$file" && grep -q right_to_us "$file" || fail "$file has no messages"
done

# Another home: only the ticket leads there.
export XDG_CACHE_HOME="$PWD/here"
timeout 100 isthmus run --world sea=1of2 -n 2 ./parts 3 2 >first 2>&1 </dev/null & first=$!
for i in $(seq 300); do [ -s here/isthmus/tickets/sea ] && break; sleep 0.1; done
cp -p here/isthmus/tickets/sea ticket || { cat first; fail "no ticket"; }
XDG_CACHE_HOME="$PWD/there" timeout 100 isthmus join ticket -n 1 ./parts 3 2 >second 2>&1 </dev/null & second=$!
ended $first first 2
ended $second second 1
[ -z "$(ls here/isthmus/tickets)" ] || fail "the ticket is still there"
