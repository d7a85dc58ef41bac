#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A running job takes workers that its user adds by hand, several times, and gives them back; it does not end with them.
. "$(dirname "$0")/common.sh"
for tool in isthmus mpicc; do command -v $tool >/dev/null 2>&1 || skip "no $tool in PATH"; done
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -I"$top/tests/c" "$top/tests/c/grow.c" -o grow || fail "mpicc grow.c"

timeout 100 isthmus run --name pool-$$ -n 2 ./grow pool 4 >pool.out 2>&1 </dev/null & pool=$!
for i in $(seq 300); do isthmus names 2>/dev/null | grep -q "^pool " && break; sleep 0.1; done
for workers in 1 3 2; do
    timeout 60 isthmus add --to pool pool-$$ -n $workers ./grow worker >added 2>&1 || { cat added pool.out; fail "$workers workers"; }
    for i in $(seq 100); do grep -q "^$workers have worked" pool.out && break; sleep 0.1; done
    grep -q "^$workers have worked" pool.out || { cat pool.out; fail "$workers workers have not worked"; }
done
# Workers that stay until their user asks for the machine.
timeout 60 isthmus add --to pool pool-$$ -n 4 ./grow worker stays >added 2>&1 || { cat added pool.out; fail "workers that stay"; }
isthmus ps --long >during 2>&1
site=$(sed -n 's/.*\(home+[0-9]*\).*/\1/p' during | tail -n 1)
[ -n "$site" ] || { cat during; fail "ps does not name what was added"; }
isthmus signal pool-$$ USR1 --site nowhere 2>err && fail "a site that is not there"
grep -q "no subjob 'nowhere'" err || { cat err; fail "what is said of a site that is not there"; }
isthmus signal pool-$$ USR1 --site "$site" || fail "asking $site to leave"
for i in $(seq 100); do grep -q "^4 have worked" pool.out && break; sleep 0.1; done
grep -q "^4 have worked" pool.out || { cat pool.out; fail "workers that were asked have not left"; }
wait $pool || { cat pool.out; fail "the pool ended badly"; }
# A job whose processes have not begun takes none, and says why.
timeout 100 isthmus run --name early-$$ -n 1 sleep 90 >early.out 2>&1 </dev/null & early=$!
for i in $(seq 300); do isthmus add early-$$ -n 1 ./grow worker >added 2>&1; grep -q "there is no job" added || break; sleep 0.1; done
grep -q "the processes of the job have not all called MPI_Init" added || { cat added early.out; fail "what is said of a job that has not begun"; }
kill $early
wait $early || true
# Workers that end before the job has accepted them leave it alone. Those that it has accepted end with it.
cat >late.c <<'END'
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm workers;
    (void)argv;
    MPI_Init(NULL, NULL);
    if (argc > 1) {
        puts("begun");
        fflush(stdout);
        for (;;)
            pause();
    }
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Publish_name("late", MPI_INFO_NULL, port);
    while (access("accept", F_OK) != 0)
        usleep(10000);
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &workers);
    puts("accepted");
    fflush(stdout);
    for (;;)
        pause();
}
END
mpicc -std=c11 -D_GNU_SOURCE -O2 late.c -o late || fail "mpicc late.c"
offers() {
    timeout 60 isthmus add --to late late-$$ -n 2 ./late worker >added 2>&1 || { cat added late.out; fail "an offer"; }
    isthmus ps --long >during 2>&1
    site=$(sed -n 's/.*\(home+[0-9]*\).*/\1/p' during | tail -n 1)
}
timeout 100 isthmus run --name late-$$ -n 1 ./late >late.out 2>&1 </dev/null & late=$!
for i in $(seq 300); do isthmus names 2>/dev/null | grep -q "^late " && break; sleep 0.1; done
offers
isthmus signal late-$$ TERM --site "$site" || fail "taking an offer back"
for i in $(seq 300); do isthmus ps --long | grep -q "home+1 .* failed" && break; sleep 0.1; done
kill -0 $late 2>/dev/null || { cat late.out; fail "an offer that was taken back ended the job"; }
offers
touch accept
for i in $(seq 300); do grep -q "^accepted" late.out && break; sleep 0.1; done
grep -q "^accepted" late.out || { cat late.out; fail "a second offer was not accepted"; }
for i in $(seq 300); do [ "$(grep -c "^begun" late.out)" = 2 ] && break; sleep 0.1; done
isthmus signal late-$$ KILL --site "$site" || fail "killing what was accepted"
wait $late
status=$?
[ $status -eq 137 ] || { cat late.out; fail "status $status where workers were killed"; }
