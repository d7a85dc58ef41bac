// SPDX-License-Identifier: Apache-2.0
//! From text to tokens.

use super::report::Report;
use super::syntax::{Operator, Span, continues_word, is_space};

/// What a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Word(String),
    Quoted(String),
    Plus,
    And,
    Or,
    Open,
    Close,
    Hash,
    Dollar,
    Relation(Operator),
}

/// A token and its place.
#[derive(Clone, Debug)]
pub(super) struct Lexeme {
    pub(super) token: Token,
    pub(super) span: Span,
    /// Whether white space or a comment stands before it.
    pub(super) spaced: bool,
}

/// The tokens of a text.
pub(super) struct Lexemes {
    pub(super) list: Vec<Lexeme>,
    /// Whether a string or comment never ended, so that the rest of the text is not known.
    pub(super) cut: bool,
}

/// Splits a text; what is no token is told and read as a word.
pub(super) fn lex(report: &mut Report<'_>) -> Lexemes {
    let text = report.source.text();
    let mut lexer = Lexer {
        text,
        at: 0,
        cut: false,
        first_long: None,
    };
    let mut list = Vec::new();
    loop {
        let spaced = lexer.skip_space(report);
        let start = lexer.at;
        let Some(token) = lexer.token(report) else { break };
        list.push(Lexeme {
            token,
            span: start..lexer.at,
            spaced,
        });
    }
    Lexemes { list, cut: lexer.cut }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    cut: bool,
    /// The first string that goes over more than one line: where a quote was forgotten, probably.
    first_long: Option<Span>,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self, report: &mut Report<'_>) -> bool {
        let start = self.at;
        loop {
            self.at += self.rest().len() - self.rest().trim_start_matches(is_space).len();
            let Some(comment) = self.rest().strip_prefix("(*") else {
                break;
            };
            let Some(end) = comment.find("*)") else {
                report.error(
                    self.at..self.at + 2,
                    "this comment never ends",
                    "close it with *) ; comments do not nest",
                );
                self.at = self.text.len();
                self.cut = true;
                break;
            };
            self.at += 2 + end + 2;
        }
        self.at > start || start == 0
    }

    fn token(&mut self, report: &mut Report<'_>) -> Option<Token> {
        let first = self.rest().chars().next()?;
        if matches!(first, '"' | '\'' | '^') {
            return self.quoted(first, report);
        }
        if let Some((token, length)) = operator(self.rest()) {
            self.at += length;
            return Some(token);
        }
        Some(self.word(report))
    }

    fn word(&mut self, report: &mut Report<'_>) -> Token {
        let start = self.at;
        let length = |text: &str, stop: fn(char) -> bool| text.find(stop).unwrap_or(text.len());
        self.at += length(self.rest(), |c| !continues_word(c));
        if let Some(bad) = self.rest().chars().next().filter(|c| "*?~^!".contains(*c)) {
            if bad == '!' && self.rest().starts_with("!=") && self.at > start {
                return Token::Word(self.text[start..self.at].to_owned());
            }
            let place = self.at..self.at + 1;
            self.at += length(self.rest(), |c| is_space(c) || "()\"'#$".contains(c));
            let word = &self.text[start..self.at];
            let mut hint = format!("quote the word: {}", super::write::quoted(word));
            if word.starts_with("~/") {
                hint.push_str(&format!(", or write $(HOME){}", &word[1..]));
            }
            report.error(place, format!("'{bad}' is not allowed in an unquoted word"), hint);
        }
        Token::Word(self.text[start..self.at].to_owned())
    }

    /// A string in quotes, or between a character of the user's choice that stands after `^`.
    fn quoted(&mut self, first: char, report: &mut Report<'_>) -> Option<Token> {
        let start = self.at;
        self.at += 1;
        let delimiter = if first == '^' {
            let Some(delimiter) = self.rest().chars().next() else {
                report.error(start..self.at, "'^' is followed by nothing", "write ^%text%");
                self.cut = true;
                return None;
            };
            self.at += delimiter.len_utf8();
            delimiter
        } else {
            first
        };
        let mut content = String::new();
        while let Some(end) = self.rest().find(delimiter) {
            content.push_str(&self.rest()[..end]);
            self.at += end + delimiter.len_utf8();
            if !self.rest().starts_with(delimiter) {
                if self.first_long.is_none() && content.contains('\n') {
                    self.first_long = Some(start..self.at);
                }
                return Some(Token::Quoted(content));
            }
            content.push(delimiter);
            self.at += delimiter.len_utf8();
        }
        self.unterminated(start, delimiter, report);
        None
    }

    fn unterminated(&mut self, start: usize, delimiter: char, report: &mut Report<'_>) {
        let line = self.text[start..].find('\n').map_or(self.text.len(), |end| start + end);
        let hint = match &self.first_long {
            Some(long) => format!(
                "the string that begins in line {} goes over several lines: is its {delimiter} missing?",
                report.line(long.start)
            ),
            None => format!("close it with {delimiter} ; a doubled {delimiter} means one {delimiter}"),
        };
        report.error(start..line, "this string never ends", hint);
        self.at = self.text.len();
        self.cut = true;
    }
}

fn operator(text: &str) -> Option<(Token, usize)> {
    let relations = [
        ("!=", Operator::NotEqual),
        ("<=", Operator::AtMost),
        (">=", Operator::AtLeast),
        ("=", Operator::Equal),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ];
    if let Some((sign, operator)) = relations.iter().find(|(sign, _)| text.starts_with(sign)) {
        return Some((Token::Relation(*operator), sign.len()));
    }
    let token = match text.chars().next()? {
        '+' => Token::Plus,
        '&' => Token::And,
        '|' => Token::Or,
        '(' => Token::Open,
        ')' => Token::Close,
        '#' => Token::Hash,
        '$' => Token::Dollar,
        _ => return None,
    };
    Some((token, 1))
}
