// SPDX-License-Identifier: Apache-2.0
//! What is between launchers whose members agree: who carries letters, and which have come ([`super::deciding`]).

use super::naming::{Member, Process, Told};
use super::parties::{Name, Parties, Party, Shares};
use isthmus_wire::agreeing::{Agreed, Members, Which};
use isthmus_wire::letter::{Back, Letter, Says};
use isthmus_wire::question::Said;
use std::collections::{BTreeMap, VecDeque};

/// Most letters that are kept before anybody here has asked for their agreements; the oldest ones go back.
const EARLY: usize = 64;
/// Most agreements of which it is remembered that they are over.
const OVER: usize = 1024;
/// Most pieces of places in all results that are remembered.
const PIECES: usize = 1 << 20;
/// A letter that a process here has, with the number of its question.
type Held = (Process, u64, Letter);
/// What all are told.
pub(super) type Outcome = Result<Agreed, String>;

/// Letters of other launchers.
#[derive(Debug, Default)]
pub(super) struct Posted {
    pub(super) early: VecDeque<Held>,
    /// Of each communicator the last one, and its result.
    over: VecDeque<(Which, Outcome)>,
}

/// What is remembered of an agreement that is over.
pub(super) enum Past<'a> {
    Known(&'a Outcome),
    /// A later one of its communicator is over, too.
    Older,
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
    pub(super) fn is_over(&mut self, which: Which, result: Outcome) {
        self.over
            .retain(|(known, _)| (known.scope, known.context) != (which.scope, which.context));
        self.over.push_back((which, result));
        let size = |result: &Outcome| result.as_ref().map_or(0, |agreed| agreed.lost.len());
        let mut pieces: usize = self.over.iter().map(|(_, result)| size(result)).sum();
        while self.over.len() > OVER || pieces > PIECES {
            let Some((_, oldest)) = self.over.pop_front() else {
                return;
            };
            pieces -= size(&oldest);
        }
    }

    pub(super) fn past(&self, which: Which) -> Option<Past<'_>> {
        let same = |(known, _): &&(Which, Outcome)| (known.scope, known.context) == (which.scope, which.context);
        let (known, result) = self.over.iter().find(same)?;
        match known.round.cmp(&which.round) {
            std::cmp::Ordering::Less => None,
            std::cmp::Ordering::Equal => Some(Past::Known(result)),
            std::cmp::Ordering::Greater => Some(Past::Older),
        }
    }
}

/// What a process is told of a letter that it has brought.
pub(super) fn back(by: Process, question: u64, back: Back) -> Told {
    (by, question, Ok(Said::Back(back)))
}

/// What is between this launcher and others about one agreement.
#[derive(Debug)]
pub(super) struct Between {
    pub(super) parties: Parties,
    /// Who can carry a letter, with the number of its question.
    pub(super) ready: BTreeMap<Process, u64>,
    /// Who has brought letters that are answered when it is over.
    pub(super) held: Vec<(Process, u64)>,
    /// Those of launchers that wait for this one, with the worlds of these.
    pub(super) watched: Vec<(Process, u64, Vec<Name>)>,
    /// What all are told: it stands.
    pub(super) result: Option<Outcome>,
}

impl Between {
    pub(super) fn new(names: &[Name], ranges: &[Members], members: &[Member]) -> Self {
        Self {
            parties: Parties::new(names, ranges, members),
            ready: BTreeMap::new(),
            held: Vec::new(),
            watched: Vec::new(),
            result: None,
        }
    }

    pub(super) fn shares(&self) -> Shares<'_> {
        self.parties.shares()
    }

    pub(super) fn forget(&mut self, takes_part: &impl Fn(Process) -> bool) {
        self.ready.retain(|by, _| takes_part(*by));
        for party in &mut self.parties.all {
            party.out.retain(|(by, _)| takes_part(*by));
        }
        self.held.retain(|(by, _)| takes_part(*by));
        self.watched.retain(|(by, ..)| takes_part(*by));
    }

    /// All own members have asked: who is answered that waits for that. Whoever waits for a share that goes to another
    /// one is told when there is a result.
    pub(super) fn release(&mut self) -> Vec<Told> {
        let decider = self.parties.decider();
        let mut told = Vec::new();
        for (by, question, owns) in std::mem::take(&mut self.watched) {
            match decider.is_none() || self.parties.writer(&owns) == decider {
                true => told.push(back(by, question, Back::Delivered)),
                false => self.watched.push((by, question, owns)),
            }
        }
        told
    }

    /// What is to be said to a party now.
    pub(super) fn word_to(
        &self,
        party: &Party,
        is_decider: bool,
        share: impl FnOnce() -> Option<Says>,
    ) -> Option<Says> {
        match &self.result {
            Some(result) => (!party.is_told).then(|| Says::Result(result.clone())),
            None if is_decider => share(),
            None if self.parties.decider().is_none() && party.share.is_none() => Some(Says::Waiting),
            None => None,
        }
    }

    /// A process is back from another launcher, which has said this of a letter.
    pub(super) fn learn(&mut self, by: Process, was: Option<Back>) {
        let Some((number, is_result)) = self.parties.returned(by) else {
            return;
        };
        let party = &mut self.parties.all[number];
        match was {
            Some(Back::Delivered) if is_result => party.is_told = true,
            Some(Back::Nobody) => drop(party.cut.insert(by)),
            Some(Back::Refused(why)) => {
                party.is_told = true;
                self.result.get_or_insert(Err(why));
            }
            Some(Back::Over(theirs)) => match &self.result {
                // It has agreed with others, and without this one: they do not reach each other all the time.
                Some(own) if *own != theirs => party.is_gone = true,
                _ => {
                    party.is_told = true;
                    self.result = Some(theirs);
                }
            },
            Some(Back::Delivered) | None => {}
        }
    }

    /// It is over: nobody needs to carry letters, and those that were brought are answered.
    pub(super) fn dismiss(self, result: &Outcome) -> Vec<Told> {
        let carriers = self
            .ready
            .into_iter()
            .map(|(by, question)| (by, question, Ok(Said::Done)));
        let watched = self.watched.into_iter().map(|(by, question, _)| (by, question));
        let brought = self.held.into_iter().chain(watched);
        carriers
            .chain(brought.map(|(by, question)| back(by, question, Back::Over(result.clone()))))
            .collect()
    }
}

#[cfg(test)]
mod tests;
