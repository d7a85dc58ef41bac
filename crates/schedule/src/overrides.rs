// SPDX-License-Identifier: Apache-2.0
//! What the user says about the choice of algorithms.
//!
//! ```text
//! rules  = rule { ";" rule }
//! rule   = operation [ "@" level ] [ ":" sizes ] "=" choice { "," choice }
//! sizes  = [ size ] ".." [ size ]          the upper end is not included
//! choice = name | name "(" number ")" | "seg" "=" size | "lanes" "=" number | "leaders" "=" number
//! ```
//! For example `bcast@wide=flat,seg=64K; allreduce:64K..=split`. Operations are those of MPI in lower case without
//! `MPI_`, or `*`; levels are `wide`, `local`, `machine`, `vendor`, `node`. With a level the name is that of a tree
//! among the members of a council at that level (`together`: of `node` the memory of each node, of `vendor` the
//! collective operations of the MPI of a machine), without one that of an algorithm or meeting. `seg` is the length of
//! a piece of a long message; in gatherv and scatterv, that from which on a block goes by itself. Where several rules
//! fit, the last one wins. Sizes are bytes, with K, M, G for powers of 1024.

use crate::Operation;
use isthmus_topology::Level;
use std::ops::Range;

/// Rules about the choice of algorithms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    /// `None`: all.
    operation: Option<Operation>,
    level: Option<Level>,
    sizes: Range<u64>,
    said: Said,
}

/// What the rules that fit say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// Name of a tree, algorithm or meeting.
    pub(crate) name: Option<String>,
    /// Bytes of a piece.
    pub(crate) segment: Option<u64>,
    pub(crate) lanes: Option<u64>,
    pub(crate) leaders: Option<u32>,
}

/// Why an expression is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverrideError {
    /// Where, bytes from the start.
    pub at: usize,
    /// What is wrong and what could stand there.
    pub what: String,
}

impl std::fmt::Display for OverrideError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "at character {}: {}", self.at + 1, self.what)
    }
}

impl std::error::Error for OverrideError {}

impl Overrides {
    /// Longest expression, bytes.
    pub const LONGEST: usize = 4096;

    /// Reads an expression.
    pub fn parse(text: &str) -> Result<Self, OverrideError> {
        if text.len() > Self::LONGEST {
            return Err(error(0, format!("longer than {} characters", Self::LONGEST)));
        }
        let mut rules = Vec::new();
        let mut at = 0;
        for part in text.split(';') {
            if !part.trim().is_empty() {
                rules.push(rule(part, at)?);
            }
            at += part.len() + 1;
        }
        Ok(Self { rules })
    }

    /// True if nothing was said.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// What is said about a call of so many bytes, at a level or (`None`) in all.
    pub(crate) fn about(&self, operation: Operation, level: Option<Level>, bytes: u64) -> Said {
        let fits = |rule: &&Rule| {
            rule.level == level && rule.operation.is_none_or(|o| o == operation) && rule.sizes.contains(&bytes)
        };
        let mut said = Said::default();
        for rule in self.rules.iter().filter(fits) {
            let new = rule.said.clone();
            said = Said {
                name: new.name.or(said.name),
                segment: new.segment.or(said.segment),
                lanes: new.lanes.or(said.lanes),
                leaders: new.leaders.or(said.leaders),
            };
        }
        said
    }
}

/// The rules as they would be read again.
impl std::fmt::Display for Overrides {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, rule) in self.rules.iter().enumerate() {
            let separator = if i > 0 { "; " } else { "" };
            write!(f, "{separator}{rule}")?;
        }
        Ok(())
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.operation.map_or("*", Operation::name))?;
        if let Some((name, _)) = LEVELS.iter().find(|l| Some(l.1) == self.level) {
            write!(f, "@{name}")?;
        }
        write!(f, ":{}..", self.sizes.start)?;
        if self.sizes.end < u64::MAX {
            write!(f, "{}", self.sizes.end)?;
        }
        let said = &self.said;
        let choices = [
            said.name.clone(),
            said.segment.map(|n| format!("seg={n}")),
            said.lanes.map(|n| format!("lanes={n}")),
            said.leaders.map(|n| format!("leaders={n}")),
        ];
        let choices: Vec<String> = choices.into_iter().flatten().collect();
        write!(f, "={}", choices.join(","))
    }
}

fn error(at: usize, what: impl Into<String>) -> OverrideError {
    OverrideError { at, what: what.into() }
}

fn rule(text: &str, at: usize) -> Result<Rule, OverrideError> {
    let Some((head, choices)) = text.split_once('=') else {
        return Err(error(
            at,
            format!(
                "`{}` has no `=`; a rule is OPERATION[@LEVEL][:SIZES]=CHOICE",
                text.trim()
            ),
        ));
    };
    let (name, sizes) = match head.split_once(':') {
        Some((name, sizes)) => (name, range(sizes, at + name.len() + 1)?),
        None => (head, 0..u64::MAX),
    };
    let (name, level) = match name.split_once('@') {
        Some((name, level)) => (name, Some(level_of(level, at + name.len() + 1)?)),
        None => (name, None),
    };
    Ok(Rule {
        operation: operation(name, at)?,
        level,
        sizes,
        said: said(choices, at + head.len() + 1, level)?,
    })
}

fn operation(name: &str, at: usize) -> Result<Option<Operation>, OverrideError> {
    let name = name.trim();
    if name == "*" {
        return Ok(None);
    }
    let found = Operation::ALL.iter().find(|o| o.name() == name);
    let known = || Operation::ALL.iter().map(|o| o.name()).collect::<Vec<_>>().join(", ");
    found.map(|&o| Some(o)).ok_or_else(|| {
        error(
            at,
            format!("`{name}` is not a collective operation; known are *, {}", known()),
        )
    })
}

fn level_of(name: &str, at: usize) -> Result<Level, OverrideError> {
    let found = LEVELS.iter().find(|l| l.0 == name.trim());
    let known: Vec<&str> = LEVELS.iter().map(|l| l.0).collect();
    found.map(|l| l.1).ok_or_else(|| {
        error(
            at,
            format!("`{}` is not a level; levels are {}", name.trim(), known.join(", ")),
        )
    })
}

const LEVELS: [(&str, Level); 5] = [
    ("wide", Level::WideArea),
    ("local", Level::LocalArea),
    ("machine", Level::Machine),
    ("vendor", Level::Vendor),
    ("node", Level::Node),
];

/// Names of trees, without their numbers.
const FORMS: [&str; 7] = [
    "flat",
    "binomial",
    "knomial",
    "fibonacci",
    "chain",
    "routed",
    crate::form::TOGETHER,
];

fn range(text: &str, at: usize) -> Result<Range<u64>, OverrideError> {
    let Some((low, high)) = text.split_once("..") else {
        return Err(error(
            at,
            format!(
                "`{}` is not a range of sizes; write FROM..TO, FROM.. or ..TO",
                text.trim()
            ),
        ));
    };
    let low_end = if low.trim().is_empty() { 0 } else { size(low, at)? };
    let high_end = if high.trim().is_empty() {
        u64::MAX
    } else {
        size(high, at + low.len() + 2)?
    };
    Ok(low_end..high_end)
}

fn size(text: &str, at: usize) -> Result<u64, OverrideError> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KIB" => 1 << 10,
        "M" | "MIB" => 1 << 20,
        "G" | "GIB" => 1 << 30,
        other => return Err(error(at, format!("`{other}` is not a unit; units are K, M, G"))),
    };
    let number: Option<u64> = digits.parse().ok();
    number.and_then(|n| n.checked_mul(unit)).ok_or_else(|| {
        error(
            at,
            format!("`{text}` is not a size; write bytes, or a number with K, M or G"),
        )
    })
}

fn said(text: &str, at: usize, level: Option<Level>) -> Result<Said, OverrideError> {
    let mut said = Said::default();
    let mut from = at;
    for choice in text.split(',') {
        match choice.split_once('=') {
            Some((key, value)) => set(&mut said, key.trim(), value, from, from + key.len() + 1)?,
            None => said.name = Some(name(choice, from, level)?),
        }
        from += choice.len() + 1;
    }
    Ok(said)
}

fn set(said: &mut Said, key: &str, value: &str, key_at: usize, at: usize) -> Result<(), OverrideError> {
    let number = size(value, at)?;
    if number == 0 {
        return Err(error(at, format!("{key} must not be 0")));
    }
    match key {
        "seg" => said.segment = Some(number),
        "lanes" => said.lanes = Some(number.min(256)),
        "leaders" => said.leaders = Some(u32::try_from(number).unwrap_or(u32::MAX)),
        other => {
            return Err(error(
                key_at,
                format!("`{other}` is not known; known are seg, lanes, leaders"),
            ));
        }
    }
    Ok(())
}

fn name(text: &str, at: usize, level: Option<Level>) -> Result<String, OverrideError> {
    let name = text.trim();
    let stem = name.split('(').next().unwrap_or_default();
    let known: Vec<&str> = match level {
        Some(Level::Vendor | Level::Node) => FORMS.to_vec(),
        Some(_) => FORMS
            .into_iter()
            .filter(|&form| form != crate::form::TOGETHER)
            .collect(),
        None => crate::strategy::names(),
    };
    if !known.contains(&stem) {
        let what = if level.is_some() { "a tree" } else { "an algorithm" };
        return Err(error(
            at,
            format!("`{name}` is not {what}; known are {}", known.join(", ")),
        ));
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Overrides {
        Overrides::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn the_last_rule_that_fits_wins_choice_by_choice() {
        let rules = parse("bcast@wide=flat,seg=64K; *:64K..=split; allreduce:..1M = tree, lanes=3;");
        let about = |operation, level, bytes| rules.about(operation, level, bytes);
        let wide = about(Operation::Bcast, Some(Level::WideArea), 8);
        assert_eq!((wide.name.as_deref(), wide.segment), (Some("flat"), Some(64 << 10)));
        assert_eq!(about(Operation::Bcast, Some(Level::Node), 8), Said::default());
        assert_eq!(about(Operation::Bcast, None, 8), Said::default());
        let both = about(Operation::Allreduce, None, 64 << 10);
        assert_eq!((both.name.as_deref(), both.lanes), (Some("tree"), Some(3)));
        assert_eq!(
            about(Operation::Allreduce, None, 1 << 20).name.as_deref(),
            Some("split")
        );
        assert_eq!(parse(&rules.to_string()), rules);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let cases = [
            ("bcast", 0, "no `=`"),
            ("bcst=flat", 0, "not a collective operation"),
            ("bcast@wid=flat", 6, "not a level"),
            ("bcast:5=tree", 6, "not a range"),
            ("bcast:5Q..=tree", 6, "not a unit"),
            ("bcast:-1..=tree", 6, "not a size"),
            ("bcast=flt", 6, "not an algorithm"),
            ("bcast@node=split", 11, "not a tree"),
            ("bcast@wide=together", 11, "not a tree"),
            ("bcast=tree,seg=0", 15, "must not be 0"),
            ("bcast=tree,sge=4", 11, "`sge` is not known"),
            ("*=tree; bcast=tree,seg=", 23, "not a size"),
            ("bcast:99999999999G..=tree", 6, "not a size"),
        ];
        for (text, at, what) in cases {
            let error = Overrides::parse(text).expect_err(text);
            assert!(error.at == at && error.what.contains(what), "{text}: {error:?}");
        }
        assert!(Overrides::parse(&"*=tree;".repeat(1000)).is_err());
    }
}
