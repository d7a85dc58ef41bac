#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# House rules: layers, absences, sizes, generated files, named files.
. "$(dirname "$0")/../scripts/common.sh"
cargo xtask tidy
