// SPDX-License-Identifier: Apache-2.0
//! Operations of groups, and the wait for their end.

use super::*;

impl Shared {
    /// A blocking operation that all members of the channel's group do together in memory that they share, and the
    /// wait, under one lock. `None`: somebody wants to hear of plans, so it must be one; not on a communicator of a
    /// vendor MPI, where all members must go the same way.
    #[inline]
    pub fn together(
        &self,
        channel: &Channel,
        operation: Operation,
        sequence: u32,
        step: &Together,
        binding: &Binding,
    ) -> Option<Result<(), EngineError>> {
        let guard = self.lock();
        if channel.native == 0 && guard.core.state.tools.observes_plans() {
            return None;
        }
        Some(
            self.in_memory(guard, channel, operation, sequence, |groups, core, pause| {
                groups.together(core, channel, step, binding, true, pause)
            }),
        )
    }

    /// The same begun: its request, or nothing if it is over.
    pub fn start_together(
        &self,
        channel: &Channel,
        operation: Operation,
        step: &Together,
        binding: &Binding,
    ) -> Option<Option<Request>> {
        let mut guard = self.lock();
        let Engine { core, groups, .. } = &mut *guard;
        if core.state.tools.observes_plans() {
            return None;
        }
        core.state.tools.called(operation);
        core.state.tools.begins(operation);
        let begun = groups.together(core, channel, step, binding, false, || false);
        Some(core.begun(begun))
    }

    /// A blocking operation of blocks that may differ in length, in shared memory, and the wait. `None`: some of the
    /// pieces are too long for that; nothing was done.
    #[inline]
    pub fn unequal<P: Pieces>(
        &self,
        channel: &Channel,
        operation: Operation,
        sequence: u32,
        step: Unequal,
        pieces: &P,
    ) -> Option<Result<(), EngineError>> {
        let mut guard = self.lock();
        let Engine { core, groups, .. } = &mut *guard;
        let slots = groups.slots(core, channel, step.what);
        if pieces.longest() > slots?.longest() {
            return None;
        }
        Some(
            self.in_memory(guard, channel, operation, sequence, |groups, core, pause| {
                groups.unequal(core, channel, step, slots, pieces, pause)
            }),
        )
    }

    /// The same with buffers that are bound, as far as blocks are short enough: others go beside.
    pub fn unequal_bound(
        &self,
        channel: &Channel,
        operation: Operation,
        sequence: u32,
        step: Unequal,
        binding: &Binding,
    ) -> Result<(), EngineError> {
        let mut guard = self.lock();
        let Engine { core, groups, .. } = &mut *guard;
        let slots = groups.slots(core, channel, step.what);
        self.in_memory(guard, channel, operation, sequence, |groups, core, pause| {
            groups.unequal(core, channel, step, slots, Bound::of(binding), pause)
        })
    }

    /// [`Shared::unequal`] begun: its request, or nothing if it is over.
    pub fn start_unequal<P: Pieces>(
        &self,
        channel: &Channel,
        operation: Operation,
        sequence: u32,
        step: Unequal,
        pieces: &P,
    ) -> Option<Option<Request>> {
        let mut guard = self.lock();
        let Engine { core, groups, .. } = &mut *guard;
        let slots = groups.slots(core, channel, step.what);
        if pieces.longest() > slots?.longest() {
            return None;
        }
        let begin = |groups: &mut Groups, core: &mut Core| groups.unequal(core, channel, step, slots, pieces, || false);
        Some(begun_in_memory(&mut guard, channel, operation, sequence, begin))
    }

    /// [`Shared::unequal_bound`] begun: its request, or nothing if it is over.
    pub fn start_unequal_bound(
        &self,
        channel: &Channel,
        operation: Operation,
        sequence: u32,
        step: Unequal,
        binding: &Binding,
    ) -> Option<Request> {
        let mut guard = self.lock();
        let begin = |groups: &mut Groups, core: &mut Core| {
            let slots = groups.slots(core, channel, step.what);
            groups.unequal(core, channel, step, slots, Bound::of(binding), || false)
        };
        begun_in_memory(&mut guard, channel, operation, sequence, begin)
    }

    /// An operation of blocks that may differ in length in which this process neither gives nor takes anything: its
    /// request, if it is not over.
    #[inline]
    pub fn pass(&self, channel: &Channel, operation: Operation, step: Unequal) -> Option<Request> {
        let mut guard = self.lock();
        let Engine { core, groups, .. } = &mut *guard;
        core.state.tools.called(operation);
        let begun = groups.pass(core, channel, step);
        core.begun(begun)
    }

    /// Does an operation in memory that the group shares, and waits for its end; those who watch are told.
    #[inline]
    fn in_memory(
        &self,
        mut guard: Guard<'_>,
        channel: &Channel,
        operation: Operation,
        sequence: u32,
        begin: impl FnOnce(&mut Groups, &mut Core, &mut dyn FnMut() -> bool) -> Result<Option<Request>, EngineError>,
    ) -> Result<(), EngineError> {
        let Engine { core, groups, .. } = &mut *guard;
        let began = Cell::new(None);
        let mut pause = self.pause_together(core, &began);
        core.state.tools.called(operation);
        core.state.tools.begins(operation);
        core.state
            .tools
            .plan_begins(channel.context.number(), operation, sequence);
        let done = begin(groups, core, &mut pause);
        core.state.tools.waited_together(began.get(), matches!(done, Ok(None)));
        self.plan_over(guard, channel, operation, sequence, done)
    }

    /// [`Shared::short`] begun: its request, or nothing if it is over. `None`: not one for this way; nothing was done.
    /// Not on communicators of a vendor MPI.
    #[inline]
    pub fn start_short(
        &self,
        channel: &Channel,
        operation: Operation,
        sequence: u32,
        short: &Short,
    ) -> Option<Option<Request>> {
        let mut guard = self.lock();
        let Engine { core, groups, .. } = &mut *guard;
        if channel.native != 0 || core.state.tools.observes_plans() {
            return None;
        }
        let begun = groups.short(core, channel, (operation, sequence), short, || false)?;
        Some(core.begun(begun))
    }

    /// A blocking operation of short contiguous blocks in shared memory, and the wait. `None`: not one for this way;
    /// nothing was done. On a communicator of a vendor MPI that depends only on what all members know.
    #[inline]
    pub fn short(
        &self,
        channel: &Channel,
        (operation, sequence): (Operation, u32),
        short: &Short,
    ) -> Option<Result<(), EngineError>> {
        let mut guard = self.lock();
        let Engine { core, groups, .. } = &mut *guard;
        let began = Cell::new(None);
        let pause = self.pause_together(core, &began);
        let done = groups.short(core, channel, (operation, sequence), short, pause)?;
        core.state.tools.waited_together(began.get(), matches!(done, Ok(None)));
        Some(self.plan_over(guard, channel, operation, sequence, done))
    }

    /// What to do between two looks for the others, and whether to look again. It keeps the engine meanwhile, which
    /// only matters if others wait for it. `began` is when that began to take long.
    #[inline]
    fn pause_together<'a>(&'a self, core: &Core, began: &'a Cell<Option<Instant>>) -> impl FnMut() -> bool + use<'a> {
        let Policy { threads, guests } = self.policy;
        let gives_way = !guests && core.is_idle();
        let mut patience = self.pace.patience();
        let (mut in_vain, counts_from) = (0, self.pace.counts_from(PROMPT_DIRECTLY));
        move || {
            in_vain += 1;
            if in_vain == counts_from {
                began.set(Some(Instant::now()));
            }
            !threads && self.pace.pause_with(&mut patience, gives_way)
        }
    }

    /// Waits for what was begun, if it is not over; those who watch are told.
    #[inline]
    fn plan_over<'a>(
        &'a self,
        mut guard: Guard<'a>,
        channel: &Channel,
        operation: Operation,
        sequence: u32,
        begun: Result<Option<Request>, EngineError>,
    ) -> Result<(), EngineError> {
        let done = match begun {
            Ok(Some(request)) => {
                let done = self.completion(guard, request).error.map_or(Ok(()), Err);
                guard = self.lock();
                done
            }
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        guard.tools().plan_ends(channel.context.number(), operation, sequence);
        done
    }

    /// A blocking collective operation of a vendor MPI on a communicator of it ([`Channel::native`]). Others may wait
    /// for something that this process has begun before: then it waits outside until all members have come.
    #[inline]
    pub fn collective(
        &self,
        channel: &Channel,
        operation: Operation,
        sequence: u32,
        collective: &Collective<'_>,
    ) -> Result<(), EngineError> {
        let mut guard = self.lock();
        let comm = channel.native;
        let Engine { core, vendor, .. } = &mut *guard;
        core.state.tools.called(operation);
        core.state
            .tools
            .plan_begins(channel.context.number(), operation, sequence);
        if let Some(done) = vendor.come(core, comm, collective) {
            core.state
                .tools
                .plan_ends(channel.context.number(), operation, sequence);
            return done;
        }
        self.wait_on(guard, |engine| {
            let Engine { core, vendor, .. } = engine;
            let done = vendor.may_enter(core, comm).then(|| vendor.enter(comm, collective))?;
            core.state
                .tools
                .plan_ends(channel.context.number(), operation, sequence);
            Some(done)
        })
    }
}

/// Begins an operation in memory that the group shares; those who watch are told.
fn begun_in_memory(
    engine: &mut Engine,
    channel: &Channel,
    operation: Operation,
    sequence: u32,
    begin: impl FnOnce(&mut Groups, &mut Core) -> Result<Option<Request>, EngineError>,
) -> Option<Request> {
    let Engine { core, groups, .. } = engine;
    let context = channel.context.number();
    let tools = &mut core.state.tools;
    tools.called(operation);
    tools.begins(operation);
    tools.plan_begins(context, operation, sequence);
    let begun = begin(groups, core);
    match &begun {
        Ok(Some(request)) => groups.tell_at_the_end(
            *request,
            Told {
                context,
                operation,
                sequence,
            },
        ),
        _ => core.state.tools.plan_ends(context, operation, sequence),
    }
    core.begun(begun)
}
