// SPDX-License-Identifier: Apache-2.0
//! Why a site cannot be used, and texts from there.

/// Why a site cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What is wrong.
    pub problem: String,
    /// What to do; may be empty.
    pub hint: String,
    /// The stream ended: what the client says explains it better.
    closed: bool,
    /// Trying again cannot help.
    last: bool,
    /// The site was not reached, or its connection was lost.
    unreached: bool,
    /// An ssh server closed the connection before it knew who came: it has too much to do.
    busy: bool,
}

impl Failure {
    /// What is wrong and what to do about it, which may be empty.
    pub fn new(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            problem: problem.into(),
            hint: hint.into(),
            closed: false,
            last: false,
            unreached: false,
            busy: false,
        }
    }

    /// The same, because the site was not reached or its connection was lost.
    pub fn unreached(self) -> Self {
        Self {
            unreached: true,
            ..self
        }
    }

    /// Whether the site was not reached, or its connection was lost.
    pub fn is_unreached(&self) -> bool {
        self.unreached
    }

    /// The same, and trying again cannot help.
    pub fn finally(self) -> Self {
        Self { last: true, ..self }
    }

    /// Whether trying again cannot help.
    pub fn is_final(&self) -> bool {
        self.last
    }

    /// Whether the connection ended, and another one may do better.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// The same, because an ssh server had too much to do to let anybody in.
    pub(crate) fn busy(self) -> Self {
        Self { busy: true, ..self }
    }

    /// Whether an ssh server had too much to do to let anybody in.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy
    }

    /// The connection was closed.
    pub fn closed() -> Self {
        Self {
            problem: "the connection was closed".into(),
            hint: String::new(),
            closed: true,
            last: false,
            unreached: true,
            busy: false,
        }
    }
}

/// The same on one line, for a column of a table.
pub fn one_line(text: &str) -> String {
    let signs = text.chars().map(|sign| match sign.is_control() {
        true => sign.escape_default().to_string(),
        false => sign.to_string(),
    });
    signs.collect()
}

/// Text without what a terminal would obey.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '\r' => {}
            '\n' | '\t' => out.push(sign),
            sign if sign.is_control() => out.extend(sign.escape_default()),
            sign => out.push(sign),
        }
    }
    out
}
