#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What cannot be done with files, at home and at a site that has no directory in common with it: the same class, with the file's name, the site
# and the system's reason. MPI_File_delete reaches the site that is named.
. "$(dirname "$0")/common.sh"
need_testbed
mpicc -std=c11 -D_GNU_SOURCE -O2 -Wall -I"$top/tests/c" "$top/tests/system/bad-files.c" -o bad || fail "mpicc bad-files.c"
cat >setup.sh <<'S'
mkdir -p /tmp/bad/directory /tmp/bad/small /tmp/bad/readonly
echo >/tmp/bad/file
ln -s missing /tmp/bad/dangling
ln -s loop /tmp/bad/loop
mkfifo /tmp/bad/pipe
mount -t tmpfs -o size=1m none /tmp/bad/small
mount -t tmpfs none /tmp/bad/readonly
echo >/tmp/bad/readonly/file
mount -o remount,ro /tmp/bad/readonly
cp /bin/sleep /tmp/bad/program
/tmp/bad/program 600 >/dev/null 2>&1 &
# It cannot be written once it runs.
until [ "$(readlink /proc/$!/exe)" = /tmp/bad/program ]; do sleep 0.1; done
echo >"$(printf '%s/below home\n\377' "$HOME")"
S
cat >run.sh <<'S'
set -eu
export TMPDIR=/tmp
sh setup.sh
ssh b1 sh -s <setup.sh
isthmus run --share / --site home:2 --site b1:2 ./bad home b1
echo all is well
S
isthmus-testbed run --sites 2x1 --rtt 4ms --private-tmp -- sh run.sh >run.out 2>&1 || { cat run.out; fail "the job"; }
grep -q '^all is well$' run.out || fail "the job: $(cat run.out)"
echo "errors of files say what, where and why"
