// SPDX-License-Identifier: Apache-2.0
//! The file of `-configfile`: a program a line, as between colons. A line that begins with `#` is a comment, one that
//! ends with a backslash goes on in the next. Words are quoted as in a shell.

/// The words of each program.
pub(super) fn programs(text: &str) -> Result<Vec<Vec<String>>, &'static str> {
    let mut programs = Vec::new();
    let mut whole = String::new();
    for line in text.lines() {
        if whole.is_empty() && line.trim_start().starts_with('#') {
            continue;
        }
        if let Some(begin) = line.trim_end().strip_suffix('\\') {
            whole.push_str(begin);
            whole.push(' ');
            continue;
        }
        whole.push_str(line);
        split(&whole, &mut programs)?;
        whole.clear();
    }
    split(&whole, &mut programs)?;
    Ok(programs)
}

/// Adds the programs of a line. A colon between them is a word of its own without quotes.
fn split(line: &str, programs: &mut Vec<Vec<String>>) -> Result<(), &'static str> {
    let mut own = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let (word, quoted, left) = word(rest)?;
        rest = left.trim_start();
        match word == ":" && !quoted {
            true if own.is_empty() => {}
            true => programs.push(std::mem::take(&mut own)),
            false => own.push(word),
        }
    }
    programs.extend((!own.is_empty()).then_some(own));
    Ok(())
}

/// The first word of a line, whether a part of it is quoted, and what follows it.
fn word(line: &str) -> Result<(String, bool, &str), &'static str> {
    let (mut word, mut quoted, mut open) = (String::new(), false, None);
    let mut signs = line.char_indices();
    while let Some((at, sign)) = signs.next() {
        match (open, sign) {
            (None, '"' | '\'') => (open, quoted) = (Some(sign), true),
            (Some(quote), _) if sign == quote => open = None,
            (None | Some('"'), '\\') => match signs.clone().next() {
                Some((_, next))
                    if matches!(next, '"' | '\\') || open.is_none() && (next == '\'' || next.is_whitespace()) =>
                {
                    word.push(next);
                    signs.next();
                }
                _ => word.push(sign),
            },
            (None, _) if sign.is_whitespace() => return Ok((word, quoted, &line[at..])),
            _ => word.push(sign),
        }
    }
    match open {
        Some('"') => Err("a \" is not closed"),
        Some(_) => Err("a ' is not closed"),
        None => Ok((word, quoted, "")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_programs() {
        for (text, expected) in [
            ("# two\n-n 1 ./a\n\n  # more\n-n 2 ./b x\n", "-n|1|./a : -n|2|./b|x"),
            ("-n 1 \\\n  ./a \\\r\n x\r\n-n 1 ./b\\", "-n|1|./a|x : -n|1|./b"),
            ("./a x#y # z", "./a|x#y|#|z"),
            ("-host a:2 ./a b:c : ./b", "-host|a:2|./a|b:c : ./b"),
            (
                "./a ':' \"x : y\" '' a\\ b \"q\\\"\" c:\\d",
                "./a|:|x : y||a b|q\"|c:\\d",
            ),
            ("", ""),
        ] {
            let found = programs(text).unwrap();
            let shown: Vec<String> = found.iter().map(|words| words.join("|")).collect();
            assert_eq!(shown.join(" : "), expected, "{text}");
        }
        assert!(programs("./a 'x").is_err() && programs("./a \"x").is_err());
    }
}
