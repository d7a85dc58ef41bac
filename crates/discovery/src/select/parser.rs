// SPDX-License-Identifier: Apache-2.0
//! Reading a selection. Errors point at the word.

use super::condition::{FIELDS, Kind, MAX_DEPTH, MAX_LENGTH, Node, Operator, Value};
use super::lexer::{Token, tokens};
use isthmus_job::JobError;
use isthmus_settings::nearest;
use std::ops::Range;

type Failed = (JobError, Range<usize>);

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(Token, Range<usize>)>,
    at: usize,
    depth: usize,
}

pub(super) fn parse(text: &str) -> Result<Node, JobError> {
    if text.len() > MAX_LENGTH {
        return Err(JobError::new(format!(
            "the selection is longer than {MAX_LENGTH} bytes"
        )));
    }
    let parsed = tokens(text).and_then(|tokens| {
        let mut parser = Parser {
            text,
            tokens,
            at: 0,
            depth: 0,
        };
        let node = parser.or()?;
        match parser.peek() {
            None => Ok(node),
            Some(_) => Err(parser.fail(
                "something follows here that belongs to nothing",
                "write && or || between two conditions",
            )),
        }
    });
    parsed.map_err(|(error, span)| error.at("--select", text, span))
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    fn span(&self) -> Range<usize> {
        self.tokens
            .get(self.at)
            .map_or(self.text.len()..self.text.len(), |(_, span)| span.clone())
    }

    fn take(&mut self, token: &Token) -> bool {
        let there = self.peek() == Some(token);
        self.at += usize::from(there);
        there
    }

    fn fail(&self, problem: impl Into<String>, hint: &str) -> Failed {
        (JobError::new(problem).hint(hint), self.span())
    }

    fn or(&mut self) -> Result<Node, Failed> {
        self.list(&Token::Or, Self::and, Node::Or)
    }

    fn and(&mut self) -> Result<Node, Failed> {
        self.list(&Token::And, Self::term, Node::And)
    }

    fn list(
        &mut self,
        between: &Token,
        item: fn(&mut Self) -> Result<Node, Failed>,
        join: fn(Vec<Node>) -> Node,
    ) -> Result<Node, Failed> {
        let mut nodes = vec![item(self)?];
        while self.take(between) {
            nodes.push(item(self)?);
        }
        Ok(match nodes.len() {
            1 => nodes.remove(0),
            _ => join(nodes),
        })
    }

    fn term(&mut self) -> Result<Node, Failed> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.fail("this is nested too deeply", "write it with fewer parentheses"));
        }
        let node = if self.take(&Token::Not) {
            self.term().map(|node| Node::Not(Box::new(node)))
        } else if self.take(&Token::Open) {
            let node = self.or()?;
            if !self.take(&Token::Close) {
                return Err(self.fail("a parenthesis is not closed", "write ) here"));
            }
            Ok(node)
        } else {
            self.comparison()
        };
        self.depth -= 1;
        node
    }

    fn comparison(&mut self) -> Result<Node, Failed> {
        let begin = self.span();
        let left = self.value()?;
        let Some(Token::Operator(operator)) = self.peek().cloned() else {
            return Err(self.fail(
                "a comparison is missing here",
                "write for example cores >= 64 or scheduler == slurm",
            ));
        };
        self.at += 1;
        let right = self.value()?;
        let span = begin.start..self.tokens[self.at - 1].1.end;
        check(&left, operator, &right).map_err(|error| (error, span))?;
        Ok(Node::Compare(left, operator, right))
    }

    fn value(&mut self) -> Result<Value, Failed> {
        let Some((token, span)) = self.tokens.get(self.at).cloned() else {
            return Err(self.fail("a value is missing at the end", FORMS));
        };
        self.at += 1;
        let after_operator = self.at >= 2 && matches!(self.tokens[self.at - 2].0, Token::Operator(_));
        match token {
            Token::Number(number, kind) => Ok(Value::Number(number, kind)),
            Token::Text(text) => Ok(Value::Text(text)),
            Token::Word(word) if matches!(word.as_str(), "rtt" | "rate") && self.take(&Token::Open) => {
                let site = self.argument()?;
                Ok(if word == "rtt" {
                    Value::RoundTrip(site)
                } else {
                    Value::Rate(site)
                })
            }
            Token::Word(word) => match FIELDS.iter().find(|(name, ..)| *name == word) {
                Some((name, kind, _)) => Ok(Value::Field(name, *kind)),
                None if after_operator => Ok(Value::Text(word)),
                None => Err((unknown(&word), span)),
            },
            _ => Err((JobError::new("a value is missing here").hint(FORMS), span)),
        }
    }

    fn argument(&mut self) -> Result<String, Failed> {
        let site = match self.peek() {
            Some(Token::Word(text) | Token::Text(text)) => text.clone(),
            _ => return Err(self.fail("the name of a site is missing here", "write for example rtt(home)")),
        };
        self.at += 1;
        match self.take(&Token::Close) {
            true => Ok(site),
            false => Err(self.fail("a parenthesis is not closed", "write for example rtt(home)")),
        }
    }
}

const FORMS: &str = "a value is a field such as cores, rtt(SITE), rate(SITE), a number with unit, or a text";

fn unknown(word: &str) -> JobError {
    let names: Vec<&str> = FIELDS.iter().map(|(name, ..)| *name).chain(["rtt", "rate"]).collect();
    let hint = match nearest(word, &names) {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("fields are {}", names.join(", ")),
    };
    JobError::new(format!("'{word}' is not a field of a site")).hint(hint)
}

/// Only what counts the same can be compared. A plain number goes with a size: bytes.
fn check(left: &Value, operator: Operator, right: &Value) -> Result<(), JobError> {
    let (a, b) = (left.kind(), right.kind());
    if a != b {
        let error = JobError::new(format!("{} is compared with {}", a.name(), b.name()));
        return Err(match (a, b) {
            (Kind::Time, Kind::Count) | (Kind::Count, Kind::Time) => error.hint("write a unit, as in 30ms"),
            (Kind::Size, Kind::Count) | (Kind::Count, Kind::Size) => error.hint("write a unit, as in 16GiB"),
            (Kind::Rate, Kind::Count) | (Kind::Count, Kind::Rate) => error.hint("write a unit, as in 100Mbit/s"),
            _ => error,
        });
    }
    let text_only = operator == Operator::Contains;
    let both = matches!(operator, Operator::Equal | Operator::Unequal);
    match (a == Kind::Text, text_only || both, text_only) {
        (true, false, _) => {
            Err(JobError::new(format!("texts have no order: '{}'", operator.text())).hint("use ==, != or ~"))
        }
        (false, _, true) => Err(JobError::new("'~' is for texts").hint("use <, <=, >, >=, == or !=")),
        _ => Ok(()),
    }
}
