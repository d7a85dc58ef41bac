#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two programs of one node that connect talk in its memory, with a launcher each or without one; where one of them cannot, they talk by TCP and
# say why. Each hears of the death of the other. Nothing is left of that memory, whenever they are killed.
. "$(dirname "$0")/common.sh"
for tool in isthmus mpiexec mpicc; do
    command -v "$tool" >/dev/null 2>&1 || skip "no $tool in PATH"
done
mpicc -std=c11 -D_GNU_SOURCE -O2 "$top/tests/system/near.c" -o near || fail "mpicc near.c"
mkdir shm
ISTHMUS_SHM_DIRECTORY=$work/shm
export ISTHMUS_SHM_DIRECTORY

# both HOW SERVER CLIENT: what starts the server and what starts the client. Output in the files server and client, status of the server in $status.
both() {
    rm -f port
    # shellcheck disable=SC2086 # several words
    $3 ./near client port "$1" </dev/null >client 2>&1 &
    child=$!
    # shellcheck disable=SC2086 # several words
    timeout -k 5 60 $2 ./near server port "$1" </dev/null >server 2>&1
    status=$?
    wait $child 2>/dev/null
}

for starts in "" "mpiexec -n 1"; do
    both talk "$starts" "timeout -k 5 60 $starts"
    [ $status = 0 ] || fail "'$starts': exit status $status: $(cat server client)"
    for who in server client; do
        grep -q "^$who: node [1-9][0-9]*, local 0, wide 0$" $who || fail "'$starts': not in memory: $(cat server client)"
    done
    for how in send receive; do
        both $how "$starts" "$starts"
        [ $status = 0 ] || fail "'$starts', $how: exit status $status: $(cat server client)"
        grep -q '^server: .*has ended' server || fail "'$starts', $how: the server has not heard of it: $(cat server client)"
    done
done

# A process that may not have files of that length shares no memory, whichever side it is on, and both say so where they are asked.
printf '#!/bin/sh\nulimit -f 64\nexec "$@"\n' >limited
chmod +x limited
for sides in "./limited:" ":./limited"; do
    ISTHMUS_STATS=1
    export ISTHMUS_STATS
    both talk "${sides%:*}" "${sides#*:}"
    unset ISTHMUS_STATS
    [ $status = 0 ] || fail "limited, $sides: exit status $status: $(cat server client)"
    for who in server client; do
        grep -q "^$who: node 0, local [1-9][0-9]*, wide 0$" $who || fail "limited, $sides: not by TCP: $(cat server client)"
        grep -q 'talk by TCP: .*File too large' $who || fail "limited, $sides: nobody says why: $(cat server client)"
    done
done

# Killed at many moments, both at once or one after the other.
for round in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    rm -f port
    ./near server port wait </dev/null >/dev/null 2>&1 &
    first=$!
    ./near client port wait </dev/null >/dev/null 2>&1 &
    second=$!
    sleep "0.$((round / 10))$((round % 10))"
    kill -9 $second
    [ $((round % 2)) = 0 ] || kill -9 $first
    # Without a partner the other one ends by itself, if they had met.
    sleep 0.1
    kill -9 $first 2>/dev/null
    wait $first $second 2>/dev/null
done
[ -z "$(ls -A shm)" ] || fail "this is left of the memory: $(ls -A shm)"
echo "programs of one node have talked in its memory, heard of deaths and left nothing"
