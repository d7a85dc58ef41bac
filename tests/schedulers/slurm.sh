# SPDX-License-Identifier: Apache-2.0
# Sourced on a host of the testbed: Debian's Slurm on other hosts of it. Nothing outlives the testbed. POSIX sh.

# slurm_start WORK CONTROLLER NODE...: munged everywhere, slurmctld on the controller, slurmd with 4 processors on each node. With
# lines for accounting in $slurm_accounts, after slurm_database.
slurm_start() {
    slurm=$1/slurm controller=$2
    shift 2
    mkdir -p "$slurm/state"
    dd if=/dev/urandom of="$slurm/munge.key" bs=128 count=1 2>/dev/null
    chmod 400 "$slurm/munge.key"
    nodes=$(echo "$*" | tr ' ' ',')
    cat >"$slurm/slurm.conf" <<CONF
ClusterName=testbed
SlurmctldHost=$controller
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation=$slurm/state
SlurmdSpoolDir=/run/slurm/spool
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmdPidFile=/run/slurm/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=2,bf_interval=2
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
InactiveLimit=0
KillWait=3
MinJobAge=300
SlurmctldTimeout=60
SlurmdTimeout=20
NodeName=$nodes CPUs=4 RealMemory=500 State=UNKNOWN
PartitionName=main Nodes=$nodes Default=YES MaxTime=60 State=UP
PartitionName=short Nodes=$nodes MaxTime=1 OverTimeLimit=0 State=UP
$slurm_accounts
CONF
    printf 'CgroupAutomount=no\nConstrainCores=no\n' >"$slurm/cgroup.conf"
    for host in "$controller" "$@"; do
        ssh "$host" "mount --bind '$slurm' /etc/slurm && mkdir -p /run/slurm/spool /run/munge && chmod 755 /run/munge &&
            munged --force --key-file='$slurm/munge.key' --socket=/run/munge/munge.socket.2 --pid-file=/run/munge/munged.pid \
                --log-file=/run/munge/log --seed-file=/run/munge/seed" || return 1
    done
    [ -z "$slurm_accounts" ] || slurm_database || return 1
    ssh "$controller" "setsid slurmctld -D >'$slurm/slurmctld.log' 2>&1 </dev/null &"
    for host in "$@"; do
        ssh "$host" "setsid slurmd -D -N $host >'$slurm/slurmd-$host.log' 2>&1 </dev/null &"
    done
    for try in $(seq 60); do
        [ "$(ssh "$controller" sinfo -h -N -p main -t idle -o %N 2>/dev/null | wc -l)" = $# ] && return 0
        sleep 1
    done
    tail -n 5 "$slurm"/*.log
    return 1
}

# Jobs in the queue, one a line.
slurm_queue() { ssh "$controller" "squeue -h -o '%i %T %r'"; }
# Keeps all processors busy; prints the job.
slurm_fill() { ssh "$controller" "echo '#!/bin/sh
sleep 600' | sbatch --parsable --exclusive --nodes=2 -o /dev/null"; }
slurm_running() { ssh "$controller" "squeue -h -t R,S -o %i"; }
slurm_suspend() { ssh "$controller" scontrol suspend "$(slurm_running)"; }
slurm_resume() { ssh "$controller" scontrol resume "$(slurm_running)"; }
slurm_empty() { ssh "$controller" scancel "$1"; }
slurm_files() { echo "'$slurm' /run/slurm /run/munge /var/log"; }
slurm_tells() { ssh "$controller" 'scontrol -dd show job; sacct -P 2>/dev/null'; }
