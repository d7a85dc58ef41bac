// SPDX-License-Identifier: Apache-2.0
//! Directories of subjobs that have files, at their sites: where they are, and what is known of each until it is
//! emptied.

use crate::left::Before;
use isthmus_job::Contact;
use isthmus_job::transfer::Transfers;
use isthmus_reach::workspace::{Attended, Workspace};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The directories of all subjobs.
#[derive(Default)]
pub(crate) struct Directories(Mutex<Vec<KeptDirectory>>);

/// A directory at a site, with the service that is kept in it.
pub(crate) struct KeptDirectory {
    pub(crate) number: usize,
    pub(crate) site: String,
    pub(crate) contact: Contact,
    pub(crate) setup: Vec<String>,
    pub(crate) transfers: Transfers,
    /// Where the job says that its processes work.
    pub(crate) directory: Option<String>,
    pub(crate) workspace: Workspace,
    pub(crate) attended: Option<Attended>,
    /// Outputs in the user's own directory, where the processes work in that.
    pub(crate) before: Option<Before>,
}

impl Directories {
    /// Where the files of the subjobs are.
    pub(crate) fn places(&self) -> Vec<(usize, String)> {
        let all = self.all();
        all.iter()
            .map(|one| (one.number, one.workspace.files.clone()))
            .collect()
    }

    /// Another one.
    pub(crate) fn keep(&self, one: KeptDirectory) {
        self.all().push(one);
    }

    /// All of them, to be emptied.
    pub(crate) fn take(&self) -> Vec<KeptDirectory> {
        std::mem::take(&mut *self.all())
    }

    fn all(&self) -> MutexGuard<'_, Vec<KeptDirectory>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
