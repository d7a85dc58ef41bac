#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What Slurm's accounting does not let through: accounts, qualities of service and what they allow, reservations, features and other
# resources. Each is refused at once, in Slurm's words. Inside the testbed, with a database of its own. usage: accounts.sh
here=$(cd "$(dirname "$0")" && pwd)
if [ "$1" != inside ]; then
    . "$here/../system/common.sh"
    [ "$(id -u)" = 0 ] || skip "the schedulers' daemons are started by root"
    need_testbed
    for tool in slurmctld slurmd munged sbatch slurmdbd mariadbd; do
        command -v "$tool" >/dev/null 2>&1 || skip "no $tool: sh ci/schedulers.sh --install"
    done
    mpicc -std=c11 -D_GNU_SOURCE -O2 "$here/ring.c" -o ring || fail "mpicc ring.c"
    printf 'sites = [{ name = "a" }, { name = "b", hosts = 3 }]\n[link]\nround_trip = "2ms"\nrate = "unlimited"\n' >bed.toml
    isthmus-testbed run --topology bed.toml -- sh "$here/accounts.sh" inside "$work"
    exit
fi

cd "$2" || exit 1
fail() { printf 'FAIL: %s\n' "$*" >&2; exit 1; }
. "$here/slurm.sh"
slurm_database() {
    mkdir -p "$slurm/db"
    cat >"$slurm/slurmdbd.conf" <<CONF
AuthType=auth/munge
DbdHost=b1
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StoragePass=testbed
StorageLoc=accounts
LogFile=$slurm/slurmdbd.log
PidFile=/run/slurm/slurmdbd.pid
CONF
    chmod 600 "$slurm/slurmdbd.conf"
    ssh b1 "mkdir -p /run/mysqld; mariadb-install-db --user=root --datadir='$slurm/db' --auth-root-authentication-method=normal >/dev/null 2>&1
        setsid mariadbd --user=root --datadir='$slurm/db' --skip-networking >'$slurm/db.log' 2>&1 </dev/null &"
    wait_for "mariadb -uroot -e \"alter user root@localhost identified by 'testbed'\"" || return 1
    ssh b1 "setsid slurmdbd -D >'$slurm/slurmdbd.out' 2>&1 </dev/null &"
    wait_for "sacctmgr -n list cluster" || return 1
    for words in 'add cluster testbed' 'add account physics' 'add user root account=physics' \
        'add qos tiny set MaxTRESPerJob=cpu=1 flags=DenyOnLimit' 'modify user root set qos+=tiny'; do
        ssh b1 "sacctmgr -i $words" >"$slurm/accounts" 2>&1 || { cat "$slurm/accounts"; return 1; }
    done
}
# wait_for COMMAND: it succeeds on the controller within a minute.
wait_for() { for try in $(seq 60); do ssh b1 "$1" >/dev/null 2>&1 && return 0; sleep 1; done; return 1; }
slurm_accounts='AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=b1
AccountingStorageEnforce=associations,limits,qos
GresTypes=gpu'
slurm_start "$2" b1 b1n2 b1n3 || fail "Slurm does not come up"

site=b1:2,scheduler=slurm
for options in '' ,account=physics; do
    timeout -k 5 60 isthmus run --site "$site$options" ./ring >out 2>err </dev/null || { cat out err; fail "'$options' is not taken"; }
done
# refused OPTION WORDS: the job does not wait in the queue.
refused() {
    timeout -k 5 60 isthmus run --site "$site,$1" ./ring >out 2>err </dev/null
    status=$?
    [ $status = 1 ] && grep -q "^isthmus: error: site 'b1': .*$2" err || { cat out err; fail "$1: status $status"; }
    echo "ok: $1: $(sed -n 's/^isthmus: error: //p' err)"
}
refused account=none 'Invalid account'
refused directive=--qos=none 'Invalid qos'
refused directive=--qos=tiny 'QOS'
refused directive=--reservation=none 'reservation is invalid'
refused directive=--constraint=none 'Invalid feature'
refused directive=--gres=gpu:4 'not available'
refused directive=--mem=100G 'Memory specification'
refused directive=--licenses=none:1 'Invalid license'
refused directive=--nodelist=none 'Invalid node name'
refused directive=--cluster=none "No cluster 'none'"
refused directive=--nonsense 'unrecognized option'
refused queue=none "no queue 'none'"
refused limit=10h 'can never start'
# Without that flag Slurm takes the job, to let it wait for ever, with a reason.
ssh b1 "sacctmgr -i modify qos tiny set flags-=DenyOnLimit" >out 2>&1 || { cat out; fail "sacctmgr"; }
refused directive=--qos=tiny 'QOSMaxCpuPerJobLimit'
[ -z "$(slurm_queue)" ] || { slurm_queue; fail "a job is left in the queue"; }
