// SPDX-License-Identifier: Apache-2.0
//! Words of the user that need not be UTF-8: names of files, arguments, values of variables.
//!
//! A system's words are bytes; ours are text, in job files, in JSON and in messages. So a byte that is not part of
//! UTF-8 travels as a character of its own, from a range that nobody else uses ([`FIRST`]). Characters of that range
//! that the user writes travel as four such bytes, so every word of the system has one text and the way back gives the
//! same bytes. Where a word comes from the system it is made with [`from_bytes`], where it goes to the system with
//! [`to_bytes`], and people see `\xff` ([`show`]).

/// `1 rank`, `3 ranks`, `2 processes`: a number of things that are called so.
pub fn counted<N: std::fmt::Display + PartialEq + From<u8>>(number: N, what: &str) -> String {
    let end = match what.ends_with('s') {
        _ if number == N::from(1) => "",
        true => "es",
        false => "s",
    };
    format!("{number} {what}{end}")
}

/// The character that stands for byte 0x80; the others follow. For private use, in the last plane.
pub const FIRST: u32 = 0x0010_f880;
const LAST: u32 = FIRST + 0x7f;

/// The byte that a character stands for.
fn byte(c: char) -> Option<u8> {
    (FIRST..=LAST)
        .contains(&u32::from(c))
        .then(|| (u32::from(c) - FIRST) as u8 | 0x80)
}

/// Whether a character stands for a byte.
pub fn stands_for_a_byte(c: char) -> bool {
    byte(c).is_some()
}

fn stand_in(byte: u8) -> char {
    char::from_u32(FIRST + u32::from(byte & 0x7f)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The text of a word.
pub fn from_bytes(word: &[u8]) -> String {
    let mut text = String::with_capacity(word.len());
    for chunk in word.utf8_chunks() {
        for c in chunk.valid().chars() {
            match byte(c) {
                None => text.push(c),
                Some(_) => text.extend(c.encode_utf8(&mut [0; 4]).bytes().map(stand_in)),
            }
        }
        text.extend(chunk.invalid().iter().map(|b| stand_in(*b)));
    }
    text
}

/// The word that a text stands for.
pub fn to_bytes(text: &str) -> Vec<u8> {
    let mut word = Vec::with_capacity(text.len());
    for c in text.chars() {
        match byte(c) {
            Some(byte) => word.push(byte),
            None => word.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    word
}

/// For people: bytes that are no text as `\xff`.
pub fn show(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match byte(c) {
            Some(byte) => shown.push_str(&format!("\\x{byte:02x}")),
            None => shown.push(c),
        }
    }
    shown
}

/// A sentence without the numbers of the system's errors, ` (os error 2)`, which say nothing beside their words.
pub fn without_numbers(text: &str) -> String {
    let mut out = text.to_owned();
    while let Some(begin) = out.find(" (os error ") {
        let end = out[begin..].find(')').map_or(out.len(), |length| begin + length + 1);
        out.replace_range(begin..end, "");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_errors_are_left_out() {
        let text = "no such file (os error 2): x (os error 13)";
        assert_eq!(without_numbers(text), "no such file: x");
        assert_eq!(without_numbers("cut (os error 1"), "cut");
    }

    #[test]
    fn every_word_comes_back() {
        let own = char::from_u32(FIRST + 5).unwrap().to_string();
        for word in [
            &b""[..],
            b"plain",
            "gr\u{fc}n \u{10ffff}".as_bytes(),
            b"\xff\xfe",
            b"d\xe9p\xf4t/\xc3",
            own.as_bytes(),
            b"\xf4\x8f\xa2",
        ] {
            assert_eq!(to_bytes(&from_bytes(word)), word, "{word:?}");
        }
        assert_eq!(from_bytes("gr\u{fc}n".as_bytes()), "gr\u{fc}n");
        assert_ne!(from_bytes(own.as_bytes()), own);
    }

    #[test]
    fn people_see_the_bytes() {
        assert_eq!(show(&from_bytes(b"d\xe9j\xe0 \xc3\xa9")), "d\\xe9j\\xe0 \u{e9}");
    }
}
