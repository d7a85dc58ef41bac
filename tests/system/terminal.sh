#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# At a terminal: an interactive subjob that fails is asked about; what is typed then is the answer, and what is typed after that is for the program.
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
seen "what shall be done about 'x'"
echo perhaps >&3
seen 'answer drop: go on without it'
echo drop >&3
seen 'the job goes on without it'
echo for the program >&3
seen 'got for the program'
exec 3>&-
wait $job || { cat screen; fail "exit status"; }
echo "answers go to the launcher, the rest to the program"
