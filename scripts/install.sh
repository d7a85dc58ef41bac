#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds and installs into PREFIX/{bin,lib,include,share}. The tree can be moved afterwards.
# usage: sh scripts/install.sh --prefix PREFIX
set -eu
prefix=
case ${1-} in
--prefix) prefix=${2-} ;;
--prefix=*) prefix=${1#--prefix=} ;;
esac
[ -n "$prefix" ] || { echo "usage: sh scripts/install.sh --prefix PREFIX" >&2; exit 2; }
case $prefix in
/*) ;;
*) prefix=$PWD/$prefix ;;
esac
. "$(dirname "$0")/common.sh"
want_for_build
install_missing
cargo xtask dist --out "$prefix" --release
# The book as HTML, where the tool for it is or can be had. As Markdown it is there in any case.
doc=$prefix/share/doc/isthmus
sh scripts/book.sh "$doc/html" || say "the book is $doc/docs/index.md; with mkdocs, 'sh scripts/book.sh $doc/html' makes HTML of it"
say "installed; add it to the search path with: PATH=$prefix/bin:\$PATH"
