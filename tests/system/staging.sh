#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Inputs of every kind reach three sites over links that are cut twice, verified and at most 1.1 times their size; a second job sends nothing;
# outputs come back, also when the service of a site, its connection or its agent is killed after staging; nothing but the cache is left.
# ISTHMUS_TEST_STAGE_MIB: size of the large input; ISTHMUS_TEST_STAGE_RATE: of the links.
# beside: it mostly waits, in its own network.
. "$(dirname "$0")/common.sh"
need_testbed
mib=${ISTHMUS_TEST_STAGE_MIB:-96}
rate=${ISTHMUS_TEST_STAGE_RATE:-200mbit}

mkdir -p tree/deep
echo one >tree/one
echo two >tree/deep/two
head -c "$((mib << 20))" /dev/urandom >large
sum=$(sha256sum <large)
head -c 4194304 large >part
cat >program.sh <<'S'
#!/bin/sh
cd "$ISTHMUS_FILES" || exit 1
sha256sum <large >sum
cat tree/one tree/deep/two other >small
mkdir -p out/deep && cp small out/deep/small && ln -s /etc/passwd out/passwd
echo "read only: $(echo x 2>/dev/null >>large || echo yes)" >>small
S
cat >waiting.sh <<'S'
#!/bin/sh
cd "$ISTHMUS_FILES" || exit 1
cat tree/deep/two >early
touch "$HOME/begun"
n=0
until [ -e "$HOME/go-on" ] || [ $n -ge 300 ]; do n=$((n + 1)); sleep 0.1; done
echo late >late
S
chmod +x waiting.sh
chmod +x program.sh
cat >cutter.sh <<S
for part in 25 60; do
    n=0
    until [ "\$(du -k ~/.cache/isthmus/files/.partial-* 2>/dev/null | awk '{ s += \$1 } END { print s + 0 }')" -ge \$(($mib * 1024 * part / 100)) ]; do
        n=\$((n + 1)); [ \$n -lt 3000 ] || exit 1
        sleep 0.1
    done
    kill -KILL \$(pgrep -f "isthmus-[0-9a-f]* service")
done
S
cat >run.sh <<'S'
set -eu
echo elsewhere >"$HOME/unused"
ssh b1 'echo from b1 >other; mkdir odd; mkfifo odd/pipe; echo inside >odd/file'
stage() {
    isthmus run --site b1:1 --site c1:1 --site d1:1 --input large --input tree --input 'isthmus://b1/~/other' --input 'isthmus://b1/~/odd' \
        --output 'sum' --output small --output 'out/**' --results "$1" ./program.sh >"$1.out" 2>"$1.err" </dev/null
}
# The service of each site is killed twice while the file is on its way there.
for host in b1 c1 d1; do ssh -o ControlPath=none $host "sh $PWD/cutter.sh" & done
stage first & job=$!
wait $job
isthmus cache list b1 --json >cache.json
stage second
left() { for host in b1 c1 d1; do ssh -o ControlPath=none $host 'ls ~/.cache/isthmus/jobs; pgrep -f "isthmus-[0-9a-f]* (service|agent)"' || true; done; }
left >left.out

# While the processes run: services are killed, and the clients and servers of ssh behind a site's agent and service.
wait_job() {
    isthmus run --site b1:1 --site c1:1 --site d1:1 --input tree --output early --output late --results "$1" \
        ./waiting.sh >"$1.out" 2>"$1.err" </dev/null & job=$!
    for host in b1 c1 d1; do ssh -o ControlPath=none $host 'rm -f go-on; n=0; until [ -e begun ] || [ $n -ge 300 ]; do n=$((n + 1)); sleep 0.1; done; rm begun'; done
}
go_on() { for host in b1 c1 d1; do ssh -o ControlPath=none $host touch go-on; done; }
wait_job third
for host in b1 c1 d1; do
    ssh -o ControlPath=none $host 'kill -KILL $(pgrep -f "isthmus-[0-9a-f]* service")'
done
sleep 2
go_on
wait $job
wait_job fourth
ssh -o ControlPath=none d1 'kill -KILL $(for p in $(pgrep -f "isthmus-[0-9a-f]* (agent|service)"); do ps -o ppid= -p $p; done)'
go_on
if wait $job; then echo "a job that lost a site has ended well"; exit 1; fi
left >>left.out
# A launcher that is killed leaves outputs for the time of their lease, which counts from when its file was last touched.
export ISTHMUS_LEASE=3600
wait_job fifth
kill -KILL $job
wait $job || true
for host in b1 c1 d1; do
    ssh -o ControlPath=none $host 'n=0; while pgrep -f "isthmus-[0-9a-f]* (service|agent)" >/dev/null && [ $n -lt 600 ]; do n=$((n + 1)); sleep 0.1; done'
done
isthmus cache list b1 --json >leased.json
for host in b1 c1 d1; do ssh -o ControlPath=none $host 'touch -d "2 hours ago" ~/.cache/isthmus/jobs/*/lease'; done
isthmus cache list b1 c1 d1 >>run.out
left >>left.out
isthmus cp part isthmus://c1/~/copied/
isthmus cp isthmus://c1/~/copied/part isthmus://d1/~/again
isthmus cp isthmus://d1/~/again back
isthmus cp tree isthmus://c1/~/tree
isthmus cp --json isthmus://c1/~/tree tree.back >cp.json
# What has no content, or no name of its own, is refused before anything runs or is written.
refused() {
    wanted=$1
    shift
    if "$@" >refused.out 2>&1 </dev/null; then echo "not refused: $*"; exit 1; fi
    grep -q "$wanted" refused.out || { cat refused.out; exit 1; }
}
mkfifo "$HOME/pipe"
refused "input '.*/pipe' is a pipe" isthmus run --site b1:1 --input "$HOME/pipe" ./program.sh
refused "two inputs have the name 'x'" isthmus run --site b1:1 --input 'part => x' --input 'tree/one => x' ./program.sh
refused "two inputs have the name 'tree/one'" isthmus run --site b1:1 --input tree --input 'part => tree/one' ./program.sh
refused "pipe' here is a pipe" isthmus cp "$HOME/pipe" isthmus://b1/~/pipe
refused "pipe' is a pipe" isthmus cp isthmus://b1/~/odd/pipe here
isthmus cache limit 1MiB b1
isthmus cache clear c1
isthmus cache list --json b1 c1 >cleared.json
S
isthmus-testbed run --sites 4x1 --rtt 20ms --rate "$rate" -- sh run.sh >run.out 2>&1 ||
    { cat run.out ./*.err; fail "the jobs"; }

for job in first second; do
    for site in b1 c1 d1; do
        [ "$(cat $job/$site/sum)" = "$sum" ] || { cat $job.err; fail "$job: the input is damaged at $site"; }
        [ "$(sed -n 3p $job/$site/small)" = "from b1" ] || fail "$job: $(cat $job/$site/small)"
        cmp -s $job/$site/out/deep/small $job/$site/small && fail "$job: the copy was made before"
        [ -e $job/$site/out/passwd ] && fail "a link out of the directory was followed"
    done
done
awk -v most="$((mib * 11 / 10))" '/; sent .* bytes over/ { n++; if ($(NF - 4) / 1048576 > most || $(NF - 1) != 3) bad = 1 } END { exit bad || n < 3 }' first.err ||
    fail "more than 1.1 times the size was sent, or nothing was cut: $(cat first.err)"
grep -q "'odd/pipe' was not copied" first.err || fail "what an input of a site lacks is not told: $(cat first.err)"
grep -q 'sent' second.err && fail "the second job sent again: $(cat second.err)"
for site in b1 c1 d1; do
    [ "$(cat third/$site/early third/$site/late)" = "two
late" ] || { cat third.err; fail "the service was killed after staging: outputs of $site"; }
    [ "$(cat fourth/$site/early)" = two ] || { cat fourth.err; fail "a connection was lost after staging: outputs of $site"; }
done
grep -q "error: site 'd1': the connection to its agent was lost" fourth.err || fail "the lost connection is not told: $(cat fourth.err)"
grep -q '"name": "jobs/job-' leased.json || fail "outputs of a killed launcher do not wait: $(cat leased.json)"
[ -s left.out ] && fail "left at a site: $(cat left.out)"
cmp -s part back || fail "cp over three machines"
cmp -s tree/deep/two tree.back/deep/two || fail "cp of a directory"
grep -q '"files": 2' cp.json || fail "cp --json: $(cat cp.json)"
grep -q '"files": \[\]' cleared.json || fail "the cache of c1 is not empty: $(cat cleared.json)"
for size in $(sed -n 's/^ *"size_bytes": \([0-9]*\),*$/\1/p' cleared.json); do
    [ "$size" -le 1048576 ] || fail "the cache of b1 is above its limit: $(cat cleared.json)"
done
grep "; sent" first.err
echo "inputs arrive over cut links, outputs come back, caches are bounded"
