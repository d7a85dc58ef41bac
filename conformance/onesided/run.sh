#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs that live on windows, built as they come and judged by their own checks.
#
#   sh conformance/onesided/run.sh [--sites] [--rtt TIME] [--rate RATE] [--sources DIR] [armci|prk|diy|libsc|p4est ...]
#
# Gets the sources at the commits named below, builds them with our mpicc, and runs their own checks
# on this machine; with `--sites` their ranks are spread over two testbed sites. --sources: a directory with git
# repositories OWNER+NAME/repo in the place of GitHub. Without names: all five. Everything is made below target/onesided. The last
# line is "N passed, N failed", where each check of a code counts as one.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=onesided
. "$here/../common.sh"

sites='' rtt=2ms rate=1gbit sources=''
options 'sites rtt= rate= sources= *' "$@"
wide=$sites
codes=${words:-armci prk diy libsc p4est}
for code in $codes; do
    case $code in armci | prk | diy | libsc | p4est) ;; *) usage ;; esac
done
need gcc gcc
need g++ g++
need make make
need cmake cmake
need curl curl
need autoreconf autoconf
need automake automake
need libtoolize libtool
need_file /usr/include/zlib.h zlib1g-dev
install_missing
need_mpicc "$bin/mpicc"
mkdir -p "$work/bin"
launch=$bin/mpiexec
[ -z "$sites" ] || launch=$here/../spread
for name in mpirun mpiexec; do ln -sf "$launch" "$work/bin/$name"; done
ISTHMUS_TEST_BIN=$bin PATH=$work/bin:$bin:$PATH
export ISTHMUS_TEST_BIN PATH

# sources_of CODE OWNER NAME COMMIT [PATH...]: unpacks a commit, all or these paths of it, into $work/CODE, unless it is built.
sources_of() {
    code=$1 owner=$2 name=$3 commit=$4
    shift 4
    [ ! -e "$work/$code/built" ] || [ "$bin/mpicc" -nt "$work/$code/built" ] || return 1
    say "$code: getting and building"
    rm -rf "${work:?}/$code"
    unpack "$code" "$owner" "$name" "$commit" "$@"
}
# unpack DIRECTORY OWNER NAME COMMIT [PATH...]: below $work.
unpack() {
    directory=$work/$1 owner=$2 name=$3 commit=$4
    shift 4
    mkdir -p "$directory"
    if [ -n "$sources" ]; then
        git --git-dir "$sources/$owner+$name/repo" archive "$commit" "$@" >"$work/sources.tar" || die "$name: $sources has no $commit"
        tar -xf "$work/sources.tar" -C "$directory"
    else
        curl -fsSL "https://codeload.github.com/$owner/$name/tar.gz/$commit" >"$work/sources.tar" || die "$name: GitHub does not give $commit"
        tar -xzf "$work/sources.tar" -C "$directory" --strip-components 1
    fi
    rm -f "$work/sources.tar"
}
# ARMCI over MPI, what Global Arrays and NWChem stand on: its `make check`. Each of its programs is a check.
armci() {
    if sources_of armci pmodels armci-mpi 035d5b4e07a6a3ed5ccfbead50c0c15341298cc6 Makefile.am VERSION autogen.sh benchmarks configure.ac m4 profiler src tests; then
        built armci "./autogen.sh && ./configure CC=mpicc CFLAGS=-O1 --disable-shared && make -j$jobs && make -j$jobs checkprogs"
    fi
    status=0
    there "cd '$work/armci' && make check LOG_COMPILER='mpiexec -n 4'" >"$work/armci.out" 2>&1 || status=$?
    grep -E '^(PASS|XFAIL): ' "$work/armci.out" >"$work/armci.passed" || true
    grep -E '^(FAIL|XPASS|ERROR): ' "$work/armci.out" >"$work/armci.failed" || true
    [ $status -ne 124 ] || echo "FAIL: make check, cut off" >>"$work/armci.failed"
    [ -s "$work/armci.passed" ] || echo "FAIL: make check" >>"$work/armci.failed"
    while read -r _ check; do verdict armci "$check" 0; done <"$work/armci.passed"
    while read -r _ check; do verdict armci "$check" 1; done <"$work/armci.failed"
}

# The Parallel Research Kernels with windows, and with shared windows, which they want within each node.
prk() {
    if sources_of prk ParRes Kernels 04248b66a03d7f5edba8d54c9ae7834dd718027a MPIRMA MPISHM common include; then
        printf '%s\n' MPICC=mpicc CC=gcc DEFAULT_OPT_FLAGS=-O1 >"$work/prk/common/make.defs"
        built prk "for kind in MPIRMA MPISHM; do make -C \$kind/Stencil stencil && make -C \$kind/Synch_p2p p2p && make -C \$kind/Transpose transpose; done"
    fi
    # With ranks over sites a node has two; Synch_p2p of MPISHM takes one window for all, so there it is for one node.
    set -- "MPIRMA/Stencil/stencil 20 200" "MPIRMA/Synch_p2p/p2p 5 100 100" "MPIRMA/Transpose/transpose 20 200 32 0" \
        "MPIRMA/Transpose/transpose 20 200 32 1 0 1" "MPIRMA/Transpose/transpose 20 200 32 1 1 1" "MPISHM/Stencil/stencil 2 20 200" \
        "MPISHM/Transpose/transpose 2 20 200 32"
    [ -n "$sites" ] || set -- "$@" "MPISHM/Synch_p2p/p2p 20 200 200"
    : >"$work/prk.out"
    for check in "$@"; do
        there "cd '$work/prk' && mpiexec -n 4 ./$check" >"$work/prk.one" 2>&1 || true
        status=0
        grep -q 'Solution validates' "$work/prk.one" || status=1
        cat "$work/prk.one" >>"$work/prk.out"
        verdict prk "$check" $status
    done
}

# tests SUITE DIRECTORY OPTION...: the tests that CMake has made there, chosen by options of ctest. Each is a check.
tests() {
    suite=$1 directory=$2
    shift 2
    there "cd '$work/$directory' && ctest --timeout 300 $*" >"$work/$suite.out" 2>&1 || true
    sed -n 's/^ *[0-9]*\/[0-9]* Test *#[0-9]*: \([^ ]*\) \.*\(.*\)/\1 \2/p' "$work/$suite.out" >"$work/$suite.tests"
    [ -s "$work/$suite.tests" ] || verdict "$suite" ctest 1
    while read -r check outcome; do
        status=1
        case $outcome in *Passed*) status=0 ;; esac
        verdict "$suite" "$check" $status
    done <"$work/$suite.tests"
}
# What CMake needs to know of processes: at most four.
four="-DMPIEXEC_EXECUTABLE='$work/bin/mpiexec' -DMPIEXEC_MAX_NUMPROCS=4 -DMPIEXEC_NUMPROC_MAX=4"

# DIY's tests, of up to 4 ranks, of windows and of what stands on them: blocks that move between processes, asked for and handed on.
diy() {
    checks="mpi-window dynamic-assigner dynamic-balance collective-balance sampling-balance rexchange iexchange"
    if sources_of diy diatomic diy fd67ad618123f71c0e164c68a0fbc44be0a5260b; then
        built diy "mkdir b && cd b && cmake .. -DCMAKE_C_COMPILER=mpicc -DCMAKE_CXX_COMPILER=mpicxx -DCMAKE_CXX_FLAGS=-O0 -Dthreads=ON -Dbuild_examples=OFF &&
            make -j$jobs $(for check in $checks; do printf '%s-test ' "$check"; done)"
    fi
    tests diy diy/b "-R '^($(echo "$checks" | tr ' ' '|'))-test-p'"
}

# forest CODE OPTION...: the tests of p4est, which adapts forests of octrees, and of its library libsc, which makes arrays that a node shares in
# seven ways, three of which are windows. One build by CMake has both; the options choose among its tests.
forest() {
    if sources_of forest cburstedde p4est 2296a990d8b6b54731a63be0ba5bc17b08cd1f3d; then
        unpack forest/sc cburstedde libsc f8c5099bd5ad553c1bf6e34dc7b6c290f3cc3cca
        for part in forest forest/sc; do echo 2.8.7 >"$work/$part/.tarball-version"; done
        built forest "mkdir b && cd b && cmake .. -DCMAKE_C_COMPILER=mpicc -DCMAKE_C_FLAGS=-O1 -DP4EST_ENABLE_MPI=ON -DSC_ENABLE_MPI=ON \
            -Dmpi=ON -DP4EST_BUILD_EXAMPLES=OFF -DSC_BUILD_EXAMPLES=OFF $four &&
            make -j$jobs"
    fi
    code=$1
    shift
    tests "$code" forest/b "$*"
}
libsc() { forest libsc -L libsc; }
p4est() { forest p4est -LE libsc; }

for code in $codes; do $code; done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
