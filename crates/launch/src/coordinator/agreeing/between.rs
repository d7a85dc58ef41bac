// SPDX-License-Identifier: Apache-2.0
//! What is between two launchers whose members agree: who carries letters, and which have come ([`super::deciding`]).

use super::naming::{Member, Process, Told};
use isthmus_wire::agreeing::{Agreed, Places, Which, pieces};
use isthmus_wire::letter::{Back, Letter, Share};
use isthmus_wire::question::Said;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Most letters that are kept before anybody here has asked for their agreements; the oldest ones go back.
const EARLY: usize = 64;
/// Most agreements of which it is remembered that they are over.
const OVER: usize = 1024;
/// A letter that a process here has, with the number of its question.
type Held = (Process, u64, Letter);

/// Letters of other launchers.
#[derive(Debug, Default)]
pub(super) struct Posted {
    pub(super) early: VecDeque<Held>,
    over: VecDeque<Which>,
}

impl Posted {
    /// Those about this agreement, which has begun.
    pub(super) fn take_early(&mut self, which: Which) -> Vec<Held> {
        let all = std::mem::take(&mut self.early);
        let (taken, left): (Vec<Held>, Vec<Held>) = all.into_iter().partition(|(_, _, letter)| letter.which == which);
        self.early = left.into();
        taken
    }

    /// Kept until somebody asks; who gets its letter back for that.
    pub(super) fn keep(&mut self, held: Held) -> Vec<Told> {
        self.early.push_back(held);
        let surplus = self.early.len().saturating_sub(EARLY);
        // Whoever wrote them asks again.
        let first = self.early.drain(..surplus);
        first
            .map(|(by, question, _)| back(by, question, Back::Delivered))
            .collect()
    }

    /// Some processes may have ended.
    pub(super) fn forget(&mut self, takes_part: impl Fn(Process) -> bool) {
        self.early.retain(|(by, _, _)| takes_part(*by));
    }

    /// An agreement is over.
    pub(super) fn is_over(&mut self, which: Which) {
        self.over
            .retain(|known| (known.scope, known.context) != (which.scope, which.context));
        self.over.push_back(which);
        if self.over.len() > OVER {
            self.over.pop_front();
        }
    }

    pub(super) fn knows_as_over(&self, which: Which) -> bool {
        let same = |known: &&Which| (known.scope, known.context) == (which.scope, which.context);
        self.over
            .iter()
            .find(same)
            .is_some_and(|known| known.round >= which.round)
    }
}

/// What a process is told of a letter that it has brought.
pub(super) fn back(by: Process, question: u64, back: Back) -> Told {
    (by, question, Ok(Said::Back(back)))
}

/// What is between two launchers about one agreement.
#[derive(Debug)]
pub(super) struct Between {
    /// Whether this one decides.
    pub(super) decides: bool,
    /// Places of the other one's members.
    pub(super) others: Vec<Places>,
    /// Who can carry a letter, with the number of its question.
    pub(super) ready: BTreeMap<Process, u64>,
    /// Who carries one; with the result, or something else.
    pub(super) out: Option<(Process, bool)>,
    /// Who reaches nobody of the others.
    pub(super) cut: BTreeSet<Process>,
    /// Who has brought letters that are answered when it is over.
    pub(super) held: Vec<(Process, u64)>,
    /// Those that are answered when all own members have asked.
    pub(super) watched: Vec<(Process, u64)>,
    pub(super) share: Option<Share>,
    /// What all are told: it stands.
    pub(super) result: Option<Result<Agreed, String>>,
}

impl Between {
    pub(super) fn new(decides: bool, members: &[Member]) -> Self {
        let others = (0..).zip(members).filter(|(_, member)| member.is_none());
        Self {
            decides,
            others: pieces(others.map(|(place, _)| place)),
            ready: BTreeMap::new(),
            out: None,
            cut: BTreeSet::new(),
            held: Vec::new(),
            watched: Vec::new(),
            share: None,
            result: None,
        }
    }

    pub(super) fn decides(&self) -> bool {
        self.decides
    }

    pub(super) fn forget(&mut self, takes_part: &impl Fn(Process) -> bool) {
        self.ready.retain(|by, _| takes_part(*by));
        self.out = self.out.filter(|(by, _)| takes_part(*by));
        self.held.retain(|(by, _)| takes_part(*by));
        self.watched.retain(|(by, _)| takes_part(*by));
    }

    /// It is over, with a refusal perhaps: nobody needs to carry letters, and those that were brought are answered.
    pub(super) fn dismiss(self, refusal: Option<&str>) -> Vec<Told> {
        let carriers = self
            .ready
            .into_iter()
            .map(|(by, question)| (by, question, Ok(Said::Done)));
        let brought = self.held.into_iter().chain(self.watched);
        let was = refusal.map_or(Back::Delivered, |why| Back::Refused(why.to_owned()));
        carriers
            .chain(brought.map(|(by, question)| back(by, question, was.clone())))
            .collect()
    }
}

#[cfg(test)]
mod tests;
