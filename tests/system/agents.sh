# SPDX-License-Identifier: Apache-2.0
# Sourced by scripts that run in the testbed. POSIX sh.

# agent_at HOST PROGRAM: the process number of the agent there, which is the parent of its ranks. One listing of processes can miss one of
# them or its command line, so it is taken again for some time.
agent_at() {
    for _ in $(seq 100); do
        ssh "$1" ps -eo ppid=,args= | awk -v name="/$2" '$1 > 1 && substr($2, length($2) - length(name) + 1) == name { print $1; exit }' >agent.pid
        [ -s agent.pid ] && cat agent.pid && return
        sleep 0.2
    done
    echo "no agent of $2 at $1: $(ssh "$1" ps -eo pid,ppid,args)" >&2
    return 1
}
kill_agent() { ssh "$1" kill -KILL "$(agent_at "$1" "$2")"; }
