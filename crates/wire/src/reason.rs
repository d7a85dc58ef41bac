// SPDX-License-Identifier: Apache-2.0
//! Why something is so, in a sentence for people.

use crate::codec::{DecodeError, Reader};

/// Longest reason text, bytes; longer ones are cut.
pub const MAX_REASON: usize = 4096;

/// Reads one.
pub(crate) fn read_reason(r: &mut Reader<'_>) -> Result<String, DecodeError> {
    read_for_people(r, "reason", MAX_REASON)
}

/// A text of so many bytes at most that programs find in error strings and print: what a terminal would obey is gone.
pub(crate) fn read_for_people(r: &mut Reader<'_>, field: &'static str, most: usize) -> Result<String, DecodeError> {
    let is_obeyed = |sign: char| sign.is_control() && !matches!(sign, '\n' | '\t');
    Ok(read_up_to(r, field, most)?.replace(is_obeyed, "?"))
}

/// The same of a name, which is one line.
pub(crate) fn read_name_for_people(
    r: &mut Reader<'_>,
    field: &'static str,
    most: usize,
) -> Result<String, DecodeError> {
    Ok(read_up_to(r, field, most)?.replace(char::is_control, "?"))
}

/// A text of so many bytes at most, which is how long [`cut_to`] leaves it.
pub(crate) fn read_up_to(r: &mut Reader<'_>, field: &'static str, most: usize) -> Result<String, DecodeError> {
    let text = r.text(field)?;
    match text.len() <= most {
        true => Ok(text),
        false => Err(DecodeError::Invalid {
            field,
            value: text.len() as u64,
        }),
    }
}

/// As much of it as goes on a wire.
pub(crate) fn cut(text: &str) -> &str {
    cut_to(text, MAX_REASON)
}

/// So many bytes of a text at most, up to the end of a character.
pub(crate) fn cut_to(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Writer;

    #[test]
    fn what_a_terminal_would_obey_does_not_reach_people() {
        let mut w = Writer::new(0);
        w.text("lab\u{1b}[2J\u{9b}1m\r\u{7}: gone\n\tat 3");
        let body = w.into_body();
        let mut r = Reader::new(&body);
        assert_eq!(r.u8("kind"), Ok(0));
        let read = read_reason(&mut r).expect("a text");
        assert_eq!(read, "lab?[2J?1m??: gone\n\tat 3");
        let mut r = Reader::new(&body);
        assert_eq!(r.u8("kind"), Ok(0));
        let read = read_name_for_people(&mut r, "name", 64).expect("a text");
        assert_eq!(read, "lab?[2J?1m??: gone??at 3", "a name is one line");
    }
}
