#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs and inputs from elsewhere: https (a certificate of a test authority), sftp, other sites; what RSL says of files; shared libraries that
# a site lacks.
. "$(dirname "$0")/common.sh"
need_testbed
for tool in openssl curl sftp cc; do
    command -v $tool >/dev/null 2>&1 || skip "no $tool"
done

openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj '/CN=test authority' >openssl.log 2>&1 &&
    openssl req -x509 -newkey rsa:2048 -nodes -keyout other.key -out other.pem -days 2 -subj '/CN=somebody else' >>openssl.log 2>&1 &&
    openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj '/CN=localhost' >>openssl.log 2>&1 &&
    echo 'subjectAltName=DNS:localhost,IP:127.0.0.1' >names &&
    openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.pem >>openssl.log 2>&1 ||
    fail "certificates: $(cat openssl.log)"
mkdir web lib
echo 'from the web' >web/data
cat >web/show.sh <<'S'
#!/bin/sh
cd "$ISTHMUS_FILES" || exit 1
echo "$(hostname): $(cat data) and $(cat tree/deep/leaf) and $(cat other)"
S
cat >web/rsl.sh <<'S'
#!/bin/sh
cat in/data shared >out
echo kept >"$HOME/kept"
pwd >where
S

# A program whose library needs another library.
echo 'int deep(void) { return 42; }' >deep.c
echo 'int deep(void); int greet(void) { return deep(); }' >greet.c
cat >hello.c <<'C'
#include <stdio.h>
#include <string.h>
int greet(void);
int main(void)
{
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    int staged = 0;
    while (maps && fgets(line, sizeof line, maps))
        staged |= strstr(line, "/.cache/isthmus/files/") && strstr(line, "libgreet.so");
    printf("%d %s\n", greet(), staged ? "staged" : "found there");
    return 0;
}
C
cc -shared -fPIC deep.c -o lib/libdeep.so && cc -shared -fPIC greet.c -Llib -ldeep -o lib/libgreet.so &&
    cc hello.c -Llib -lgreet -Wl,-rpath-link,lib -o hello || fail "cc"

cat >run.sh <<'S'
set -eu
( cd web && exec openssl s_server -accept 8443 -cert ../server.pem -key ../server.key -WWW >../server.log 2>&1 </dev/null ) & server=$!
trap 'kill $server' EXIT
for _ in $(seq 600); do CURL_CA_BUNDLE=ca.pem curl -sf https://localhost:8443/data >got && break; sleep 0.1; done
cmp got web/data
ssh b1 'mkdir -p tree/deep && echo by sftp >tree/deep/leaf && echo of c1 >shared'
ssh c1 'echo from c1 >other; mkdir -p run7'

export CURL_CA_BUNDLE=$PWD/ca.pem
isthmus run --site b1:1 --site c1:1 --site home:1 --input https://localhost:8443/data --input 'sftp://b1/~/tree' \
    --input isthmus://c1/~/other https://localhost:8443/show.sh >show.out
scp -q web/show.sh b1:elsewhere.sh
isthmus run --site c1:1 --input web/data --input 'sftp://b1/~/tree' --input isthmus://c1/~/other sftp://b1/~/elsewhere.sh >sftp.out
isthmus run --site c1:1 --input web/data --input 'sftp://b1/~/tree' --input isthmus://c1/~/other isthmus://b1/~/elsewhere.sh >site.out
if CURL_CA_BUNDLE=other.pem isthmus run --site b1:1 https://localhost:8443/rsl.sh 2>untrusted.err; then exit 1; fi
if isthmus run --site b1:1 https://localhost:8444/missing 2>missing.err; then exit 1; fi

cat >job.rsl <<R
+(&(resourceManagerContact=b1)(count=1)(executable=https://localhost:8443/rsl.sh)
   (fileStageIn=(https://localhost:8443/data in/data)("isthmus://b1/~/shared" shared))
   (fileStageOut=(out file://$PWD/back/out)(/root/kept file://$PWD/back/kept)(where file://$PWD/back/where)))
 (&(resourceManagerContact=c1)(count=1)(directory=run7)(executable=https://localhost:8443/rsl.sh)
   (fileStageIn=(file://$PWD/web/data in/data))(fileStageInShared=("isthmus://b1/~/shared" shared))
   (fileStageOut=(out file://$PWD/back/out7)(where file://$PWD/back/where7))(fileCleanUp=out shared))
R
sed -i "s|/root/kept|$(ssh b1 pwd)/kept|" job.rsl
ssh c1 mkdir -p run7/in
isthmus run -j job.rsl
ssh c1 'ls run7 run7/in' >left.out
ssh b1 'ls ~/.cache/isthmus/jobs' >>left.out

# A file that has its place already is not touched; a directory that is there for the job only.
cat >scratch.rsl <<R
&(resourceManagerContact=b1)(count=1)(executable=/bin/sh)(directory=\$(SCRATCH_DIRECTORY))(scratchDir=$(ssh b1 pwd)/scratch)
 (arguments=-c 'cat given; pwd; test "\$PWD" = "\$SCRATCH_DIRECTORY" && echo made here > made')
 (fileStageIn=(file://$PWD/web/data given)(file://$PWD/web/data $(ssh b1 pwd)/lasting))
 (fileStageOut=(\$(SCRATCH_DIRECTORY)/made file://$PWD/back/made))
R
ssh b1 mkdir scratch
isthmus run -j scratch.rsl >scratch.out
ssh b1 stat -c %i%y lasting >stat.out
isthmus run -j scratch.rsl >>scratch.out
ssh b1 stat -c %i%y lasting >>stat.out
ssh b1 'ls scratch; ls ~/.cache/isthmus/jobs' >>left.out
isthmus cp web/data isthmus://b1/~/copied
isthmus cp --json web/data isthmus://b1/~/copied >cp.json
sed 's/scratchDir=[^)]*/scratchDir=nowhere/' scratch.rsl >nowhere.rsl
if isthmus run -j nowhere.rsl 2>nowhere.err; then exit 1; fi

LD_LIBRARY_PATH=$PWD/lib isthmus run --site b1:2 ./hello >hello.out
mv lib lib.away
if isthmus run --site b1:1 ./hello 2>lacking.err; then exit 1; fi
S
isthmus-testbed run --sites 3x1 --rtt 4ms -- sh run.sh >run.out 2>&1 || { cat run.out ./*.err; fail "the commands"; }

for site in a1 b1 c1; do
    grep -q "^$site: from the web and by sftp and from c1$" show.out || fail "program and inputs from elsewhere: $(cat show.out)"
done
for out in sftp.out site.out; do
    grep -q '^c1: from the web and by sftp and from c1$' $out || fail "a program from elsewhere: $(cat $out)"
done
grep -q "cannot be fetched: curl says: .*certificate" untrusted.err || fail "an unknown authority: $(cat untrusted.err)"
grep -q "error: site 'b1': 'https://localhost:8444/missing' cannot be fetched: curl says" missing.err || fail "a missing program: $(cat missing.err)"
for out in out out7; do
    [ "$(cat back/$out)" = 'from the web
of c1' ] || fail "fileStageOut: $(cat back/$out)"
done
[ "$(cat back/kept)" = kept ] || fail "fileStageOut of a path: $(ls back)"
grep -q '/jobs/job-' back/where && grep -q '/run7$' back/where7 || fail "working directories: $(cat back/where back/where7)"
[ "$(tr '\n' ' ' <left.out)" = 'run7: in where  run7/in: data ' ] || fail "left after fileCleanUp: $(cat left.out)"
[ "$(grep -c 'from the web' scratch.out)" = 2 ] && [ "$(grep -c '/scratch/isthmus-scratch-' scratch.out)" = 2 ] || fail "a scratch directory: $(cat scratch.out)"
[ "$(cat back/made)" = 'made here' ] || fail "files come back from a scratch directory"
[ "$(uniq stat.out | wc -l)" = 1 ] || fail "a file that was in its place was written again: $(cat stat.out)"
awk '/"sent_bytes"/ && $2 + 0 > 2000 { exit 1 }' cp.json || fail "cp of what is there: $(cat cp.json)"
grep -q "error: site 'b1': its scratch directory: cannot create .*nowhere/isthmus-scratch-" nowhere.err || fail "a scratch directory that cannot be: $(cat nowhere.err)"
[ "$(sort -u hello.out)" = '42 staged' ] || fail "shared libraries: $(cat hello.out)"
grep -q "needs 'libgreet.so', which neither the site nor this machine has" lacking.err || fail "a library that nobody has: $(cat lacking.err)"
echo "programs, inputs and libraries come from where they are"
