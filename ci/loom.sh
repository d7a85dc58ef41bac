#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Models of the lock-free parts: interleavings of the shared-memory ring and of its bell, of threads that take turns with the lock, and of processes
# that take the locks of a window, also from one that has died.
. "$(dirname "$0")/../scripts/common.sh"
# Other flags mean another build of everything: keep it apart from the ordinary one.
target=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
RUSTFLAGS="--cfg loom" cargo test -p isthmus-lock -p isthmus-shm --lib --release --target-dir "$target/loom"
