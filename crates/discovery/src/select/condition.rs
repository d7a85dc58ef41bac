// SPDX-License-Identifier: Apache-2.0
//! A selection as a tree: what may stand in it, and whether a site meets it.

use std::fmt;

/// Longest selection, bytes, and deepest nesting.
pub const MAX_LENGTH: usize = 4096;
pub(super) const MAX_DEPTH: usize = 64;

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Things.
    Count,
    /// Seconds.
    Time,
    /// Bytes.
    Size,
    /// Bits per second.
    Rate,
    /// It is a text.
    Text,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Count => "a number",
            Self::Time => "a time",
            Self::Size => "a size",
            Self::Rate => "a rate",
            Self::Text => "a text",
        }
    }
}

/// What can be asked of a site.
pub const FIELDS: [(&str, Kind, &str); 18] = [
    ("architecture", Kind::Text, "as uname -m prints it"),
    (
        "cores",
        Kind::Count,
        "processors, of the queue that jobs go to where there is a scheduler",
    ),
    ("free", Kind::Count, "processors that nobody uses"),
    ("nodes", Kind::Count, "nodes"),
    ("memory", Kind::Size, "memory of a node"),
    ("load", Kind::Count, "processes that want to run, mean of a minute"),
    ("wait", Kind::Time, "expected wait in the queue"),
    ("limit", Kind::Time, "longest job"),
    ("running", Kind::Count, "jobs that run"),
    ("pending", Kind::Count, "jobs that wait"),
    ("scheduler", Kind::Text, "fork, slurm, grid-engine, pbs, lsf"),
    ("queue", Kind::Text, "names of its queues"),
    ("compiler", Kind::Text, "compilers and versions"),
    ("mpi", Kind::Text, "MPI installations and versions"),
    ("module", Kind::Text, "modules about MPI and compilers"),
    ("system", Kind::Text, "operating system"),
    ("site", Kind::Text, "name of the site"),
    ("lan", Kind::Text, "its local network"),
];

/// What is known of a site, for selecting.
pub trait View {
    /// The value of a field that is a number; times in seconds, sizes in bytes.
    fn number(&self, field: &str) -> Option<f64>;
    /// The values of a field that is a text.
    fn texts(&self, field: &str) -> Vec<String>;
    /// Round trip to another site, seconds.
    fn round_trip(&self, site: &str) -> Option<f64>;
    /// Rate to another site, bits per second.
    fn rate(&self, site: &str) -> Option<f64>;
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Or(Vec<Self>),
    And(Vec<Self>),
    Not(Box<Self>),
    Compare(Value, Operator, Value),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Field(&'static str, Kind),
    RoundTrip(String),
    Rate(String),
    Number(f64, Kind),
    Text(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    Unequal,
    Contains,
}

impl Operator {
    pub(super) const ALL: [(Self, &'static str); 7] = [
        (Self::LessEqual, "<="),
        (Self::GreaterEqual, ">="),
        (Self::Equal, "=="),
        (Self::Unequal, "!="),
        (Self::Less, "<"),
        (Self::Greater, ">"),
        (Self::Contains, "~"),
    ];

    pub(super) fn text(self) -> &'static str {
        Self::ALL.iter().find(|(o, _)| *o == self).map_or("", |(_, text)| text)
    }
}

impl Value {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Field(_, kind) | Self::Number(_, kind) => *kind,
            Self::RoundTrip(_) => Kind::Time,
            Self::Rate(_) => Kind::Rate,
            Self::Text(_) => Kind::Text,
        }
    }

    fn number(&self, site: &impl View) -> Option<f64> {
        match self {
            Self::Field(field, _) => site.number(field),
            Self::RoundTrip(other) => site.round_trip(other),
            Self::Rate(other) => site.rate(other),
            Self::Number(number, _) => Some(*number),
            Self::Text(_) => None,
        }
    }

    fn texts(&self, site: &impl View) -> Vec<String> {
        match self {
            Self::Field(field, _) => site.texts(field),
            Self::Text(text) => vec![text.clone()],
            _ => Vec::new(),
        }
    }
}

impl Node {
    /// `None`: nobody knows.
    pub(super) fn holds(&self, site: &impl View) -> Option<bool> {
        match self {
            Self::Or(nodes) => any(nodes.iter().map(|n| n.holds(site)), true),
            Self::And(nodes) => any(nodes.iter().map(|n| n.holds(site)), false),
            Self::Not(node) => node.holds(site).map(|held| !held),
            Self::Compare(left, operator, right) if left.kind() == Kind::Text => {
                let (left, right) = (left.texts(site), right.texts(site));
                if left.is_empty() || right.is_empty() {
                    return None;
                }
                let pairs = || {
                    left.iter()
                        .flat_map(|l| right.iter().map(move |r| (l.to_lowercase(), r.to_lowercase())))
                };
                Some(match operator {
                    Operator::Contains => pairs().any(|(l, r)| l.contains(&r)),
                    Operator::Unequal => pairs().all(|(l, r)| l != r),
                    _ => pairs().any(|(l, r)| l == r),
                })
            }
            Self::Compare(left, operator, right) => {
                let (left, right) = (left.number(site)?, right.number(site)?);
                Some(match operator {
                    Operator::Less => left < right,
                    Operator::LessEqual => left <= right,
                    Operator::Greater => left > right,
                    Operator::GreaterEqual => left >= right,
                    Operator::Unequal => (left - right).abs() > f64::EPSILON,
                    Operator::Equal | Operator::Contains => (left - right).abs() <= f64::EPSILON,
                })
            }
        }
    }
}

/// The value that decides, if one has it; nothing if one is not known; otherwise its opposite.
fn any(values: impl Iterator<Item = Option<bool>>, decides: bool) -> Option<bool> {
    let mut result = Some(!decides);
    for value in values {
        match value {
            Some(value) if value == decides => return Some(decides),
            Some(_) => {}
            None => result = None,
        }
    }
    result
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, nodes: &[Self], between: &str| {
            for (number, node) in nodes.iter().enumerate() {
                f.write_str(if number > 0 { between } else { "" })?;
                match node {
                    Self::Compare(..) => write!(f, "{node}")?,
                    _ => write!(f, "({node})")?,
                }
            }
            Ok(())
        };
        match self {
            Self::Or(nodes) => list(f, nodes, " || "),
            Self::And(nodes) => list(f, nodes, " && "),
            Self::Not(node) => write!(f, "!({node})"),
            Self::Compare(left, operator, right) => write!(f, "{left} {} {right}", operator.text()),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name, _) => f.write_str(name),
            Self::RoundTrip(site) => write!(f, "rtt('{site}')"),
            Self::Rate(site) => write!(f, "rate('{site}')"),
            Self::Number(number, kind) => {
                let unit = match kind {
                    Kind::Time => "s",
                    Kind::Size => "B",
                    Kind::Rate => "bit/s",
                    _ => "",
                };
                write!(f, "{number}{unit}")
            }
            Self::Text(text) => write!(f, "'{text}'"),
        }
    }
}
