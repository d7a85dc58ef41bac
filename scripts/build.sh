#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds into build/{bin,lib,include,share}, installing what is missing for that.
# usage: sh scripts/build.sh
set -eu
. "$(dirname "$0")/common.sh"
want_for_build
install_missing
cargo xtask dist --out "$build" --release --workshop
