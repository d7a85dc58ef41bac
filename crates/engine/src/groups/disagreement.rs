// SPDX-License-Identifier: Apache-2.0
//! Members of a group that do not call the same: who waits in vain is told, and so is who found something else than it expects.
//!
//! Every operation of a group that shares memory takes a turn there, in the order in which the members call them,
//! whether it is a step that they take together, goes in messages, or has nothing to do: so notes of the same number
//! are of the same operation, and whoever waits looks for one that differs.

use isthmus_schedule::Operation as What;
use isthmus_transport::meeting::{Claim, Disagreement, ENLARGE, Lane, Meeting, Place};

use crate::base::requests::Task;
use crate::base::state::{State, Work};
use crate::groups::cut::Cut;
use crate::groups::meet::{LOOKS, Meet};
use crate::{Channel, Engine, EngineError, Request};

/// Bytes of a block in the note of an operation that takes no step together: what has the same name and takes one
/// does not go together with it.
const NO_STEP: u64 = (1 << 33) - 1;

/// An operation in messages that is waited for, and its turn.
#[derive(Debug)]
pub(crate) struct Turn {
    request: Request,
    place: Place,
    step: u64,
    /// It was found to wait in vain.
    ends: bool,
}

impl Meet {
    /// A member with which this one, which waits, may never get further.
    pub(crate) fn disagreement(&self, meeting: &dyn Meeting) -> Option<Disagreement> {
        let found = meeting.disagreements(self.place(), self.step);
        let out_of_step = found.iter().find(|found| self.is_out_of_step(found, meeting));
        // One that has given up says why itself.
        let gave_up = || found.iter().find(|found| matches!(found, Disagreement::GaveUp { .. }));
        out_of_step.or_else(gave_up).copied()
    }

    /// After a mistake: a member that does something else in this step. What it gives in later steps may never be where this one looks.
    #[cold]
    pub(crate) fn out_of_step(&self, meeting: &dyn Meeting) -> Option<Disagreement> {
        let found = meeting.disagreements(self.place(), self.step);
        found.into_iter().find(|found| self.is_out_of_step(found, meeting))
    }

    fn is_out_of_step(&self, found: &Disagreement, meeting: &dyn Meeting) -> bool {
        is_out_of_step(found, meeting, self.place(), self.node.is_none())
    }
}

/// Whether a member takes a step for something that does not go together with what this one takes it for. What
/// differs in lengths alone and goes in the same rounds is over for all, and each that looks at a length which it did
/// not expect has an error of its own.
fn is_out_of_step(found: &Disagreement, meeting: &dyn Meeting, place: &Place, all: bool) -> bool {
    let Disagreement::Other {
        claims: [mine, theirs], ..
    } = found
    else {
        return false;
    };
    let Some(&what) = What::ALL.get(usize::from(mine.what)) else {
        return true;
    };
    if [mine, theirs].iter().any(|claim| claim.block == NO_STEP) {
        return mine != theirs;
    }
    let [mine_cut, their_cut] = [mine, theirs].map(|claim| Cut::new(meeting, what, place.members, claim.block, 1, all));
    // How long blocks are cut follows from their elements, which nobody notes.
    let reduces = matches!(what, What::Reduce | What::Allreduce);
    let is_known = !reduces || mine_cut.lane != Lane::Long;
    mine.what != theirs.what || mine.root != theirs.root || mine_cut.rounds() != their_cut.rounds() || !is_known
}

impl Engine {
    /// How many operations of the group this process has begun where its members meet.
    pub fn turns_taken(&self, channel: &Channel) -> u64 {
        let begun = channel.frame.and_then(|frame| self.state.begun.get(frame as usize));
        begun.map_or(0, |begun| begun.steps())
    }

    /// An operation of the group takes its turn that needs no step together.
    pub fn take_turn(&mut self, channel: &Channel, what: What) {
        let _ = self.next_turn(channel, what);
    }

    /// The same for one that is waited for as this request.
    pub fn take_turn_with(&mut self, channel: &Channel, what: What, request: Request) {
        let Some((place, step)) = self.next_turn(channel, what) else {
            return;
        };
        let index = self.state.requests.index(request);
        if index.is_some_and(|index| !self.state.requests.slot(index).done) {
            self.state.turns.push(Turn {
                request,
                place,
                step,
                ends: false,
            });
        }
    }

    fn next_turn(&mut self, channel: &Channel, what: What) -> Option<(Place, u64)> {
        let place = Place {
            frame: channel.frame?,
            members: channel.members.count(),
            me: channel.rank,
        };
        let step = self.state.begun.get_mut(place.frame as usize)?.begin_alone();
        let claim = Claim {
            what: what as u8,
            root: 0,
            block: NO_STEP,
        };
        self.meeting()?.note(&place, step, claim);
        Some((place, step))
    }

    /// Ends operations in messages whose members do not all take part; true if there are any. `watches`: before this
    /// process sleeps.
    #[cold]
    pub(crate) fn look_at_turns(&mut self, watches: bool) -> bool {
        let Some(meeting) = self.meeting.and_then(|at| self.transports[at].meeting()) else {
            return false;
        };
        let State {
            turns, requests, work, ..
        } = &mut self.state;
        turns.retain(|turn| {
            requests
                .index(turn.request)
                .is_some_and(|index| !requests.slot(index).done)
        });
        for turn in turns.iter_mut().filter(|turn| !turn.ends) {
            if watches {
                meeting.watch(&turn.place);
            }
            let found = meeting.disagreements(&turn.place, turn.step);
            let found = found
                .iter()
                .find(|found| is_out_of_step(found, meeting, &turn.place, true));
            if let Some(found) = found {
                turn.ends = true;
                let error = in_words(found, None, turn.place.me, turn.step, |member| member);
                work.push_back(Work::InVain(turn.request, turn.place, Box::new(error)));
            }
        }
        !work.is_empty()
    }

    /// Progress was made while there are such operations: whoever never sleeps looks from time to time.
    #[inline]
    pub(crate) fn pass_turn(&mut self) {
        self.state.looks = self.state.looks.wrapping_add(1);
        if self.state.looks % LOOKS == 0 {
            self.look_at_turns(false);
        }
    }

    /// Ends the operation as far as nothing of it is under way, and tells the others.
    #[cold]
    pub(crate) fn end_in_vain(&mut self, request: Request, place: &Place, error: EngineError) {
        let Some(index) = self.state.requests.index(request) else {
            return;
        };
        let error = self.give_up(place, error);
        self.fail_plan(index, error);
    }

    /// A step waits in vain if members do not agree; looked for when nothing has happened for a while.
    pub(crate) fn disagreement(&mut self, index: u32) -> Option<EngineError> {
        let Task::Meet(meet) = &self.state.requests.slot(index).task else {
            return None;
        };
        let meeting = self.transports[self.meeting?].meeting()?;
        let (place, error) = (*meet.place(), in_words_of(&meet.disagreement(meeting)?, meet));
        Some(self.give_up(&place, error))
    }

    /// What this process says of a step that is over here and in which a member gave another length than it expects. If that member did something else,
    /// nothing is possible any more at the place, and the others are told.
    #[cold]
    pub(crate) fn after_mistake(&mut self, meet: &Meet, mistake: EngineError) -> EngineError {
        match self.meeting().and_then(|meeting| meet.out_of_step(meeting)) {
            Some(found) => self.give_up(meet.place(), in_words_of(&found, meet)),
            None => mistake,
        }
    }
}

/// In words, as a member of a step sees it.
pub(crate) fn in_words_of(found: &Disagreement, meet: &Meet) -> EngineError {
    let (me, now) = (meet.place().me, meet.step);
    in_words(found, Some(meet.claim()), me, now, |member| meet.rank_of(member))
}

/// In words, as this member sees it in this step.
fn in_words(
    found: &Disagreement,
    claim: Option<Claim>,
    me: u32,
    now: u64,
    rank_of: impl Fn(u32) -> u32,
) -> EngineError {
    let me = rank_of(me);
    let told = |claim: &Claim| {
        let name = What::ALL
            .get(usize::from(claim.what))
            .map_or("another operation", |what| what.name());
        match claim {
            Claim { block: 0 | NO_STEP, .. } => name.to_owned(),
            Claim { block, root, .. } => {
                let root = rank_of(*root);
                format!("{name} of {block} bytes (root {root})")
            }
        }
    };
    let (what, lengths) = match found {
        Disagreement::Other {
            member,
            step,
            claims: [mine, theirs],
        } => {
            let tense = if *step == now { "is" } else { "was" };
            let other = rank_of(*member);
            let what = format!(
                "rank {me} {tense} in {}, rank {other} was in {}",
                told(mine),
                told(theirs)
            );
            (what, theirs.what == mine.what && theirs.root == mine.root)
        }
        // Whoever is heard of first ends the job, so what the user can do about it is in the errors of all.
        Disagreement::GaveUp {
            member,
            no_memory: true,
        } => {
            let reason = format!(
                "rank {} has given up: there is no memory for what the processes of this node share (one of them says where){ENLARGE}; no further \
                 collective operation is possible on this communicator",
                rank_of(*member)
            );
            return EngineError::Memory { reason: reason.into() };
        }
        Disagreement::GaveUp { member, .. } => {
            let mine = claim.as_ref().map_or_else(|| "an operation".to_owned(), told);
            let other = rank_of(*member);
            (
                format!("rank {me} is in {mine}, rank {other} has given up (its own error says why)"),
                false,
            )
        }
    };
    EngineError::Disagreement {
        what: what.into(),
        lengths,
    }
}
