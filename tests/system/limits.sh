#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Limits of the system and files that are none: a command works, or says in one sentence what it lacks. Words of the user that a terminal would
# obey, or that are not UTF-8, do no harm. Without the testbed.
. "$(dirname "$0")/common.sh"
for tool in isthmus mpiexec mpicc bash; do
    command -v "$tool" >/dev/null 2>&1 || skip "no $tool in PATH"
done
HOME=$work
export HOME
unset XDG_CACHE_HOME XDG_CONFIG_HOME

# says STATUS WORDS COMMAND: what bash does of it.
says() {
    status=$1 words=$2
    shift 2
    timeout -k 5 60 bash -c "$1" >out 2>err </dev/null
    got=$?
    [ $got = "$status" ] || { cat out err; fail "$1: exit status $got, not $status"; }
    grep -q panicked err && { cat err; fail "$1: a panic"; }
    LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177-\377]')" err && { cat -v err; fail "$1: raw bytes"; }
    [ -z "$words" ] && [ "$(grep -c error: err)" = 0 ] && return
    grep -q "$words" err && [ "$(grep -c error: err)" = 1 ] || { cat out err; fail "$1: not one sentence with '$words'"; }
}
says 0 '' 'ulimit -s 64; isthmus run -n 2 true'
says 0 '' 'ulimit -s 64; mpiexec -n 1 sh -c "ulimit -s" | grep -q "^64$"'
says 2 'needs 24 open files, and the limit is 8' 'ulimit -n 8; isthmus run -n 2 true'
printf '#include <mpi.h>\nint main(void) { MPI_Init(0, 0); return MPI_Finalize(); }\n' >init.c
mpicc init.c -o init || fail "mpicc init.c"
says 16 'the stack of this process is limited to 65536 bytes' 'ulimit -s 64; isthmus run -n 1 ./init'
# What is said here is a file too.
says 2 'and the limit is 0$' 'set -o pipefail; (ulimit -f 0; mpiexec -n 2 true) 2>&1 | cat >&2'
# A process hears it from MPI_Init, the launcher from what it writes: no signal ends either.
says 16 'the limit on the size of files (ulimit -f) counts for shared memory' 'ulimit -f 1024; isthmus run -n 2 ./init'
says 1 'output cannot be written: standard output: File too large' \
    'ulimit -f 1024; isthmus run -n 1 head -c 3000000 /dev/zero >large'
says 1 'output cannot be written: .*/files/rank-0.out: File too large' \
    'ulimit -f 1024; isthmus run -n 1 --output-dir files head -c 3000000 /dev/zero'
# What a program has of that signal is what the launcher was given.
says 153 'signal 25 (SIGXFSZ)' 'ulimit -f 1024; isthmus run -n 1 sh -c "exec head -c 3000000 /dev/zero >large"'
says 1 'exited with status 1' 'trap "" XFSZ; ulimit -f 1024; isthmus run -n 1 sh -c "exec head -c 3000000 /dev/zero >large"'
rm -rf large files
# Whoever starts a job may ignore the end of its children, as some daemons do.
says 3 'exited with status 3' 'trap "" CHLD; isthmus run -n 2 sh -c "exit 3"'
says 0 '' 'trap "" CHLD; mpiexec -n 2 sh -c "sleep 0; true"'
# How little address space is too little depends on the machine; nothing panics or hangs.
unset RUST_BACKTRACE
program=$(du -k "$(command -v isthmus)" | cut -f1)
for size in 30000 60000 90000 120000 150000 200000; do
    # The kernel does not begin a program that does not fit.
    [ "$size" -gt "$program" ] || continue
    timeout -k 5 60 bash -c "ulimit -v $size; isthmus run -n 2 true" >out 2>err </dev/null
    got=$?
    [ $got -lt 124 ] && ! grep -q panicked err || { cat err; fail "ulimit -v $size: exit status $got"; }
    [ $got = 0 ] || grep -q error: err || { cat err; fail "ulimit -v $size: nothing is said"; }
done
says 1 'processes need .* open files' 'ulimit -n 30; isthmus run -n 2 true'
# What is said to be enough is.
says 1 '64 processes need 320 open files' 'ulimit -n 319; isthmus run -n 64 ./init'
says 0 '' 'ulimit -n 320; isthmus run -n 64 ./init'
says 153 'signal 25 (SIGXFSZ)' 'isthmus run -n 1 bash -c "ulimit -f 1; exec cat /dev/zero >large"'
grep -q 'hint: .*ulimit -f' err || { cat err; fail "no word of the limit"; }

for file in /dev/zero /; do
    says 2 "cannot read host file '$file'" "mpiexec -hostfile $file -n 2 true"
    says 2 "cannot read configuration file '$file'" "mpiexec -configfile $file"
    says 2 "cannot read job file '$file'" "isthmus job convert --to rsl $file"
    says 2 "cannot read file of links '$file'" "isthmus run --links $file -n 1 true"
    says 2 "cannot read topology file '$file'" "isthmus explain bcast 1KiB --topology $file"
done
# What comes through a pipe is read.
says 0 '' 'mpiexec -hostfile <(echo localhost:2) -n 2 true'
mkfifo -m 755 pipe
says 1 'is a pipe, a socket or a device, not a program' 'isthmus run -n 1 ./pipe'

for command in kill attach logs where 'top --once' report; do
    timeout 60 isthmus $command "$(printf 'x\033[2J\007\377')" >out 2>err </dev/null && fail "$command: status 0"
    LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177-\377]')" out err && { cat -v err; fail "$command: raw bytes"; }
done
odd=$(printf 'd\351p\364t')
mkdir "$odd" "$odd/$odd"
echo inside >"$odd/$odd/$odd"
isthmus cp "isthmus://home/$work/$odd/$odd/$odd" "copy-$odd" 2>err || { cat err; fail "isthmus cp of what is not UTF-8"; }
[ "$(cat "copy-$odd")" = inside ] || fail "the copy has another name: $(ls)"

# A directory that one may enter and not list is one to work in.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null 2>&1; then
    mkdir -m 777 other enter
    cp /bin/true enter/program
    chmod 111 enter
    chmod 755 "$work"
    # The other user may have no way into the directory where the build is: a home that is closed.
    mkdir -p theirs/bin
    cp "$(command -v isthmus)" theirs/bin/
    cp -R "$(dirname "$(command -v isthmus)")/../lib" theirs/
    chmod -R go+rX theirs
    other="HOME=$work/other PATH=$work/theirs/bin:/usr/bin:/bin setpriv --clear-groups"
    says 0 '' "$other --reuid=12345 isthmus run -C enter -n 2 ./program"
    says 1 'cannot use the working directory .*Permission denied' \
        "chmod 0 enter; cd enter; $other --reuid=12345 isthmus run -n 2 true"
    says 2 'isthmus cannot start the threads that it needs' \
        "$other --reuid=12346 bash -c 'ulimit -u 1; exec isthmus run -n 2 true'"
fi
echo "limits and files that are none are named"
