#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The lints of Cargo.toml and clippy.toml; every warning is an error. Each version of clippy has lints of its own, so warnings
# count with the version that the sources were last checked with; any other prints them.
. "$(dirname "$0")/../scripts/common.sh"
last_checked=95
cargo clippy --version >/dev/null 2>&1 || { say "skipped: cargo clippy is not installed"; exit 77; }
minor=$(rustc --version | cut -d' ' -f2 | cut -d. -f2)
if [ "$minor" -eq "$last_checked" ]; then
    cargo clippy --workspace --all-targets -- -D warnings
else
    say "skipped: clippy 1.$minor is not 1.$last_checked, whose warnings are errors: here they are only printed"
    cargo clippy --workspace --all-targets
fi
