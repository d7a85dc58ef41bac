#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The unit tests of the crates that touch memory that others use, interpreted by Miri, which reports undefined behaviour and data races. Left out is
# what it cannot do: copies between processes (`pull`, `together`), mappings of files and C. Of the engine those tests whose
# only transport is the one in memory. On a busy machine the tests of one file take three to nine minutes and more. The test `door`, which tries both
# without unsafe code, is run under ThreadSanitizer too. Exits with 77 after saying why where there is no Miri.
# usage: sh ci/miri.sh
. "$(dirname "$0")/../scripts/common.sh"
skip() { say "skipped: $*"; exit 77; }
command -v rustup >/dev/null || skip "no rustup, with which Miri is installed"
cargo +nightly miri --version >/dev/null 2>&1 ||
    rustup component add --toolchain nightly miri rust-src >/dev/null 2>&1 ||
    skip "no Miri: rustup component add --toolchain nightly miri rust-src"
target=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
export CARGO_TARGET_DIR="$target/miri"
# Results of mathematical functions are those of the machine; files and clocks are real; addresses come back from other processes as numbers.
export MIRIFLAGS="-Zmiri-deterministic-floats -Zmiri-disable-isolation -Zmiri-permissive-provenance"
# What random cases may find without an interpreter is looked for without one.
export PROPTEST_CASES=4
cargo +nightly miri test -p isthmus-shm --lib -- --skip pull:: --skip together:: --skip view:: --skip known:: &&
    cargo +nightly miri test -p isthmus-datatype --lib --test door &&
    cargo +nightly miri test -p isthmus-engine --lib --test direct --test cancelling --test unlike || exit 1
host=$(rustc +nightly -vV | sed -n 's/^host: //p')
case $host in
x86_64-*-linux-gnu | aarch64-*-linux-gnu)
    # The standard library is compiled with it, or the sanitizer does not see its locks.
    CARGO_TARGET_DIR=$target/sanitized RUSTFLAGS="-Zsanitizer=thread" \
        cargo +nightly test -Zbuild-std --target "$host" -p isthmus-datatype --test door
    ;;
*) say "ThreadSanitizer: skipped, there is none for $host" ;;
esac
