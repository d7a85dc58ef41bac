# SPDX-License-Identifier: Apache-2.0
# Parallel HDF5 as others link it: shared, with its high-level interface, from Debian's source package. Sourced behind common.sh.

need gcc gcc
need make make
need dpkg-source dpkg-dev
need_file /usr/include/zlib.h zlib1g-dev

# hdf5_library: builds it in target/hdf5-library, anew when mpi.h has changed. Sets `hdf5`: where it is installed.
hdf5_library() {
    hdf5=$(dirname "$work")/hdf5-library/installed
    (
        work=$(dirname "$work")/hdf5-library
        build() {
            cd "$work/build" &&
                "$work/source/configure" --prefix="$hdf5" CC="$bin/mpicc" CFLAGS="-O0 -w" --enable-parallel --enable-hl --disable-static \
                    --disable-fortran --disable-cxx --disable-tests --disable-tools --without-szlib &&
                make -j"$jobs" -C src install && make -j"$jobs" -C hl/src install
        }
        build_once hdf5
    )
}
