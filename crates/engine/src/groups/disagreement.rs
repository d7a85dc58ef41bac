// SPDX-License-Identifier: Apache-2.0
//! Members of a group that do not call the same: who waits in vain is told, and so is who found something else than it
//! expects.
//!
//! Every operation of a group that shares memory takes a turn there, in the order in which the members call them,
//! whether it is a step that they take together, goes in messages, or has nothing to do: so notes of the same number
//! are of the same operation, and whoever waits looks for one that differs.

use isthmus_schedule::Operation as What;
use isthmus_transport::slabs::{CellSize, Claim, Disagreement, SharedSlabs, Slab};

use crate::base::notes::Amount;
use crate::base::requests::Owner;
use crate::groups::cell_collective::LOOKS;
use crate::groups::state::Groups;
use crate::groups::words::{
    CALLED, MADE, MADE_IN_MEMORY, NO_STEP, SETS_UP, amount_of, in_words, in_words_of, takes_no_step,
};
use crate::groups::{CellCollective, Cut, InVain, Phase, Taker, Turn};
use crate::p2p::Core;
use crate::{Channel, EngineError, Request};

impl CellCollective {
    /// Counts a look at which nothing could be done; true if it is time to ask whether members agree.
    pub(crate) fn looks_in_vain(&mut self, slabs: &dyn SharedSlabs) -> bool {
        self.vain = self.vain.wrapping_add(1);
        self.disagrees || self.vain % LOOKS == 0 && !self.nothing_comes(slabs)
    }

    /// Before this member sleeps: whether it would for ever.
    pub(crate) fn waits_in_vain(&mut self, slabs: &dyn SharedSlabs) -> bool {
        if self.nothing_comes(slabs) {
            return true;
        }
        self.disagrees = self.disagreement(slabs).is_some();
        self.disagrees
    }

    /// Whether it is known now that a block that it waits for does not come: then it can go on.
    fn nothing_comes(&mut self, slabs: &dyn SharedSlabs) -> bool {
        let slab = *self.slab();
        match &mut self.phase {
            Phase::Rows(rows) => rows.waits_in_vain(slabs, &slab),
            _ => false,
        }
    }

    /// A member with which this one, which waits, may never get further.
    pub(crate) fn disagreement(&self, slabs: &dyn SharedSlabs) -> Option<Disagreement> {
        let found = slabs.disagreements(self.slab(), self.numbers.step);
        let out_of_step = found.iter().find(|found| self.is_out_of_step(found, slabs));
        // One that has given up says why itself.
        let gave_up = || found.iter().find(|found| matches!(found, Disagreement::GaveUp { .. }));
        out_of_step.or_else(gave_up).copied()
    }

    /// After a mistake: a member that does something else in this step. What it gives in later steps may never be where
    /// this one looks.
    #[cold]
    pub(crate) fn out_of_step(&self, slabs: &dyn SharedSlabs) -> Option<Disagreement> {
        let found = slabs.disagreements(self.slab(), self.numbers.step);
        found.into_iter().find(|found| self.is_out_of_step(found, slabs))
    }

    fn is_out_of_step(&self, found: &Disagreement, slabs: &dyn SharedSlabs) -> bool {
        is_out_of_step(found, slabs, self.slab(), self.node.is_none())
    }
}

/// Whether a member takes a step for something that does not go together with what this one takes it for. What
/// differs in lengths alone and goes in the same rounds is over for all, and each that looks at a length which it did
/// not expect has an error of its own.
fn is_out_of_step(found: &Disagreement, slabs: &dyn SharedSlabs, slab: &Slab, all: bool) -> bool {
    let Disagreement::Other {
        claims: [mine, theirs], ..
    } = found
    else {
        return false;
    };
    let Some(&what) = What::ALL.get(usize::from(mine.what)) else {
        return true;
    };
    match [mine, theirs].map(takes_no_step) {
        [false, false] => {}
        [true, true] => return mine.what != theirs.what || mine.root != theirs.root,
        _ => return true,
    }
    let [mine_cut, their_cut] = [mine, theirs].map(|claim| Cut::new(slabs, what, slab.members, claim.block, 1, all));
    // How long blocks are cut follows from their elements, which nobody notes.
    let is_known = !what.reduces() || mine_cut.size != CellSize::Long;
    let (mine_for, theirs_for) = (
        (mine.what, mine.root, mine.operator),
        (theirs.what, theirs.root, theirs.operator),
    );
    mine_for != theirs_for || mine_cut.rounds() != their_cut.rounds() || !is_known
}

/// Whether members take the same operation in messages with different amounts of data: who waits for more than there is
/// may wait for ever.
fn differs_in_amount(found: &Disagreement) -> bool {
    let Disagreement::Other { claims, .. } = found else {
        return false;
    };
    let [mine, theirs] = claims.each_ref().map(amount_of);
    claims.iter().all(takes_no_step) && mine.differs(theirs)
}

#[inline]
fn is_under_way(core: &Core, request: Request) -> bool {
    let requests = core.state.requests();
    requests
        .index(request)
        .is_some_and(|index| !requests.slot(index).done())
}

fn slab(channel: &Channel, number: u32) -> Slab {
    Slab {
        number,
        members: channel.members.count(),
        me: channel.rank,
    }
}

/// The note of an operation that takes no step together.
fn note_of(what: What, how: u32, amount: Amount) -> Claim {
    Claim {
        what: what as u8,
        root: how,
        operator: 0,
        block: NO_STEP - u64::from(amount.digest()),
    }
}

/// As [`Groups::look_at_turns`], of operations in which members have different amounts of data, when nothing has come
/// for a while: what does not wait in vain has an error that names the message.
#[cold]
pub(crate) fn look_at_amounts(groups: &mut Groups, core: &mut Core) {
    find_in_vain(groups, core, false, differs_in_amount);
}

fn find_in_vain(groups: &mut Groups, core: &mut Core, watches: bool, is_also: impl Fn(&Disagreement) -> bool) -> bool {
    groups.turns.retain(|turn| is_under_way(core, turn.request));
    let Some(slabs) = groups.slabs(core) else {
        return false;
    };
    for turn in groups.turns.iter_mut().filter(|turn| !turn.ends) {
        if watches {
            slabs.watch(&turn.slab);
        }
        let found = slabs.disagreements(&turn.slab, turn.step);
        let found = found
            .iter()
            .find(|found| is_out_of_step(found, slabs, &turn.slab, true) || is_also(found));
        if let Some(found) = found {
            turn.ends = true;
            groups.in_vain.push(InVain {
                request: turn.request,
                slab: turn.slab,
                error: in_words(found, None, turn.slab.me, turn.step, |member| member),
            });
        }
    }
    !groups.in_vain.is_empty()
}

impl Groups {
    /// How many operations of the group this process has begun where its members meet.
    pub(crate) fn turns_taken(&self, channel: &Channel) -> u64 {
        channel.slab.map_or(0, |number| self.steps(number))
    }

    /// An operation of the group takes its turn that needs no step together.
    pub(crate) fn take_turn(&mut self, core: &mut Core, channel: &Channel, what: What, taker: Taker) {
        let (how, request, amount) = match taker {
            Taker::Program(taken) => (
                CALLED,
                taken.map(|(request, _)| request),
                taken.and_then(|(_, amount)| amount),
            ),
            Taker::Empty => (CALLED, None, Some(0)),
            Taker::Library(request) => (SETS_UP, Some(request), None),
        };
        let turn = self.next_turn(core, channel, note_of(what, how, Amount::of(amount)));
        if let (Some((slab, step)), Some(request)) = (turn, request) {
            self.wait_for(core, request, slab, step);
        }
    }

    /// A persistent operation is made, which all members do in the same order; they may start it in any.
    pub(crate) fn take_turn_to_make(&mut self, core: &mut Core, channel: &Channel, what: What, in_memory: bool) {
        let how = if in_memory { MADE_IN_MEMORY } else { MADE };
        self.next_turn(core, channel, note_of(what, how, Amount::default()));
    }

    /// A persistent operation is waited for as this request: in vain if the members have called something else before.
    pub(crate) fn watch_turns(&mut self, core: &Core, channel: &Channel, request: Request) {
        let Some(number) = channel.slab else { return };
        if let Some(step) = self.steps(number).checked_sub(1) {
            self.wait_for(core, request, slab(channel, number), step);
        }
    }

    fn wait_for(&mut self, core: &Core, request: Request, slab: Slab, step: u64) {
        let index = core.state.requests().index(request);
        if index.is_some_and(|index| !core.state.requests().slot(index).done()) {
            self.turns.push(Turn {
                request,
                slab,
                step,
                ends: false,
            });
        }
    }

    fn next_turn(&mut self, core: &mut Core, channel: &Channel, claim: Claim) -> Option<(Slab, u64)> {
        let slab = slab(channel, channel.slab?);
        let step = self.begun(slab.number)?.begin_alone();
        self.slabs(core)?.note(&slab, step, claim);
        Some((slab, step))
    }

    /// Finds operations in messages whose members do not all take part; true if there are any. `watches`: before this
    /// process sleeps.
    #[cold]
    pub(crate) fn look_at_turns(&mut self, core: &mut Core, watches: bool) -> bool {
        find_in_vain(self, core, watches, |_| false)
    }

    /// Progress was made while there are such operations: whoever never sleeps looks from time to time.
    #[inline]
    pub(crate) fn pass_turn(&mut self, core: &mut Core) {
        let Some(turn) = self.turns.last() else { return };
        if !is_under_way(core, turn.request) {
            self.turns.pop();
            return;
        }
        self.looks = self.looks.wrapping_add(1);
        if self.looks % LOOKS == 0 {
            self.look_at_turns(core, false);
        }
    }

    /// The next operation in messages that waits in vain; the others are told. Steps in memory of their own end here.
    pub(crate) fn next_in_vain(&mut self, core: &mut Core) -> Option<InVain> {
        while let Some(mut next) = self.in_vain.pop() {
            next.error = self.give_up(core, &next.slab, next.error);
            if !self.fails(core, &next) {
                return Some(next);
            }
        }
        None
    }

    /// Ends it if it is a step together.
    fn fails(&mut self, core: &mut Core, vain: &InVain) -> bool {
        let Some((Owner::Groups, index)) = core.owner(vain.request) else {
            return false;
        };
        if let Some(slab) = self.leave_step(vain.request) {
            self.give_up(core, &slab, vain.error.clone());
        }
        core.state.fail(index, vain.error.clone());
        true
    }

    /// A step waits in vain if members do not agree; looked for when nothing has happened for a while.
    pub(crate) fn disagreement(&mut self, core: &mut Core, meet: &CellCollective) -> Option<EngineError> {
        let slabs = self.slabs(core)?;
        let error = in_words_of(&meet.disagreement(slabs)?, meet);
        Some(self.give_up(core, meet.slab(), error))
    }

    /// What this process says of a step that is over here and in which a member gave another length than it expects. If
    /// that member did something else, nothing is possible any more at the place, and the others are told.
    #[cold]
    pub(crate) fn after_mistake(
        &mut self,
        core: &mut Core,
        meet: &CellCollective,
        mistake: EngineError,
    ) -> EngineError {
        match self.slabs(core).and_then(|slabs| meet.out_of_step(slabs)) {
            Some(found) => self.give_up(core, meet.slab(), in_words_of(&found, meet)),
            None => mistake,
        }
    }
}
