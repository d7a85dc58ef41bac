#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What ssh asks and what a site says before we run there: one passphrase at a time, with the name of the site and without echo; a changed key of a
# host; login scripts that print, end or never come to an end.
. "$(dirname "$0")/common.sh"
need_testbed
command -v script >/dev/null 2>&1 || skip "no script (package bsdutils)"
cat >run.sh <<'S'
set -u
complain() { echo "FAIL: $*"; exit 1; }
ssh-keygen -q -p -f "$ISTHMUS_TESTBED/ssh/user_key" -P '' -N sesame >/dev/null || complain "ssh-keygen"
mkfifo keys
: >screen
script -qefc "isthmus run --site b1:1 --site c1:1 -- sh -c 'echo ran on \$(hostname)'" screen <keys >/dev/null 2>&1 & job=$!
exec 3>keys
asked() { for _ in $(seq 600); do [ "$(grep -c 'Enter passphrase' screen)" -ge "$1" ] && return; sleep 0.1; done; tr "\r" "\n" <screen | grep -a -v "staging\|^$" | head -40; complain "question $1 is not on the terminal"; }
asked 1
# While one is asked, the other one waits.
sleep 2
[ "$(grep -c 'Enter passphrase' screen)" = 1 ] || complain "two questions at a time: $(cat screen)"
echo sesame >&3
asked 2
echo sesame >&3
wait $job || { tr "\r" "\n" <screen | tail -n 5; complain "exit status"; }
exec 3>&-
grep -q sesame screen && complain "the passphrase is on the screen"
grep -aq "isthmus: site 'b1': Enter passphrase" screen && grep -aq "isthmus: site 'c1': Enter passphrase" screen || complain "the questions do not name their sites: $(cat screen)"
[ "$(grep -ac 'ran on [bc]1' screen)" = 2 ] || complain "$(cat screen)"
# A job in the background asks before it leaves the terminal, and outlives that.
: >screen
script -qefc "isthmus run --detach --name still --site b1:1 --site c1:1 -- sleep 1000" screen <keys >/dev/null 2>&1 & job=$!
exec 3>keys
asked 1
echo sesame >&3
asked 2
echo sesame >&3
wait $job || complain "--detach: exit status: $(cat screen)"
exec 3>&-
tr -d '\r' <screen | grep -aq '[0-9a-f]\{8\}$' || complain "--detach prints no name: $(cat screen)"
[ "$(isthmus ps --long | grep -c 'b1\|c1')" -ge 2 ] || complain "the job has ended with its terminal"
isthmus kill still || { isthmus logs still; complain "kill"; }
# A wrong answer is an error of the command.
: >screen
script -qefc "isthmus run --detach --site b1:1 -- sleep 1000" screen <keys >/dev/null 2>&1 & job=$!
exec 3>keys
for n in 1 2 3; do asked $n; echo wrong >&3; done
wait $job && complain "--detach without the passphrase: status 0"
exec 3>&-
tr -d '\r' <screen | grep -aq 'Permission denied' || complain "why it did not begin: $(cat screen)"
S
cat >noise.sh <<'S'
set -u
complain() { echo "FAIL: $*"; cat err; exit 1; }
cat >fake <<'F'
#!/bin/sh
case " $* " in *" -G "*) exit 1 ;; esac
case $MODE in
changed) printf '@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@\nThe fingerprint for the ED25519 key sent by the remote host is\nSHA256:abc.\nHost key verification failed.\n' >&2; exit 255 ;;
unknown) echo 'Host key verification failed.' >&2; exit 255 ;;
nologin) echo 'This account is currently not available.'; exit 1 ;;
ended) exit 0 ;;
raw) printf '\033[2Jnot for \033]0;you\007\n'; printf '\033[31mneither\n' >&2; exit 1 ;;
quiet) printf 'welcome\n' >&2; exec sleep 1000 ;;
esac
F
chmod +x fake
try() { MODE=$1 ISTHMUS_SSH=$PWD/fake isthmus run --site b1:1 true >out 2>err </dev/null && complain "$1: status 0"; }
try changed
grep -q 'IDENTIFICATION HAS CHANGED' err && grep -q 'hint: the host shows a different key than before' err || complain "a changed key"
grep 'hint:' err | grep -qi accept && complain "the advice is to accept a changed key"
try unknown
grep -q 'hint: the key of the host is not known here: .*compare the fingerprint' err || complain "an unknown key"
try nologin
grep -q "it printed: 'This account is currently not available.'" err || complain "nologin"
try ended
grep -q "site 'b1': its login shell ended without having run what it was given" err || complain "exit 0 in a login script"
try raw
grep -q 'not for' err && grep -q neither err || complain "what it said is not told"
LC_ALL=C grep -q "$(printf '\033')" err && complain "what a site says reaches the terminal raw"
MODE=quiet ISTHMUS_SSH=$PWD/fake isthmus run --site b1:1 true >out 2>err </dev/null & job=$!
for _ in $(seq 900); do grep -q 'no answer for 30 s' err && break; sleep 0.1; done
kill $job
wait $job
grep -q "site 'b1': no answer for 30 s after ssh was started; it said: welcome; do its login scripts" err || complain "a silent site is not told of"
isthmus run -n 1 echo lost >/dev/full 2>err </dev/null && complain "full: status 0"
grep -q 'output cannot be written: standard output: No space left on device$' err || complain "a full standard output"
isthmus info >/dev/full 2>err && complain "info on a full disk: status 0"
grep -q 'cannot write to standard output: No space left on device$' err || complain "info on a full disk"
for words in --help --version "run --help" "help kill"; do
    isthmus $words >/dev/full 2>err && complain "$words on a full disk: status 0"
    grep -q 'cannot write to standard output: No space left on device$' err || complain "$words on a full disk"
    isthmus $words >&- 2>err && complain "$words with a closed standard output: status 0"
done
# Closed streams: what is lost is told, or at least no success; nothing to say is nothing lost.
for launcher in "isthmus run" mpiexec; do
    $launcher -n 1 echo lost >&- 2>err </dev/null && complain "$launcher with a closed standard output: status 0"
    grep -q 'output cannot be written: standard output: it is closed' err || complain "$launcher with a closed standard output"
    $launcher -n 1 sh -c 'echo lost >&2' >out 2>&- </dev/null && complain "$launcher with a closed standard error: status 0"
    $launcher -n 1 sh -c 'echo lost; echo lost >&2' >&- 2>&- <&- && complain "$launcher with nothing but closed streams: status 0"
    $launcher -n 1 cat >&- 2>&- <&- || complain "$launcher: nothing was lost"
done
isthmus run --trace traced -n 1 true || complain "a trace"
for command in "info" "links" "ps --json" "job example" "trace traced"; do
    isthmus $command >&- 2>err && complain "$command with a closed standard output: status 0"
    grep -q 'cannot write to standard output: it is closed' err || complain "$command with a closed standard output"
done
# Whoever reads has read enough: the reader is gone before the command begins.
mkfifo read
isthmus run --detach --name said -n 1 echo said >err || complain "--detach"
isthmus attach said >err || complain "attach"
for command in "info" "trace traced" "logs said"; do
    : <read & reader=$!
    { wait $reader; isthmus $command; } >read 2>err || complain "$command without a reader: status $?"
    [ -s err ] && complain "$command without a reader"
done
printf '#!/no/such/interpreter\n' >bad
chmod +x bad
isthmus run -n 1 ./bad >out 2>err && complain "a bad interpreter: status 0"
grep -q "os error" err && complain "numbers of errors"
[ -z "$(tail -c 1 err)" ] || complain "no newline at the end"
S
sh noise.sh || fail "see above"
isthmus-testbed run --sites 3x1 --rtt 4ms -- sh run.sh || fail "see above"
echo "questions of ssh are asked one by one, and what sites say is quoted"
