// SPDX-License-Identifier: Apache-2.0
//! The words that a compiler gets: those of its own name (`gfortran -m32`), of the command line, and of response files
//! (`@FILE`).

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Response files may name others; compilers stop at 2000 of them, where nobody gets to.
const DEPTH: usize = 8;
/// A longer response file is not looked into.
const MAX_BYTES: u64 = 1 << 20;

/// All words after the name of the program.
pub(crate) fn all(compiler: &str, arguments: &[OsString]) -> Vec<OsString> {
    let mut words: Vec<OsString> = compiler.split_whitespace().skip(1).map(OsString::from).collect();
    for argument in arguments {
        spell_out(argument, DEPTH, &mut words);
    }
    words
}

fn spell_out(word: &OsStr, depth: usize, words: &mut Vec<OsString>) {
    let file = word.as_bytes().strip_prefix(b"@").filter(|_| depth > 0);
    let Some(text) = file.and_then(|name| read(Path::new(OsStr::from_bytes(name)))) else {
        return words.push(word.to_owned());
    };
    for word in split(&text) {
        spell_out(&word, depth - 1, words);
    }
}

/// What is no file, or too long a one, is a word like others.
fn read(path: &Path) -> Option<Vec<u8>> {
    let found = fs::metadata(path).ok()?;
    (found.is_file() && found.len() <= MAX_BYTES)
        .then(|| fs::read(path).ok())
        .flatten()
}

/// Words are apart by blanks, but for those in quotes or behind a backslash.
fn split(text: &[u8]) -> Vec<OsString> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<Vec<u8>>, None);
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => word.get_or_insert_default().extend(bytes.next()),
            _ if quote == Some(byte) => quote = None,
            b'"' | b'\'' if quote.is_none() => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            _ if quote.is_none() && byte.is_ascii_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word);
    words.into_iter().map(OsString::from_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_response_files() {
        let given = split(b" -O2 \"a b\"\n'c\"d' e\\ f '' -I\"/x y\"z\n");
        assert_eq!(given, ["-O2", "a b", "c\"d", "e f", "", "-I/x yz"].map(OsString::from));
    }

    #[test]
    fn response_files_are_spelled_out_and_end() {
        let place = std::env::temp_dir().join(format!("isthmus-words-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        let file = place.join("options");
        let name = format!("@{}", file.display());
        fs::write(&file, "-i8 -O2").unwrap();
        let of = |name: &str| all("ccache gfortran -m64", &["-c".into(), name.into()]);
        assert_eq!(of(&name), ["gfortran", "-m64", "-c", "-i8", "-O2"].map(OsString::from));
        assert_eq!(of("@/none"), ["gfortran", "-m64", "-c", "@/none"].map(OsString::from));
        fs::write(&file, &name).unwrap();
        assert_eq!(of(&name).last(), Some(&OsString::from(&name)));
        fs::remove_dir_all(&place).unwrap();
    }
}
