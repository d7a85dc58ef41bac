// SPDX-License-Identifier: Apache-2.0
//! The engine of one process: what others call. The parts are in [`crate::base::state`] (arrivals), `send`, `receive` and `plan`.

use std::sync::Arc;

use isthmus_datatype::Representation;
use isthmus_transport::{Peer, Transport};
use isthmus_wire::boot::Counters;

use crate::base::activity::Running;
use crate::base::requests::Task;
use crate::base::state::{State, Work};
use crate::vendor::native::Underneath;
use crate::{Completion, EventKind, Observed, Operation, Request, Tuning};

/// Everything an engine is made of.
pub struct Setup {
    /// Own rank in MPI_COMM_WORLD.
    pub me: Peer,
    /// The transports.
    pub transports: Vec<Box<dyn Transport>>,
    /// Per peer the index of its transport. The entry of this process itself is ignored.
    pub routes: Vec<u8>,
    /// Per peer the highest level of the network shared with it, for the counters: 0 wide area … 4 node.
    pub levels: Vec<u8>,
    /// Per peer how it represents data; empty if all do as this process.
    pub representations: Vec<Representation>,
}

/// Lengths of the queues at this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Receives that wait for a message.
    pub posted: u64,
    /// Messages that wait for a receive.
    pub unexpected: u64,
    /// The most messages that have waited for a receive at once.
    pub unexpected_peak: u64,
    /// Sends that have not completed.
    pub sends: u64,
    /// The collective operation that was started last; point-to-point: none was.
    pub operation: &'static str,
}

/// The engine of one process: see the crate.
pub struct Engine {
    pub(crate) transports: Vec<Box<dyn Transport>>,
    /// The transport that has memory in which groups meet.
    pub(crate) meeting: Option<usize>,
    pub(crate) underneath: Underneath,
    pub(crate) activities: Vec<Running>,
    pub(crate) state: State,
}

impl Engine {
    /// An engine over these transports.
    pub fn new(setup: Setup) -> Self {
        let unasked = |peer: Peer| {
            let route = setup.routes.get(peer as usize).map_or(0, |&route| route as usize);
            let transport = setup.transports.get(route).filter(|_| peer != setup.me);
            transport.map_or(0, |transport| {
                let limits = transport.limits(peer);
                limits.eager.min(limits.frame) as u64 + 1
            })
        };
        let state = State::new(setup.me, &setup.routes, &setup.levels, unasked, setup.representations);
        let mut transports = setup.transports;
        let meeting = transports
            .iter_mut()
            .position(|transport| transport.meeting().is_some());
        Self {
            transports,
            meeting,
            underneath: Underneath::default(),
            activities: Vec::new(),
            state,
        }
    }

    // ---- requests -------------------------------------------------------------------------------------------------

    /// The completion of a request, if it has completed; the request stays. Does not make progress.
    /// A request that does not exist (released) has none.
    #[inline]
    pub fn test(&self, request: Request) -> Option<&Completion> {
        let slot = self.state.requests.slot(self.state.requests.index(request)?);
        slot.done.then_some(&slot.completion)
    }

    /// If the request has completed, its completion; the request is gone then.
    #[inline]
    pub fn take(&mut self, request: Request) -> Option<Completion> {
        let index = self.state.requests.index(request)?;
        let slot = self.state.requests.slot_mut(index);
        if !slot.done {
            return None;
        }
        if matches!(slot.task, Task::Send(_) | Task::Native(_)) {
            // Buffered mode: complete for the program, not for us.
            slot.detached = true;
            return Some(Completion::default());
        }
        Some(self.state.requests.remove(index))
    }

    /// As [`Engine::take`] if the request has completed without an error and was not cancelled: source, tag and bytes.
    #[inline]
    pub fn take_success(&mut self, request: Request) -> Option<(u32, i32, u64)> {
        let index = self.state.requests.index(request)?;
        let slot = self.state.requests.slot(index);
        let Completion {
            source,
            tag,
            bytes,
            cancelled: false,
            error: None,
        } = slot.completion
        else {
            return None;
        };
        if !slot.done || !matches!(slot.task, Task::Nothing) {
            return None;
        }
        self.state.requests.discard(index);
        Some((source, tag, bytes))
    }

    /// Forgets the request; what it began goes on (MPI_Request_free).
    pub fn release(&mut self, request: Request) {
        let Some(index) = self.state.requests.index(request) else {
            return;
        };
        let slot = self.state.requests.slot_mut(index);
        slot.detached = true;
        let gone = match &slot.task {
            Task::Nothing => slot.done,
            // The sender's word is still to come, and must not be taken for that of the next one.
            Task::Inlet(inlet) => inlet.is_known(),
            task => !task.moves(),
        };
        if gone {
            self.state.requests.remove(index);
        }
    }

    /// A request that somebody else completes ([`Engine::complete_user`]): generalized requests.
    pub fn user_request(&mut self) -> Request {
        let index = self.state.requests.insert(Task::User);
        self.state.requests.name(index)
    }

    /// Completes a request made by [`Engine::user_request`].
    pub fn complete_user(&mut self, request: Request, completion: Completion) {
        let Some(index) = self.state.requests.index(request) else {
            return;
        };
        if matches!(self.state.requests.slot(index).task, Task::User) {
            self.state.requests.slot_mut(index).completion = completion;
            self.state.finish(index);
        }
    }

    // ---- counters -------------------------------------------------------------------------------------------------

    /// The operation with this name, for [`Engine::start_plan`] and [`Engine::called`].
    pub fn operation(&mut self, name: &'static str) -> Operation {
        self.state.table.operation(name)
    }

    /// Counts a call of an operation by the user.
    pub fn called(&mut self, operation: Operation) {
        self.state.table.called(operation);
    }

    /// What was counted so far.
    pub fn counters(&self) -> Counters {
        self.state.table.export()
    }

    /// Messages with these contexts, on transports that treat some otherwise than others.
    pub fn tune_traffic(&mut self, contexts: &[u32], tuning: isthmus_transport::Tuning) {
        for transport in &mut self.transports {
            transport.tune(contexts, tuning);
        }
    }

    /// What the links to peers carry, for transports that pace what they send.
    pub fn know_rates(&mut self, rates: &isthmus_transport::Rates) {
        for transport in &mut self.transports {
            transport.know(rates);
        }
    }

    // ---- tools ----------------------------------------------------------------------------------------------------

    /// Lengths of the queues.
    pub fn gauges(&self) -> Gauges {
        let (posted, unexpected) = self.state.matcher.lengths();
        Gauges {
            posted: posted as u64,
            unexpected: unexpected as u64,
            unexpected_peak: self.state.unexpected_peak as u64,
            sends: self.state.requests.sends as u64,
            operation: self.state.table.name(self.state.operation),
        }
    }

    /// From now on events of these kinds, and only these, are queued for [`Engine::observed`].
    pub fn observe(&mut self, kinds: &[EventKind]) {
        self.state.observer.want(kinds);
    }

    /// Whether somebody wants to hear of plans that begin or end.
    #[inline(always)]
    pub fn observes_plans(&self) -> bool {
        self.state.tracer.is_some()
            || self.state.observer.wants(EventKind::PlanStarted)
            || self.state.observer.wants(EventKind::PlanEnded)
    }

    /// Takes the queued events.
    pub fn observed(&mut self) -> Observed {
        self.state.observer.take()
    }

    /// What may be changed while the engine runs.
    pub(crate) fn tuning(&self) -> Arc<Tuning> {
        self.state.tuning.clone()
    }

    // ---- progress -------------------------------------------------------------------------------------------------

    /// Changes whenever a request completes or a message arrives that nobody waits for: what others may wait for.
    #[inline]
    pub fn events(&self) -> u64 {
        self.state.events
    }

    /// Moves everything that can be moved without waiting; true if anything happened.
    #[inline]
    pub fn progress(&mut self) -> bool {
        let mut any = !self.state.postponed.is_empty();
        while let Some((plan, step)) = self.state.postponed.pop() {
            self.step_done(plan, step, 0);
        }
        for transport in &mut self.transports {
            any |= transport.poll(&mut self.state);
        }
        if !self.state.meets.is_empty() {
            any |= self.poll_meets();
        }
        if !self.state.turns.is_empty() {
            self.pass_turn();
        }
        any |= self.progress_natively();
        if !self.state.asked.is_empty() {
            any |= self.ask_no_longer();
        }
        if !self.activities.is_empty() {
            any |= self.advance_activities();
        }
        any | self.work()
    }

    /// Nothing has been begun that is not over.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.state.outgoing.is_empty() && self.state.requests.is_empty()
    }

    /// Is there anything that progress might complete? Arrivals that nobody waits for are no reason to look for them. Looks through
    /// all requests.
    pub(crate) fn is_pending(&self) -> bool {
        let requests = &self.state.requests;
        let moves = |index: u32| requests.slot(index).task.moves();
        !self.state.outgoing.is_empty() || !self.activities.is_empty() || requests.indices().any(moves)
    }

    /// Progress on a thread that is not the user's: plans whose reductions might call the user's code stay where they are until
    /// a thread of the user makes progress.
    pub(crate) fn progress_without_callbacks(&mut self) {
        self.state.foreign = true;
        for transport in &mut self.transports {
            transport.poll(&mut self.state);
        }
        self.poll_meets();
        self.progress_natively();
        if !self.state.asked.is_empty() {
            self.ask_no_longer();
        }
        if !self.activities.is_empty() {
            self.advance_activities();
        }
        self.work();
        self.state.foreign = false;
    }

    /// Asks all transports to ring when something arrives; false if something has arrived, or waits for a thread of the user.
    pub(crate) fn arm(&mut self) -> bool {
        self.state.postponed.is_empty() && self.arm_transports()
    }

    /// Asks all transports to ring when something arrives; false if something has arrived.
    pub(crate) fn arm_transports(&mut self) -> bool {
        self.transports.iter_mut().all(|transport| transport.arm())
            && !self.meets_can_advance()
            && (self.state.turns.is_empty() || !self.look_at_turns(true))
    }

    /// Ends what [`Engine::arm`] began.
    pub(crate) fn disarm(&mut self) {
        for transport in &mut self.transports {
            transport.disarm();
        }
    }

    /// Whether all sends are pushed out, so that this process may leave MPI alone for a while. Call it with
    /// [`crate::Shared::wait`], which makes progress.
    pub fn is_flushed(&mut self) -> bool {
        self.work();
        self.state.requests.sends == 0
            && self.underneath.is_flushed()
            && self.state.outgoing.is_empty()
            && self.transports.iter().all(|transport| transport.is_flushed())
    }

    /// Before the end, called repeatedly (with [`crate::Shared::wait`]) until true: all sends are over and have arrived as far as transports know.
    /// This process wants nothing any more; others still may, so it goes on making progress until all have come here.
    /// A message that nobody receives keeps this from ending, as MPI_Finalize demands.
    pub fn settle(&mut self) -> bool {
        self.sends_are_over() && self.each_transport(|transport, state| transport.settle(state))
    }

    /// Orderly end, called repeatedly (with [`crate::Shared::wait`]) until true, when all processes have settled: transports closed.
    pub fn close(&mut self) -> bool {
        self.sends_are_over() && self.each_transport(|transport, state| transport.close(state))
    }

    fn sends_are_over(&mut self) -> bool {
        self.work();
        self.progress_natively();
        self.state.requests.sends == 0 && self.state.outgoing.is_empty() && self.underneath.is_flushed()
    }

    /// Whether all transports say yes; all are asked.
    fn each_transport(&mut self, mut ask: impl FnMut(&mut dyn Transport, &mut State) -> bool) -> bool {
        let mut all = true;
        for transport in &mut self.transports {
            all &= ask(&mut **transport, &mut self.state);
        }
        all
    }

    /// The last call: no process of the job will send any more.
    pub fn finish(&mut self) {
        for transport in &mut self.transports {
            transport.finish();
        }
    }

    /// Whether all transports can ring; otherwise whoever waits polls.
    pub(crate) fn rings(&self) -> bool {
        self.transports.iter().all(|transport| transport.rings())
    }

    /// Does what arrivals and completions have asked for.
    #[inline]
    pub(crate) fn work(&mut self) -> bool {
        let mut any = false;
        while let Some(work) = self.state.work.pop_front() {
            self.perform(work);
            any = true;
        }
        any
    }

    fn perform(&mut self, work: Work) {
        match work {
            Work::Control(peer, header) => self.control(peer, header),
            Work::Answer(index) => self.answer(index),
            Work::Data(index) => self.start_data(index),
            Work::Flush(peer) => self.flush(peer),
            Work::LetGo(request) => self.let_go(request),
            Work::SetAside(peer, token) => self.state.set_aside(peer, token),
            Work::InVain(request, place, error) => self.end_in_vain(request, &place, *error),
            Work::Step(owner, step, bytes) => match self.inlet(owner) {
                Some(index) => self.inlet_known(index),
                None => self.step_done(owner, step, bytes),
            },
            Work::Lost(peer, reason) => self.lose(peer, reason),
        }
    }
}
