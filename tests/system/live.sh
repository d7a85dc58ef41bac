#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The page of a job over three sites, one link of which is slow, live (isthmus top --serve) and final (isthmus report --html), in a
# browser: phone and desktop, dark and light, nothing on the console, nothing asked of anybody else, small. And who may not see it does not.
. "$(dirname "$0")/common.sh"
need_testbed
for tool in python3 curl; do
    command -v $tool >/dev/null 2>&1 || skip "no $tool"
done
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra "$top/tests/system/seeing.c" -o seeing || fail "mpicc seeing.c"
cat >bed.toml <<'T'
sites = [{ name = "home" }, { name = "b" }, { name = "c" }]
[link]
round_trip = "20ms"
rate = "100mbit"
[[links]]
between = ["home", "c"]
round_trip = "120ms"
rate = "40mbit"
T
cat >live.sh <<'S'
isthmus run --site home:2 --site b1:2 --site c1:2 ./seeing "$PWD/stop" >job.out 2>job.err </dev/null &
job=$!
until grep -q going job.out; do kill -0 $job 2>/dev/null || exit 1; sleep 0.2; done
isthmus top --serve >address 2>told &
serves=$!
until [ -s address ]; do kill -0 $serves 2>/dev/null || exit 1; sleep 0.1; done
address=$(cat address)
port=${address#http://127.0.0.1:}
port=${port%%/*}
# The secret part of the address, the name of the host and the interface keep others out.
for strange in "http://127.0.0.1:$port/" "http://127.0.0.1:$port/00000000000000000000000000000000/"; do
    [ "$(curl -s -o body -w '%{http_code}' "$strange")" = 404 ] && ! grep -q record body || exit 3
done
[ "$(curl -s -o body -w '%{http_code}' -H 'Host: elsewhere.example' "$address")" = 421 ] || exit 3
! curl -s -m 2 -o body "http://$(hostname -I | cut -d' ' -f1):$port/" || exit 3
head -c 20000 /dev/zero | tr '\0' x | curl -s -o body -w '%{http_code}' -H "X: $(head -c 15000 /dev/zero | tr '\0' x)" "$address" | grep -q 431 || exit 3
curl -s "$address" >live.html && curl -s "${address}lines?from=0" >lines.json || exit 4
[ -z "$BROWSER" ] || python3 "$BROWSER" "$address" live h1 svg table '#live' .u-wrap >live.seen || { cat live.seen; exit 5; }
# A link is cut: the page and isthmus where say so while it lasts, and the record afterwards.
isthmus-testbed cut home c || exit 7
until curl -s "${address}lines?from=0" | grep -q '"channels_away":[1-9]'; do kill -0 $job 2>/dev/null || exit 7; sleep 0.2; done
until isthmus where --json | grep -q '"cut_links":\[{'; do kill -0 $job 2>/dev/null || exit 7; sleep 0.2; done
[ -z "$BROWSER" ] || [ -z "$ISTHMUS_TEST_SHOTS" ] || python3 "$BROWSER" "$address" cut .cut >cut.seen || { cat cut.seen; exit 5; }
isthmus-testbed restore home c || exit 7
until curl -s "${address}lines?from=0" | tail -c 4000 | grep -q '"channels_away":0' && isthmus where --json | grep -q '"cut_links":\[\]'; do
    kill -0 $job 2>/dev/null || exit 7
    sleep 0.2
done
touch stop
wait $job || exit 1
curl -s "${address}lines?from=1" | grep -q '"sums"' || exit 6
kill $serves
isthmus report --html final.html && isthmus report && isthmus report --json >report.json
# What was measured of the job describes a grid.
isthmus explain allreduce 64KiB --job "$(python3 -c 'import json; print(json.load(open("report.json"))["job"])')" >explained || exit 8
S
BROWSER=
if command -v chromium >/dev/null 2>&1; then BROWSER=$top/tests/system/browser.py; fi
export BROWSER
isthmus-testbed run --topology bed.toml -- sh live.sh >live.out 2>&1
status=$?
[ $status = 0 ] || { cat live.out job.out job.err told live.seen 2>/dev/null; fail "status $status: see live.sh"; }
grep -q 'ssh -L' told || { cat told; fail "nothing about ssh -L"; }
for page in live.html final.html; do
    [ "$(wc -c <$page)" -lt 2000000 ] || fail "$page is larger than 2 MB"
done
python3 - <<'P' || fail "what is served is not the record"
import json
lines = json.load(open("lines.json"))["lines"]
assert lines[0]["event"] == "record" and any(l["event"] == "traffic" for l in lines), lines[:2]
assert "sums" not in {l["event"] for l in lines}
last = [l for l in json.load(open("report.json"))["record"] if l["event"] == "traffic"][-1]["links"]
cut = {frozenset((l["from"], l["to"])) for l in last if l["cuts"]}
assert cut and all("home" in link for link in cut), last
text = open("explained").read()
assert "6 processes on 3 sites" in text, text
P
if [ -z "$BROWSER" ]; then
    cat live.out
    skip "no chromium: the page was not looked at"
fi
python3 "$BROWSER" "file://$PWD/final.html" final h1 svg table .u-wrap >final.seen || { cat final.seen; fail "the page of a job that has ended"; }
cat live.seen final.seen
[ -z "$ISTHMUS_TEST_SHOTS" ] || cp -r live cut final "$ISTHMUS_TEST_SHOTS"
