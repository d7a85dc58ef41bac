#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every fuzz target, SECONDS in all, with memory bounded: a length from outside must not become an allocation.
# usage: sh ci/fuzz.sh [SECONDS]
seconds=${1:-60}
. "$(dirname "$0")/../scripts/common.sh"
cargo build --profile fuzz -p isthmus-fuzz || exit 1
# The target directory may be elsewhere: ask.
target=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
ulimit -v 2000000
"$target/fuzz/isthmus-fuzz" --seconds "$seconds"
