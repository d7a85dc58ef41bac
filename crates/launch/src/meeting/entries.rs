// SPDX-License-Identifier: Apache-2.0
//! Processes of this job that others may reach, by the key of their entry.

use super::beyond::Inside;
use crate::happening::Process;
use isthmus_wire::question::{Kind, Refusal};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most entries of a job.
const MAX_ENTRIES: usize = 1 << 16;

/// By key: whose entry it is, and where its process listens.
type ByKey = HashMap<[u8; 16], (Process, Inside)>;

#[derive(Clone, Default)]
pub(super) struct Entries(Arc<Mutex<ByKey>>);

impl Entries {
    fn locked(&self) -> MutexGuard<'_, ByKey> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where this key leads.
    pub(super) fn find(&self, key: &[u8; 16]) -> Option<Inside> {
        self.locked().get(key).map(|(_, inside)| inside.clone())
    }

    /// From now on this key leads to a process.
    pub(super) fn let_in(&self, by: Process, key: [u8; 16], inside: Inside) -> Result<(), Refusal> {
        let mut entries = self.locked();
        if entries.len() >= MAX_ENTRIES {
            let why = format!("the processes of this job are already reached in {MAX_ENTRIES} ways by the launcher");
            return Err(Refusal::new(Kind::Unable, why));
        }
        entries.insert(key, (by, inside));
        Ok(())
    }

    /// From now on it does not.
    pub(super) fn close(&self, by: Process, key: &[u8; 16]) {
        let mut entries = self.locked();
        if entries.get(key).is_some_and(|(owner, _)| *owner == by) {
            if let Some((_, inside)) = entries.remove(key) {
                inside.end();
            }
        }
    }

    /// A process has ended.
    pub(super) fn forget(&self, by: Process) {
        self.locked().retain(|_, (owner, inside)| {
            if *owner == by {
                inside.end();
            }
            *owner != by
        });
    }
}
