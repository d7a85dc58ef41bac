// SPDX-License-Identifier: Apache-2.0
//! Executing plans: collective operations.

use isthmus_protocol::matching::Pattern;
use isthmus_schedule::step::{Action, Plan, Together};
use isthmus_transport::Peer;
use isthmus_wire::frame::{Header, Kind};
use isthmus_wire::waiting::Item;

use crate::base::buffer::transfer;
use crate::base::notes::Amount;
use crate::base::request::CompletedPart;
use crate::base::requests::{NONE, Outcome, Owned, Owner};
use crate::machine::Machine;
use crate::mismatch::asking::{begins, error_of, known_of, question};
use crate::mismatch::{Found, Host, Which};
use crate::p2p::State;
use crate::p2p::loss::goes_on;
use crate::p2p::receive::start_receive;
use crate::p2p::send::{count, start_send, try_send};
use crate::p2p::state::scratch;
use crate::p2p::waits::collective;
use crate::p2p::{Inbound, Outbound};
use crate::plans::ending::ends_all;
use crate::plans::execution::Execution;
use crate::plans::execution::absent::is_silent;
use crate::plans::{AtOdds, Hands, Plans};
use crate::vendor::native_step;
use crate::{Binding, Channel, EngineError, Mode, Next, Operation, ReceiveBuffer, Request, SendBuffer};

/// Executions that are kept for the next operation.
const POOL: usize = 16;

impl<'a> Machine<Hands<'a>> for Plans {
    /// A step that was started has completed; if it was a receive, of so many bytes.
    fn completed(&mut self, with: &mut Hands<'a>, part: CompletedPart) {
        let Some((Owner::Plans, index)) = with.core.owner(part.of) else {
            return;
        };
        let running = self.running.get_mut(index as usize);
        let Some(running) = running.filter(|running| running.is_some()) else {
            return;
        };
        if with.core.state.is_foreign() && running.as_ref().is_some_and(|execution| execution.calls_user()) {
            self.postponed.push(part);
            with.core.state.happened();
            return;
        }
        let Some(mut execution) = running.take() else { return };
        Self::note_short(with, index, &execution, part.number, part.bytes);
        match self.go_on_with(with, index, &mut execution, part.number, part.bytes) {
            Outcome::Done => execution.stopped(part.number),
            Outcome::Started(request) => execution.replaced(part.number, request),
        }
        self.run(with, index, execution);
    }

    /// Goes on with plans that have waited for a thread of the user.
    #[inline]
    fn advance(&mut self, with: &mut Hands<'a>) -> bool {
        let any = !self.postponed.is_empty();
        while let Some(part) = self.postponed.pop() {
            self.completed(with, part);
        }
        any
    }

    /// Whether none waits for a thread of the user.
    fn may_sleep(&mut self, _: &mut Hands<'a>) -> bool {
        self.postponed.is_empty()
    }

    fn pending(&self, state: &State, index: u32) -> Option<Item> {
        let execution = self.running.get(index as usize)?.as_ref()?;
        let channel = &execution.channel();
        let name = state.tools().name(execution.operation());
        let context = channel.context.number() & !1;
        Some(collective(name, context, execution.sequence(), &channel.members))
    }
}

fn own(with: &mut Hands<'_>, request: u32, plan: u32, step: u32) {
    let slot = with.core.state.requests_mut().slot_mut(request);
    slot.belongs_to(plan, step);
}

/// A step that all members of the group take, by what they have for that.
fn take_together(
    with: &mut Hands<'_>,
    plan: u32,
    execution: &Execution,
    step: &Together,
) -> Result<Outcome, EngineError> {
    let (channel, sides) = (&execution.channel(), execution.sides(step)?);
    match native_step::underneath(channel, step.circle) {
        Some(comm) => with.vendor.take_step(with.core, channel, comm, step, sides),
        None => with.groups.take_step(with.core, plan, channel, step, sides),
    }
}

/// The call that made a persistent operation, and what it was.
fn call_of(state: &State, which: Which) -> Option<(Which, Operation)> {
    let call = state.agreement().call_of(which)?;
    Some((call, state.agreement().note(call)?.operation()))
}

impl Plans {
    /// Starts this process's part of a collective operation. `sequence`: number of the operation within the
    /// communicator, equal on all members, below 2^16. Messages travel in the context `channel.context + 1`. `next` is
    /// called when the plan has ended and may give another plan for the same request. The first error of a step is the
    /// error of the request.
    pub(crate) fn start(
        &mut self,
        with: &mut Hands<'_>,
        channel: &Channel,
        operation: Operation,
        sequence: u32,
        plan: Box<dyn Plan>,
        binding: Binding,
        next: Option<Next>,
    ) -> Request {
        let index = with.core.own(Owned::by(Owner::Plans));
        if self.running.len() <= index as usize {
            self.running.resize_with(index as usize + 1, || None);
        }
        let request = with.core.state.requests().name(index);
        let pooled = self.pool.pop();
        let mut execution = pooled.unwrap_or_else(|| Box::new(Execution::new(channel.clone(), operation)));
        execution.is_for(channel, operation, next);
        with.core.state.tools_mut().begins(operation);
        execution.name(sequence & 0xffff, with.core.state.tools().apart(operation));
        let sequence = execution.sequence();
        let state = &mut with.core.state;
        state
            .tools_mut()
            .plan_begins(channel.context.number(), operation, sequence);
        begins(state, channel, execution.which(), operation, Amount::of(binding.amount));
        let lost = goes_on(with.core)
            .then(|| with.core.lost_of(&channel.members))
            .flatten();
        let begun = match lost {
            Some(error) => Err(error),
            None => execution.begin(plan, binding, &mut self.spare),
        };
        match begun {
            Ok(()) => self.run(with, index, execution),
            Err(error) => {
                if ends_all(&error) {
                    with.core.state.agreement_mut().cut(execution.which());
                }
                self.ends(with, execution);
                with.core.state.fail(index, error);
            }
        }
        request
    }

    /// What members that plans wait for are asked, whom they have not been asked yet.
    #[cold]
    pub(crate) fn questions(&mut self, state: &State) -> Vec<(Peer, Header)> {
        let mut all = Vec::new();
        for execution in self.running.iter_mut().flatten().filter(|e| !e.aborted()) {
            let which = execution.which();
            let call = call_of(state, which);
            for rank in execution.next_asked() {
                let peer = execution.channel().members.peer(rank);
                if state.is_own(peer) {
                    continue;
                }
                all.push((peer, question(state, which, execution.operation())));
                if let Some((call, operation)) = call {
                    all.push((peer, question(state, call, operation)));
                }
            }
        }
        all
    }

    /// The plan in which a peer does not take part, and because of whom.
    ///
    /// # Errors
    /// What the peer says of it is a lie: what is wrong with it.
    #[cold]
    pub(crate) fn at_odds(&self, state: &State, found: &Found) -> Option<Result<AtOdds, &'static str>> {
        // As what the program knows it: an operation, or the call that made a persistent one.
        let known_as = |e: &Execution| {
            if e.aborted() || e.channel().notes.is_none() {
                return None;
            }
            if e.which() == found.which() {
                return Some(e.operation());
            }
            let (_, operation) = call_of(state, e.which()).filter(|(call, _)| *call == found.which())?;
            Some(operation)
        };
        let mut running = (0..).zip(&self.running);
        let (index, execution, operation) = running.find_map(|(index, e)| {
            let execution = e.as_deref()?;
            Some((index, execution, known_as(execution)?))
        })?;
        let known = known_of(execution.channel(), execution.asked(), found)?;
        Some(known.map(|testimony| AtOdds {
            request: state.requests().name(index),
            testimony,
            error: error_of(state, execution.channel(), operation, testimony),
        }))
    }

    pub(super) fn take(&mut self, index: u32) -> Option<Box<Execution>> {
        self.running.get_mut(index as usize)?.take()
    }

    /// A message that is to be handed on has come: sends it. Every other step is done.
    fn go_on_with(
        &self,
        with: &mut Hands<'_>,
        index: u32,
        execution: &mut Execution,
        step: u32,
        bytes: u64,
    ) -> Outcome {
        if Self::hopeless_plan(with, index) || execution.aborted() {
            return Outcome::Done;
        }
        match self.hand_on(with, execution, step, bytes) {
            Ok(Outcome::Started(request)) => {
                own(with, request, index, step);
                Outcome::Started(request)
            }
            Ok(Outcome::Done) => Outcome::Done,
            Err(error) => {
                let completion = with.core.state.requests_mut().slot_mut(index).completion_mut();
                completion.goes_wrong(error);
                Outcome::Done
            }
        }
    }

    /// What comes is as long as this process says, or the members have given different counts. What came of something
    /// longer was noted with its receive. The plan goes on, so that nobody waits for this process.
    pub(super) fn note_short(with: &mut Hands<'_>, index: u32, execution: &Execution, step: u32, bytes: u64) {
        if execution.aborted() {
            return;
        }
        if let Some(error) = execution.lacks(step, bytes) {
            let completion = with.core.state.requests_mut().slot_mut(index).completion_mut();
            completion.goes_wrong(error);
        }
    }

    /// Starts every step that can start; ends the request when the plan is over.
    pub(super) fn run(&mut self, with: &mut Hands<'_>, index: u32, mut execution: Box<Execution>) {
        // A step that has failed must not set off those that waited for it.
        if Self::hopeless_plan(with, index) && !execution.aborted() {
            self.abort(with, index, &mut execution);
        }
        if let Err(error) = self.run_steps(with, index, &mut execution) {
            Self::note_end(with, index, &execution, error);
        }
        if Self::hopeless_plan(with, index) && !execution.aborted() {
            self.abort(with, index, &mut execution);
        }
        if !execution.over() {
            self.running[index as usize] = Some(execution);
            return;
        }
        self.ends(with, execution);
        with.core.state.finish(index);
    }

    fn run_steps(&mut self, with: &mut Hands<'_>, index: u32, execution: &mut Execution) -> Result<(), EngineError> {
        loop {
            self.share_links(with, execution.sharers());
            while let Some((step, action)) = execution.next_ready()? {
                match self.run_step(with, index, execution, step, action)? {
                    Outcome::Done => execution.complete(step),
                    Outcome::Started(request) => {
                        own(with, request, index, step);
                        execution.started(step, request);
                    }
                }
            }
            if !execution.over() || execution.aborted() {
                return Ok(());
            }
            execution.deliver()?;
            let Some((plan, binding)) = execution.take_next().and_then(|next| next()) else {
                return Ok(());
            };
            if let Some(mistake) = &binding.mistake {
                let completion = with.core.state.requests_mut().slot_mut(index).completion_mut();
                completion.goes_wrong(mistake.clone());
            }
            execution.comes_from_exchange();
            execution.begin(plan, binding, &mut self.spare)?;
        }
    }

    /// Errors that leave the plan nothing to go on with. (A truncated message does not.)
    fn hopeless_plan(with: &Hands<'_>, index: u32) -> bool {
        let error = &with.core.state.requests().slot(index).completion().error;
        error.as_ref().is_some_and(EngineError::is_fatal)
    }

    /// Tells transports, if it is news, how many use a link of the wide area at the same time. Where several operations
    /// are under way the last one that went on counts.
    fn share_links(&mut self, with: &mut Hands<'_>, sharers: u32) {
        if sharers != self.sharers {
            self.sharers = sharers;
            with.core
                .transports
                .iter_mut()
                .for_each(|transport| transport.share(sharers));
        }
    }

    fn ends(&mut self, with: &mut Hands<'_>, mut execution: Box<Execution>) {
        let (channel, sequence) = (&execution.channel(), execution.sequence());
        let tools = with.core.state.tools_mut();
        tools.plan_ends(channel.context.number(), execution.operation(), sequence);
        with.core.state.agreement_mut().ends(execution.which());
        execution.end(&mut self.spare);
        self.share_links(with, 1);
        if self.pool.len() < POOL {
            self.pool.push(execution);
        }
    }

    fn run_step(
        &self,
        with: &mut Hands<'_>,
        index: u32,
        execution: &mut Execution,
        step: u32,
        action: Action,
    ) -> Result<Outcome, EngineError> {
        match action {
            Action::Send { to, data, slot } => {
                let buffer = execution.sending(&data)?;
                self.run_send(with, execution, to, buffer, slot)
            }
            Action::Receive { from, .. } if is_silent(execution, from) => {
                Self::note_short(with, index, execution, step, 0);
                Ok(Outcome::Done)
            }
            Action::Receive { from, data, slot } => {
                let buffer = execution.receiving(&data)?;
                let request = self.run_receive(with, execution, from, buffer, slot)?;
                let (outcome, bytes) = self.outcome(with, index, request)?;
                if matches!(outcome, Outcome::Done) {
                    Self::note_short(with, index, execution, step, bytes);
                }
                Ok(outcome)
            }
            Action::Forward { from, to, most, slot } => {
                let buffer = execution.passing(step, to, slot, most)?;
                let request = self.run_receive(with, execution, from, buffer, slot)?;
                match self.outcome(with, index, request)? {
                    (Outcome::Done, bytes) => self.hand_on(with, execution, step, bytes),
                    (started, _) => Ok(started),
                }
            }
            Action::Reduce {
                operand,
                target,
                operand_is_left,
            } => {
                execution.reduce(&operand, &target, operand_is_left)?;
                Ok(Outcome::Done)
            }
            Action::Together(step) => take_together(with, index, execution, &step),
            Action::Copy { from, to } => {
                let (mut from, mut to) = (execution.sending(&from)?, execution.receiving(&to)?);
                let (given, room) = (from.length(), to.length());
                transfer(&mut from, &mut to, given.min(room), scratch(&mut with.core.state));
                if given > room {
                    // As if it had been a message of this process to itself.
                    let error = EngineError::Truncate {
                        source: execution.channel().rank,
                        tag: execution.tag(),
                        message: given,
                        buffer: room,
                    };
                    let completion = with.core.state.requests_mut().slot_mut(index).completion_mut();
                    completion.goes_wrong(error);
                }
                Ok(Outcome::Done)
            }
        }
    }

    fn run_send(
        &self,
        with: &mut Hands<'_>,
        execution: &Execution,
        to: u32,
        buffer: SendBuffer,
        slot: u16,
    ) -> Result<Outcome, EngineError> {
        let channel = &execution.channel();
        if to >= channel.members.count() {
            return Err(EngineError::Plan {
                what: "a message to a rank outside the group",
            });
        }
        let peer = channel.members.peer(to);
        let tag = execution.tag() | i32::from(slot);
        let header = Header::new(
            Kind::Eager,
            channel.context.number() + 1,
            channel.rank,
            tag,
            buffer.length(),
            0,
        );
        count(with.core, execution.operation(), peer, buffer.length());
        let mut outbound = Outbound::to(peer, header, Mode::Standard, buffer);
        if try_send(with.core, &mut outbound) {
            return Ok(Outcome::Done);
        }
        if with.core.state.is_lost(peer) {
            return Err(with.core.state.lost_error(peer));
        }
        let request = start_send(with.core, outbound);
        Ok(self.outcome(with, NONE, request)?.0)
    }

    /// Sends a message of so many bytes that has come to be handed on, if the step does that and has not done it yet.
    fn hand_on(
        &self,
        with: &mut Hands<'_>,
        execution: &mut Execution,
        step: u32,
        bytes: u64,
    ) -> Result<Outcome, EngineError> {
        let Some((to, slot, buffer)) = execution.passed(step, bytes) else {
            return Ok(Outcome::Done);
        };
        let outcome = self.run_send(with, execution, to, buffer, slot);
        if !matches!(outcome, Ok(Outcome::Started(_))) {
            // What has left is not needed any more.
            execution.passed(step, 0);
        }
        outcome
    }

    /// Gives the request.
    fn run_receive(
        &self,
        with: &mut Hands<'_>,
        execution: &Execution,
        from: u32,
        buffer: ReceiveBuffer,
        slot: u16,
    ) -> Result<u32, EngineError> {
        let channel = &execution.channel();
        if from >= channel.members.count() {
            return Err(EngineError::Plan {
                what: "a message from a rank outside the group",
            });
        }
        let tag = execution.tag() | i32::from(slot);
        let pattern = Pattern {
            context: channel.context.with(1),
            source: Some(from),
            tag: Some(tag),
        };
        let peer = channel.members.peer(from);
        Ok(start_receive(with.core, Inbound::from(peer, pattern, buffer)))
    }

    /// A request that has completed at once ends the step, if it was a receive with so many bytes; a truncation is
    /// noted for the plan.
    fn outcome(&self, with: &mut Hands<'_>, plan: u32, request: u32) -> Result<(Outcome, u64), EngineError> {
        if !with.core.state.requests().slot(request).done() {
            return Ok((Outcome::Started(request), 0));
        }
        let completion = with.core.state.requests_mut().remove(request);
        match completion.error {
            None => Ok((Outcome::Done, completion.bytes)),
            Some(error) if !error.is_fatal() && plan != NONE => {
                let completion = with.core.state.requests_mut().slot_mut(plan).completion_mut();
                completion.goes_wrong(error);
                Ok((Outcome::Done, completion.bytes))
            }
            Some(error) => Err(error),
        }
    }
}
