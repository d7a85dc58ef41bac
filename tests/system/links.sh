#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Links between three sites with different round trips and rates are measured, agreed on, remembered and pinned. Jobs, doctor and discover each read the
# same, and where they know of each other the very same number stands everywhere.
# alone: it measures links.
. "$(dirname "$0")/common.sh"
need_testbed
mpicc -std=c11 -O2 -w "$top/tests/system/links.c" -o links || fail "mpicc links.c"

cat >three.toml <<'T'
sites = [{ name = "a" }, { name = "b" }, { name = "c" }]
[[links]]
between = ["a", "b"]
round_trip = "40ms"
rate = "200mbit"
[[links]]
between = ["a", "c"]
round_trip = "40ms"
rate = "20mbit"
[[links]]
between = ["b", "c"]
round_trip = "4ms"
rate = "1gbit"
T
cat >pins.toml <<'T'
[[link]]
between = ["b1", "home"]
latency = "7 ms"
rate = "3 Mbit/s"
[[link]]
between = ["home", "elsewhere"]
latency = "1 s"
T
cat >run.sh <<'S'
set -eu
run() {
    name=$1
    shift
    ISTHMUS_STATS=1 isthmus run --site home:2 --site b1:2 --site c1:1 "$@" >"$name.out" 2>"$name.err" </dev/null || {
        cat "$name.out" "$name.err"
        exit 1
    }
}
run first ./links 4
cp "$HOME/.cache/isthmus/links.toml" cache.toml
isthmus links >list.out
# Each by itself.
ISTHMUS_LINKS_EXPIRY=0 isthmus doctor b1 c1 --json >doctor.json
ISTHMUS_LINKS_EXPIRY=0 isthmus discover home b1 c1 --json >discover.json
# With what the others know.
isthmus doctor b1 c1 --json >doctor-knows.json
isthmus discover home b1 c1 --json >discover-knows.json
isthmus links --json >links.json
cp cache.toml "$HOME/.cache/isthmus/links.toml"
run second ./links 0
run pinned --links pins.toml ./links 0
ISTHMUS_LINKS_EXPIRY=0 ISTHMUS_LINKS_MEASURE=0 run nothing ./links 0
echo 'not = toml = at all' >"$HOME/.cache/isthmus/links.toml"
ISTHMUS_LINKS_MEASURE=0 run damaged ./links 0
cp cache.toml "$HOME/.cache/isthmus/links.toml"
isthmus links --forget c1 >forget.out
isthmus links >left.out
S
cat >compare.py <<'P'
import json
PAIRS = {("a1", "b1"): 200e6, ("a1", "c1"): 20e6, ("b1", "c1"): 1e9}
def read(name):
    links = json.load(open(name + ".json"))["links"]
    place = lambda name: name.split("@")[-1].replace("home", "a1")
    return {tuple(sorted(map(place, l["between"]))): l for l in links}
wrong = []
for name in "doctor", "discover":
    for pair, rate in PAIRS.items():
        link = read(name)[pair]
        off = link["bits_per_second"] / (0.945 * rate) - 1
        print(f"{name}: {pair}: {link['bits_per_second'] / 1e6:.1f} Mbit/s, {off:+.1%}, at least: {link['at_least']}, seen {link['seen_bytes']} B in {link['seen_seconds']:.3f} s")
        fits = off < 0.15 and (off > -0.15 or pair == ("b1", "c1") and off > -0.8)
        if not fits or link["seen_bytes"] <= 0:
            wrong.append((name, pair, link))
kept = read("links")
for pair in PAIRS:
    for name in "doctor-knows", "discover-knows":
        told = read(name)[pair]
        # The doctor came first; discover may have had better evidence since.
        same = told["bits_per_second"] == kept[pair]["bits_per_second"]
        better = told["seen_seconds"] <= kept[pair]["seen_seconds"]
        if not (same or name == "doctor-knows" and better):
            wrong.append((name, pair, told, kept[pair]))
print(*wrong, sep="\n")
raise SystemExit(bool(wrong))
P
measure() { isthmus-testbed run --topology three.toml -- sh run.sh >bed 2>&1 || { cat bed; fail "the jobs"; }; cat bed; }
measure
# A link that was not what it should be says nothing of its measurements. Nor does one reading of 1 Gbit/s, which keeps both processors busy, where
# something else runs: that is measured again, twice at most, and must be right then.
python3 compare.py || { measure && python3 compare.py; } || { measure && python3 compare.py; } || fail "measurements of the same link differ"

# same FILE PHASE: all processes tell the same.
same() {
    [ "$(grep -c "^$2: " "$1.out")" = 5 ] || { cat "$1.out"; fail "$1: not 5 lines of '$2'"; }
    [ "$(sed -n "s/^$2: [0-9]*: //p" "$1.out" | sort -u | wc -l)" = 1 ] || { cat "$1.out"; fail "$1: processes do not agree: $2"; }
}
for job in first second pinned nothing; do
    for phase in begin still refreshed inherited; do same $job $phase; done
done
# told FILE PHASE PAIR FIELD: field of the text about a pair: 3 latency (ms), 5 its origin, 6 rate (Mbit/s), 8 its origin.
told() { sed -n "s/^$2: 0: //p" "$1.out" | tr ';' '\n' | sed 's/^ //' | awk -v pair="$3" -v field="$4" '$1 " " $2 == pair { print $field }'; }
# near FILE PHASE PAIR FIELD LOW HIGH: bands are generous, for the machine may be loaded.
near() {
    value=$(told "$1" "$2" "$3" "$4")
    awk -v v="$value" -v low="$5" -v high="$6" 'BEGIN { exit !(v >= low && v <= high) }' || { cat "$1.out"; fail "$1: $3: '$value' is not from $5 to $6"; }
    echo "$1: $2: $3: $value"
}
is() { [ "$(told "$1" "$2" "$3" "$4")" = "$5" ] || { cat "$1.out"; fail "$1: $2: $3: not $5"; }; }

near first refreshed 'home b1' 3 19.5 26
near first refreshed 'home c1' 3 19.5 26
near first refreshed 'b1 c1' 3 1.9 5
# Bytes of messages are 94 % of those on the line.
near first refreshed 'home b1' 6 162 216
near first refreshed 'home c1' 6 16.2 21.6
# In the time that a job takes for it this link is not kept busy: only a bound is known, and how near that comes is the processors' doing.
# It is more than the slow link has and no more than the link, and what is less than that says that it is a bound.
near first refreshed 'b1 c1' 6 40 1150
bounded=$(awk -v rate="$value" 'BEGIN { print rate < 0.85 * 945 ? "at least" : "at least\\|+-" }')
grep 'b1@b1 - c1@c1' list.out | grep -q "$bounded" || { cat list.out; fail "how sure the rate is is not said"; }
grep 'b1@b1 - home@a1' list.out | grep -q '+- .* %.* [kM]B in 0' || { cat list.out; fail "what the rate stands on is not said"; }
begin=$(sed -n 's/^begin: 0: //p' first.out) still=$(sed -n 's/^still: 0: //p' first.out)
[ "$begin" = "$still" ] || { cat first.out; fail "what is in force has changed by itself"; }
for pair in 'home b1' 'home c1' 'b1 c1'; do
    is first begin "$pair" 5 measured
    is second begin "$pair" 5 cached
    is second begin "$pair" 8 cached
done
[ "$(grep -c '^b1@b1\|^c1@c1\|^home@a1' list.out)" = 3 ] || { cat list.out; fail "isthmus links does not list three links"; }
is pinned begin 'home b1' 5 pinned
is pinned refreshed 'home b1' 3 7.0000
is pinned refreshed 'home b1' 6 3.0000
is pinned begin 'home c1' 5 cached
grep -q '^begin: 0: version 0; other [^;]*$' nothing.out || { cat nothing.out; fail "something was measured or remembered that was not to be"; }
grep -q 'cannot be used and is ignored' damaged.err || { cat damaged.err; fail "a damaged cache is not told"; }
grep -q 'forgot 2 links of c1' forget.out || { cat forget.out; fail "forgetting"; }
[ "$(grep -c '@' left.out)" = 1 ] || { cat left.out; fail "what is left after forgetting"; }
echo "links are measured, agreed on, remembered and pinned"
