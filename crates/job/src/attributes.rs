// SPDX-License-Identifier: Apache-2.0
//! What can be asked for a subjob beside the fields of [`crate::Subjob`]: one table for RSL and TOML that says of every
//! attribute what it looks like and what becomes of it.

mod kinds;
mod operator;
mod table;

pub use kinds::{Attribute, Fate, Shape};
pub use operator::{Operator, Span};
pub use table::ATTRIBUTES;

/// A value that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Self>),
}

/// An attribute of a subjob that is kept and passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which one.
    pub attribute: &'static Attribute,
    /// `=`, or a constraint.
    pub operator: Operator,
    /// At least one value.
    pub values: Vec<Setting>,
}

/// A value and its place in a file.
#[derive(Clone, Debug)]
pub struct Datum {
    /// What it is.
    pub content: Content,
    /// Where it stands.
    pub span: Span,
}

/// What a [`Datum`] is.
#[derive(Clone, Debug)]
pub enum Content {
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Datum>),
}

/// What is wrong with values: place, problem, hint.
pub(crate) type Fault = (Span, String, String);

impl Datum {
    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            Content::List(_) => None,
        }
    }

    /// Two texts in a list.
    pub(crate) fn pair(&self) -> Option<(&str, &str)> {
        match &self.content {
            Content::List(list) => match list.as_slice() {
                [first, second] => Some((first.text()?, second.text()?)),
                _ => None,
            },
            Content::Text(_) => None,
        }
    }

    fn setting(&self) -> Setting {
        match &self.content {
            Content::Text(text) => Setting::Text(text.clone()),
            Content::List(list) => Setting::List(list.iter().map(Self::setting).collect()),
        }
    }
}

impl Setting {
    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::List(_) => None,
        }
    }
}

/// The attribute of this name in RSL, however it is written.
pub fn find(name: &str) -> Option<&'static Attribute> {
    let name = canonical(name);
    ATTRIBUTES.iter().find(|a| canonical(a.name) == name)
}

/// Asks for processes on the vendor MPI; `mpiexec`: its command, empty for the one in the site's PATH.
pub(crate) fn ask_vendor(requests: &mut Vec<Request>, mpiexec: &str) {
    let given = [("jobType", "mpi"), ("mpiexec", mpiexec)];
    for (name, text) in given.into_iter().filter(|(_, text)| !text.is_empty()) {
        ask(requests, name, text);
    }
}

/// Asks for one thing, instead of what has been asked for under that name.
pub(crate) fn ask(requests: &mut Vec<Request>, name: &str, text: &str) {
    requests.retain(|r| r.attribute.name != name || r.operator != Operator::Equal);
    requests.extend(find(name).map(|attribute| Request {
        attribute,
        operator: Operator::Equal,
        values: vec![Setting::Text(text.to_owned())],
    }));
    sort(requests);
}

/// Puts requests into the order of the table, constraints last.
pub(crate) fn sort(requests: &mut [Request]) {
    let place = |r: &Request| ATTRIBUTES.iter().position(|a| a.name == r.attribute.name);
    requests.sort_by_key(|r| (r.operator != Operator::Equal, place(r)));
}

/// Lower case without underscores.
pub fn canonical(name: &str) -> String {
    name.chars()
        .filter(|c| *c != '_')
        .flat_map(char::to_lowercase)
        .collect()
}

impl Request {
    /// Why it has no effect, if that is worth telling.
    pub(crate) fn unheeded(&self) -> Option<&'static str> {
        match self.attribute.fate {
            Fate::Kept(why) if !why.is_empty() => Some(why),
            Fate::Scheduled(_) if self.attribute.shape == Shape::Counted(1) && self.has_kind() => {
                Some("select the kind of nodes with the scheduler's own option: directive=--option")
            }
            Fate::Scheduled(_) => Some("its contact names no scheduler, as HOST/jobmanager-slurm does"),
            _ => None,
        }
    }

    /// Whether its number has a kind behind it.
    fn has_kind(&self) -> bool {
        self.values
            .first()
            .and_then(Setting::text)
            .is_some_and(|text| text.contains(':'))
    }
}

impl Attribute {
    /// The request, if the values have the right form.
    pub(crate) fn request(&'static self, operator: Operator, values: &[Datum]) -> Result<Request, Fault> {
        self.check(values)?;
        Ok(Request {
            attribute: self,
            operator,
            values: values.iter().map(Datum::setting).collect(),
        })
    }

    /// Whether the values have the right form.
    pub(crate) fn check(&self, values: &[Datum]) -> Result<(), Fault> {
        match self.shape {
            Shape::Texts => values.iter().try_for_each(|v| self.one_text(v).map(|_| ())),
            Shape::Pairs => values.iter().try_for_each(|v| self.one_pair(v)),
            Shape::Places => values.iter().try_for_each(|v| match v.text() {
                Some(_) => Ok(()),
                None => self.one_pair(v),
            }),
            _ => self.check_one(self.only(values)?),
        }
    }

    /// The one value.
    pub(crate) fn only<'v>(&self, values: &'v [Datum]) -> Result<&'v Datum, Fault> {
        match values {
            [value] => Ok(value),
            [_, second, ..] => Err(self.fault(
                second,
                format!("'{}' takes one value, these are {}", self.name, values.len()),
                "put quotes around a text with blanks".to_owned(),
            )),
            [] => Err((0..0, format!("'{}' has no value", self.name), String::new())),
        }
    }

    fn fault(&self, at: &Datum, problem: String, hint: String) -> Fault {
        (at.span.clone(), problem, hint)
    }

    /// A text.
    pub(crate) fn one_text<'v>(&self, value: &'v Datum) -> Result<&'v str, Fault> {
        value.text().ok_or_else(|| {
            self.fault(
                value,
                format!("'{}' takes texts, this is a list", self.name),
                "leave out the parentheses".to_owned(),
            )
        })
    }

    fn one_pair(&self, value: &Datum) -> Result<(), Fault> {
        if value.pair().is_some() {
            return Ok(());
        }
        let hint = format!("write ({} = (A B) (C D))", self.name);
        Err(self.fault(value, format!("'{}' takes pairs of texts", self.name), hint))
    }

    fn check_one(&self, value: &Datum) -> Result<(), Fault> {
        let text = self.one_text(value)?;
        let shown = crate::quoted::shown(text);
        let wrong = |what: String| {
            let problem = format!("'{}' is {what}, not '{shown}'", self.name);
            Err(self.fault(value, problem, String::new()))
        };
        match self.shape {
            Shape::Counted(least) => match text.split_once(':').map_or(text, |(number, _)| number).parse::<u64>() {
                Ok(number) if number >= least && number <= MOST => Ok(()),
                _ => wrong(format!("a whole number from {least} to {MOST}, or NUMBER:KIND")),
            },
            Shape::Number(least) => match text.parse::<u64>() {
                Ok(number) if number >= least && number <= MOST => Ok(()),
                _ => wrong(format!("a whole number from {least} to {MOST}")),
            },
            Shape::YesNo if !["yes", "no"].contains(&text) => wrong("'yes' or 'no'".to_owned()),
            Shape::Word(words) if !words.contains(&text) => wrong(format!("one of {}", words.join(", "))),
            _ => Ok(()),
        }
    }
}

/// Largest number of an attribute.
const MOST: u64 = i64::MAX as u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_keys_are_unique() {
        let mut names: Vec<_> = ATTRIBUTES.iter().map(|a| canonical(a.name)).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), ATTRIBUTES.len());
    }

    #[test]
    fn spelling_does_not_matter() {
        for name in ["maxWallTime", "max_wall_time", "MAXWALLTIME"] {
            assert_eq!(find(name).map(|a| a.name), Some("maxWallTime"));
        }
        assert!(find("max-wall-time").is_none());
    }
}
