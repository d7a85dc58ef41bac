#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What passes between sites can be seen while the job runs (isthmus top: text, JSON, Prometheus; MPI_T), directly and through gateways; a
# trace has all ranks' messages on one time line: no message arrives before it was sent, by more than the stated error of the clocks.
. "$(dirname "$0")/common.sh"
need_testbed
command -v python3 >/dev/null 2>&1 || skip "no python3"
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra "$top/tests/system/seeing.c" -o seeing || fail "mpicc seeing.c"

# see PATH: a job whose sites are connected that way, looked at while it runs.
cat >see.sh <<'S'
ISTHMUS_PATH=$1 isthmus run --trace "$1.json" --site home:2 --site b1:2 ./seeing "$PWD/stop-$1" >"$1.out" 2>"$1.err" </dev/null &
job=$!
until grep -q going "$1.out"; do kill -0 $job 2>/dev/null || exit 1; sleep 0.2; done
sleep 3
isthmus top --once --json >"$1.top" && isthmus top --once >"$1.text" && isthmus top --prometheus >"$1.prom" || exit 1
# Nobody listens for the sake of looking: as many ports as before.
touch "stop-$1"
wait $job
S
cat >look.py <<'P'
import json, re, sys
way = sys.argv[1]
top = json.load(open(way + ".top"))
links = {(l["from"], l["to"]): l for l in top["links"]}
assert set(links) == {("home", "b1"), ("b1", "home")}, links.keys()
for link in links.values():
    assert link["bytes_per_second"] > 100_000, link
    assert link["classes"]["bulk"]["bytes_per_second"] > 10 * link["classes"]["normal"]["bytes_per_second"], link
    assert 19_000 < link["round_trip_us"] < 2_000_000, link
    assert link["connections"] >= 2 and link["cuts"] == 0, link
if way == "gateway":
    trunks = {(t["from"], t["to"]): t for t in top["trunks"]}
    assert set(trunks) == {("home", "b1"), ("b1", "home")}, trunks
    for trunk in trunks.values():
        assert trunk["streams"] >= 1 and trunk["bytes_per_second"] > 100_000, trunk
values = {}
for line in open(way + ".prom"):
    if not line.startswith("#"):
        name, value = line.rsplit(" ", 1)
        values[name] = float(value)
names = [n for n in values if re.match(r'isthmus_link_sent_bytes_total\{job="[0-9a-f]+",from="home",to="b1"\}$', n)]
assert len(names) == 1 and values[names[0]] > 1e6, values
trace = json.load(open(way + ".json"))
events = trace["traceEvents"]
sent = {e["id"]: e for e in events if e["ph"] == "s"}
came = {e["id"]: e for e in events if e["ph"] == "f"}
both = sent.keys() & came.keys()
assert len(both) > 100 and len(both) >= 0.95 * len(sent), (len(sent), len(came), len(both))
error = max(c["right_to_us"] for c in trace["otherData"]["clocks"].values())
assert set(trace["otherData"]["clocks"]) == {"home", "b1"} and error < 15_000, trace["otherData"]
far = [i for i in both if (sent[i]["pid"] < 2) != (came[i]["pid"] < 2)]
assert far
early = [i for i in both if came[i]["ts"] < sent[i]["ts"] - 2 * error - 1000]
assert not early, early[:3]
times = sorted(came[i]["ts"] - sent[i]["ts"] for i in far)
middle = times[len(times) // 2]
assert 9_000 - 2 * error < middle, middle
began = sum(e["ph"] == "b" and e["name"] == "bcast" for e in events)
ended = sum(e["ph"] == "e" for e in events)
assert began > 50 and ended >= began, (began, ended)
assert any(e.get("cat") == "link" for e in events) and any(e["ph"] == "C" for e in events)
print(f"{way}: {len(both)} messages with both ends, {len(far)} between sites (median {middle / 1000:.1f} ms one way), "
      f"clocks right to {error / 1000:.2f} ms")
P
for way in direct gateway; do
    isthmus-testbed run --sites 2x1 --rtt 20ms --rate 200mbit -- sh see.sh $way ||
        { cat $way.out $way.err; fail "the job or a look at it failed ($way)"; }
    [ "$(grep -c 'counted, cuts 0' $way.out)" = 4 ] || { cat $way.out; fail "MPI_T counts nothing ($way)"; }
    python3 "$top/tests/system/trace-rules.py" $way.json || fail "viewers will not show all of the trace ($way)"
    python3 look.py $way || { cat $way.text $way.top; fail "what was seen is wrong ($way)"; }
done
cat gateway.text
