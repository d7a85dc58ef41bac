#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Are the Rust sources formatted?
. "$(dirname "$0")/../scripts/common.sh"
cargo fmt --version >/dev/null 2>&1 || { say "skipped: cargo fmt is not installed"; exit 77; }
cargo fmt --all --check
