#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# An agent that is killed while a machine's own mpiexec runs its processes: they are gone soon, whatever they ignore, before the coordinator has done anything,
# and also where that mpiexec lives on and does nothing: their guards kill them.
. "$(dirname "$0")/common.sh"
for tool in isthmus mpicc; do
    command -v "$tool" >/dev/null 2>&1 || skip "no $tool in PATH"
done
# Within so many seconds.
most=5

cat >lasting.c <<'EOC'
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
/* Ignores what can be ignored, writes its pid, and never ends: before MPI_Init or after it, asleep or not. */
int main(int argc, char **argv)
{
    char name[64];
    FILE *file;
    for (int signal_number = 1; signal_number < NSIG; signal_number++)
        signal(signal_number, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    if (!strcmp(argv[1], "within")) {
        MPI_Init(&argc, &argv);
        MPI_Barrier(MPI_COMM_WORLD);
        /* Libraries have handlers of their own. */
        for (int signal_number = 1; signal_number < NSIG; signal_number++)
            if (signal_number != SIGCHLD)
                signal(signal_number, SIG_IGN);
    }
    snprintf(name, sizeof name, "pid.%d", (int)getpid());
    file = fopen(name, "w");
    if (!file || fprintf(file, "%d\n", (int)getpid()) < 0 || fclose(file))
        return 1;
    for (;;)
        if (!strcmp(argv[2], "asleep"))
            sleep(1000);
}
EOC
mpicc -std=c11 -O2 -Wall -Wextra lasting.c -o lasting || fail "mpicc lasting.c"

# alive PID: it runs; one that nobody has waited for yet does not.
alive() { case $(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) in '' | [ZX]*) return 1 ;; esac; }

# above PID: the processes that it descends from, the nearest first, up to the agent, which is the last.
above() {
    next=$1
    while [ "${next:-0}" -gt 1 ]; do
        next=$(sed 's/.*) [A-Za-z] //; s/ .*//' "/proc/$next/stat" 2>/dev/null)
        echo "${next:-0}"
        case $(tr '\0' ' ' <"/proc/${next:-0}/cmdline" 2>/dev/null) in *isthmus*' agent '*) return ;; esac
    done
}

# lose NAME MPIEXEC before|within asleep|awake
lose() {
    name="$1, $3 MPI, $4"
    shift
    rm -f pid.*
    isthmus run --site "a=home:2,mpi=$1" ./lasting "$2" "$3" >out 2>&1 </dev/null &
    job=$!
    tries=0
    while [ "$(cat pid.* 2>/dev/null | wc -l)" -lt 2 ]; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] && kill -0 $job 2>/dev/null || { kill -9 $job; cat out; fail "$name: the processes did not start"; }
        sleep 0.1
    done
    pids=$(cat pid.*)
    line=$(above "$(head -n 1 "$(echo pid.* | cut -d ' ' -f 1)")")
    agent=$(echo "$line" | tail -n 1)
    # Without the guard and the agent: what the machine's own MPI has started here.
    others=$(echo "$line" | sed '1d; $d')
    [ "$agent" -gt 1 ] && [ -n "$others" ] || { kill -9 $job; fail "$name: no agent above its processes: $line"; }
    # Neither the coordinator nor the other MPI does anything now.
    # shellcheck disable=SC2086 # a list of words
    kill -STOP $job $others && kill -KILL "$agent" || fail "$name: cannot kill agent $agent"
    left=$pids tries=0
    while [ -n "$left" ] && [ $tries -lt $((most * 10)) ]; do
        sleep 0.1
        tries=$((tries + 1)) left=
        for pid in $pids; do
            ! alive "$pid" || left="$left $pid"
        done
    done
    kill -CONT $job
    for pid in $others; do
        kill -CONT "$pid" 2>/dev/null
    done
    if [ -n "$left" ]; then
        for pid in $left; do
            kill -9 "$pid"
        done
        kill -9 $job
        fail "$name: after $most s there are$left"
    fi
    gone_after=$tries tries=0
    while alive $job && [ $tries -lt 200 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    ! alive $job || { kill -9 $job; cat out; fail "$name: the command did not end"; }
    wait $job
    status=$?
    [ $status = 1 ] && grep -q "error: site 'a': its agent ended (signal: 9" out || { cat out; fail "$name: exit status $status"; }
    for pid in $others; do
        tries=0
        while alive "$pid"; do
            tries=$((tries + 1))
            [ $tries -lt 100 ] || { kill -9 "$pid"; fail "$name: of the other MPI there is still process $pid"; }
            sleep 0.1
        done
    done
    echo "$name: gone within $gone_after tenths of a second"
}

tried=0
for vendor in mpich openmpi; do
    command -v "mpiexec.$vendor" >/dev/null 2>&1 && command -v "mpicc.$vendor" >/dev/null 2>&1 || continue
    # One whose mpiexec is not the agent's child, and lives on when that is killed, as it does on other nodes.
    mkdir -p "$vendor"
    ln -sf "$(command -v "mpicc.$vendor")" "$vendor/mpicc"
    printf '#!/bin/sh\n%s "$@"\n:\n' "$(command -v "mpiexec.$vendor")" >"$vendor/mpiexec"
    chmod +x "$vendor/mpiexec"
    lose "$vendor" "mpiexec.$vendor" before asleep
    lose "$vendor" "mpiexec.$vendor" within awake
    lose "$vendor that lives on" "$work/$vendor/mpiexec" before awake
    lose "$vendor that lives on" "$work/$vendor/mpiexec" within asleep
    tried=$((tried + 1))
done
[ $tried -gt 0 ] || skip "no other MPI is installed (Debian: mpich libmpich-dev, openmpi-bin libopenmpi-dev)"
