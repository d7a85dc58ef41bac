#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a user has configured in ssh for shells of their own does not keep jobs, parts of worlds and meetings from a site: a command that is run there,
# a session without one, no standard input, a client in the background, a terminal; a connection that several clients share.
# beside: it mostly waits, in its own network.
. "$(dirname "$0")/common.sh"
need_testbed
cat >prog.c <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("one of %d\n", size);
    MPI_Finalize();
    return 0;
}
C
mpicc -O2 prog.c -o prog || fail "mpicc"
cat >run.sh <<'S'
bad=0
cp ~/.ssh/config base
# said WANTED COMMAND...: the command prints this line.
said() {
    wanted=$1
    shift
    timeout 60 "$@" >out 2>err </dev/null || { echo "FAIL ($setting): $* has status $?"; cat err; bad=1; }
    grep -qx "$wanted" out || { echo "FAIL ($setting): $* does not say '$wanted'"; cat out err; bad=1; }
}
each() {
    said 'one of 2' isthmus run --site home:1 --site lab:1 ./prog
    # The parts of a world meet there.
    timeout 60 isthmus run --world w=1of2 --meet lab ./prog >first 2>&1 </dev/null &
    said 'one of 2' isthmus run --world w=2of2 --meet lab ./prog
    wait $! || { echo "FAIL ($setting): the first part"; cat first; bad=1; }
}
while IFS= read -r setting; do
    { printf 'Host lab\n HostName 10.2.0.1\n HostKeyAlias b1\n'; printf ' %s\n' "$setting" | tr ';' '\n'; cat base; } >~/.ssh/config
    if ssh -G lab >/dev/null 2>&1; then each; else echo "not known to this client: $setting"; fi
done <<E
LogLevel ERROR
RemoteCommand exec /bin/sh -l;RequestTTY force
SessionType none
StdinNull yes
ForkAfterAuthentication yes
ControlMaster auto;ControlPath /run/m-%C;ControlPersist 2
E
exit $bad
S
isthmus-testbed run --sites 2x1 --rtt 4ms -- sh run.sh >log 2>&1 || fail "$(cat log)"
cat log
