#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Jobs on a node of a scheduler that nobody outside its site reaches, and that leaves its site on no way: through the gateway at the machine which submits, the
# launcher and the host at which jobs meet they connect with a job elsewhere, whoever accepts. The launcher is at that machine, or reaches it by ssh; or the node belongs to a
# part of a world that was started by hand there. In the middle the gateway is killed, and begins anew. Strangers at it, with a wrong key or nothing to say, get nothing.
# The scheduler is a few scripts; a real one: tests/schedulers.
# beside: it mostly waits, in its own network.
. "$(dirname "$0")/common.sh"
need_testbed
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -I"$top/tests/c" "$top/tests/system/meet-ports.c" -o meet-ports || fail "mpicc meet-ports.c"
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -I"$top/tests/c" "$top/tests/system/ways.c" -o ways || fail "mpicc ways.c"
ends_gateways >end.sh

mkdir bin
# Commands are seen below /usr/local, but the queue is here: other tests on this machine have queues of their own.
queue=$work/queue
cat >bin/sbatch <<S
#!/bin/sh
q=$queue.\$\$
S
cat >>bin/sbatch <<'S'
mkdir "$q" || exit
cat >"$q/script"
(
    ssh b1n2 "cd '$PWD'; PATH='$PATH' SLURM_JOB_NUM_NODES=1 SLURM_TASKS_PER_NODE=2 sh '$q/script'"
    echo 'COMPLETED|None' >"$q/state"
) </dev/null >/dev/null 2>&1 &
echo $$
S
cat >bin/squeue <<S
#!/bin/sh
for id; do :; done
cat "$queue.\$id/state" 2>/dev/null || echo 'RUNNING|None'
S
cat >bin/scancel <<S
#!/bin/sh
for id; do :; done
rm -rf "$queue.\$id"
S
cat >bin/srun <<'S'
#!/bin/sh
while test "${1#--}" != "$1"; do shift; done
SLURM_NODEID=0 exec "$@"
S
chmod 755 bin/*

# What knocks at the gateway of b1 and has no key that is in force: it hears a zero, or nothing.
cat >stranger.sh <<'S'
port=$(ss -Hltnp | sed -n 's/.*[:*]:\([0-9]*\) .*(("isthmus",pid=\([0-9]*\).*/\1 \2/p' | while read -r port process; do
    case $(tr '\0' ' ' <"/proc/$process/cmdline") in *' gateway ') echo "$port" ;; esac
done | sort -u)
[ -n "$port" ] || { echo "no gateway"; exit 1; }
ulimit -n 2048
for i in $(seq 300); do exec {idle}<>"/dev/tcp/127.0.0.1/$port"; done
for words in 'IsE10123456789abcdef' 'GET / HTTP/1.1 and more' ''; do
    exec {stranger}<>"/dev/tcp/127.0.0.1/$port"
    printf %s "$words" >&$stranger
    answer=$(timeout 10 od -An -tx1 <&$stranger | tr -d ' \n')
    echo "'$words' hears '$answer'"
    exec {stranger}>&-
done
S

cat >all.sh <<'S'
set -u
here=$PWD nodes='scheduler=slurm,nodes=1'
ssh b1 'ssh b1n2 ip route del default' </dev/null || exit 20
# In that host's own view of the file system.
ssh b1 "mkdir -p /usr/local/bin && mount --bind $here/bin /usr/local/bin" </dev/null || exit 21
says() {
    for _ in $(seq 600); do grep -q "$1" "$2" && return; kill -0 $job || return 1; sleep 0.1; done
    return 1
}
at() { # HOST OUT COMMAND...
    host=$1 out=$2
    shift 2
    ssh $host "cd $here; PATH=/usr/local/bin:$PATH timeout 280 $*" >$out 2>&1 </dev/null
}
# The launcher is at the machine that submits.
: >plain.server
at b1 plain.server isthmus run --meet c1 --site lab=home:2,$nodes ./meet-ports server 2 40 & job=$!
says open plain.server || exit 1
at b1 strangers bash stranger.sh & strangers=$!
timeout 280 isthmus run --meet c1 -n 2 ./meet-ports client 2 40 >plain.client 2>&1 </dev/null || exit 2
wait $job || exit 3
wait $strangers || exit 4
timeout 280 isthmus run --meet c1 -n 2 ./meet-ports server 2 40 >back.server 2>&1 </dev/null & job=$!
says open back.server || exit 5
at b1 back.client isthmus run --meet c1 --site lab=home:2,$nodes ./meet-ports client 2 40 || exit 6
wait $job || exit 7
# It reaches that machine by ssh; the gateway is killed in the middle.
rm -f port cut
timeout 280 isthmus run --meet c1 --site lab=b1:2,$nodes ./ways server port 2 40 >far.server 2>&1 </dev/null & job=$!
for _ in $(seq 600); do [ -s port ] && break; kill -0 $job || exit 8; sleep 0.1; done
at d1 far.client isthmus run --meet c1 -n 2 ./ways client port 2 40 & other=$!
says half far.server || exit 9
at b1 killed sh end.sh
touch cut
wait $other || exit 10
wait $job || exit 11
# Parts of a world, started by hand: rank 0, which opens the port, is on this machine, the others are on the node.
: >first.part
timeout 280 isthmus run --world sea=1of2 --meet c1 -n 1 ./meet-ports server 2 40 >first.part 2>&1 </dev/null & job=$!
at b1 second.part isthmus run --world sea=2of2 --meet c1 --site lab=home:2,$nodes ./meet-ports server 2 40 & second=$!
says open first.part || exit 12
at d1 third.job isthmus run --meet c1 -n 3 ./meet-ports client 2 40 || exit 13
wait $second || exit 14
wait $job || exit 15
S
isthmus-testbed run --topology /dev/stdin -- bash all.sh >run.out 2>&1 <<'T' || {
sites = [{ name = "a", access = "nat-ssh" }, { name = "b", hosts = 2, access = "nat-ssh" }, { name = "c" }, { name = "d", access = "nat-ssh" }]
[link]
round_trip = "10ms"
rate = "200mbit"
T
    tail -n 20 run.out ./*.server ./*.client ./*.part ./*.job
    fail "jobs on nodes that nobody reaches"
}
for name in plain back far; do
    [ "$(cat $name.server $name.client | grep -c 'all is well')" = 4 ] || { tail $name.server $name.client; fail "$name: not all processes have ended well"; }
done
[ "$(cat first.part second.part third.job | grep -c 'all is well')" = 6 ] || { tail first.part second.part third.job; fail "parts of a world"; }
grep -q killed killed || fail "no gateway was killed"
[ "$(grep -c "hears '\(00\)\?'" strangers)" = 3 ] || { cat strangers; fail "strangers at the gateway"; }
echo "jobs on nodes that nobody reaches meet others through their gateway and a host; strangers get nothing"
