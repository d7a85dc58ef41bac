#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Models of the lock-free parts: every interleaving of the shared-memory ring and of its bell, and of threads that take turns with the lock.
. "$(dirname "$0")/../scripts/common.sh"
# Other flags mean another build of everything: keep it apart from the ordinary one.
target=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
RUSTFLAGS="--cfg loom" cargo test -p isthmus-lock -p isthmus-shm --lib --release --target-dir "$target/loom"
