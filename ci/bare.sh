#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The rooms of floors 0 and 1, which know no system, are built for a target that has none: neither they nor the crates that
# they use can need one. Exits with 77 after saying why where the target is not installed.
# usage: sh ci/bare.sh
. "$(dirname "$0")/../scripts/common.sh"
target=wasm32-unknown-unknown
rustc --print target-libdir --target $target 2>/dev/null | while read -r lib; do ls "$lib"/libstd-*.rlib; done >/dev/null 2>&1 ||
    { say "skipped: no standard library for $target: rustup target add $target"; exit 77; }
rooms=$(sed -n 's/^[01] common \([a-z-]*\):.*/-p isthmus-\1/p' layers.txt)
[ -n "$rooms" ] || die "layers.txt names no rooms of floors 0 and 1"
# shellcheck disable=SC2086 # several words
cargo check --locked --quiet --target $target $rooms && say "rooms of floors 0 and 1: $(printf '%s\n' "$rooms" | wc -l), none needs a system"
