# SPDX-License-Identifier: Apache-2.0
# Sourced on a host of the testbed: Debian's Grid Engine on other hosts of it. Nothing outlives the testbed. POSIX sh.

# grid_engine_start WORK MASTER NODE...: sge_qmaster on one host, sge_execd with 4 slots on the others; parallel environments
# `pack` (all on one node) and `spread` (round robin).
grid_engine_start() {
    sge=$1/sge master=$2
    shift 2
    nodes=$*
    admin='setpriv --reuid=sgeadmin --regid=sgeadmin --init-groups'
    mkdir -p "$sge/spool/qmaster/job_scripts" "$sge/spool/spooldb" "$sge/spool/execd"
    cp -a /var/lib/gridengine "$sge/root"
    chown -R sgeadmin:sgeadmin "$sge/spool" "$sge/root/default"
    echo "$master" >"$sge/root/default/common/act_qmaster"
    # Edits what qconf opens in an editor.
    cat >"$sge/edit" <<END
#!/bin/sh
exec sed -i -e "\$(cat '$sge/change')" "\$1"
END
    chmod 755 "$sge/edit"
    for host in "$master" $nodes; do
        ssh "$host" "mount --bind '$sge/root' /var/lib/gridengine && mount --bind '$sge/spool' /var/spool/gridengine" || return 1
    done
    ssh "$master" "$admin /usr/share/gridengine/scripts/init_cluster /var/lib/gridengine default /var/spool/gridengine/spooldb sgeadmin" \
        >"$sge/log" 2>&1 || { tail "$sge/log"; return 1; }
    ssh "$master" "setsid sge_qmaster >>'$sge/log' 2>&1 </dev/null"
    for try in $(seq 30); do
        ssh "$master" "$admin qconf -am root" >>"$sge/log" 2>&1 && break
        sleep 1
    done
    ge_qconf() { ssh "$master" "EDITOR='$sge/edit' qconf $*" >>"$sge/log" 2>&1 || { echo "qconf $*"; tail -n 5 "$sge/log"; return 1; }; }
    ge_qconf -as "$master" && ge_qconf -ah "$(echo "$nodes" | tr ' ' ',')" || return 1
    echo 's/^schedule_interval.*/schedule_interval 0:0:2/;s/^flush_submit_sec.*/flush_submit_sec 1/;s/^flush_finish_sec.*/flush_finish_sec 1/' >"$sge/change"
    ge_qconf -msconf || return 1
    echo 's/^reporting_params.*/reporting_params accounting=true reporting=false flush_time=00:00:01 joblog=false sharelog=00:00:00/;s/^min_uid.*/min_uid 0/;s/^min_gid.*/min_gid 0/' >"$sge/change"
    ge_qconf -mconf || return 1
    for node in $nodes; do
        ssh "$node" "setsid sge_execd >>'$sge/log' 2>&1 </dev/null"
    done
    for rule in 'pack $pe_slots' 'spread $round_robin'; do
        echo "s/^slots.*/slots 99/;s/^allocation_rule.*/allocation_rule ${rule#* }/;s/^control_slaves.*/control_slaves TRUE/" >"$sge/change"
        ge_qconf -ap "${rule% *}" || return 1
    done
    echo "s/^hostlist.*/hostlist $nodes/;s/^slots.*/slots 4/;s/^pe_list.*/pe_list pack spread/;s/^load_thresholds.*/load_thresholds NONE/" >"$sge/change"
    ge_qconf -aq main.q || return 1
    for try in $(seq 60); do
        [ "$(ssh "$master" "qstat -f -q main.q" | awk '$1 ~ /^main.q@/ && NF == 5' | wc -l)" = $# ] && return 0
        sleep 1
    done
    ssh "$master" qstat -f
    tail -n 5 "$sge/log"
    return 1
}

grid_engine_queue() { ssh "$master" qstat | sed 1,2d; }
grid_engine_fill() {
    for node in $nodes; do
        echo 'sleep 600' | ssh "$master" "qsub -terse -S /bin/sh -o /dev/null -j y -l hostname=$node -pe pack 4"
    done | tr '\n' ' '
}
grid_engine_empty() { ssh "$master" qdel $1 >/dev/null; }
grid_engine_files() { echo "'$sge' /var/spool/gridengine /var/log"; }
grid_engine_tells() { ssh "$master" "qstat -j '*'"; }
