#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# From nothing to running at a site never seen in two commands; what was found is written down and the user's words stay; a site of the
# file, one connection for all; looking at sites and picking them; an ssh certificate signs on.
. "$(dirname "$0")/common.sh"
need_testbed
mpicc -O2 "$top/examples/topology-show.c" -o app || fail "the example does not compile"

cat >run.sh <<'S'
set -eu
isthmus sites add b1 >add.out
isthmus run --site b1:4 ./app >app.out
file=$HOME/.config/isthmus/sites.toml
printf '# mine\n[site.lab]\ncontact = "c1"\nlan = "campus" # ours\nenvironment = { COLOUR = "red" }\nsetup = ["export SHAPE=\\"a b\\""]\n' >>"$file"
isthmus sites add lab >>add.out
cp "$file" sites.toml
isthmus run --site lab:2 -- sh -c 'echo "$COLOUR $SHAPE at $(hostname)"' >lab.out
isthmus sites list --json >list.json
isthmus sites test >test.out
isthmus discover --json >discover.json
isthmus sites show lab --json >show.json
isthmus sites test --json >test.json
isthmus run --dry-run --json --site home:2 --site lab:3 ./app a 'b c' >plan.json
for what in 'info' 'info --functions' 'info --settings' 'discover --fields' 'job attributes' ps links 'cache list home' \
    "explain allreduce 8KiB --topology $1/examples/grid.toml" "simulate bcast 1MiB --topology $1/examples/grid.toml" \
    'doctor lab' 'sites add lab'; do
    isthmus $what --json >"described-$(echo "$what" | tr -c 'a-z\n-' _ | cut -c 1-24).json"
done
isthmus discover --select 'rtt(home) > 5ms && cores >= 1' --no-links >selected.out
isthmus run --select 'site == lab' -n 2 --place spread hostname >chosen.out 2>chosen.err
isthmus sites remove b1 --json >removed.json
isthmus sites list >left.out
printf '[site.x]\nscheduler = "slrum"\nqueeu = "y"\n' >"$file"
if isthmus run --site b1:1 true 2>bad.err; then exit 1; fi
rm "$file"

ssh-keygen -q -t ed25519 -N '' -f ca
if isthmus login --show >none.out; then exit 1; fi
env -u SSH_AUTH_SOCK isthmus login --ca-key ca --principal root --valid 1h >login.out
env -u SSH_AUTH_SOCK isthmus login --show --json >login.json
S
isthmus-testbed run --sites 3x1 --rtt 20ms -- sh run.sh "$top" >run.out 2>&1 || { cat run.out ./*.err; fail "the commands"; }

grep -q "^added 'b1'" add.out || fail "sites add: $(cat add.out)"
[ "$(sed -n 's/^ranks* *//p' app.out | wc -w)" -ge 0 ] && grep -q ': right$' app.out || fail "the job at the new site: $(cat app.out)"
for part in '# mine' 'lan = "campus" # ours' '\[site.lab.found\]' '^architecture = ' '\[site.b1.found\]'; do
    grep -q "$part" sites.toml || fail "sites.toml lacks $part: $(cat sites.toml)"
done
[ "$(sort lab.out | uniq -c | sed 's/^ *//')" = "2 red a b at c1" ] || fail "what the site file says: $(cat lab.out)"
grep -q '"contact": "c1"' list.json || fail "list --json"
[ "$(grep -c ': works; ' test.out)" = 3 ] || fail "sites test: $(cat test.out)"
[ "$(grep -c '"direct": true' discover.json)" = 3 ] || fail "three links are measured: $(cat discover.json)"
python3 "$top/tests/system/schema.py" ./*.json || fail "what --json prints is not what spec/json.tsv says"
grep -q '^b1 ' selected.out && ! grep -q '^home ' selected.out || fail "selected: $(cat selected.out)"
[ "$(sort -u chosen.out)" = c1 ] && grep -q 'selected: lab:2' chosen.err || fail "chosen: $(cat chosen.out chosen.err)"
grep -q '^lab ' left.out && ! grep -q '^b1 ' left.out || fail "left: $(cat left.out)"
[ "$(grep -c 'sites.toml:[23]:' bad.err)" = 2 ] || fail "not all mistakes at once: $(cat bad.err)"
grep -qE 'is valid for (59min|1h)' login.out && grep -q '"valid": true' login.json || fail "login: $(cat login.out login.json)"
echo "a site never seen runs after two commands; sites are described, looked at and picked"
