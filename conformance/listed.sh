# SPDX-License-Identifier: Apache-2.0
# Runs the programs of a list, on this machine or spread over two testbed sites that have no directory in common, and judges them by a table of
# expected failures. Sourced by drivers of foreign programs behind common.sh.
#
# list.txt      NAME RANKS [ARGUMENT...]; FILE in an argument stands for a name below /tmp, which each host has for itself
# expected.tsv  NAME, where (node, sites or both), reason: this one may fail
# met=1: the ranks are in two jobs that have met. The caller builds the programs with the words of met_flags, and links $met_object.

# listed_options OPTIONS WORD...: takes the options that all drivers share (sets `sites`, `only` and `limit`), and some of the caller's own.
sites= only= limit=120 met=
listed_options() {
    own=$1
    shift
    options "sites limit= $own *" "$@"
    only=$words
}

# Runs itself again inside a testbed, once.
listed_inside() {
    [ -n "$sites" ] && [ -z "${LISTED_INSIDE:-}" ] || return 0
    export LISTED_INSIDE=1
    exec "$bin/isthmus-testbed" run --sites 2x1 --rtt "${LISTED_RTT:-2ms}" --rate 1gbit --private-tmp -- \
        sh "$here/run.sh" --sites ${met:+--met} --limit "$limit" $only
}

# listed_met: builds what joins two jobs, in a directory of its own; met_flags and met_object are empty for one job.
met_flags='' met_object=''
listed_met() {
    [ -n "$met" ] || return 0
    work=$work-met
    met_object=$work/world.o met_flags="-include $top/conformance/met/world.h"
    mkdir -p "$work"
    "$bin/mpicc" -O1 -fPIC -c "$top/conformance/met/world.c" -o "$met_object" || die "conformance/met/world.c"
}

# listed_wanted NAME
listed_wanted() {
    [ -n "$only" ] || return 0
    case " $only " in *" $1 "*) return 0 ;; *) return 1 ;; esac
}

# listed_run DIRECTORY: all of list.txt (or of the file that listed_list names), with the programs of a directory. listed_good LOG STATUS judges one.
# listed_apart: programs that make files where they stand work in a directory below /tmp.
listed_run() {
    directory=$1 passed=0 failed=0 expected=0
    if [ -n "$sites" ]; then place=sites launch="$here/../spread"; else place=node launch="$bin/mpiexec"; fi
    if [ -n "$met" ]; then
        launch="$top/conformance/met/mpiexec"
        export MET_SITES="${sites:+home b1}"
    fi
    export ISTHMUS_TEST_BIN="$bin" SPREAD_OPTIONS="--share /tmp ${SPREAD_OPTIONS:-}"
    mkdir -p "$work/$place"
    while read -r name ranks arguments <&3; do
        case $name in '' | '#'*) continue ;; esac
        listed_wanted "$name" || continue
        log=$work/$place/$name.log
        data=/tmp/isthmus-$program.$$
        rm -rf "$data"*
        words=$(echo "$arguments" | sed "s|FILE|$data|g")
        status=0 stand=$directory
        if [ -n "${listed_apart:-}" ]; then stand=$data.d && mkdir -p "$stand"; fi
        # shellcheck disable=SC2086 # arguments are words
        (cd "$stand" && timeout -k 5 "$limit" $launch -n "$ranks" "$directory/$name" $words) >"$log" 2>&1 </dev/null || status=$?
        rm -rf "$data"*
        reason=$(awk -F '\t' -v name="$name" -v place="$place" \
            '$1 == name && ($2 == place || $2 == "both") { print $3 }' "$here/expected.tsv")
        if listed_good "$log" $status; then
            passed=$((passed + 1))
            [ -z "$reason" ] || { say "$name passes, but is expected to fail: $reason"; failed=$((failed + 1)); }
        elif [ -n "$reason" ]; then
            expected=$((expected + 1))
        else
            failed=$((failed + 1))
            say "$name on $ranks ranks failed (status $status): $log"
            tail -n 5 "$log" >&2
        fi
    done 3<"${listed_list:-$here/list.txt}"
    echo "$program ($place): $passed passed, $failed failed, $expected expected to fail"
    [ "$failed" = 0 ]
}
