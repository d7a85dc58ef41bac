#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A machine's own MPI in one process with ours: for each that is installed an adaptor is compiled, and a program that is linked to our
# library uses both, started by the other's mpiexec.
. "$(dirname "$0")/common.sh"
command -v mpicc >/dev/null 2>&1 || skip "no mpicc in PATH"
mpicc -std=c11 -O2 -Wall -Wextra "$top/tests/vendor/beside.c" -o beside -ldl || fail "mpicc beside.c"
tried=0
for vendor in mpich openmpi mpich-5.0.2 mpich-5.0.2-abi openmpi-5.0.11; do
    compiler=mpicc.$vendor launcher=mpiexec.$vendor
    tree=$top/target/peers/${vendor%-abi}
    if [ -d "$tree" ]; then
        compiler=$tree/bin/mpicc launcher=$tree/bin/mpiexec
        case $vendor in *-abi) compiler=${compiler}_abi ;; esac
    fi
    if ! command -v "$compiler" >/dev/null 2>&1; then
        echo "not installed, not tried: $vendor"
        continue
    fi
    case $vendor in openmpi*) options='--allow-run-as-root --oversubscribe' ;; *) options= ;; esac
    isthmus adaptor build --mpicc "$compiler" --directory adaptors >built || fail "adaptor for $vendor"
    adaptor=$(sed 's/ (.*//' built)
    # shellcheck disable=SC2086 # options are words
    timeout -k 5 60 "$launcher" $options -n 3 ./beside "$adaptor" >out 2>&1 || { cat out; fail "beside $vendor"; }
    [ "$(grep -c 'both work' out)" = 3 ] || { cat out; fail "not all processes of $vendor came to the end"; }
    isthmus adaptor build --mpicc "$compiler" --directory adaptors | grep -q 'there already' || fail "built twice for $vendor"
    echo "$vendor: $(head -1 out)"
    tried=$((tried + 1))
done
isthmus adaptor build --mpicc /no/such/mpicc --directory adaptors >out 2>&1 && fail "a compiler that is not there"
grep -q 'cannot be run' out || { cat out; fail "no reason given"; }
[ $tried -gt 0 ] || skip "no other MPI is installed (Debian: mpich libmpich-dev, openmpi-bin libopenmpi-dev)"
