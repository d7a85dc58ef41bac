// SPDX-License-Identifier: Apache-2.0
//! What no program can be linked with: the linker's own words would be a puzzle.

use std::ffi::OsString;

/// Why a command that links cannot come to an end, if it cannot.
pub(super) fn why(arguments: &[OsString]) -> Option<String> {
    arguments
        .iter()
        .filter_map(|word| word.to_str())
        .find_map(|word| match word {
            "-static" | "--static" | "-static-pie" => Some(format!(
                "{word}: Isthmus is a shared library; leave {word} out (-static-libgcc and -static-libstdc++ can stay)"
            )),
            "-m32" | "-mx32" if cfg!(target_pointer_width = "64") => Some(format!(
                "{word}: this Isthmus is for {} with 64 bits; programs of other kinds cannot be linked with it",
                std::env::consts::ARCH
            )),
            _ => None,
        })
}
