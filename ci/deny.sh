#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Licences, sources and advisories of what comes from outside, by deny.toml. Needs cargo-deny and the network.
. "$(dirname "$0")/../scripts/common.sh"
cargo deny --version >/dev/null 2>&1 || { say "skipped: cargo-deny is not installed"; exit 77; }
cargo deny check
