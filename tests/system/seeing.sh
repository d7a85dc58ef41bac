#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What passes between sites can be seen while the job runs (isthmus top: text, JSON, Prometheus; MPI_T), directly and through gateways, and
# where the time of its processes went; a
# trace has all ranks' messages on one time line: no message arrives before it was sent, by more than the stated error of the clocks.
. "$(dirname "$0")/common.sh"
need_testbed
command -v python3 >/dev/null 2>&1 || skip "no python3"
for program in seeing spent weighed; do
    mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra "$top/tests/system/$program.c" -o $program || fail "mpicc $program.c"
done

# see PATH: a job whose sites are connected that way, looked at while it runs.
cat >see.sh <<'S'
ISTHMUS_PATH=$1 isthmus run --trace "$1.json" --site home:2 --site b1:2 ./seeing "$PWD/stop-$1" >"$1.out" 2>"$1.err" </dev/null &
job=$!
until grep -q going "$1.out"; do kill -0 $job 2>/dev/null || exit 1; sleep 0.2; done
sleep 3
isthmus top --once --json >"$1.top" && isthmus top --once >"$1.text" && isthmus top --prometheus >"$1.prom" &&
    isthmus ps --json >ps.json && isthmus where --json >where.json && isthmus links --json >links.json || exit 1
[ "$1" = gateway ] || python3 screen.py || exit 1
# Nobody listens for the sake of looking: as many ports as before.
touch "stop-$1"
wait $job
S
# The screen of top: whatever ends it, the terminal is as it was before.
cat >screen.py <<'P'
import fcntl, os, pty, re, select, signal, struct, sys, termios, time
def ended(how, columns=100):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 20, columns, 0, 0))
    before = termios.tcgetattr(slave)
    child = os.fork()
    if child == 0:
        os.login_tty(slave)
        os.execvp("isthmus", ["isthmus", "top", "--interval", "1"])
    seen, acted, since = b"", 0, time.time()
    while time.time() - since < 60:
        if select.select([master], [], [], 0.2)[0]:
            seen += os.read(master, 65536)
        if not acted and b"home > b1" in seen:
            assert not termios.tcgetattr(slave)[3] & (termios.ECHO | termios.ICANON), "keys are echoed"
            acted = len(seen)
            if how == "resize":
                fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 5, 44, 0, 0))
                os.kill(child, signal.SIGWINCH)
            elif isinstance(how, bytes):
                os.write(master, how)
            else:
                os.kill(child, how)
        if acted and how == "resize" and b"TRIP" not in seen[-len(seen[acted:]):] and b"LINK" in seen[acted:]:
            os.write(master, b"q")
            how = b"q"
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
    else:
        sys.exit(f"{how}: top does not end: {seen[-300:]}")
    while select.select([master], [], [], 0.2)[0]:
        seen += os.read(master, 65536)
    assert seen.startswith(b"\x1b[?1049h") and seen.endswith(b"\x1b[?1049l"), (how, seen[:80], seen[-80:])
    assert termios.tcgetattr(slave) == before, f"{how}: the terminal is not as it was"
    for line in re.sub(rb"\x1b\[[0-9?]*[a-zA-Z]", b"", seen[:acted]).split(b"\r\n"):
        assert len(line.strip()) <= columns * 2, line
    return os.waitstatus_to_exitcode(status)
assert ended(b"q") == 0
assert ended(b"\x03") == 0
assert ended("resize") == 0
assert ended(signal.SIGTERM) == 143 and ended(signal.SIGHUP) == 129
P
cat >look.py <<'P'
import json, re, sys
way = sys.argv[1]
top = json.load(open(way + ".top"))
links = {(l["from"], l["to"]): l for l in top["links"]}
assert set(links) == {("home", "b1"), ("b1", "home")}, links.keys()
for link in links.values():
    assert link["bits_per_second"] > 800_000, link
    classes = {c["class"]: c["plain_bits_per_second"] for c in link["classes"]}
    assert classes["bulk"] > 10 * classes["normal"], link
    assert 0.019 < link["round_trip_seconds"] < 2, link
    assert link["connections"] >= 2 and link["cuts"] == 0, link
if way == "gateway":
    trunks = {(t["from"], t["to"]): t for t in top["trunks"]}
    assert set(trunks) == {("home", "b1"), ("b1", "home")}, trunks
    for trunk in trunks.values():
        assert trunk["streams"] >= 1 and trunk["bits_per_second"] > 800_000, trunk
values = {}
for line in open(way + ".prom"):
    if not line.startswith("#"):
        name, value = line.rsplit(" ", 1)
        values[name] = float(value)
# What home was sent by b1 has that direction.
assert values[re.sub("sent", "received", next(n for n in values if "link_sent" in n and 'from="b1"' in n))] > 0
names = [n for n in values if re.match(r'isthmus_link_sent_bytes_total\{job="[0-9a-f]+",from="home",to="b1"\}$', n)]
assert len(names) == 1 and values[names[0]] > 1e6, values
trace = json.load(open(way + ".json"))
events = trace["traceEvents"]
sent = {e["id"]: e for e in events if e["ph"] == "s"}
came = {e["id"]: e for e in events if e["ph"] == "f"}
both = sent.keys() & came.keys()
assert len(both) > 100 and len(both) >= 0.95 * len(sent), (len(sent), len(came), len(both))
error = max(c["right_to_us"] for c in trace["otherData"]["clocks"].values())
assert set(trace["otherData"]["clocks"]) == {"home", "b1"} and error < 50_000, trace["otherData"]
far = [i for i in both if (sent[i]["pid"] < 2) != (came[i]["pid"] < 2)]
assert far
early = [i for i in both if came[i]["ts"] < sent[i]["ts"]]
assert not early, early[:3]
times = sorted(came[i]["ts"] - sent[i]["ts"] for i in far)
middle = times[len(times) // 2]
assert 9_000 - 2 * error < middle, middle
began = sum(e["ph"] == "b" and e["name"] == "bcast" for e in events)
ended = sum(e["ph"] == "e" for e in events)
assert began > 50 and ended >= began, (began, ended)
# What ranks wait for is seen by name: each waits for the messages of another site, and for the root of a broadcast.
waits = {(e["pid"], e["name"]) for e in events if e.get("cat") == "wait" and e["dur"] > 1000}
assert {rank for rank, call in waits if call == "MPI_Sendrecv"} == {0, 1, 2, 3}, waits
assert {rank for rank, call in waits if call == "MPI_Bcast"} & {2, 3}, waits
assert [e["args"]["sort_index"] for e in events if e["name"] == "process_sort_index" and e["pid"] < 4] == sorted(range(4)), "order"
assert any(e.get("cat") == "link" for e in events) and any(e["ph"] == "C" for e in events)
print(f"{way}: {len(both)} messages with both ends, {len(far)} between sites (median {middle / 1000:.1f} ms one way), "
      f"clocks right to {error / 1000:.2f} ms")
P
# Where the time went: what the library counts is what the ranks see by their own clocks, per site, call, kind and level.
cat >spent.sh <<'S'
ISTHMUS_STATS=1 isthmus run --site home:2 --site b1:2 ./spent >spent.out 2>spent.err </dev/null && isthmus report --json >spent.json || exit 1
# What is told of a link is what the network carried: both are asked before and after, when nothing passes.
isthmus run --site home:1 --site b1:1 ./weighed "$PWD/go" "$PWD/stop" >weighed.out 2>weighed.err </dev/null &
job=$!
# at WORD FILE: when that is printed and top says the same twice.
at() {
    until grep -q "$1" weighed.out; do kill -0 $job 2>/dev/null || exit 1; sleep 0.1; done
    before=
    while :; do
        isthmus top --once --json --interval 1 >"$2.top" || exit 1
        now=$(tr ',{' '\n\n' <"$2.top" | grep sent_bytes)
        [ "$now" = "$before" ] && break
        before=$now
    done
    isthmus-testbed status --json >"$2.bed" || exit 1
}
at ready began
touch go
at done ended
touch stop
wait $job
S
cat >weighed.py <<'P'
import json
def told(when):
    top = {(l["from"], l["to"]): l["sent_bytes"] for l in json.load(open(when + ".top"))["links"]}
    # Without the headers of IPv4 and TCP with time stamps, 52 bytes of each packet.
    bed = {(l["from"], l["to"]): l["bytes"] - 52 * l["packets"] for l in json.load(open(when + ".bed"))["report"]["links"]}
    return top, bed
(top0, bed0), (top1, bed1) = told("began"), told("ended")
for (ours, theirs), least in (((("home", "b1"), ("a", "b")), 12 << 20), ((("b1", "home"), ("b", "a")), 4 << 20)):
    counted, carried = top1[ours] - top0.get(ours, 0), bed1[theirs] - bed0[theirs]
    print(f"{ours[0]} to {ours[1]}: top says {counted} bytes, the network carried {carried} ({100 * counted / carried:.1f} %)")
    assert counted >= least and 0.95 <= counted / carried <= 1.05, (counted, carried)
P
cat >spent.py <<'P'
import json
seen = sorted([float(word) for word in line.split()[:3]] for line in open("spent.out").read().splitlines())
sums = json.load(open("spent.json"))["record"][-1]
times = {t["site"]: t for t in sums["times"]}
assert set(times) == {"home", "b1"}, times
for site, ranks in (("home", seen[:2]), ("b1", seen[2:])):
    calls = times[site]["calls"]
    counted = lambda call, kind: sum(c["seconds"] for c in calls if (c["call"], c["kind"]) == (call, kind))
    for call, kind, real in (("MPI_Recv", "message", sum(r[1] for r in ranks)), ("MPI_Barrier", "collective", sum(r[2] for r in ranks))):
        assert abs(counted(call, kind) - real) <= 0.05 * real + 0.1, (site, call, counted(call, kind), real, calls)
    level = {"home": "node", "b1": "wide area"}[site]
    assert {c["level"] for c in calls if c["call"] == "MPI_Recv" and c["waits"]} == {level}, calls
    whole = times[site]
    parts = sum(whole[k] for k in ("computing_seconds", "message_wait_seconds", "collective_wait_seconds", "waiting_now_seconds"))
    assert abs(parts - whole["seconds"]) < 1e-3 and whole["processes"] == 2, whole
    # Each site has one rank that computes for a second.
    assert 1 <= whole["computing_seconds"] < whole["seconds"], whole
text = open("spent.err").read()
assert "where the time of the processes went" in text and "MPI_Barrier" in text, text
P
isthmus-testbed run --sites 2x1 --rtt 20ms -- sh spent.sh || { cat spent.err; fail "the job or its report failed"; }
python3 spent.py || { cat spent.out spent.err; fail "time is counted wrongly"; }
sed -n '/where the time/,$p' spent.err
python3 weighed.py || { cat began.* ended.*; fail "what is said of the links is not what passed"; }
for way in direct gateway; do
    isthmus-testbed run --sites 2x1 --rtt 20ms --rate 200mbit -- sh see.sh $way ||
        { cat $way.out $way.err; fail "the job or a look at it failed ($way)"; }
    [ "$(grep -c 'counted, cuts 0' $way.out)" = 4 ] || { cat $way.out; fail "MPI_T counts nothing ($way)"; }
    python3 "$top/tests/system/trace-rules.py" $way.json || fail "viewers will not show all of the trace ($way)"
    python3 "$top/tests/system/schema.py" $way.top ps.json where.json links.json || fail "what --json prints is not what spec/json.tsv says"
    python3 look.py $way || { cat $way.text $way.top; fail "what was seen is wrong ($way)"; }
done
cat gateway.text
