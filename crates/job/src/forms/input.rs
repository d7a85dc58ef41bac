// SPDX-License-Identifier: Apache-2.0
//! A description that is to be read.

use crate::catalogue::Catalogue;
use crate::model::Subjob;

/// A description and what it does not contain itself.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The description.
    pub text: &'a str,
    /// Its name for messages.
    pub file: &'a str,
    /// Variables of RSL that have values before it begins.
    pub bindings: &'a [(String, String)],
    /// Where an RSL request without contact runs.
    pub contact: Option<&'a str>,
    /// What to run, for forms that do not say so.
    pub program: Option<&'a Subjob>,
    /// Number of processes, for those forms.
    pub total: Option<u32>,
    /// Name of the local network that all hosts share, for those forms.
    pub lan: Option<&'a str>,
    /// Processes of each host, for those forms.
    pub per_host: Option<u32>,
    /// Whether a name or address is that of the machine that we are on.
    pub is_own: fn(&str) -> bool,
    /// What is known of sites.
    pub catalogue: Option<&'a Catalogue>,
}

impl<'a> Input<'a> {
    /// A description on its own.
    pub fn of(text: &'a str, file: &'a str) -> Self {
        Self {
            text,
            file,
            bindings: &[],
            contact: None,
            program: None,
            total: None,
            lan: None,
            per_host: None,
            is_own: |_| false,
            catalogue: None,
        }
    }
}
