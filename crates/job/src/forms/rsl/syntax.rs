// SPDX-License-Identifier: Apache-2.0
//! What a text says, before it is evaluated.

pub use crate::attributes::{Operator, Span};

/// How requests are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// `+`: subjobs of one job.
    Multi,
    /// `&`: all of them hold.
    All,
    /// `|`: any of them.
    Any,
}

impl Join {
    /// As it is written.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Multi => "+",
            Self::All => "&",
            Self::Any => "|",
        }
    }
}

/// A request, with values of type `V`: as written ([`Value`]) or evaluated ([`crate::attributes::Datum`]).
#[derive(Clone, Debug)]
pub enum Spec<V> {
    /// Several, joined.
    Compound(Compound<V>),
    /// One attribute.
    Relation(Relation<V>),
}

/// Requests that are joined.
#[derive(Clone, Debug)]
pub struct Compound<V> {
    /// How.
    pub join: Join,
    /// At least one, unless something was wrong.
    pub members: Vec<Spec<V>>,
    /// Where the operator stands.
    pub span: Span,
    /// Whether something in it could not be read, so that what is missing may be no fault of its own.
    pub damaged: bool,
}

/// An attribute and what it is to be.
#[derive(Clone, Debug)]
pub struct Relation<V> {
    /// Name as written.
    pub attribute: String,
    /// Where the name stands.
    pub span: Span,
    /// Comparison.
    pub operator: Operator,
    /// At least one.
    pub values: Vec<V>,
}

/// A value as written.
#[derive(Clone, Debug)]
pub struct Value {
    /// What it is.
    pub kind: Kind,
    /// Where it stands.
    pub span: Span,
}

/// Kinds of values.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A word or a quoted string.
    Text(String),
    /// `( ... )`
    List(Vec<Value>),
    /// `$( ... )`
    Variable(Vec<Value>),
    /// `a # b`
    Concatenation(Vec<Value>),
}

/// Whether a word may go on with this character.
pub(super) fn continues_word(c: char) -> bool {
    !is_space(c) && !"=!<>()\"'^*$#?~".contains(c)
}

/// Whether a word may begin with this character.
pub(super) fn begins_word(c: char) -> bool {
    continues_word(c) && !"+&|".contains(c)
}

/// A carriage return counts too: files with the line ends of other systems mean the same.
pub(super) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}
