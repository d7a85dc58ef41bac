#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the book as HTML out of docs/. A page that asks for a file or a heading which is not there is an error.
# usage: sh scripts/book.sh [DIRECTORY]     default: build/share/doc/isthmus/html
out=${1:-}
. "$(dirname "$0")/common.sh"
have mkdocs || missing="$missing mkdocs"
install_missing
out=${out:-$build/share/doc/isthmus/html}
mkdocs build --quiet --strict --clean --site-dir "$out" && python3 scripts/book.py "$out" || die "the book was not made"
say "the book is $out/index.html"
