// SPDX-License-Identifier: Apache-2.0
//! Processes that were asked for and have not begun.

use super::open::Process;

/// What was asked for and has not begun.
#[derive(Debug)]
pub(super) struct Pending {
    /// Its subjobs.
    pub(super) sites: Vec<usize>,
    /// How many processes each part has.
    pub(super) counts: Vec<u32>,
    /// The launcher carries what they and their parents cannot send directly.
    pub(super) carried: bool,
    /// Who has asked.
    pub(super) by: Asker,
}

/// Who wants more processes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asker {
    /// A process of the job, with the question of this number.
    Process(Process, u64),
    /// The user, under this number.
    User(u32),
    /// A process that has ended since.
    Nobody,
}

/// A process has ended. What it has asked for begins all the same, and finds that nobody is there to meet.
pub(super) fn forget(all: &mut [Pending], process: Process) {
    let is_its = |by: &Asker| matches!(by, Asker::Process(asker, _) if *asker == process);
    let its = all.iter_mut().filter(|pending| is_its(&pending.by));
    its.for_each(|pending| pending.by = Asker::Nobody);
}
