// SPDX-License-Identifier: Apache-2.0
//! What is said of a request.

use super::syntax::Span;
use crate::attributes::Fault;
use crate::error::{JobError, JobErrors, MAX_ERRORS};
use crate::source::Source;

/// What was found wrong, and what is worth knowing.
pub(crate) struct Report<'a> {
    pub(crate) source: Source<'a>,
    pub(crate) errors: JobErrors,
    pub(crate) notes: Vec<JobError>,
}

impl<'a> Report<'a> {
    pub(crate) fn new(source: Source<'a>) -> Self {
        Self {
            source,
            errors: JobErrors::default(),
            notes: Vec::new(),
        }
    }

    /// Whether further errors are only counted.
    pub(crate) fn full(&self) -> bool {
        self.errors.count() >= MAX_ERRORS
    }

    /// One more error; an empty hint is none. Beyond the number that is told they are only counted.
    pub(crate) fn error(&mut self, span: Span, problem: impl Into<String>, hint: impl Into<String>) {
        let error = if self.full() {
            JobError::new("")
        } else {
            self.located(span, problem.into(), hint.into())
        };
        self.errors.push(error);
    }

    /// One more note, unless there are very many.
    pub(crate) fn note(&mut self, span: Span, problem: impl Into<String>, hint: impl Into<String>) {
        if self.notes.len() < MAX_ERRORS {
            let note = self.located(span, problem.into(), hint.into());
            self.notes.push(note);
        }
    }

    pub(crate) fn fault(&mut self, (span, problem, hint): Fault) {
        self.error(span, problem, hint);
    }

    fn located(&self, span: Span, problem: String, hint: String) -> JobError {
        let error = self.source.at(JobError::new(problem), span);
        if hint.is_empty() { error } else { error.hint(hint) }
    }

    /// Number of the line of a place.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.source.text().as_bytes()[..at.min(self.source.text().len())]
            .iter()
            .filter(|b| **b == b'\n')
            .count()
            + 1
    }
}
