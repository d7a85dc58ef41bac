// SPDX-License-Identifier: Apache-2.0
//! Requests as text.

use super::syntax::{Compound, Join, Spec, begins_word, continues_word};
use crate::attributes::{Content, Datum, Request, Setting, find};

/// A word as it is, everything else in quotes.
pub(crate) fn text(text: &str) -> String {
    let word = text.starts_with(begins_word) && text.chars().all(continues_word);
    if word { text.to_owned() } else { quoted(text) }
}

/// In quotes.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// A kept value.
pub(crate) fn setting(value: &Setting) -> String {
    match value {
        Setting::Text(value) => text(value),
        Setting::List(list) => format!("({})", list.iter().map(setting).collect::<Vec<_>>().join(" ")),
    }
}

impl Request {
    /// As a relation of RSL.
    pub fn text(&self) -> String {
        let values: Vec<String> = self.values.iter().map(setting).collect();
        format!("{}{}{}", self.attribute.name, self.operator.sign(), values.join(" "))
    }
}

/// A request in the layout that the figures of the MPICH-G2 papers have.
pub(super) fn spec(spec: &Spec<Datum>) -> String {
    let mut out = String::new();
    match spec {
        Spec::Compound(Compound {
            join: Join::Multi,
            members,
            ..
        }) => {
            out.push('+');
            for member in members {
                out.push_str("\n( ");
                put(member, "\n   ", &mut out);
                out.push_str("\n)");
            }
        }
        other => put(other, "\n  ", &mut out),
    }
    out.push('\n');
    out
}

fn put(spec: &Spec<Datum>, line: &str, out: &mut String) {
    match spec {
        Spec::Compound(compound) => {
            out.push_str(compound.join.sign());
            for (number, member) in compound.members.iter().enumerate() {
                out.push_str(if number == 0 { " (" } else { line });
                if number > 0 {
                    out.push('(');
                }
                put(member, " ", out);
                out.push(')');
            }
        }
        Spec::Relation(relation) => {
            let name = find(&relation.attribute).map_or(relation.attribute.as_str(), |a| a.name);
            out.push_str(&text(name));
            out.push_str(relation.operator.sign());
            let values: Vec<String> = relation.values.iter().map(datum).collect();
            out.push_str(&values.join(" "));
        }
    }
}

fn datum(value: &Datum) -> String {
    match &value.content {
        Content::Text(value) => text(value),
        Content::List(list) => format!("({})", list.iter().map(datum).collect::<Vec<_>>().join(" ")),
    }
}
