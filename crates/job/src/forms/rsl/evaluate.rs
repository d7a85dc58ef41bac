// SPDX-License-Identifier: Apache-2.0
//! Variables get their values, concatenated texts become one.
//!
//! Left to right. Every compound request is a scope: what `rslSubstitution` binds in it holds for what follows in it
//! and is gone at its end.

use super::report::Report;
use super::syntax::{Compound, Kind, Relation, Span, Spec, Value};
use crate::attributes::{Content, Datum, canonical};
use crate::quoted::shown;
use isthmus_settings::nearest;

/// Most values, and bytes of texts, that a request may grow to.
const MAX_SIZE: usize = 4 << 20;
/// Most variables that have values at one time.
const MAX_VARIABLES: usize = 1000;
/// Deepest nesting of the value of a variable.
const MAX_DEPTH: usize = 64;

/// The request with all values known; what could not be evaluated is told and left out.
pub(super) fn evaluate(
    spec: &Spec<Value>,
    bindings: &[(String, String)],
    report: &mut Report<'_>,
) -> Option<Spec<Datum>> {
    let text = |value: &String| Content::Text(value.clone());
    let mut evaluator = Evaluator {
        bound: bindings
            .iter()
            .map(|(name, value)| (name.clone(), text(value)))
            .collect(),
        left: MAX_SIZE,
        report,
    };
    evaluator.spec(spec)
}

struct Evaluator<'r, 'a> {
    /// Inner scopes are last.
    bound: Vec<(String, Content)>,
    left: usize,
    report: &'r mut Report<'a>,
}

impl Evaluator<'_, '_> {
    fn spec(&mut self, spec: &Spec<Value>) -> Option<Spec<Datum>> {
        match spec {
            Spec::Compound(compound) => Some(Spec::Compound(self.compound(compound))),
            Spec::Relation(relation) if canonical(&relation.attribute) == "rslsubstitution" => {
                self.bind(relation);
                None
            }
            Spec::Relation(relation) => self.relation(relation).map(Spec::Relation),
        }
    }

    fn compound(&mut self, compound: &Compound<Value>) -> Compound<Datum> {
        let (outer, errors) = (self.bound.len(), self.report.errors.count());
        let members = compound.members.iter().filter_map(|m| self.spec(m)).collect();
        self.bound.truncate(outer);
        Compound {
            join: compound.join,
            members,
            span: compound.span.clone(),
            damaged: compound.damaged || self.report.errors.count() > errors,
        }
    }

    fn relation(&mut self, relation: &Relation<Value>) -> Option<Relation<Datum>> {
        Some(Relation {
            attribute: relation.attribute.clone(),
            span: relation.span.clone(),
            operator: relation.operator,
            values: self.values(&relation.values)?,
        })
    }

    fn bind(&mut self, relation: &Relation<Value>) {
        if relation.operator.sign() != "=" {
            let span = relation.span.clone();
            self.report.error(span, "'rslSubstitution' binds with '=' only", "");
        }
        for value in &relation.values {
            let (name, value) = match &value.kind {
                Kind::List(list) if list.len() == 2 => (self.value(&list[0]), self.value(&list[1])),
                _ => {
                    let hint = "write (rslSubstitution = (NAME VALUE) (NAME VALUE))";
                    let span = value.span.clone();
                    self.report
                        .error(span, "'rslSubstitution' takes pairs (NAME VALUE)", hint);
                    // One message for `= A 1`, whose every word would be wrong.
                    return;
                }
            };
            let (Some(name), Some(value)) = (name, value) else {
                continue;
            };
            match name.text() {
                Some(_) if self.bound.len() >= MAX_VARIABLES => {
                    let problem = format!("there are more than {MAX_VARIABLES} variables");
                    return self.report.error(name.span, problem, "");
                }
                Some(text) => self.bound.push((text.to_owned(), value.content)),
                None => self.report.error(name.span, "the name of a variable is a text", ""),
            }
        }
    }

    fn values(&mut self, values: &[Value]) -> Option<Vec<Datum>> {
        // All of them, so that all their errors are told.
        let all: Vec<_> = values.iter().map(|v| self.value(v)).collect();
        all.into_iter().collect()
    }

    fn value(&mut self, value: &Value) -> Option<Datum> {
        let span = value.span.clone();
        let content = match &value.kind {
            Kind::Text(text) => self.grown(Content::Text(text.clone()), &span)?,
            Kind::List(list) => Content::List(self.values(list)?),
            Kind::Variable(members) => self.variable(members, &span)?,
            Kind::Concatenation(atoms) => self.concatenation(atoms, &span)?,
        };
        Some(Datum { content, span })
    }

    /// The content, if it does not make the request too large.
    fn grown(&mut self, content: Content, span: &Span) -> Option<Content> {
        let size = size(&content);
        if size <= self.left {
            self.left -= size;
            return Some(content);
        }
        if self.left > 0 {
            let problem = format!("with its variables the request grows above {MAX_SIZE} bytes");
            self.report.error(span.clone(), problem, "bind shorter texts");
        }
        self.left = 0;
        None
    }

    fn variable(&mut self, members: &[Value], span: &Span) -> Option<Content> {
        let values = self.values(members)?;
        let (name, default) = match values.as_slice() {
            [name] => (name, None),
            [name, default] => (name, Some(default)),
            _ => {
                let problem = "a variable has a name and at most one default";
                self.report
                    .error(span.clone(), problem, "write $(NAME) or $(NAME DEFAULT)");
                return None;
            }
        };
        let Some(text) = name.text() else {
            self.report
                .error(name.span.clone(), "the name of a variable is a text", "");
            return None;
        };
        if let Some((_, content)) = self.bound.iter().rev().find(|(bound, _)| bound == text) {
            if depth(content) > MAX_DEPTH {
                let problem = format!("with its variables the request is nested deeper than {MAX_DEPTH}");
                self.report.error(span.clone(), problem, "");
                return None;
            }
            let content = content.clone();
            return self.grown(content, span);
        }
        match default {
            Some(default) => Some(default.content.clone()),
            None => {
                self.unbound(text, span);
                None
            }
        }
    }

    fn unbound(&mut self, name: &str, span: &Span) {
        let known: Vec<&str> = self.bound.iter().map(|(name, _)| name.as_str()).collect();
        // Looking for what was meant takes time: only for errors that are told.
        let near = if self.report.full() {
            None
        } else {
            nearest(name, &known)
        };
        let hint = match near {
            Some(near) => format!("did you mean $({near})?"),
            None => format!(
                "bind it before: (rslSubstitution = ({0} VALUE)), or run with --define {0}=VALUE",
                shown(name)
            ),
        };
        let problem = format!("variable '{}' has no value (GRAM error 39)", shown(name));
        self.report.error(span.clone(), problem, hint);
    }

    fn concatenation(&mut self, atoms: &[Value], span: &Span) -> Option<Content> {
        let mut text = String::new();
        for atom in self.values(atoms)? {
            let Some(part) = atom.text() else {
                self.report.error(atom.span, "a list cannot be joined with a text", "");
                return None;
            };
            text.push_str(part);
        }
        self.grown(Content::Text(text), span)
    }
}

/// Values, and bytes of texts.
fn size(content: &Content) -> usize {
    match content {
        Content::Text(text) => 1 + text.len(),
        Content::List(list) => 1 + list.iter().map(|d| size(&d.content)).sum::<usize>(),
    }
}

fn depth(content: &Content) -> usize {
    match content {
        Content::Text(_) => 0,
        Content::List(list) => 1 + list.iter().map(|d| depth(&d.content)).max().unwrap_or(0),
    }
}
