#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# At a terminal: prompts appear; a job can be sent to the background; an interactive subjob that fails is asked about; what is typed then is the answer, and what is typed after that is for the program.
. "$(dirname "$0")/common.sh"
command -v isthmus >/dev/null 2>&1 || skip "no isthmus in PATH"
command -v script >/dev/null 2>&1 || skip "no script (package bsdutils)"

# seen TEXT: on the terminal, within 20 s.
seen() {
    n=0
    until grep -q "$1" screen; do
        n=$((n + 1))
        [ $n -lt 200 ] || { cat screen; fail "'$1' is not on the terminal"; }
        sleep 0.1
    done
}
mkfifo keys
: >screen
ISTHMUS_SSH=false ISTHMUS_DOCTOR=0 script -qefc "isthmus run --site home:1 --site x=nowhere:1,need=interactive -- sh -c 'read line; echo got \$line'" screen <keys >/dev/null 2>&1 &
job=$!
exec 3>keys
seen "what should happen to 'x'"
echo perhaps >&3
seen 'answer drop: go on without it'
echo drop >&3
seen 'the job goes on without it'
echo for the program >&3
seen 'got for the program'
exec 3>&-
wait $job || { cat screen; fail "exit status"; }

# A prompt has no line end: it is there before the answer is typed, and what the launcher says then begins on a new line.
rm keys
mkfifo keys
: >screen
script -qefc "isthmus run -n 1 -- sh -c 'printf \"how many\"; printf \"? \"; read n; echo got \$n; printf more; kill -9 \$\$'" screen <keys >/dev/null 2>&1 &
job=$!
exec 3>keys
seen 'how many? '
echo 12 >&3
seen 'got 12'
exec 3>&-
wait $job && { cat screen; fail "a process that was killed: status 0"; }
grep -q '^more.$' screen && grep -q '^isthmus: .*signal 9' screen || { cat -v screen; fail "our line does not begin on a new one"; }

# A job that is sent to the background goes on there, and gets what is typed when it is in the foreground again.
rm keys
mkfifo keys
: >screen
script -qefc "bash --norc --noprofile -i" screen <keys >/dev/null 2>&1 &
job=$!
exec 3>keys
cat >slow.sh <<'S'
#!/bin/sh
echo begun
until [ -e go-on ]; do sleep 0.1; done
echo went on
read line
echo got $line
S
chmod +x slow.sh
echo 'isthmus run -n 2 ./slow.sh' >&3
seen begun
printf '\032' >&3
seen 'Stopped'
echo bg >&3
seen 'run -n 2 ./slow.sh &'
# What is typed there now is for the shell.
echo 'echo the shell $((1 + 1))' >&3
seen 'the shell 2'
touch go-on
seen 'went on'
echo fg >&3
echo 'typed later' >&3
seen 'got typed later'
echo exit >&3
exec 3>&-
wait $job
echo "answers go to the launcher, the rest to the program; prompts appear"
