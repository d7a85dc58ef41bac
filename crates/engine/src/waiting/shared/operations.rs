// SPDX-License-Identifier: Apache-2.0
//! Operations of groups, and the wait for their end.

mod along;

pub use along::Along;

use super::*;
use crate::engine::see_to_strays;
use crate::groups::Whose;
use crate::groups::rows::slots::Slots;
use crate::groups::strays::Called;
use crate::groups::unmoved::{Moving, Unmoved};
use crate::mismatch::Which;
use crate::mismatch::asking::passes;

/// One call of a collective operation of a group.
pub struct GroupCall<'a> {
    shared: &'a Shared,
    channel: &'a Channel,
    operation: Operation,
    /// Its number among those of the communicator.
    sequence: u32,
}

/// How far a call goes with an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// It has begun.
    Begun,
    /// It is over.
    Over,
}

impl Shared {
    /// A call of an operation of the channel's group.
    #[inline]
    pub fn group<'a>(&'a self, channel: &'a Channel, operation: Operation, sequence: u32) -> GroupCall<'a> {
        GroupCall {
            shared: self,
            channel,
            operation,
            sequence,
        }
    }

    /// What to do between two looks for the others, and whether to look again. It keeps the engine meanwhile, which
    /// only matters if others wait for it. `began` is when that began to take long.
    #[inline]
    fn pause_together<'a>(&'a self, core: &Core, began: &'a Cell<Option<Instant>>) -> impl FnMut() -> bool + use<'a> {
        let Policy { threads, guests } = self.policy;
        let gives_way = !guests && core.is_idle();
        // Made by the first look in vain: most waits have none.
        let (mut waits, mut in_vain) = (None, 0);
        move || {
            let begins = || (self.pace.patience(), self.pace.counts_from(PROMPT_DIRECTLY));
            let (patience, counts_from) = waits.get_or_insert_with(begins);
            in_vain += 1;
            if in_vain == *counts_from {
                began.set(Some(Instant::now()));
            }
            !threads && self.pace.pause_with(patience, gives_way)
        }
    }
}

impl GroupCall<'_> {
    /// A blocking operation that all members of the group do together in memory that they share, and the wait, under
    /// one lock. `None`: somebody wants to hear of plans, so it must be one; not on a communicator of a vendor MPI,
    /// where all members must go the same way.
    #[inline]
    pub fn together(&self, step: &Together, binding: &Binding) -> Option<Result<(), EngineError>> {
        let guard = self.shared.lock();
        if !self.channel.special.is_any() && guard.core.state.tools().observes_plans() {
            return None;
        }
        Some(self.in_memory(guard, |groups, core, pause| {
            groups.together(core, self.channel, step, binding, true, pause)
        }))
    }

    /// The same begun: its request, or nothing if it is over.
    pub fn start_together(&self, step: &Together, binding: &Binding) -> Option<Option<Request>> {
        let mut guard = self.shared.lock();
        let Engine { core, groups, .. } = &mut *guard;
        if core.state.tools().observes_plans() {
            return None;
        }
        core.state.tools_mut().called(self.operation);
        core.state.tools_mut().begins(self.operation);
        let begun = groups.together(core, self.channel, step, binding, false, || false);
        Some(core.begun(begun))
    }

    /// An operation of blocks that may differ in length, in shared memory: its request, or nothing if it is over.
    /// `None`: some of the pieces are too long for that; nothing was done.
    #[inline]
    pub fn unequal<P: Pieces>(
        &self,
        step: Unequal,
        pieces: &P,
        until: Until,
    ) -> Option<Result<Option<Request>, EngineError>> {
        if until == Until::Over {
            let done = self.blocking(|engine| {
                let slots = self.slots_for(engine, step, pieces)?;
                Some(self.begin_in_memory(engine, |groups, core, pause| {
                    groups.unequal(core, self.channel, self.called(), step, Some(slots), pieces, pause)
                }))
            });
            return done.map(|done| done.map(|()| None));
        }
        let mut guard = self.shared.lock();
        let slots = self.slots_for(&mut guard, step, pieces)?;
        Some(Ok(self.begun_in_memory(&mut guard, |groups, core| {
            groups.unequal(core, self.channel, self.called(), step, Some(slots), pieces, || false)
        })))
    }

    /// The same with buffers that are bound, as far as blocks are short enough: others go beside. `unmoved`: where
    /// some are so long that they are moved straight from memory to memory ([`LongBlocks`](crate::LongBlocks)), those
    /// that could not be; known when it is over.
    pub fn unequal_bound(
        &self,
        step: Unequal,
        binding: &Binding,
        unmoved: Option<&Arc<Unmoved>>,
        until: Until,
    ) -> Result<Option<Request>, EngineError> {
        let channel = self.channel;
        let moving = unmoved.map(|unmoved| Moving::new(&channel.members, unmoved));
        let data = Bound::of(binding).moving(moving);
        let mut guard = self.shared.lock();
        let slots = self.slots(&mut guard, step);
        if until == Until::Over {
            let done = self.in_memory(guard, |groups, core, pause| {
                groups.unequal(core, channel, self.called(), step, slots, data, pause)
            });
            return done.map(|()| None);
        }
        Ok(self.begun_in_memory(&mut guard, |groups, core| {
            groups.unequal(core, channel, self.called(), step, slots, data, || false)
        }))
    }

    #[inline]
    fn slots(&self, engine: &mut Engine, step: Unequal) -> Option<Slots> {
        let Engine { core, groups, .. } = engine;
        groups.slots(core, self.channel, step.what)
    }

    /// `None`: some of the pieces are too long for them.
    #[inline]
    fn slots_for<P: Pieces>(&self, engine: &mut Engine, step: Unequal, pieces: &P) -> Option<Slots> {
        self.slots(engine, step)
            .filter(|slots| pieces.longest() <= slots.longest())
    }

    /// An operation of blocks that may differ in length in which this process neither gives nor takes anything: its
    /// request, if it is not over. `None`: such an operation goes another way here; nothing was done.
    #[inline]
    pub fn pass(&self, step: Unequal) -> Option<Option<Request>> {
        match self.shared.briefly() {
            Some(mut engine) => self.pass_with(&mut engine, step),
            None => self.pass_with(&mut self.shared.lock(), step),
        }
    }

    #[inline]
    fn pass_with(&self, engine: &mut Engine, step: Unequal) -> Option<Option<Request>> {
        let Engine { core, groups, .. } = engine;
        let begun = groups.pass(core, self.channel, step).transpose()?;
        core.state.tools_mut().called(self.operation);
        // Who sends it a long block all the same asks for it.
        let which = Which::new(self.channel.context, self.sequence & 0xffff);
        passes(&mut core.state, self.channel, which, self.operation);
        Some(core.begun(begun))
    }

    /// Does an operation in memory that the group shares, and waits for its end; those who watch are told.
    #[inline]
    fn in_memory(
        &self,
        mut guard: Guard<'_>,
        begin: impl FnOnce(&mut Groups, &mut Core, &mut dyn FnMut() -> bool) -> Result<Option<Request>, EngineError>,
    ) -> Result<(), EngineError> {
        let begun = self.begin_in_memory(&mut guard, begin);
        begun.transpose().map_or(Ok(()), |begun| self.over(guard, begun))
    }

    /// Begins it; of what is over those who watch are told.
    #[inline]
    fn begin_in_memory(
        &self,
        engine: &mut Engine,
        begin: impl FnOnce(&mut Groups, &mut Core, &mut dyn FnMut() -> bool) -> Result<Option<Request>, EngineError>,
    ) -> Result<Option<Request>, EngineError> {
        let Engine { core, groups, .. } = engine;
        let began = Cell::new(None);
        let mut pause = self.shared.pause_together(core, &began);
        core.state.tools_mut().begins(self.operation);
        self.tell_begin(core);
        let begun = begin(groups, core, &mut pause);
        let is_over = matches!(begun, Ok(None));
        core.state.tools_mut().waited_together(began.get(), is_over);
        if is_over {
            self.tell_end(core);
        }
        if begun.is_err() {
            see_to_strays(engine);
        }
        begun
    }

    /// Begins an operation in memory that the group shares; those who watch are told.
    fn begun_in_memory(
        &self,
        engine: &mut Engine,
        begin: impl FnOnce(&mut Groups, &mut Core) -> Result<Option<Request>, EngineError>,
    ) -> Option<Request> {
        let Engine { core, groups, .. } = engine;
        core.state.tools_mut().begins(self.operation);
        self.tell_begin(core);
        let begun = begin(groups, core);
        match &begun {
            Ok(Some(request)) => groups.tell_at_the_end(
                *request,
                CollectiveId::new(self.channel.context.number(), self.operation, self.sequence),
            ),
            _ => self.tell_end(core),
        }
        let failed = begun.is_err();
        let begun = core.begun(begun);
        if failed {
            see_to_strays(engine);
        }
        begun
    }

    /// [`GroupCall::short`] begun: its request, or nothing if it is over. `None`: not one for this way; nothing was
    /// done. Not on communicators of a vendor MPI.
    #[inline]
    pub fn start_short(&self, short: &Short) -> Option<Option<Request>> {
        let mut guard = self.shared.lock();
        let Engine { core, groups, .. } = &mut *guard;
        if self.channel.special.is_any() || core.state.tools().observes_plans() {
            return None;
        }
        let begun = groups.short(
            core,
            self.channel,
            (self.operation, self.sequence),
            short,
            Whose::Program,
            || false,
        )?;
        Some(core.begun(begun))
    }

    /// A blocking operation of short contiguous blocks in shared memory, and the wait. `None`: not one for this way;
    /// nothing was done. On a communicator of a vendor MPI that depends only on what all members know.
    #[inline]
    pub fn short(&self, short: &Short) -> Option<Result<(), EngineError>> {
        self.run_short(short, Whose::Program)
    }

    /// The same as a part of a call that makes a communicator or opens a file. `None` if blocks are too long for it,
    /// whoever watches.
    pub fn set_up(&self, short: &Short) -> Option<Result<(), EngineError>> {
        self.run_short(short, Whose::Library)
    }

    #[inline(always)]
    fn run_short(&self, short: &Short, whose: Whose) -> Option<Result<(), EngineError>> {
        self.blocking(|engine| self.begin_short(engine, short, whose))
    }

    /// A blocking operation that is over when it has begun, most often, and else the wait. Who begins it tells those
    /// who watch of what is over.
    #[inline(always)]
    fn blocking(
        &self,
        begin: impl FnOnce(&mut Engine) -> Option<Result<Option<Request>, EngineError>>,
    ) -> Option<Result<(), EngineError>> {
        let begun = match self.shared.briefly() {
            Some(mut engine) => begin(&mut engine)?,
            None => begin(&mut self.shared.lock())?,
        };
        // (Not `transpose` and `map_or`: what is usual would be copied from one to the other.)
        Some(match begun {
            Ok(None) => Ok(()),
            Ok(Some(request)) => self.over(self.shared.lock(), Ok(request)),
            Err(error) => self.over(self.shared.lock(), Err(error)),
        })
    }

    /// What of it is not over has a request; of what is those who watch are told.
    #[inline]
    fn begin_short(
        &self,
        engine: &mut Engine,
        short: &Short,
        whose: Whose,
    ) -> Option<Result<Option<Request>, EngineError>> {
        let Engine { core, groups, .. } = engine;
        let began = Cell::new(None);
        let pause = self.shared.pause_together(core, &began);
        let done = groups.short(core, self.channel, (self.operation, self.sequence), short, whose, pause)?;
        let is_over = matches!(done, Ok(None));
        core.state.tools_mut().waited_together(began.get(), is_over);
        if is_over {
            self.tell_end(core);
        }
        Some(done)
    }

    /// Which operation it is, and its number.
    #[inline]
    fn called(&self) -> Called {
        Called::new(self.operation, self.sequence)
    }

    /// Waits for what was begun and is not over; those who watch are told.
    #[inline]
    fn over<'a>(&'a self, mut guard: Guard<'a>, begun: Result<Request, EngineError>) -> Result<(), EngineError> {
        let done = match begun {
            Ok(request) => {
                let completion = self.shared.completion(guard, request);
                guard = self.shared.lock();
                completion.error.map_or(Ok(()), Err)
            }
            Err(error) => Err(error),
        };
        self.tell_end(&mut guard.core);
        done
    }

    /// It was called, and begins.
    #[inline]
    fn tell_begin(&self, core: &mut Core) {
        let tools = core.state.tools_mut();
        tools.called(self.operation);
        tools.plan_begins(self.channel.context.number(), self.operation, self.sequence);
    }

    #[inline]
    fn tell_end(&self, core: &mut Core) {
        let context = self.channel.context.number();
        core.state.tools_mut().plan_ends(context, self.operation, self.sequence);
    }

    /// A blocking collective operation of a vendor MPI on a communicator of it ([`Channel::special`]). Others may wait
    /// for something that this process has begun before: then it waits outside until all members have come.
    #[inline]
    pub fn collective(&self, collective: &Collective<'_>) -> Result<(), EngineError> {
        let mut guard = self.shared.lock();
        let comm = self.channel.special.name();
        let Engine { core, vendor, .. } = &mut *guard;
        self.tell_begin(core);
        if let Some(done) = vendor.come(core, comm, collective) {
            self.tell_end(core);
            return done;
        }
        self.shared.wait_on(guard, |engine| {
            let Engine { core, vendor, .. } = engine;
            let done = vendor.may_enter(core, comm).then(|| vendor.enter(comm, collective))?;
            self.tell_end(core);
            Some(done)
        })
    }
}
