#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The lints of Cargo.toml and clippy.toml; every warning is an error. A compiler newer than the one the sources were
# last checked with has lints nobody has looked at: then warnings are printed, not counted.
. "$(dirname "$0")/../scripts/common.sh"
last_checked=95
cargo clippy --version >/dev/null 2>&1 || { say "skipped: cargo clippy is not installed"; exit 77; }
minor=$(rustc --version | cut -d' ' -f2 | cut -d. -f2)
if [ "$minor" -le "$last_checked" ]; then
    cargo clippy --workspace --all-targets -- -D warnings
else
    say "skipped: clippy 1.$minor is newer than 1.$last_checked: warnings do not count"
    cargo clippy --workspace --all-targets
fi
