#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Jobs through the real schedulers of Debian, inside the testbed: tests/schedulers, some minutes each. Not part of the sum.
# usage: sh ci/schedulers.sh [--install] [fork|slurm|accounts|grid-engine|together|vendor...]   (--install: as root, with apt; their services stay off)
install=
[ "$1" = --install ] && { install=yes; shift; }
names=${*:-fork slurm accounts grid-engine together vendor}
. "$(dirname "$0")/../scripts/common.sh"
if [ -n "$install" ]; then
    # Debian starts services as they are installed unless this file says no.
    policy=/usr/sbin/policy-rc.d
    [ -e $policy ] || { printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy && made=yes; }
    wanted slurmctld slurm-wlm munge
    wanted slurmdbd slurmdbd mariadb-server
    wanted sge_qmaster gridengine-master gridengine-exec gridengine-client
    install_missing
    [ -z "$made" ] || rm -f $policy
fi
[ -x "$build/bin/isthmus" ] || sh scripts/build.sh || exit 1
PATH=$build/bin:$PATH
export PATH
failed=0
for name in $names; do
    case $name in
    accounts | together | vendor) set -- "tests/schedulers/$name.sh" ;;
    *) set -- tests/schedulers/suite.sh "$name" ;;
    esac
    timeout -k 10 "${ISTHMUS_TEST_LIMIT:-900}" sh "$@" </dev/null
    status=$?
    [ $status = 0 ] || [ $status = 77 ] || failed=$((failed + 1))
    say "$name: exit status $status"
done
[ $failed -eq 0 ]
