#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Relative names belong to where the user stands, with files too; what processes leave elsewhere is counted, named and kept; results of
# different jobs do not mix. Names, arguments and values that are not UTF-8 arrive as they are, everywhere.
. "$(dirname "$0")/common.sh"
need_testbed
mkdir -p stand/sub
cat >stand/prog.sh <<'S'
#!/bin/sh
me=$(hostname)-$ISTHMUS_INDEX
if [ "$1" = read ]; then cat "$ISTHMUS_FILES/mesh"; fi
echo "from $me" >"out.$me"
mkdir -p deep && echo "$me" >"deep/x.$me"
echo "$me worked in $PWD"
S
chmod +x stand/prog.sh
cp stand/prog.sh stand/sub/below.sh
echo mesh >stand/mesh
echo old >stand/out.old
cat >stand/job.toml <<'T'
program = "./prog.sh"
inputs = ["mesh"]
outputs = ["out.*"]
[[subjob]]
site = "h"
contact = "home"
count = 1
[[subjob]]
site = "b1"
contact = "b1"
count = 1
T
# "dépôt" in Latin-1: bytes that are no UTF-8.
odd=$(printf 'd\351p\364t')
mkdir "$odd"
cat >"$odd/$odd.sh" <<'S'
#!/bin/sh
{ for word in "$0" "$1" "$ODD" "$PWD"; do printf '%s\n' "$word"; done; cat "$ISTHMUS_FILES/$1"; } >"out.$(hostname).$1"
S
chmod +x "$odd/$odd.sh"
echo inside >"$odd/$odd"
cat >run.sh <<'S'
set -eu
odd=$(printf 'd\351p\364t')
export ODD=$odd
cd "$odd"
isthmus run --site home:1 --site b1:1 -x ODD --input "$odd" --output "out.*" "./$odd.sh" "$odd" >../odd.out 2>../odd.err
cp "out.a1.$odd" ../odd.home
cp isthmus-results/*/b1/"out.b1.$odd" ../odd.b1
isthmus run --dry-run -n 1 -wdir "$PWD" -x "A=$odd" "./$odd.sh" "$odd" >../odd.plan
isthmus run --dry-run --json -n 1 "./$odd.sh" "$odd" >../odd.json
cd ..
mpiexec -n 1 -wdir "$odd" -outfile-pattern "$odd/o.%r" sh -c 'printf "%s\n" "$1" "$PWD"' sh "$odd"
cp "$odd/o.0" odd.mpiexec
cd stand
isthmus run -n 1 --input mesh ./prog.sh read >../alone.out 2>../alone.err
test -s out.a1-0 || { echo "an output of a job with an input is not where the user stands"; exit 1; }
isthmus run -C sub -n 1 ./prog.sh >../sub.out 2>../sub.err
isthmus run -C sub -n 1 ./below.sh >>../sub.out 2>>../sub.err
rm -f out.a1-0
isthmus run --site home:2 --site b1:2 --input mesh --output 'out.*' ./prog.sh read >../both.out 2>../both.err
test -s out.a1-0 && test -s out.a1-1 || { echo "outputs at home"; exit 1; }
isthmus run job.toml >../toml.out 2>../toml.err
ls -d isthmus-results/*/* >../results
cat isthmus-results/*/b1/out.b1-1 isthmus-results/*/home/out.a1-1 >../fetched
ls isthmus-results/*/home >../home.ls
# What stays at the site is brought home by the line that the message says.
isthmus run --site b1:1 --input mesh ./prog.sh >../left.out 2>../left.err
eval "$(sed -n 's/.*: \(isthmus cp isthmus:[^ ]* \)TARGET.*/\1 ..\/back/p' ../left.err)"
isthmus run -n 1 --output=log.txt ./prog.sh >../log.out 2>../log.err
isthmus run --site b1:1 --input mesh true 2>../quiet.err
# A directory that is named, and what is made there.
mkdir -p below
isthmus run -C below -n 1 --output 'out.*' --results ../named ./prog.sh >../named.out 2>../named.err
isthmus run -C below --site b1:1 --input mesh --output 'out.*' --results ../named ./prog.sh >>../named.out 2>>../named.err
isthmus run -C below --site b1:1 ./prog.sh >../below.out 2>../below.err
isthmus run -C "$PWD/below" --site b1:1 --output 'out.*' ./prog.sh >../elsewhere.out 2>../elsewhere.err
isthmus run -C ../x --site b1:1 --input mesh ./prog.sh >../out-of.out 2>../out-of.err && { echo "a directory above the job's was taken"; exit 1; }
isthmus run -C '~' --site b1:1 ./prog.sh >../tilde.out 2>../tilde.err
# What a job file names is beside it.
mkdir -p jobs
echo from-the-job >jobs/in.txt
printf '&(resourceManagerContact=home)(executable=/bin/cat)(stdin=in.txt)' >jobs/read.rsl
isthmus run jobs/read.rsl >../beside.out 2>../beside.err
S
isthmus-testbed run --sites 2x1 --rtt 4ms -- sh run.sh >run.out 2>&1 || { cat run.out ./*.err; fail "the jobs"; }
grep -q "^mesh$" alone.out && grep -q "a1-0 worked in $PWD/stand$" alone.out || fail "a job with an input: $(cat alone.out alone.err)"
[ "$(grep -c "worked in $PWD/stand/sub$" sub.out)" = 2 ] || fail "a program with another working directory: $(cat sub.out sub.err)"
grep -q "outputs are in isthmus-results/[0-9a-f]* (4 files)" both.err || fail "outputs are told of: $(cat both.err)"
grep -q "site 'b1': 2 files that nothing fetches were made there: 'deep/x.b1-[01]', 'deep/x.b1-[01]' (10 bytes); they stay for 60 min" both.err ||
    fail "what is left at b1: $(cat both.err)"
[ "$(grep -c "site 'home'" both.err)" = 0 ] || fail "files at home are where they should be: $(cat both.err)"
[ "$(cut -d/ -f2 results | sort -u | wc -l)" = 2 ] && [ "$(cut -d/ -f3 results | sort | tr '\n' ' ')" = 'b1 b1 h home ' ] || fail "results of jobs: $(cat results)"
[ "$(cat fetched)" = 'from b1-1
from a1-1' ] || fail "outputs: $(cat fetched)"
[ "$(tr '\n' ' ' <home.ls)" = 'out.a1-0 out.a1-1 ' ] || fail "what was there before is no output: $(cat home.ls)"
[ -s back/out.b1-0 ] && [ -s back/deep/x.b1-0 ] || fail "isthmus cp of what is left: $(cat left.err)"
grep -q "no process has left a file that is called 'log.txt': --output fetches files that the processes write" log.err || fail "--output=log.txt: $(cat log.err)"
[ -s quiet.err ] && fail "nothing was left: $(cat quiet.err)"
for at in home b1; do
    [ "$(grep -ac "^$odd\$" odd.$at)" = 2 ] || fail "words that are not UTF-8 at $at: $(od -c odd.$at | head -20)"
    grep -q '^inside$' odd.$at || fail "an input whose name is not UTF-8 at $at: $(cat odd.err)"
done
[ "$(head -n 1 odd.mpiexec)" = "$odd" ] && [ "$(tail -n 1 odd.mpiexec)" = "$PWD/$odd" ] || fail "mpiexec: $(od -c odd.mpiexec)"
grep -qF 'd\xe9p\xf4t' odd.plan || fail "people see which bytes these are: $(cat odd.plan)"
python3 -c 'import json; print(json.load(open("odd.json"))["command"])' >odd.said || fail "JSON: $(cat odd.json)"
[ -s named/home/out.a1-0 ] && [ -s named/b1/below/out.b1-0 ] || fail "outputs of a directory that is named: $(cat named.out named.err; ls -R named)"
grep -q "worked in .*/files/below$" named.out || fail "below the inputs: $(cat named.out)"
grep -q "b1-0 worked in $PWD/stand/below$" below.out || fail "a relative directory: $(cat below.out below.err)"
grep -q "site 'b1': its processes worked in '$PWD/stand/below', where --output does not look.*isthmus cp isthmus://b1$PWD/stand/below/FILE" elsewhere.err ||
    fail "where files are: $(cat elsewhere.err)"
grep -q "'../x' leads out of the directory" out-of.err || fail "a directory that leads out: $(cat out-of.err)"
grep -q "b1-0 worked in .*/b1/home$" tilde.out || fail "the home directory of a site: $(cat tilde.out tilde.err)"
grep -qx from-the-job beside.out || fail "stdin beside the job file: $(cat beside.out beside.err)"
echo "files are where the user looks for them, or are told of"
