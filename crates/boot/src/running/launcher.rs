// SPDX-License-Identifier: Apache-2.0
//! What a process asks its launcher.

use isthmus_wire::question::{Ask, Said};

use super::Running;
use crate::asking::{self, AskError};
use crate::leader::Leader;

impl Running {
    /// Asks the coordinator and waits for the answer; meanwhile the engine makes progress. For any thread.
    ///
    /// # Errors
    /// There is no launcher, it says no, or it is gone.
    pub fn ask(&self, ask: Ask) -> Result<Said, AskError> {
        let agent = self.agent.as_ref().ok_or(AskError::NoLauncher)?;
        asking::ask(self.world(), agent, ask)
    }

    /// The way to the other root where parents and the children of this world meet.
    ///
    /// # Errors
    /// There is no launcher, or it is gone.
    pub fn leader(&self, children: [u8; 16]) -> Result<Leader<'_>, AskError> {
        let agent = self.agent.as_ref().ok_or(AskError::NoLauncher)?;
        Leader::new(self.world(), agent, children)
    }
}
