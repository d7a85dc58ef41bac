#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Unit, property and simulation tests of every room; those that need a network of their own are in system.sh.
. "$(dirname "$0")/../scripts/common.sh"
out=$(mktemp)
cargo test --workspace --no-fail-fast 2>&1 | tee "$out"
# The library without the checks that can be left out is built by nobody else.
cargo check -p isthmus-mpi --features unchecked 2>&1 | tee -a "$out"
passed=$(sed -n 's/^test result: .* \([0-9]*\) passed.*/\1/p' "$out" | awk '{n += $1} END {print n + 0}')
failed=$(sed -n 's/^test result: .* \([0-9]*\) failed.*/\1/p' "$out" | awk '{n += $1} END {print n + 0}')
# A test program that does not compile or dies has no result line.
broken=$(grep -c -E '^error(\[|:)' "$out")
rm -f "$out"
[ "$failed" -gt 0 ] || [ "$broken" -eq 0 ] || failed=$broken
say "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
