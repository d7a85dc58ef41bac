#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A site with an old system (glibc 2.23, older than RHEL 8, Ubuntu 20.04, Debian 10 and SLES 15): a job over home and that site ends well; a program that is newer
# than the site's C library gets one sentence, and so does a site that lacks what Isthmus needs.
# The old system is unpacked once, from eight packages of 4 MiB in all, into target/old-system.
. "$(dirname "$0")/common.sh"
[ "$(uname -m)" = x86_64 ] || skip "the old system is one for x86-64"
need_testbed

root=$top/target/old-system
if [ ! -e "$root/complete" ]; then
    command -v curl >/dev/null && command -v dpkg-deb >/dev/null || skip "no curl or no dpkg-deb"
    rm -rf "$root" && mkdir -p "$root" || fail "cannot make $root"
    while read -r sum file; do
        curl -sf --max-time 60 -o package.deb "http://archive.ubuntu.com/ubuntu/pool/main/$file" || skip "no packages of an old system: $file"
        echo "$sum  package.deb" | sha256sum -c --quiet || skip "$file is not what it was"
        dpkg-deb -x package.deb "$root" || fail "$file"
    done <<'L'
68d69a0fb2dae7578a2a7054bc0cd5f0994d523f60d540bc6708ff3f2fb33e18 g/glibc/libc6_2.23-0ubuntu3_amd64.deb
3de35adf75cf93e9a696f4788f957710178c7f43809ed513f91348d5ec60d510 g/glibc/libc-bin_2.23-0ubuntu3_amd64.deb
6e374d7b6ee1ffbcff568705b7f9ec7b9befbfcf17e683a21ef6480dc9d0cfe0 g/gccgo-6/libgcc1_6.0.1-0ubuntu1_amd64.deb
c46b4b8c9c952bfeab03993451f7c3c7f5d359ebfbf381e6c36e2870373cde85 d/dash/dash_0.5.8-2.1ubuntu2_amd64.deb
3d0d81ea9128d85d3fa4f593d9bed54a403007856619e99c3784bc76eaee6498 c/coreutils/coreutils_8.25-2ubuntu2_amd64.deb
a6f4378176071b6d9f2b6f0402edf8ef6cd2cc53ad4052089642aad358fe55a6 a/acl/libacl1_2.2.52-3_amd64.deb
6b34040173acef1b806b128bc258b130519b2a7eb167ff1c3f3cb98fa1ddc648 a/attr/libattr1_2.4.47-2_amd64.deb
1d71715f2fa16391e55e29f2b4238ca4333f6324a40e5fc503bce9760d5b9330 libs/libselinux/libselinux1_2.4-3build2_amd64.deb
736f799fbb8a8d4be8cdded2b046813de391661d925d6e5a5a82febf65bbf065 p/pcre3/libpcre3_8.38-3.1_amd64.deb
L
    touch "$root/complete"
fi

cat >prog.c <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, sum = 0;
    char host[MPI_MAX_PROCESSOR_NAME];
    int length;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Get_processor_name(host, &length);
    printf("rank %d on %s: %d\n", rank, host, sum);
    return MPI_Finalize();
}
C
# As if built on an old system: against the symbols of one, which the distribution was linked against too.
symbols=$(ls -d "$top"/target/*/isthmus-dist/glibc 2>/dev/null | head -n 1)
[ -n "$symbols" ] || fail "no target/*/isthmus-dist/glibc"
mpicc -O2 prog.c -o old -L"$symbols" -Wl,--unresolved-symbols=ignore-in-shared-libs || fail "mpicc"
mpicc -O2 prog.c -o new || fail "mpicc"
readelf -V new | grep -q 'GLIBC_2\.3[4-9]' || skip "this machine's own C library is old"

# What b1's users see is the old system, with their homes.
cat >shell <<S
#!/bin/sh
exec /usr/sbin/chroot "$PWD/system" /bin/sh "\$@"
S
chmod +x shell
cat >make-old.sh <<S
set -e
cd "$PWD"
cp -a "$root" system
mkdir -p system/proc system/dev system/tmp system/sys system/etc
mount --rbind /proc system/proc && mount --rbind /dev system/dev && mount --rbind /sys system/sys
mount -t tmpfs none system/tmp
mkdir -p "system\$HOME" && mount --bind "\$HOME" "system\$HOME"
mount -t tmpfs none system/etc && cp /etc/hosts /etc/passwd system/etc/
sed "s|:[^:]*\$|:$PWD/shell|" /etc/passwd >passwd && mount --bind passwd /etc/passwd
S
cat >run.sh <<'S'
set -u
bad=0
complain() { echo "FAIL: $*"; cat out err; bad=1; }
ssh b1 "sh $PWD/make-old.sh" || exit 1
ssh -o ControlPath=none b1 '/lib/x86_64-linux-gnu/libc.so.6' | grep -m1 'version 2.23' || { complain "the site is not old"; exit 1; }
isthmus run --site home:2 --site b1:2 ./old >out 2>err </dev/null || complain "exit status $?"
[ "$(grep -c ': 6$' out)" = 4 ] && grep -q 'on b1: 6' out || complain "not four ranks"
isthmus run --site home:1 --site b1:1 ./new >out 2>err </dev/null && complain "a program that cannot run there ran"
grep -q "program 'new' needs GLIBC_2.3[4-9] of libc.so.6, and this system's libc.so.6 goes up to GLIBC_2.23" err || complain "no sentence"
[ "$(grep -c GLIBC err)" = 1 ] || complain "more than one sentence"
cat err
# Without the compiler's runtime not even the agent can run.
ssh -o ControlPath=none b1 'rm -r ~/.cache/isthmus; rm /lib/x86_64-linux-gnu/libgcc_s.so.1'
isthmus run --site home:1 --site b1:1 ./old >out 2>err </dev/null && complain "a site that cannot run Isthmus did"
grep -q "Isthmus does not run on its system: .*libgcc_s.so.1" err || complain "no sentence about the site"
cat err
ssh -o ControlPath=none b1 'ls ~/.cache/isthmus/isthmus-* 2>/dev/null' && complain "what does not run was kept"
exit $bad
S
isthmus-testbed run --sites 2x1 --rtt 2ms -- sh "$PWD/run.sh" >log 2>&1
status=$?
cat log
[ $status = 0 ] || fail "exit status $status"
