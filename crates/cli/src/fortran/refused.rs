// SPDX-License-Identifier: Apache-2.0
//! Options of compilers for which the interfaces are not made.

use std::ffi::OsString;

/// Options that change the default kinds, for which the interfaces are not made: MPI_INTEGER would no longer be an
/// INTEGER.
const OTHER_KINDS: [&str; 17] = [
    "-i8",
    "-r8",
    "-r16",
    "-fdefault-integer-8",
    "-fdefault-real-8",
    "-fdefault-real-10",
    "-fdefault-real-16",
    "-fdefault-double-8",
    "-autodouble",
    "-finteger-4-integer-8",
    "-freal-4-real-8",
    "-freal-4-real-10",
    "-freal-4-real-16",
    "-freal-8-real-4",
    "-freal-8-real-10",
    "-freal-8-real-16",
    "-Mi8",
];
/// Options that change how names are written for the linker, which COMMON blocks of mpif.h would not survive.
const OTHER_NAMES: [&str; 5] = [
    "-fsecond-underscore",
    "-fno-underscoring",
    "-fleading-underscore",
    // It adds the second underscore, and functions return REALs in another way.
    "-ff2c",
    "-Msecond_underscore",
];
/// Options whose value is a number of bits or bytes; only the usual one is taken.
const SIZES: [(&str, &str); 3] = [("-integer-size", "32"), ("-real-size", "32"), ("-double-size", "64")];

/// What the interfaces are not made for, if it is asked for.
pub(crate) fn refused(arguments: &[OsString]) -> Option<String> {
    let words: Vec<String> = arguments.iter().map(|a| a.to_string_lossy().into_owned()).collect();
    for (position, word) in words.iter().enumerate() {
        let dashed = word.replacen("--", "-", 1);
        if OTHER_KINDS.contains(&dashed.as_str()) || dashed == "-Mr8" {
            return Some(format!(
                "{word} changes the kinds of default INTEGERs or REALs, and MPI's are made for those of 4 and 8 bytes; \
                 declare kinds in the program and use MPI_INTEGER8, MPI_REAL8 …"
            ));
        }
        if OTHER_NAMES.contains(&dashed.as_str()) {
            return Some(format!(
                "{word} changes how names are written for the linker, and mpif.h is made for the usual way"
            ));
        }
        for (option, usual) in SIZES {
            let value = match dashed.strip_prefix(option) {
                Some("") => words.get(position + 1).map(String::as_str),
                Some(rest) => Some(rest.trim_start_matches('=').trim()),
                None => None,
            };
            if value.is_some_and(|value| value != usual) {
                return Some(format!(
                    "{option} other than {usual} changes the kinds of default INTEGERs or REALs, which MPI's are not made for"
                ));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn other_kinds_are_refused() {
        for line in [
            "-i8 a.f",
            "a.f -fdefault-integer-8",
            "-fdefault-real-8",
            "-integer-size 64",
            "-real-size=64",
            "-r8",
        ] {
            assert!(refused(&words(line)).is_some(), "{line}");
        }
        for line in ["-O2 a.f", "-integer-size 32", "-o i8", "-ffree-form a.f"] {
            assert!(refused(&words(line)).is_none(), "{line}");
        }
    }
}
