// SPDX-License-Identifier: Apache-2.0
//! The Resource Specification Language of Globus, version 1.0, with the attributes of its co-allocator and of MPICH-G2.
//!
//! ```text
//! +
//! ( & (resourceManagerContact = "sp.example.org") (count = 10)
//!     (environment = (GLOBUS_DUROC_SUBJOB_INDEX 0))
//!     (executable = /home/smith/app) )
//! ( & (resourceManagerContact = "o2k.example.org") (count = 5)
//!     (environment = (GLOBUS_DUROC_SUBJOB_INDEX 1) (GLOBUS_LAN_ID campus))
//!     (executable = /u/smith/app) )
//! ```
//!
//! Text becomes tokens, tokens a tree, the tree is evaluated (variables, concatenation), and the evaluated tree is
//! mapped to a [`Job`](crate::Job). Every step goes on after an error, so that all errors of a file are told at once.

mod evaluate;
pub(super) mod job;
mod lexer;
mod mapping;
mod parser;
mod report;
pub mod syntax;
pub(crate) mod write;

pub(crate) use mapping::{INDEX, LAN, label_says_nothing_more};

use crate::attributes::Datum;
use crate::error::{JobError, JobErrors};
use crate::forms::Described;
use crate::scratch;
use crate::source::{MAX_BYTES, Source};
use report::Report;
use syntax::{Spec, Value};

/// A request as it is written.
pub type Written = Spec<Value>;
/// A request whose variables have their values.
pub type Evaluated = Spec<Datum>;

/// Largest RSL file, bytes.
pub const MAX_TEXT: usize = MAX_BYTES / 4;

/// Reads a request without evaluating it; `file` is its name for messages.
pub fn parse(text: &str, file: &str) -> Result<Written, JobErrors> {
    let source = Source::new(text, file);
    let mut report = Report::new(source);
    let spec = read(&mut report);
    report.errors.or(spec)
}

/// Reads and evaluates a request. `bindings` are variables that have values before it begins.
pub fn evaluate(text: &str, file: &str, bindings: &[(String, String)]) -> Result<Evaluated, JobErrors> {
    let source = Source::new(text, file);
    let mut report = Report::new(source);
    let spec = read(&mut report).and_then(|spec| evaluate::evaluate(&spec, bindings, &mut report));
    report.errors.or(spec)
}

/// The job that a request describes. A request that is no multi-request may leave out the contact: `contact` then, or
/// home.
pub fn job(
    text: &str,
    file: &str,
    bindings: &[(String, String)],
    contact: Option<&str>,
) -> Result<Described, JobErrors> {
    let source = Source::new(text, file);
    let mut report = Report::new(source);
    let spec = read(&mut report).and_then(|spec| evaluate::evaluate(&spec, bindings, &mut report));
    let described = spec.and_then(|spec| mapping::job(&spec, contact, &mut report));
    let notes = std::mem::take(&mut report.notes);
    report
        .errors
        .or(described.map(|described| Described { notes, ..described }))
}

/// Texts as RSL writes them: quotes only where needed.
pub fn words(texts: &[String]) -> String {
    let words: Vec<String> = texts.iter().map(|t| write::text(t)).collect();
    words.join(" ")
}

/// The variables that have values before a request begins: HOME and LOGNAME as they are here, and the address of the
/// files here, which is `file://`: what stands behind it is staged.
pub fn bindings(mut variable: impl FnMut(&str) -> Option<String>) -> Vec<(String, String)> {
    let here = ["HOME", "LOGNAME"].map(|name| Some((name.to_owned(), variable(name)?)));
    let files = ("GLOBUSRUN_GASS_URL".to_owned(), "file://".to_owned());
    let scratch = (scratch::VARIABLE.to_owned(), scratch::MARK.to_owned());
    here.into_iter().flatten().chain([files, scratch]).collect()
}

/// The text of an evaluated request in its canonical form: every attribute in its usual spelling, quotes only where
/// needed.
pub fn canonical(spec: &Evaluated) -> String {
    write::spec(spec)
}

fn read(report: &mut Report<'_>) -> Option<Written> {
    if report.source.text().len() > MAX_TEXT {
        let problem = format!("'{}' is larger than {MAX_TEXT} bytes", report.source.file());
        report.errors.push(JobError::new(problem));
        return None;
    }
    let lexemes = lexer::lex(report);
    parser::parse(lexemes, report)
}
