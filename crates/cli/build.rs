// SPDX-License-Identifier: Apache-2.0
//! When the distribution is built (`cargo xtask dist`), the command is linked against the symbols of an old C library:
//! it is copied to sites.

fn main() {
    // The name is also in xtask/src/glibc.rs, which makes these libraries.
    println!("cargo:rerun-if-env-changed=OLD_GLIBC_DIRECTORY");
    println!("cargo:rerun-if-changed=build.rs");
    if let Ok(place) = std::env::var("OLD_GLIBC_DIRECTORY") {
        println!("cargo:rerun-if-changed={place}");
        println!("cargo:rustc-link-arg-bins=-L{place}");
    }
}
