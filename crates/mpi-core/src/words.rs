// SPDX-License-Identifier: Apache-2.0
//! Texts of programs, which need not be UTF-8 (see `isthmus_wire::word`): their limits count the program's own bytes.

use isthmus_wire::word;

fn bytes(c: char) -> usize {
    if word::stands_for_a_byte(c) { 1 } else { c.len_utf8() }
}

/// Bytes that the program sees.
pub fn length(text: &str) -> usize {
    text.chars().map(bytes).sum()
}

/// As much of a text as has room in so many bytes that the program sees; no half of a character.
pub fn cut(text: &str, room: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += bytes(c);
        if used > room {
            return &text[..at];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_count_the_bytes_of_the_program() {
        let latin = word::from_bytes(b"d\xe9p\xf4t");
        assert_eq!((length(&latin), latin.len()), (5, 11));
        assert_eq!(word::to_bytes(cut(&latin, 3)), b"d\xe9p");
        assert_eq!(
            (length("d\u{e9}"), cut("d\u{e9}", 2), cut("d\u{e9}", 3)),
            (3, "d", "d\u{e9}")
        );
    }
}
