#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All crates compile with the oldest Rust compiler that they are for (scripts/oldest-rust.sh). Exits with 77 after saying why
# where that cannot be had.
# usage: sh ci/oldest.sh
. "$(dirname "$0")/../scripts/common.sh"
. "$top/scripts/oldest-rust.sh"
skip() { say "skipped: $*"; exit 77; }
place=$top/target/unlike
mkdir -p "$place"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
[ "$(uname -m)" = x86_64 ] || skip "the compiler is one for x86-64"
oldest_rust "$place" >"$log" 2>&1 || skip "no Rust 1.85: $(tail -n 1 "$log")"
RUSTC=$place/tools/rustc CARGO_TARGET_DIR=$top/target/oldest cargo check -q --locked --workspace || exit 1
say "compiles with $("$place/tools/rustc" --version)"
