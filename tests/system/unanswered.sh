#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A site that answers nothing, as behind a firewall that drops packets: the doctor and a job say the same of it, with the same hint, and soon.
# beside: it mostly waits, in its own network.
. "$(dirname "$0")/common.sh"
need_testbed
cat >ask.sh <<'EOF'
isthmus-testbed cut a b
timeout 40 isthmus doctor b1 >doctor.out 2>&1 </dev/null &
timeout 40 isthmus doctor b1 --json >doctor.json 2>&1 </dev/null &
timeout 40 isthmus run --site b1:1 /bin/true >run.out 2>&1 </dev/null
echo $? >run.status
wait
EOF
isthmus-testbed run --sites 2x1 --rtt 2ms -- sh ask.sh || fail "the testbed"
[ "$(cat run.status)" = 1 ] || { cat run.out; fail "the job ended with $(cat run.status)"; }
problem=$(sed -n "s/^isthmus: error: site 'b1': //p" run.out)
hint=$(sed -n 's/^ *hint: //p' run.out)
case $problem in *'Connection timed out') ;; *) cat run.out; fail "the job does not say why" ;; esac
[ -n "$hint" ] || { cat run.out; fail "the job gives no hint"; }
grep -qF "b1: cannot be used: $problem" doctor.out && grep -qF "hint: $hint" doctor.out || { cat run.out doctor.out; fail "the doctor says something else"; }
grep -qF "\"problem\": \"$problem\"" doctor.json && grep -qF "\"hint\": \"$hint\"" doctor.json || { cat run.out doctor.json; fail "the doctor's JSON says something else"; }
echo "the doctor and a job say the same: $problem"
