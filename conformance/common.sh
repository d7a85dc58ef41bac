# SPDX-License-Identifier: Apache-2.0
# What the drivers of foreign programs share. Sourced with `program` set: the name in messages and of the directory
# below target/ in which everything is made.

top=$(cd "$here/../.." && pwd)
work=${CONFORMANCE_WORK:-$top/target}/$program
bin=${ISTHMUS_TEST_BIN:-$top/build/bin}
# Compilers at once.
jobs=${CONFORMANCE_JOBS:-2}

say() { echo "$program: $*" >&2; }
die() { say "$*"; exit 1; }
# Prints the usage: the comment at the head of the script that calls.
usage() { sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 2; }

# --- options ------------------------------------------------------------------------------------------------
words=
# options 'NAME= LIST+ FLAG *' WORD...: `--NAME VALUE` sets the variable NAME, `--LIST VALUE` adds to it, `--FLAG` makes it 1. Words that are no
# options are put into `words` if there is a `*`. Everything else is answered with the usage.
options() {
    known=" $1 "
    shift
    while [ $# -gt 0 ]; do
        name=${1#--}
        case $1 in --*[!a-z0-9]*) usage ;; esac
        case $1$known in
        --*" $name= "*)
            [ $# -gt 1 ] || usage
            eval "$name=\$2"
            shift
            ;;
        --*" $name+ "*)
            [ $# -gt 1 ] || usage
            eval "$name=\"\$$name \$2\""
            shift
            ;;
        --*" $name "*) eval "$name=1" ;;
        -*) usage ;;
        *" * "*) words="$words $1" ;;
        *) usage ;;
        esac
        shift
    done
}

# --- what is needed -----------------------------------------------------------------------------------------
missing=
# need COMMAND PACKAGE
need() { command -v "$1" >/dev/null 2>&1 || missing="$missing $2"; }
# need_file FILE PACKAGE
need_file() { [ -e "$1" ] || missing="$missing $2"; }
# Python with virtual environments, and its headers.
need_python() {
    need python3 python3
    python3 -c 'import venv, ensurepip' 2>/dev/null || missing="$missing python3-venv"
    need_file "$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))' 2>/dev/null)/Python.h" python3-dev
}
install_missing() {
    [ -n "$missing" ] || return 0
    [ "$(id -u)" = 0 ] || die "missing:$missing; run: sudo apt-get install -y$missing"
    # shellcheck disable=SC2086 # a list of package names
    apt-get install -y -q $missing >&2 || { apt-get update -q >&2 && apt-get install -y -q $missing >&2; } || die "cannot install$missing"
}
need_mpicc() {
    command -v "$1" >/dev/null 2>&1 || die "$1 is not there; build first (sh scripts/demo.sh) or name the directory in ISTHMUS_TEST_BIN"
}

# --- Debian's source packages -------------------------------------------------------------------------------
# With package lists of our own: the system's usually have no deb-src, and are not ours to change.
fetch() {
    mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial" "$work/apt/sources"
    # The system's own mirrors, asked for sources instead of packages.
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ ! -e "$list" ] || sed -n 's/^deb /deb-src /p' "$list" >"$work/apt/sources/$(basename "$list" .list).list"
    done
    for list in /etc/apt/sources.list.d/*.sources; do
        [ ! -e "$list" ] || sed 's/^Types:.*/Types: deb-src/' "$list" >"$work/apt/sources/$(basename "$list")"
    done
    package=$1
    set -- -q -o Dir::Etc::sourcelist=- -o "Dir::Etc::sourceparts=$work/apt/sources" -o "Dir::State::lists=$work/apt/lists" \
        -o "Dir::Cache=$work/apt/cache" -o APT::Sandbox::User=root
    apt-get "$@" update >&2 || die "cannot read the package lists"
    (cd "$work" && apt-get "$@" source --download-only "$package" >&2) || say "the package is incomplete on this mirror"
}
# debian_source PACKAGE: its source in $work/source.
debian_source() {
    mkdir -p "$work"
    [ -n "$(ls "$work/$1"_*.orig.tar.* 2>/dev/null)" ] || fetch "$1"
    rm -rf "$work/source"
    dsc=$(ls "$work/$1"_*.dsc 2>/dev/null | head -n 1)
    [ -n "$dsc" ] || die "the source package $1 cannot be had"
    if dpkg-source --no-check -x "$dsc" "$work/source" >&2 2>/dev/null; then return; fi
    # Without Debian's packaging the program itself is the same; its checksum is in the .dsc.
    say "Debian's changes are missing (packaging only); using the original archive alone"
    rm -rf "$work/source"
    mkdir -p "$work/source"
    original=$(ls "$work/$1"_*.orig.tar.* | head -n 1)
    sum=$(sha256sum "$original" | cut -d ' ' -f 1)
    grep -q "$sum.*$(basename "$original")" "$dsc" || die "$(basename "$original") is damaged"
    tar -xf "$original" -C "$work/source" --strip-components 1
}
# build_once [PACKAGE]: the caller's function `build` in $work/build, anew when the library has changed; before that the source package.
build_once() {
    ! cmp -s "$bin/../include/mpi.h" "$work/mpi.h" || return 0
    [ $# = 0 ] || [ -d "$work/source" ] || debian_source "$1"
    rm -rf "$work/build"
    mkdir -p "$work/build"
    say "building in $work"
    if ! (build) >"$work/build.log" 2>&1 </dev/null; then
        grep -E 'Error|rror:|\*\*\*' "$work/build.log" | head -n 20 >&2
        die "the build failed; all of it: $work/build.log"
    fi
    cp "$bin/../include/mpi.h" "$work/mpi.h"
}

# --- codes with checks of their own ---------------------------------------------------------------------------
# built CODE COMMAND...: runs a build in $work/CODE; its output is shown only if it fails.
built() {
    code=$1
    shift
    (cd "$work/$code" && sh -ec "$*") >"$work/$code.log" 2>&1 </dev/null ||
        { tail -n 20 "$work/$code.log" >&2; die "$code: the build failed; all of it: $work/$code.log"; }
    touch "$work/$code/built"
}
# there SCRIPT: runs a shell script on this machine, or where `wide` is set over two testbed sites, $rtt and $rate apart.
there() {
    set -- sh -c "$1"
    [ -z "$wide" ] || set -- "$bin/isthmus-testbed" run --sites 2x1 --rtt "$rtt" --rate "$rate" -- "$@"
    timeout "${CONFORMANCE_TIMEOUT:-1500}" "$@" </dev/null
}
passed=0 failed=0
# verdict CODE CHECK STATUS
verdict() {
    if [ "$3" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    echo "$1: $2: $([ "$3" = 0 ] && echo ok || echo "FAILED, see $work/$1.out")"
}
