#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Parts of one world that are started by hand, with real programs: ranks and programs of all parts, collective operations over them, one after the
# other and at once; a trace of each part, and of both together; a part with a ticket and a home of its own.
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

# Both on one time line: arrows lead from part to part, and it is said what the clocks are right to.
isthmus trace second.json first.json --output both.json 2>clocks || { cat clocks; fail "isthmus trace"; }
grep -q "the clock of 'second.json' was .* 'first.json', right to" clocks || { cat clocks; fail "nothing is said of the clocks"; }
python3 "$top/tests/system/trace-rules.py" both.json || fail "viewers will not show all of the trace of both parts"
python3 - <<'P' || fail "the trace of both parts"
import json
both, parts = json.load(open("both.json")), [json.load(open(f)) for f in ("first.json", "second.json")]
events = both["traceEvents"]
count = lambda trace, phase: sum(e["ph"] == phase for e in trace["traceEvents"])
assert count(both, "X") == sum(count(p, "X") for p in parts)
ends = {}
for e in events:
    if e["ph"] in "sf":
        ends.setdefault(e["id"], {})[e["ph"]] = e["pid"]
assert any({(2 in (e["s"], e["f"])), e["s"] != e["f"]} == {True} for e in ends.values() if len(e) == 2), "no arrow between the parts"
P
isthmus trace first.json first.json >twice 2>&1 && fail "one part twice"
grep -q 'both have rank 0' twice || { cat twice; fail "what is said of one part twice"; }
isthmus trace first.json --output first.json 2>over && fail "a trace was overwritten"
grep -q 'would be overwritten' over || { cat over; fail "what is said of that"; }

# Another home: only the ticket leads there.
export XDG_CACHE_HOME="$PWD/here"
timeout 100 isthmus run --world sea=1of2 -n 2 ./parts 3 2 >first 2>&1 </dev/null & first=$!
for i in $(seq 300); do [ -s here/isthmus/tickets/sea ] && break; sleep 0.1; done
cp -p here/isthmus/tickets/sea ticket || { cat first; fail "no ticket"; }
XDG_CACHE_HOME="$PWD/there" timeout 100 isthmus join ticket -n 1 ./parts 3 2 >second 2>&1 </dev/null & second=$!
ended $first first 2
ended $second second 1
[ -z "$(ls here/isthmus/tickets)" ] || fail "the ticket is still there"
