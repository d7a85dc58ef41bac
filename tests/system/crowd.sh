#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# 2,000 connections a second to the ports of a job while it starts and works: it does what it would do otherwise, and no
# stranger hears a byte.
. "$(dirname "$0")/common.sh"
need_testbed
command -v perl >/dev/null 2>&1 || skip "no perl"

cat >sum.c <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 100; i++) {
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (sum != 6) MPI_Abort(MPI_COMM_WORLD, 3);
    }
    if (rank == 0) printf("sum %d\n", sum);
    MPI_Finalize();
    return 0;
}
C
mpicc -O2 sum.c -o sum || fail "mpicc"
# crowd HOST FIRST LAST: connects to these ports in turn until the file `stop` is there, says something or nothing, and
# counts what it hears. Keeps a few hundred connections open.
cat >crowd.pl <<'P'
use strict; use warnings; use Socket; use Fcntl; use Time::HiRes qw(time sleep);
my ($host, $first, $last) = @ARGV;
my @said = ('', 'GET / HTTP/1.0' . "\r\n\r\n", "ISTHMUS\x02" . 'x' x 72, "ISTHMUS\x02" . 'y' x 30);
$SIG{PIPE} = 'IGNORE';
my ($made, $accepted, $heard, @new, @open) = (0, 0, 0);
my ($begin, $address) = (time, inet_aton($host));
sub over { my $s = shift; my $got = sysread $s, my $buffer, 4096; $heard += $got if $got; close $s }
until (-e 'stop') {
    while ($made < 2000 * (time - $begin)) {
        socket my $s, PF_INET, SOCK_STREAM, 0 or last;
        my $port = $first + $made % ($last - $first + 1);
        # Where nobody takes it in time it must not hold up the others.
        fcntl $s, F_SETFL, O_NONBLOCK;
        connect $s, sockaddr_in($port, $address);
        push @new, $s;
        if (@new > 50 && getpeername(my $t = shift @new)) {
            $accepted++;
            syswrite $t, $said[$accepted % @said];
            push @open, $t;
        }
        over(shift @open) if @open > 300;
        $made++;
    }
    sleep 0.005;
}
over($_) for @open;
print "$host: $accepted of $made connections were accepted, $heard bytes said to them\n";
exit($heard > 0 || $accepted < 100);
P
cat >all.sh <<'S'
set -u
for place in a1 b1; do
    perl crowd.pl "$place" 7000 7003 >"crowd.$place" 2>&1 &
    eval "crowd_$place=$!"
done
status=0
isthmus run --site home:2,ports=7000-7003 --site b1:2,ports=7000-7003 ./sum >out 2>err </dev/null || status=1
grep -q '^sum 6$' out || status=1
[ $status -eq 0 ] || cat out err
touch stop
wait $crowd_a1 || status=1
wait $crowd_b1 || status=1
cat crowd.a1 crowd.b1
exit $status
S
isthmus-testbed run --sites 2x1 --rtt 4ms -- sh all.sh || fail "the job did not stand the crowd, or somebody in it heard something"
