#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Seven ways to hang, each named by isthmus where in a sentence: two receives, a member that does not come to a collective operation,
# different roots, a wrong tag, also of what makes a communicator, a stopped process, a cut link; one with 256 ranks; and --hang says it by itself. Different collective
# operations end by themselves, also between sites.
. "$(dirname "$0")/common.sh"
need_testbed
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra "$top/tests/system/hangs.c" -o hangs || fail "mpicc hangs.c"

# Runs a job that hangs until isthmus where says SENTENCE (a pattern); then ends it. $1 kind, $2 sentence, then what to run it on.
cat >hang.sh <<'S'
kind=$1 sentence=$2
shift 2
mkdir -p home.$kind
export XDG_CACHE_HOME=$PWD/home.$kind
touch $kind.out
isthmus run "$@" ./hangs $kind >$kind.out 2>$kind.err </dev/null &
job=$!
until grep -q begun $kind.out; do kill -0 $job 2>/dev/null || exit 1; sleep 0.2; done
if [ $kind = cut ]; then isthmus-testbed cut a b; fi
tries=0
# Ranks come to what they wait in one by one.
until isthmus where >$kind.where 2>&1 && grep -q "$sentence" $kind.where && grep -q "${GROUP:-.}" $kind.where; do
    tries=$((tries + 1))
    [ $tries -lt 150 ] && kill -0 $job 2>/dev/null || { cat $kind.where $kind.err; exit 1; }
    sleep 0.2
done
[ $kind = cut ] && isthmus-testbed restore a b
isthmus where --json >$kind.json || exit 1
# It may be gone before it has answered.
isthmus kill --now "$(isthmus ps | awk 'NR == 2 { print $1 }')" 2>/dev/null
wait $job
true
S
# named KIND SENTENCE WHERE...: inside one host.
named() {
    sh hang.sh "$@" || fail "isthmus where does not name it: $1"
    grep -h suspicion "$1.where"
}
named receives 'deadlock: ranks 0-1 wait for each other: rank 0 is in MPI_Recv: a message from rank 1, tag 7' -n 2
named missing 'ranks 0-2 are in allreduce; rank 3 is not: rank 3 is not waiting inside MPI' -n 4
named tag 'rank 0 waits for a message from rank 1, tag 9.*, but what has come is another tag: 4 bytes from rank 1, tag 8' -n 2
named leaders 'rank [01] waits for a message from rank [01], tag [01], MPI_COMM_WORLD, for a new communicator, but what has come is another tag' -n 2
named stopped 'rank 2 has been stopped by a signal' -n 3
timeout 60 isthmus run --site a=home:1 --site b=home:1 --site c=home:1 ./hangs different >out 2>&1 </dev/null
status=$?
[ $status = 16 ] && grep -q 'call different operations: rank [0-2] is in \(bcast[,;].*rank 2 was in reduce\|reduce[,;].*rank [01] was in bcast\)' out ||
    { cat out; fail "different operations at three sites: status $status"; }
named roots 'all members of a group are in bcast, .*they may have given different roots' --site a=home:1 --site b=home:1 --site c=home:1
isthmus-testbed run --sites 2x1 --rtt 5ms -- sh hang.sh cut 'the link from .* to .* is cut off' --site a=home:1 --site b=b1:1 ||
    fail "isthmus where does not name a cut link"
grep suspicion cut.where
# As many ranks as one asks about at once.
GROUP='^ranks 2-255: in MPI_Finalize'
export GROUP
named receives 'deadlock: ranks 0-1 wait for each other' -n 256
# By itself.
timeout 60 isthmus run --hang 2s --time 25s -n 2 ./hangs receives >told 2>&1 </dev/null
grep -q 'suspicion: deadlock: ranks 0-1 wait for each other' told || { cat told; fail "--hang says nothing"; }
