#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One file for a job of two sites that have no directory in common: everything that tests/c does with files, from both sites; where the file is,
# what names of sites do, and a file for each site. A rank, an aggregator or the link that is lost during collective writes leaves blocks that
# are old or new. Processes of other sites reach what is the job's and what it shares, and nothing else.
. "$(dirname "$0")/common.sh"
need_testbed
for program in files file_forms file_views; do
    mpicc -std=c11 -D_GNU_SOURCE -O2 -w -I"$top/tests/c" "$top/tests/c/$program.c" -o "$program" || fail "mpicc $program.c"
done
for program in guests again trips left reach atomic holder; do
    mpicc -std=c11 -D_GNU_SOURCE -O2 -w -I"$top/tests/c" "$top/tests/system/$program.c" -o "$program" || fail "mpicc $program.c"
done
cat >where.c <<'C'
#include "files.h"
static int rank, size;

static void tell(MPI_File file)
{
    MPI_Info info;
    char reach[64] = "", site[64] = "";
    int there, length = sizeof reach, room = sizeof site;
    OK(MPI_File_get_info(file, &info));
    OK(MPI_Info_get_string(info, "isthmus_reach", &length, reach, &there));
    OK(MPI_Info_get_string(info, "isthmus_site", &room, site, &there));
    OK(MPI_Info_free(&info));
    printf("%d: %s at %s\n", rank, reach, site);
    fflush(stdout);
}

/* Every process writes its rank through a name; all that have the same file read it back. */
static void through(const char *name, int local)
{
    int i, value = rank, members;
    int first = local ? rank / 2 * 2 : 0, last = local ? first + 2 : size;
    char text[MPI_MAX_ERROR_STRING];
    MPI_File file;
    MPI_Group group;
    int error = MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    if (error) {
        MPI_Error_string(error, text, &i);
        if (rank == size - 1) puts(text);
        return;
    }
    OK(MPI_File_get_group(file, &group));
    MPI_Group_size(group, &members);
    CHECK(members == size);
    OK(MPI_Group_free(&group));
    OK(MPI_File_write_at(file, rank * (int)sizeof value, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    for (i = first; i < last; i++) {
        OK(MPI_File_read_at(file, i * (int)sizeof value, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
        CHECK(value == i);
    }
    if (local) tell(file);
    OK(MPI_File_close(&file));
}

/* where NAME...: with local instead of a second name each site has a file of its own. */
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int local = strcmp(argv[argc - 1], "local") == 0;
    for (int i = 1; i < argc - local; i++) through(argv[i], local);
    MPI_Finalize();
    return 0;
}
C
mpicc -std=c11 -D_GNU_SOURCE -O2 -w -I"$top/tests/c" where.c -o where || fail "mpicc where.c"
cat >lost.c <<'C'
#include "files.h"
#define BLOCK 4096
#define COUNT 256
/* lost ROUNDS: all write interleaved blocks, each full of the number of the round. lost check: what is in the file. */
static int numbers[COUNT * BLOCK / sizeof(int)];
int main(int argc, char **argv)
{
    const char *name = "/tmp/lost file";
    const size_t ints = BLOCK / sizeof(int);
    MPI_Datatype view;
    MPI_File file;
    int rank, size, error = 0;
    if (strcmp(argv[argc - 1], "check") == 0) {
        FILE *in = fopen(name, "rb");
        int least = 1 << 30, most = 0;
        while (in && fread(numbers, 1, BLOCK, in) == BLOCK) {
            for (size_t i = 1; i < ints; i++)
                if (numbers[i] != numbers[0]) return puts("a block is neither old nor new"), 1;
            if (numbers[0] < least) least = numbers[0];
            if (numbers[0] > most) most = numbers[0];
        }
        printf("%d to %d\n", least, most);
        return most == 0 || most - least > 1;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    MPI_Type_vector(COUNT, BLOCK, BLOCK * size, MPI_BYTE, &view);
    MPI_Type_commit(&view);
    OK(MPI_File_set_view(file, (MPI_Offset)rank * BLOCK, MPI_INT, view, "native", MPI_INFO_NULL));
    for (int round = 1; round <= atoi(argv[1]) && !error; round++) {
        for (size_t i = 0; i < COUNT * ints; i++) numbers[i] = round;
        error = MPI_File_write_at_all(file, 0, numbers, COUNT * BLOCK / (int)sizeof(int), MPI_INT, MPI_STATUS_IGNORE);
        if (round == 3 && rank == 0) puts("it writes"), fflush(stdout);
    }
    if (error) {
        char text[MPI_MAX_ERROR_STRING];
        int length;
        MPI_Error_string(error, text, &length);
        printf("rank %d: %s\n", rank, text);
        fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    OK(MPI_File_close(&file));
    MPI_Finalize();
    return 0;
}
C
mpicc -std=c11 -D_GNU_SOURCE -O2 -w -I"$top/tests/c" lost.c -o lost || fail "mpicc lost.c"
cat >local.toml <<'T'
program = "./where"
arguments = ["/tmp/each", "local"]
files = "local"
[[subjob]]
site = "home"
count = 2
[[subjob]]
site = "b1"
count = 2
T
cat >share.toml <<'T'
program = "./reach"
arguments = ["+home", "+b1"]
share = ["/tmp/opened", "nowhere"]
[[subjob]]
site = "home"
count = 2
[[subjob]]
site = "b1"
count = 2
share = ["/nowhere", "/tmp/opened"]
T
cat >hidden.sh <<'S'
set -eu
mkdir -p /tmp/hidden /tmp/open "$HOME/.keys"
echo secret | tee /tmp/hidden/key >"$HOME/.keys/key"
ln -s open /tmp/opened
ln -s /tmp/hidden /tmp/open/out
ln -s ../hidden/key /tmp/open/link
ln -s ../hidden/new /tmp/open/to-new
S
cat >unchanged.sh <<'S'
set -eu
test "$(cat /tmp/hidden/key "$HOME/.keys/key" | tr '\n' ' ')" = "secret secret "
test "$(ls /tmp/hidden /tmp/open | tr '\n' ' ')" = "/tmp/hidden: key  /tmp/open: link out to-new "
S
cat >run.sh <<'S'
set -eu
# A directory that every host has for itself.
export TMPDIR=/tmp
job="isthmus run --share /tmp --site home:2 --site b1:2"
$job ./files
$job ./file_forms
isthmus run --share /tmp --site home:2 --site b1:3 ./file_views
# What processes of other sites reach: key files, links that lead out, directories that are shared at no site, at one, at both.
sh hidden.sh
ssh b1 sh -s <hidden.sh
ln -s /tmp/hidden/key leads-out
isthmus run --site home:2 --site b1:2 ./reach home b1
isthmus run --site home:2 --site b1:2,share=/tmp/opened ./reach home +b1
isthmus run share.toml
for at in sh "ssh b1 sh"; do
    $at -s <unchanged.sh || { echo "files of $at were changed"; exit 1; }
done
# A file at a site where none of those is that open it.
$job ./guests home b1
test "$(od -An -tu4 "/tmp/each alone" | tr -s ' ')" = " 0 1 2 3"
test "$(ssh b1 od -An -tu4 "'/tmp/each alone'" | tr -s ' ')" = " 0 1 2 3"
# One name is one file for the whole job, whoever opens it again.
$job ./again home "/tmp/again and again"
test ! -e "/tmp/again and again 2"
# In atomic mode no access is mixed with another one, however many pieces it is cut into.
$job ./atomic isthmus://home/tmp/atomic
# Who is killed while it has the file for itself leaves nobody waiting, in this job and in the next one. A job that ends leaves 1.5 s to say so.
held() {
    for _ in 1 2 3 4 5; do
        timeout 60 $job ./holder isthmus://home/tmp/held >held.out 2>&1 || true
        ! grep -q 'was over before' held.out || break
        test "$(grep -c '^rank [0-2] has written$' held.out)" != 3 || return 0
    done
    cat held.out
    return 1
}
held
flock -n /tmp/held true
# Opening and closing take two round trips between sites.
$job ./trips /tmp/trips >told || { cat told; exit 1; }
# How files were reached: two of four processes directly, one aggregator; the data of the two others cross once.
ISTHMUS_STATS=1 $job ./lost 4 2>stats
row=$(grep '^"/tmp/lost file"' stats)
test "$(echo "$row" | tr -s ' ' | cut -d ' ' -f 3-6)" = "home 4 2 1"
test "$(echo "$row" | cut -d '|' -f 3 | awk '{ print $2 }')" = $((4 * 4 * 256 * 4096))
between=$(echo "$row" | cut -d '|' -f 5 | awk '{ print $2 }')
test $between -ge $((4 * 2 * 256 * 4096)) && test $between -lt $((5 * 2 * 256 * 4096))
# Names: without a site, of a site, below ~, of no site of the job.
isthmus run --share /tmp --share '~' --site home:2 --site b1:2 ./where /tmp/at-home isthmus://b1/tmp/at-b1 isthmus://b1/~/below isthmus://home/tmp/named isthmus://nowhere/tmp/x isthmus:///tmp/x >told
test "$(od -An -tu4 /tmp/at-home | tr -s ' ')" = " 0 1 2 3"
! ssh b1 test -e /tmp/at-home
test ! -e /tmp/at-b1
test "$(ssh b1 od -An -tu4 /tmp/at-b1 | tr -s ' ')" = " 0 1 2 3"
ssh b1 test -s '~/below'
test -s /tmp/named
# isthmus cp knows the same names.
isthmus run --share '~' --site home:2 --site b1:2 ./where isthmus://home/~/below >below.told
for name in isthmus://home/tmp/named isthmus://home/~/below isthmus://b1/tmp/at-b1 isthmus://b1/~/below; do
    rm -f back
    isthmus cp $name back 2>cp.err
    test "$(od -An -tu4 back | tr -s ' ')" = " 0 1 2 3"
done
isthmus cp isthmus://home/~/below isthmus://b1/tmp/from-home 2>cp.err
test "$(ssh b1 od -An -tu4 /tmp/from-home | tr -s ' ')" = " 0 1 2 3"
isthmus cp isthmus://b1/tmp/at-b1 isthmus://home/~/from-b1 2>cp.err
cmp ~/from-b1 /tmp/named
! isthmus cp isthmus://home/tmp/named /tmp/named 2>cp.err
grep -q 'are the same file' cp.err
grep -q 'site named "nowhere"; its sites are \["home", "b1"\]' told
grep -q 'names no site' told
# One file for each site.
isthmus run local.toml >told
test "$(sort told)" = "0: 0-1 at home
1: 0-1 at home
2: 0-1 at b1
3: 0-1 at b1"
test "$(od -An -tu4 /tmp/each | tr -s ' ')" = " 0 1"
test "$(ssh b1 od -An -tu4 /tmp/each | tr -s ' \n' ' ')" = " 0 0 2 3 "
# Losses.
# Two processes die together: both of the file's site, one of each with the file's home and without it. A job that ends leaves 1.5 s to say what
# was heard; a machine that is too slow for that has some more tries.
left() {
    for _ in 1 2 3 4 5; do
        isthmus run --share /tmp --site home:2 --site b1:2 ./left "isthmus://b1/tmp/open at a lost site" "$@" >left.out 2>&1 || true
        if grep '^rank [0-9]*[ :]' left.out | grep -v ' is done$'; then return 1; fi
        test "$(grep -c '^rank [0-3] is done$' left.out)" != 2 || return 0
    done
    cat left.out
    return 1
}
left 2 3
left 1 2
left 0 3
ranks_at() { ssh "$1" ps -eo pid=,args= | awk '$2 == "./lost" || $2 ~ /\/lost$/ { print $1 }'; }
lose() {
    echo "--- $*"
    rm -f "/tmp/lost file"
    # Nothing is there that an earlier job has said.
    : >lost.out
    $job ./lost "$1" >lost.out 2>&1 &
    job_id=$!
    for _ in $(seq 600); do grep -q 'it writes' lost.out && break; kill -0 $job_id 2>/dev/null || break; sleep 0.1; done
    shift
    "$@"
    status=0
    wait $job_id || status=$?
    cat lost.out
    ./lost check
}
kill_at() { ssh "$1" kill -KILL "$(ranks_at "$1" | head -n 1)"; }
kill_all_at() { ssh "$1" kill -KILL $(ranks_at "$1"); }
lose 100000 kill_all_at b1
test $status != 0
lose 100000 kill_at a1
test $status != 0
cut() { isthmus-testbed cut a b; sleep 5; isthmus-testbed restore a b; }
lose 300 cut
test $status = 0
export ISTHMUS_AWAY=5
lose 100000 isthmus-testbed cut a b
test $status != 0
grep -q "site 'b1'" lost.out
echo all is well
S
isthmus-testbed run --sites 2x1 --rtt 4ms --private-tmp -- sh run.sh >run.out 2>&1 || { cat run.out; fail "the jobs"; }
grep -q '^all is well$' run.out || fail "the jobs: $(cat run.out)"
echo "one file serves two sites that have no directory in common"
