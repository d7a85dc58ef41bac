// SPDX-License-Identifier: Apache-2.0
//! What all tasks of sites share.

use crate::Options;
use crate::directories::Directories;
use crate::parts::Gathered;
use crate::staged::SiteContents;
use isthmus_reach::Access;
use isthmus_wire::grid::Reach;
use std::sync::Arc;

/// What all site tasks share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) job: String,
    pub(crate) reach: Reach,
    /// How sites are reached.
    pub(crate) access: Arc<Access>,
    /// What sites have of what was staged.
    pub(crate) staged: SiteContents,
    /// Directories of subjobs that have files.
    pub(crate) directories: Directories,
    /// How many subjobs the job began with; others were asked for by its processes.
    pub(crate) planned: usize,
    /// Whether the job goes on, at least partly, when a process is lost.
    pub(crate) goes_on: bool,
    /// Parts that other launchers start.
    pub(crate) gathered: Gathered,
    /// Nothing is to be started: only what is there and how it is connected is of interest.
    pub(crate) examine: bool,
}

impl Shared {
    /// Whether the processes were begun by another coordinator.
    pub(crate) fn is_taken_up(&self) -> bool {
        self.options.held.is_some()
    }
}
