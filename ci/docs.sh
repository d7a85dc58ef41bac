#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The book: its links lead somewhere, its messages are those of the sources, it can be made into HTML, and every command in it does
# what the page says, on a testbed with a home and two sites. ISTHMUS_TEST_DOCS=all runs the longer commands too.
# usage: sh ci/docs.sh [PAGE...]
pages=$*
. "$(dirname "$0")/../scripts/common.sh"
have python3 || { say "no python3"; exit 77; }
[ -x "$build/bin/isthmus" ] || sh scripts/build.sh || exit 1
PATH=$build/bin:$PATH
export PATH
status=0
# shellcheck disable=SC2046 # a list of files
python3 ci/docs.py check $(find docs -name '*.md' | sort) || status=1
work=$(mktemp -d /var/tmp/isthmus-docs.XXXXXX)
trap 'rm -rf "$work" "$log"' EXIT
if have mkdocs; then
    sh scripts/book.sh "$work/html" || status=1
    # Opened as a file: a word is found.
    if have chromium; then
        timeout 60 chromium --headless=new --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update \
            --disable-sync --user-data-dir="$work/browser" --virtual-time-budget=5000 --dump-dom "file://$work/html/index.html?q=firewalls" \
            2>"$work/log" | grep -q '<div id="found".*href="./firewalls.html#' || { say "the search of the book finds nothing"; status=1; }
    else
        say "skipped: no chromium: the search of the book is not tried"
    fi
else
    say "skipped: no mkdocs: the book is not made into HTML"
fi
if ! isthmus-testbed run --topology ci/docs.toml -- ssh lab1 true >"$work/log" 2>&1; then
    say "no testbed here: $(tail -n 1 "$work/log")"
    [ $status -eq 0 ] && exit 77
    exit 1
fi
# shellcheck disable=SC2046,SC2086 # lists of files
ISTHMUS_TEST_DOCS_WORK=$work isthmus-testbed run --topology ci/docs.toml -- \
    python3 ci/docs.py run ${pages:-$(find docs -name '*.md' -not -path '*/reference/*' | sort)} || status=1
exit $status
