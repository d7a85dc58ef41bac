# SPDX-License-Identifier: Apache-2.0
# Sourced on a host of the testbed: what holds for every way to start processes at a site. POSIX sh.
#
# conform NAME SITE OPTIONS: SITE is a host, OPTIONS what follows it in --site (",scheduler=slurm"). The functions NAME_queue (jobs in
# the queue, one a line), NAME_fill (keeps the processors busy, prints what NAME_empty takes) and NAME_empty are called where there
# is a queue. Programs: ./ring (MPI), ./talk (no MPI).

check() { printf 'ok %s: %s\n' "$conforming" "$*"; }

# start SECONDS OPTIONS...: a job with its output in out and err and its status in $status.
start() {
    limit=$1
    shift
    timeout -k 5 "$limit" isthmus run "$@" >out 2>err </dev/null
    status=$?
}

# The queue is empty within 15 s.
nothing_left() {
    [ "$queued" = yes ] || return 0
    for try in $(seq 30); do
        [ -z "$("${conforming}_queue")" ] && return 0
        sleep 0.5
    done
    "${conforming}_queue"
    fail "$conforming: a job is left in the queue"
}

# no_secret_is_seen HOST...: while a job runs. NAME_files lists directories of the scheduler, as seen from the hosts.
no_secret_is_seen() {
    secret=$(ssh "$site" 'cat ~/.cache/isthmus/jobs/*/secret')
    [ ${#secret} = 64 ] || fail "$conforming: no secret in the directory of the submission: $secret"
    for host in "$@"; do
        ssh "$host" ps axww -o args | grep -q "$secret" && fail "$conforming: the secret is an argument at $host"
        seen=$(ssh "$host" "find $("${conforming}_files") -type f -perm -004 -exec grep -l $secret {} + 2>/dev/null")
        [ -z "$seen" ] || fail "$conforming: everybody can read the secret in $seen at $host"
    done
    "${conforming}_tells" | grep -q "$secret" && fail "$conforming: the scheduler tells the secret"
    check "no secret in arguments, world-readable files, logs, or what the scheduler tells"
}

# The scheduler stops the job for longer than nodes may be silent, and lets it go on.
stopped_and_resumed() {
    "${conforming}_suspend"
    for try in $(seq 60); do grep -q '"state":"suspended"' events && break; sleep 0.5; done
    grep -q '"state":"suspended"' events || { cat events err; fail "$conforming: a suspended job is not told"; }
    sleep 15
    "${conforming}_resume"
    for try in $(seq 60); do grep '"event":"state"' events | tail -n 1 | grep -q '"state":"\(active\|pending\)"' && break; sleep 0.5; done
    grep '"event":"state"' events | tail -n 1 | grep -q suspended && { cat events err; fail "$conforming: a resumed job is not told"; }
    kill -0 $job || { cat events err; fail "$conforming: a suspended job has ended"; }
    check "suspended for 15 s, and resumed"
}

# refused WORDS OPTIONS...: the launcher says so at once, and nothing waits in a queue.
refused() {
    words=$1
    shift
    start 30 "$@" ./ring
    [ $status = 1 ] && grep -q "$words" err || { cat out err; fail "$conforming: '$words' is not said (status $status): $*"; }
    nothing_left
}

# What can never start is refused with the scheduler's numbers; who uses the machine without its scheduler is told.
never_or_beside() {
    refused "has no queue 'nowhere'" --site "$site:1$options,queue=nowhere"
    refused 'can never start: it asks for 99 processors.* has 8$' --site "$site:99$options"
    [ "$conforming" != slurm ] || refused "can never start: it asks for 3 nodes, and queue 'main' of Slurm has 2$" --site "$site:3$options,nodes=3"
    [ "$conforming" != slurm ] || refused "it asks for 2 h, and queue 'main' of Slurm has a limit of 1 h" --site "$site:1$options,limit=2h"
    # What only the scheduler knows, in its words.
    case $conforming in
    slurm) refused 'Slurm refused the job: .*[Rr]eservation' --site "$site:1$options,directive=--reservation=nowhere" ;;
    grid_engine) refused 'Grid Engine refused the job: .*no suitable queues' --site "$site:5$options,directive=-pe,directive=pack,directive=5" ;;
    esac
    start 60 --site "$site:2" sleep 5
    [ $status = 0 ] && grep -q "site '$site': its processes run on this machine itself .*--site $site:2$options uses that" err ||
        { cat out err; fail "$conforming: no word of the scheduler that is passed by"; }
    start 60 --site "$site:2,scheduler=fork" sleep 5
    [ $status = 0 ] && [ ! -s err ] || { cat out err; fail "$conforming: a word to who means it"; }
    check "what can never start is refused, a scheduler that is passed by is told of"
}

conform() {
    conforming=$1 site=$2 options=$3
    queued=yes
    [ "$conforming" = fork ] && queued=no

    [ "$queued" = no ] || never_or_beside
    start 120 --site "$site:4$options" ./ring
    [ $status = 0 ] && grep -q '^4 processes: ring is right$' out || { cat out err; fail "$conforming: MPI"; }
    check "four MPI processes"
    nothing_left

    # From the machine itself, which is home then: where the user stands.
    ssh "$site" "cd '$PWD' && PATH='$PATH' timeout -k 5 60 isthmus run --site 'home:2$options' ./ring" </dev/null >out 2>err
    [ $? = 0 ] && grep -q '^2 processes: ring is right$' out || { cat out err; fail "$conforming: from the machine itself"; }
    check "submitted at home"
    nothing_left

    start 120 --site "$site:3$options" ./talk lines 20000
    [ $status = 0 ] && [ "$(sort -u out | wc -l)" = 60000 ] || { head out err; wc -l out; fail "$conforming: output"; }
    check "60000 lines of output, none lost or torn"

    start 120 --site "$site:2$options" ./talk status 7
    [ $status = 7 ] && grep -q 'exited with status 7' err || { cat err; fail "$conforming: exit status $status"; }
    check "an exit status: $(grep error: err)"
    nothing_left

    head -c 300000 /dev/urandom >input
    timeout -k 5 120 isthmus run --site "$site:2$options" ./talk copy <input >out 2>err || { cat err; fail "$conforming: input"; }
    cmp input out || fail "$conforming: input is not what it was"
    check "300000 bytes of standard input come back"

    start 120 --site "$site:2$options" --env "HOSTILE=it's \$(touch hacked) \`x\` \"" ./talk variable HOSTILE
    [ "$(sort -u out)" = "it's \$(touch hacked) \`x\` \"" ] || { cat out err; fail "$conforming: variables"; }
    check "variables with anything in them"

    timeout -k 5 120 isthmus run --events events --site "$site:2$options" ./talk sleep </dev/null >out 2>err &
    job=$!
    for try in $(seq 120); do [ "$(grep -c sleeping out)" = 2 ] && break; sleep 0.5; done
    [ "$(grep -c sleeping out)" = 2 ] || { cat out err; fail "$conforming: nobody sleeps"; }
    [ "$queued" = yes ] && no_secret_is_seen "$site" $(sed -n 's/^sleeping at //p' out | sort -u)
    command -v "${conforming}_suspend" >/dev/null && stopped_and_resumed
    kill -INT "$(pgrep -P $job -x isthmus)"
    wait $job
    status=$?
    [ $status = 130 ] && grep -q interrupted err || { cat err; fail "$conforming: interrupt, status $status"; }
    for host in $site $(sed -n 's/^sleeping at //p' out | sort -u); do
        ssh "$host" pgrep -x talk && fail "$conforming: processes are left at $host"
    done
    check "an interrupt: $(grep error: err)"
    nothing_left

    [ "$queued" = yes ] || return 0

    start 120 --site "$site:2$options,limit=15s" ./talk sleep
    [ $status = 1 ] && [ "$(grep -c 'error:' err)" = 1 ] && grep -q 'time limit' err || { cat err; fail "$conforming: limit, status $status"; }
    check "a time limit: $(grep error: err)"
    nothing_left

    full=$("${conforming}_fill")
    sleep 2
    timeout -k 5 200 isthmus run --site home:1 --site "$site:2$options" ./ring </dev/null >out 2>err &
    job=$!
    sleep 20
    grep -q 'waits in the queue' err || { cat err; "${conforming}_queue"; fail "$conforming: nobody says that the job waits"; }
    [ -s out ] && { cat out; fail "$conforming: a process ran before the barrier was open"; }
    "${conforming}_empty" "$full"
    wait $job || { cat out err; fail "$conforming: a job that was held, status $?"; }
    grep -q '^3 processes: ring is right$' out || { cat out err; fail "$conforming: a job that was held"; }
    check "held in the queue, then run: $(grep waits err | head -n 1)"
    nothing_left

    full=$("${conforming}_fill")
    sleep 2
    before=$("${conforming}_queue" | wc -l)
    timeout -k 5 60 isthmus run --site "$site:2$options" ./ring </dev/null >out 2>err &
    job=$!
    sleep 8
    [ "$("${conforming}_queue" | wc -l)" -gt "$before" ] || { "${conforming}_queue"; cat err; fail "$conforming: the job is not in the queue"; }
    kill -INT "$(pgrep -P $job -x isthmus)"
    wait $job
    [ $? = 130 ] || { cat err; fail "$conforming: interrupt in the queue"; }
    for try in $(seq 20); do [ "$("${conforming}_queue" | wc -l)" = "$before" ] && break; sleep 0.5; done
    [ "$("${conforming}_queue" | wc -l)" = "$before" ] || { "${conforming}_queue"; fail "$conforming: an interrupt leaves the job in the queue"; }
    "${conforming}_empty" "$full"
    check "an interrupt takes a waiting job out of the queue"
    nothing_left
}
