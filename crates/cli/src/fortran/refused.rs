// SPDX-License-Identifier: Apache-2.0
//! Options of compilers for which the interfaces are not made, and options with which some of them are traps.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Options with which REALs are longer. Kinds are in the modules and in mpif.h, so the interfaces stay as they are.
const LONGER_REALS: [&str; 11] = [
    "-r8",
    "-r16",
    "-Mr8",
    "-autodouble",
    "-fdefault-real-8",
    "-fdefault-real-10",
    "-fdefault-real-16",
    "-fdefault-double-8",
    "-freal-4-real-8",
    "-freal-4-real-10",
    "-freal-4-real-16",
];
/// Options with which default INTEGERs and LOGICALs are longer.
const LONGER_INTEGERS: [&str; 3] = ["-i8", "-Mi8", "-fdefault-integer-8"];
/// Options that change what `INTEGER(4)` and `REAL(8)` mean, so that a program cannot say what MPI takes.
const OTHER_KINDS: [&str; 4] = [
    "-finteger-4-integer-8",
    "-freal-8-real-4",
    "-freal-8-real-10",
    "-freal-8-real-16",
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
/// Options whose value is a number of bits, what is usual, and whether they are of INTEGERs.
const SIZES: [(&str, &str, bool); 3] = [
    ("-integer-size", "32", true),
    ("-real-size", "32", false),
    ("-double-size", "64", false),
];

/// What an option makes longer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Longer {
    Reals,
    Integers,
}

/// What the option at this position makes longer, and how many words it has.
fn longer(words: &[String], position: usize) -> Option<(Longer, usize)> {
    let dashed = words.get(position)?.replacen("--", "-", 1);
    if LONGER_REALS.contains(&dashed.as_str()) {
        return Some((Longer::Reals, 1));
    }
    if LONGER_INTEGERS.contains(&dashed.as_str()) {
        return Some((Longer::Integers, 1));
    }
    SIZES.iter().find_map(|(option, usual, integers)| {
        let rest = dashed.strip_prefix(option)?;
        let (value, length) = match rest {
            "" => (words.get(position + 1)?.as_str(), 2),
            _ => (rest.trim_start_matches('=').trim(), 1),
        };
        let kind = if *integers { Longer::Integers } else { Longer::Reals };
        (value != *usual).then_some((kind, length))
    })
}

/// What the interfaces are not made for, if it is asked for.
pub(crate) fn refused(arguments: &[OsString]) -> Option<String> {
    arguments.iter().find_map(|argument| {
        let word = argument.to_string_lossy();
        let dashed = word.replacen("--", "-", 1);
        if OTHER_KINDS.contains(&dashed.as_str()) {
            return Some(format!(
                "{word} changes what INTEGER(4) and REAL(8) are, so no program can say what MPI takes; \
                 use -fdefault-real-8 or -fdefault-integer-8"
            ));
        }
        OTHER_NAMES.contains(&dashed.as_str()).then(|| {
            format!("{word} changes how names are written for the linker, and mpif.h is made for the usual way")
        })
    })
}

/// Whether it is the name of a source in Fortran.
fn is_source(word: &OsString) -> bool {
    let ending = Path::new(word).extension().map(OsStr::to_ascii_lowercase);
    !word.as_bytes().starts_with(b"-") && ending.is_some_and(|e| e.as_bytes().starts_with(b"f"))
}

/// Tells what the sources of a command must mind with the options in all its words.
#[expect(clippy::print_stderr, reason = "a compiler's note, for people and build systems")]
pub(crate) fn tell_traps(arguments: &[OsString], all: &[OsString]) {
    for trap in traps(arguments, all) {
        eprintln!("mpifort: note: {trap}");
    }
}

fn traps(arguments: &[OsString], all: &[OsString]) -> Vec<String> {
    if !arguments.iter().any(is_source) {
        return Vec::new();
    }
    let words: Vec<String> = all.iter().map(|a| a.to_string_lossy().into_owned()).collect();
    let first = |wanted: Longer| {
        let found = (0..words.len()).find(|at| longer(&words, *at).is_some_and(|(kind, _)| kind == wanted));
        found.and_then(|at| words.get(at))
    };
    let reals = first(Longer::Reals).map(|word| {
        format!(
            "with {word}, do not use MPI_REAL and MPI_COMPLEX of the modules: they are for REALs of 4 bytes; \
             use MPI_REAL8, or MPI_DOUBLE_PRECISION, which is for 8 bytes"
        )
    });
    let integers = first(Longer::Integers).map(|word| {
        format!(
            "with {word}, declare what MPI takes as INTEGER(4) and LOGICAL(4), and send default INTEGERs as MPI_INTEGER8; \
             mpif.h cannot be used"
        )
    });
    reals.into_iter().chain(integers).collect()
}

/// A compiler without the options that make default kinds longer: modules are made for the usual ones.
pub(super) fn with_usual_kinds(words: &[String]) -> Vec<String> {
    let (mut kept, mut at) = (Vec::new(), 0);
    while let Some(word) = words.get(at) {
        match longer(words, at) {
            Some((_, length)) => at += length,
            None => {
                kept.push(word.clone());
                at += 1;
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn what_no_program_can_mind_is_refused() {
        for line in ["a.f -finteger-4-integer-8", "-freal-8-real-4 a.f", "-ff2c"] {
            assert!(refused(&words(line)).is_some(), "{line}");
        }
        for line in ["-O2 a.f", "-fdefault-real-8", "-i8", "-o -r8", "-ffree-form a.f"] {
            assert!(refused(&words(line)).is_none(), "{line}");
        }
    }

    #[test]
    fn longer_kinds_are_traps() {
        for (line, expected) in [
            ("-O2 a.f -integer-size 32 -o i8", ""),
            ("-fdefault-real-8 -fdefault-double-8 a.f", "MPI_REAL8"),
            ("-real-size=64", "MPI_REAL8"),
            ("--fdefault-integer-8", "MPI_INTEGER8"),
            ("-integer-size 64", "MPI_INTEGER8"),
        ] {
            let said = traps(&words("a.f90"), &words(line));
            assert_eq!(said.len(), usize::from(!expected.is_empty()), "{line}: {said:?}");
            assert!(said.iter().all(|text| text.contains(expected)), "{line}: {said:?}");
        }
        assert_eq!(traps(&words("A.F90"), &words("-i8 -r8")).len(), 2);
        assert!(traps(&words("-o a a.o"), &words("-i8")).is_empty());
    }

    #[test]
    fn modules_are_made_for_the_usual_kinds() {
        let given: Vec<String> = "gfortran -i8 -O1 -real-size 64 -m64 -r8"
            .split(' ')
            .map(str::to_owned)
            .collect();
        assert_eq!(with_usual_kinds(&given), ["gfortran", "-O1", "-m64"]);
    }
}
