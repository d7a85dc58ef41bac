// SPDX-License-Identifier: Apache-2.0
//! Members of a group that do not call the same: who waits in vain is told, and so is who found something else than it expects.

use isthmus_schedule::Operation as What;
use isthmus_transport::meeting::{Claim, Disagreement, ENLARGE, Lane, Meeting};

use crate::cut::Cut;
use crate::meet::Meet;
use crate::requests::Task;
use crate::{Engine, EngineError};

impl Meet {
    /// A member with which this one, which waits, may never get further.
    pub(crate) fn disagreement(&self, meeting: &dyn Meeting) -> Option<Disagreement> {
        let found = meeting.disagreements(self.place(), self.step, self.claim());
        let out_of_step = found.iter().find(|found| self.is_out_of_step(found, meeting));
        // One that has given up says why itself.
        let gave_up = || found.iter().find(|found| matches!(found, Disagreement::GaveUp { .. }));
        out_of_step.or_else(gave_up).copied()
    }

    /// After a mistake: a member that does something else in this step. What it gives in later steps may never be where this one looks.
    #[cold]
    pub(crate) fn out_of_step(&self, meeting: &dyn Meeting) -> Option<Disagreement> {
        let found = meeting.disagreements(self.place(), self.step, self.claim());
        found.into_iter().find(|found| self.is_out_of_step(found, meeting))
    }

    /// Whether a member takes this step for something that does not go together with what this one takes it for. What differs in lengths alone and goes
    /// in the same rounds is over for all, and each that looks at a length which it did not expect has an error of its own.
    fn is_out_of_step(&self, found: &Disagreement, meeting: &dyn Meeting) -> bool {
        let (mine, theirs) = match found {
            Disagreement::Other { claim, .. } => (self.claim(), claim),
            Disagreement::GaveUp { .. } => return false,
        };
        let all = self.node.is_none();
        let cut = Cut::new(meeting, self.what, self.place().members, theirs.block, self.unit, all);
        // How long blocks are cut follows from their elements, which nobody notes.
        let is_known = self.unit == 1 || self.cut.lane != Lane::Long;
        mine.what != theirs.what || mine.root != theirs.root || cut.rounds() != self.cut.rounds() || !is_known
    }
}

impl Engine {
    /// A step waits in vain if members do not agree; looked for when nothing has happened for a while.
    pub(crate) fn disagreement(&mut self, index: u32) -> Option<EngineError> {
        let Task::Meet(meet) = &self.state.requests.slot(index).task else {
            return None;
        };
        let meeting = self.transports[self.meeting?].meeting()?;
        let (place, error) = (*meet.place(), in_words(&meet.disagreement(meeting)?, meet));
        Some(self.give_up(&place, error))
    }

    /// What this process says of a step that is over here and in which a member gave another length than it expects. If that member did something else,
    /// nothing is possible any more at the place, and the others are told.
    #[cold]
    pub(crate) fn after_mistake(&mut self, meet: &Meet, mistake: EngineError) -> EngineError {
        match self.meeting().and_then(|meeting| meet.out_of_step(meeting)) {
            Some(found) => self.give_up(meet.place(), in_words(&found, meet)),
            None => mistake,
        }
    }
}

/// In words, as this process sees it.
pub(crate) fn in_words(found: &Disagreement, meet: &Meet) -> EngineError {
    let (claim, me) = (meet.claim(), meet.rank_of(meet.place().me));
    let told = |claim: &Claim| {
        let name = What::ALL
            .get(usize::from(claim.what))
            .map_or("another operation", |what| what.name());
        match claim {
            Claim { block: 0, .. } => name.to_owned(),
            Claim { block, root, .. } => {
                let root = meet.rank_of(*root);
                format!("{name} of {block} bytes (root {root})")
            }
        }
    };
    let (what, lengths) = match found {
        Disagreement::Other { member, claim: theirs } => {
            let what = format!(
                "rank {me} is in {}, rank {} was in {}",
                told(&claim),
                meet.rank_of(*member),
                told(theirs)
            );
            (what, theirs.what == claim.what && theirs.root == claim.root)
        }
        // Whoever is heard of first ends the job, so what the user can do about it is in the errors of all.
        Disagreement::GaveUp {
            member,
            no_memory: true,
        } => {
            let reason = format!(
                "rank {} has given up: there is no memory for what the processes of this node share (one of them says where){ENLARGE}; no further \
                 collective operation is possible on this communicator",
                meet.rank_of(*member)
            );
            return EngineError::Memory { reason: reason.into() };
        }
        Disagreement::GaveUp { member, .. } => {
            let what = format!(
                "rank {me} is in {}, rank {} has given up (its own error says why)",
                told(&claim),
                meet.rank_of(*member)
            );
            (what, false)
        }
    };
    EngineError::Disagreement {
        what: what.into(),
        lengths,
    }
}
