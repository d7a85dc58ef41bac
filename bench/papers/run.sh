#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All experiments of the papers and the bounds, with every library found here: table, JSON and one page.
#
#   sh bench/papers/run.sh [--only figure8,table2] [--mpi isthmus,mpich] [--repetitions 5] [--with earlier.json] ...
#
# Needs root (or unprivileged user namespaces) for the testbed, and a build: sh scripts/build.sh. See README.md here.
set -eu
cd "$(dirname "$0")/../.."
bench=build/bin/isthmus-bench
if [ ! -x "$bench" ]; then
    echo "run.sh: no $bench" >&2
    echo "  hint: cargo xtask dist --release --workshop --out build" >&2
    exit 2
fi
out=target/papers
mkdir -p "$out"
"$bench" papers --html "$out/papers.html" --json "$out/papers.json" "$@" | tee "$out/papers.txt"
echo "run.sh: wrote $out/papers.html, $out/papers.json, $out/papers.txt"
