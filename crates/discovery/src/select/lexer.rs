// SPDX-License-Identifier: Apache-2.0
//! Words of a selection.

use super::condition::{Kind, Operator};
use isthmus_job::JobError;
use std::ops::Range;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Word(String),
    Text(String),
    Number(f64, Kind),
    Operator(Operator),
    And,
    Or,
    Not,
    Open,
    Close,
}

/// Units: name, kind, factor.
const UNITS: [(&str, Kind, f64); 29] = [
    ("us", Kind::Time, 1e-6),
    ("ms", Kind::Time, 1e-3),
    ("s", Kind::Time, 1.0),
    ("min", Kind::Time, 60.0),
    ("h", Kind::Time, 3600.0),
    ("d", Kind::Time, 86_400.0),
    ("B", Kind::Size, 1.0),
    ("KB", Kind::Size, 1e3),
    ("MB", Kind::Size, 1e6),
    ("GB", Kind::Size, 1e9),
    ("TB", Kind::Size, 1e12),
    ("K", Kind::Size, 1024.0),
    ("M", Kind::Size, 1_048_576.0),
    ("G", Kind::Size, 1_073_741_824.0),
    ("T", Kind::Size, 1_099_511_627_776.0),
    ("KiB", Kind::Size, 1024.0),
    ("MiB", Kind::Size, 1_048_576.0),
    ("GiB", Kind::Size, 1_073_741_824.0),
    ("TiB", Kind::Size, 1_099_511_627_776.0),
    ("bit/s", Kind::Rate, 1.0),
    ("kbit/s", Kind::Rate, 1e3),
    ("Mbit/s", Kind::Rate, 1e6),
    ("Gbit/s", Kind::Rate, 1e9),
    ("kbit", Kind::Rate, 1e3),
    ("Mbit", Kind::Rate, 1e6),
    ("Gbit", Kind::Rate, 1e9),
    ("KB/s", Kind::Rate, 8e3),
    ("MB/s", Kind::Rate, 8e6),
    ("GB/s", Kind::Rate, 8e9),
];

/// A token and its place in the text.
type Placed = (Token, Range<usize>);

/// All tokens with their places.
pub(super) fn tokens(text: &str) -> Result<Vec<Placed>, (JobError, Range<usize>)> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        }
        let (token, length) = token(&text[at..]).map_err(|(error, length)| (error, at..at + length))?;
        tokens.push((token, at..at + length));
        at += length;
    }
    Ok(tokens)
}

fn token(text: &str) -> Result<(Token, usize), (JobError, usize)> {
    let signs = [
        ("&&", Token::And),
        ("||", Token::Or),
        ("(", Token::Open),
        (")", Token::Close),
    ];
    if let Some((sign, token)) = signs.iter().find(|(sign, _)| text.starts_with(sign)) {
        return Ok((token.clone(), sign.len()));
    }
    if let Some((operator, sign)) = Operator::ALL.iter().find(|(_, sign)| text.starts_with(sign)) {
        return Ok((Token::Operator(*operator), sign.len()));
    }
    let first = text.chars().next().unwrap_or(' ');
    match first {
        '!' => Ok((Token::Not, 1)),
        '\'' | '"' => quoted(text, first),
        '0'..='9' | '.' => number(text),
        c if is_word(c) => {
            let length = text.find(|c| !is_word(c)).unwrap_or(text.len());
            Ok((Token::Word(text[..length].to_owned()), length))
        }
        '=' => Err((JobError::new("'=' compares nothing").hint("write =="), 1)),
        '&' | '|' => Err((JobError::new(format!("a single '{first}'")).hint("write && or ||"), 1)),
        c => Err((JobError::new(format!("'{c}' means nothing here")), c.len_utf8())),
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '@' | '/' | ':' | '#')
}

fn quoted(text: &str, quote: char) -> Result<(Token, usize), (JobError, usize)> {
    match text[1..].find(quote) {
        Some(end) if !text[1..=end].contains(['\'', '"']) => Ok((Token::Text(text[1..=end].to_owned()), end + 2)),
        Some(end) => Err((JobError::new("a quote inside of a text"), end + 2)),
        None => Err((
            JobError::new("this text has no end").hint("close it with a quote"),
            text.len(),
        )),
    }
}

fn number(text: &str) -> Result<(Token, usize), (JobError, usize)> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let wrong = |length: usize, why: String| (JobError::new(why), length);
    let value: f64 = text[..digits]
        .parse()
        .ok()
        .filter(|v: &f64| v.is_finite() && *v < 1e18)
        .ok_or_else(|| wrong(digits, format!("'{}' is not a number", &text[..digits])))?;
    let spaces = text[digits..].len() - text[digits..].trim_start_matches(' ').len();
    let rest = &text[digits + spaces..];
    let length = rest
        .find(|c: char| !c.is_ascii_alphabetic() && c != '/')
        .unwrap_or(rest.len());
    let unit = &rest[..length];
    if unit.is_empty() {
        return Ok((Token::Number(value, Kind::Count), digits));
    }
    let known = UNITS.iter().find(|(name, ..)| *name == unit);
    if known.is_none() && spaces > 0 {
        return Ok((Token::Number(value, Kind::Count), digits));
    }
    let (_, kind, factor) = known.ok_or_else(|| {
        let error = JobError::new(format!("'{unit}' is not a unit"));
        let hint = "units are us ms s min h d, B KiB MiB GiB TiB KB MB GB TB, kbit/s Mbit/s Gbit/s MB/s GB/s";
        (error.hint(hint), digits + spaces + length)
    })?;
    Ok((Token::Number(value * factor, *kind), digits + spaces + length))
}
