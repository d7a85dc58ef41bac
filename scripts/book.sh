#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the book as HTML out of docs/.
# usage: sh scripts/book.sh [DIRECTORY]     default: build/share/doc/isthmus/html
out=${1:-}
. "$(dirname "$0")/common.sh"
have mkdocs || missing="$missing mkdocs"
install_missing
out=${out:-$build/share/doc/isthmus/html}
mkdocs build --quiet --strict --site-dir "$out" || die "the book was not made"
say "the book is $out/index.html"
