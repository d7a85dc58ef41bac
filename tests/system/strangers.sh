#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Connections that do not belong to the job are closed within 5 s and disturb nobody, a thousand at once too.
# beside: it mostly waits, in its own network.
. "$(dirname "$0")/common.sh"
need_testbed
command -v perl >/dev/null 2>&1 || skip "no perl"
command -v ss >/dev/null 2>&1 || skip "no ss (package iproute2)"

cat >long.c <<'C'
#include <mpi.h>
#include <stdio.h>
#include <time.h>
int main(int argc, char **argv)
{
    int rank;
    long rounds = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) { printf("going\n"); fflush(stdout); }
    for (int go = 1; go; rounds++) {
        int sum = 0;
        struct timespec pause = {0, 50 * 1000 * 1000};
        FILE *stop = rank == 0 ? fopen(argv[1], "r") : NULL;
        if (stop) { fclose(stop); go = 0; }
        MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (sum != 6) MPI_Abort(MPI_COMM_WORLD, 3);
        nanosleep(&pause, NULL);
    }
    MPI_Finalize();
    if (rank == 0) printf("%s\n", rounds > 10 ? "went on" : "too short");
    return 0;
}
C
mpicc -O2 long.c -o long || fail "mpicc"
# knock HOST PORT KIND COUNT: opens COUNT connections, says KIND, and waits until the other end has closed each.
# Where more processes want to run than the machine has processors, that many times 5 s.
cat >knock.pl <<'P'
use strict; use warnings; use IO::Socket::INET; use IO::Select; use Time::HiRes 'time';
my ($host, $port, $kind, $count) = @ARGV;
my %said = (nothing => '', garbage => join('', map { chr(($_ * 167) % 256) } 1 .. 600), http => "GET / HTTP/1.0\r\n\r\n",
    tls => pack('H*', '16030100c8010000c40303' . '41' x 32 . '00' . '0002130101000000'));
$SIG{PIPE} = 'IGNORE';
my $cores = `nproc`;
sub limit { open my $file, '<', '/proc/loadavg'; my $many = (split ' ', <$file>)[0] / $cores; return 5.5 * ($many > 1 ? $many : 1) }
my ($select, $refused) = (IO::Select->new, 0);
for (1 .. $count) {
    my $s = IO::Socket::INET->new(PeerAddr => $host, PeerPort => $port, Proto => 'tcp', Timeout => 5);
    if (!$s) { $refused++; next }
    syswrite $s, $said{$kind} if length $said{$kind};
    $select->add($s);
}
my ($start, $bytes) = (time, 0);
while ($select->count && time - $start < limit() + 2.5) {
    for my $s ($select->can_read(0.2)) {
        my $got = sysread $s, my $buffer, 4096;
        if ($got) { $bytes += $got } else { $select->remove($s); close $s }
    }
}
printf "%s: %d of %d connections closed after %.1f s, %d refused, %d bytes said to us\n", $kind, $count - $select->count - $refused, $count, time - $start, $refused, $bytes;
exit($select->count || time - $start > limit());
P
cat >all.sh <<'S'
set -u
isthmus run --site home:2 --site b1:2 "$PWD/long" "$PWD/stop" >out 2>err </dev/null &
job=$!
for _ in $(seq 600); do grep -q going out && break; kill -0 $job 2>/dev/null || break; sleep 0.1; done
grep -q going out || { echo "the job did not start"; cat out err; exit 1; }
# at PLACE: knocks at each port where somebody listens; none, and there is nobody to disturb.
at() {
    bad=0
    ports=$(ssh "$1" ss -Hltn | awk '{ n = split($4, at, ":"); if (at[n] != 22 && at[1] !~ /^127/) print at[n] }' | sort -un)
    for port in $ports; do
        pids=
        for kind in nothing garbage http tls; do perl knock.pl "$1" "$port" "$kind" 5 & pids="$pids $!"; done
        for pid in $pids; do wait "$pid" || bad=1; done
        for kind in nothing garbage; do perl knock.pl "$1" "$port" "$kind" 1000 || bad=1; done
    done
    echo "$1: ports $(echo $ports)"
    return $bad
}
status=0
at a1 & first=$!
at b1 || status=1
wait "$first" || status=1
echo stop >stop
wait "$job" || { echo "the job failed"; cat out err; exit 1; }
grep -q 'went on' out || { cat out err; exit 1; }
exit $status
S
isthmus-testbed run --sites 2x1 --rtt 4ms -- sh all.sh || fail "strangers disturbed the job or were not closed in time"
