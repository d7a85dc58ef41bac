// SPDX-License-Identifier: Apache-2.0
//! Executing plans: collective operations.

use isthmus_protocol::matching::Pattern;
use isthmus_schedule::step::{Action, Plan};
use isthmus_wire::frame::{Header, Kind};

use crate::base::buffer::transfer;
use crate::base::requests::{NONE, Task};
use crate::base::state::CHUNK;
use crate::p2p::receive::Inbound;
use crate::p2p::send::{Outbound, chunk};
use crate::plans::execution::Execution;
use crate::{
    Binding, Channel, Engine, EngineError, EventKind, Mode, Next, Operation, ReceiveBuffer, Request, SendBuffer,
};

/// Executions that are kept for the next operation.
const POOL: usize = 16;

/// What became of a step.
pub(crate) enum Outcome {
    Done,
    /// Runs as this request.
    Started(u32),
}

impl Engine {
    /// Starts this process's part of a collective operation. `sequence`: number of the operation within the communicator, equal
    /// on all members, below 2^16. Messages travel in the context `channel.context + 1`. `next` is called when the plan has ended and may
    /// give another plan for the same request. The first error of a step is the error of the request.
    pub fn start_plan(
        &mut self,
        channel: &Channel,
        operation: Operation,
        sequence: u32,
        plan: Box<dyn Plan>,
        binding: Binding,
        next: Option<Next>,
    ) -> Request {
        let index = self.state.requests.insert(Task::Nothing);
        let request = self.state.requests.name(index);
        let pooled = self.state.pool.pop();
        let mut execution = pooled.unwrap_or_else(|| Box::new(Execution::new(channel.clone(), operation)));
        execution.channel.clone_from(channel);
        execution.operation = operation;
        self.state.operation = operation;
        execution.tag = (sequence << 16) as i32;
        execution.next = next;
        self.state.note_plan(EventKind::PlanStarted, &execution);
        match execution.begin(plan, binding, &mut self.state.spare) {
            Ok(()) => self.run(index, execution),
            Err(error) => {
                self.state.note_plan(EventKind::PlanEnded, &execution);
                self.recycle(execution);
                self.state.fail(index, error);
            }
        }
        self.work();
        request
    }

    /// A step that was started has completed; if it was a receive, of so many bytes.
    pub(crate) fn step_done(&mut self, plan: Request, step: u32, bytes: u64) {
        let Some(index) = self.state.requests.index(plan) else {
            return;
        };
        let slot = self.state.requests.slot_mut(index);
        if self.state.foreign && matches!(&slot.task, Task::Plan(execution) if execution.calls_user()) {
            self.state.postponed.push((plan, step));
            self.state.events += 1;
            return;
        }
        let Task::Plan(mut execution) = std::mem::replace(&mut slot.task, Task::Nothing) else {
            return;
        };
        match self.go_on_with(index, &mut execution, step, bytes) {
            Outcome::Done => execution.stopped(step),
            Outcome::Started(request) => execution.replaced(step, request),
        }
        self.run(index, execution);
    }

    /// Nothing more of the plan is possible.
    #[cold]
    pub(crate) fn fail_plan(&mut self, index: u32, error: EngineError) {
        let slot = self.state.requests.slot_mut(index);
        match std::mem::replace(&mut slot.task, Task::Nothing) {
            Task::Plan(execution) => {
                slot.completion.error.get_or_insert(error);
                self.run(index, execution);
            }
            other => slot.task = other,
        }
    }

    /// A message that is to be handed on has come: sends it. Every other step is done.
    fn go_on_with(&mut self, index: u32, execution: &mut Execution, step: u32, bytes: u64) -> Outcome {
        if self.hopeless_plan(index) || execution.aborted {
            return Outcome::Done;
        }
        match self.hand_on(execution, step, bytes) {
            Ok(Outcome::Started(request)) => {
                self.own(request, index, step);
                Outcome::Started(request)
            }
            Ok(Outcome::Done) => Outcome::Done,
            Err(error) => {
                let completion = &mut self.state.requests.slot_mut(index).completion;
                completion.error.get_or_insert(error);
                Outcome::Done
            }
        }
    }

    fn own(&mut self, request: u32, plan: u32, step: u32) {
        let slot = self.state.requests.slot_mut(request);
        slot.owner = plan;
        slot.step = step;
    }

    /// Starts every step that can start; ends the request when the plan is over.
    fn run(&mut self, index: u32, mut execution: Box<Execution>) {
        // A step that has failed must not set off those that waited for it.
        if self.hopeless_plan(index) && !execution.aborted {
            self.abort(index, &mut execution);
        }
        if let Err(error) = self.run_steps(index, &mut execution) {
            self.state
                .requests
                .slot_mut(index)
                .completion
                .error
                .get_or_insert(error);
        }
        if self.hopeless_plan(index) && !execution.aborted {
            self.abort(index, &mut execution);
        }
        if !execution.over() {
            self.state.requests.slot_mut(index).task = Task::Plan(execution);
            return;
        }
        self.state.note_plan(EventKind::PlanEnded, &execution);
        self.recycle(execution);
        self.state.finish(index);
    }

    fn run_steps(&mut self, index: u32, execution: &mut Execution) -> Result<(), EngineError> {
        loop {
            self.share_links(execution.sharers);
            while let Some((step, action)) = execution.next_ready()? {
                match self.run_step(index, execution, step, action)? {
                    Outcome::Done => execution.complete(step),
                    Outcome::Started(request) => {
                        self.own(request, index, step);
                        execution.started(step, request);
                    }
                }
            }
            if !execution.over() || execution.aborted {
                return Ok(());
            }
            execution.deliver()?;
            let Some((plan, binding)) = execution.next.take().and_then(|next| next()) else {
                return Ok(());
            };
            execution.begin(plan, binding, &mut self.state.spare)?;
        }
    }

    /// Errors that leave the plan nothing to go on with. (A truncated message does not.)
    fn hopeless_plan(&self, index: u32) -> bool {
        let error = &self.state.requests.slot(index).completion.error;
        error.as_ref().is_some_and(EngineError::is_fatal)
    }

    /// Ends what can be ended of a plan that has failed; the rest completes by itself.
    fn abort(&mut self, index: u32, execution: &mut Execution) {
        if execution.channel.node.is_some() {
            let error = self.state.requests.slot(index).completion.error.clone();
            if let Some(error) = error {
                self.leave_node(execution, &error);
            }
        }
        for (step, request) in execution.abort() {
            if self.abandon(request) {
                execution.stopped(step);
            }
        }
    }

    /// Tells transports, if it is news, how many use a link of the wide area at the same time. Where several operations are under way the
    /// last one that went on counts.
    fn share_links(&mut self, sharers: u32) {
        if sharers != self.state.sharers {
            self.state.sharers = sharers;
            self.transports
                .iter_mut()
                .for_each(|transport| transport.share(sharers));
        }
    }

    fn recycle(&mut self, mut execution: Box<Execution>) {
        execution.end(&mut self.state.spare);
        self.share_links(1);
        if self.state.pool.len() < POOL {
            self.state.pool.push(execution);
        }
    }

    fn run_step(
        &mut self,
        index: u32,
        execution: &mut Execution,
        step: u32,
        action: Action,
    ) -> Result<Outcome, EngineError> {
        match action {
            Action::Send { to, data, slot } => {
                let buffer = execution.sending(&data)?;
                self.run_send(execution, to, buffer, slot)
            }
            Action::Receive { from, data, slot } => {
                let buffer = execution.receiving(&data)?;
                let request = self.run_receive(execution, from, buffer, slot)?;
                Ok(self.outcome(index, request)?.0)
            }
            Action::Forward { from, to, most, slot } => {
                let buffer = execution.passing(step, to, slot, most)?;
                let request = self.run_receive(execution, from, buffer, slot)?;
                match self.outcome(index, request)? {
                    (Outcome::Done, bytes) => self.hand_on(execution, step, bytes),
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
            Action::Together(step) => self.run_together(index, execution, &step),
            Action::Copy { from, to } => {
                let (mut from, mut to) = (execution.sending(&from)?, execution.receiving(&to)?);
                let (given, room) = (from.length(), to.length());
                transfer(&mut from, &mut to, given.min(room), chunk(&mut self.state.chunk, CHUNK));
                if given > room {
                    // As if it had been a message of this process to itself.
                    let error = EngineError::Truncate {
                        source: execution.channel.rank,
                        tag: execution.tag,
                        message: given,
                        buffer: room,
                    };
                    self.state
                        .requests
                        .slot_mut(index)
                        .completion
                        .error
                        .get_or_insert(error);
                }
                Ok(Outcome::Done)
            }
        }
    }

    fn run_send(
        &mut self,
        execution: &Execution,
        to: u32,
        buffer: SendBuffer,
        slot: u16,
    ) -> Result<Outcome, EngineError> {
        let channel = &execution.channel;
        if to >= channel.members.count() {
            return Err(EngineError::Plan {
                what: "a message to a rank outside the group",
            });
        }
        let peer = channel.members.peer(to);
        let tag = execution.tag | i32::from(slot);
        let header = Header::new(Kind::Eager, channel.context + 1, channel.rank, tag, buffer.length(), 0);
        self.count(execution.operation, peer, buffer.length());
        let mut outbound = Outbound {
            peer,
            header,
            mode: Mode::Standard,
            buffer,
            waits: false,
        };
        if self.try_send(&mut outbound) {
            return Ok(Outcome::Done);
        }
        if self.state.peers[peer as usize].lost {
            return Err(self.state.lost_error(peer));
        }
        let request = self.start_send(outbound);
        Ok(self.outcome(NONE, request)?.0)
    }

    /// Sends a message of so many bytes that has come to be handed on, if the step does that and has not done it yet.
    fn hand_on(&mut self, execution: &mut Execution, step: u32, bytes: u64) -> Result<Outcome, EngineError> {
        let Some((to, slot, buffer)) = execution.passed(step, bytes) else {
            return Ok(Outcome::Done);
        };
        let outcome = self.run_send(execution, to, buffer, slot);
        if !matches!(outcome, Ok(Outcome::Started(_))) {
            // What has left is not needed any more.
            execution.passed(step, 0);
        }
        outcome
    }

    /// Gives the request.
    fn run_receive(
        &mut self,
        execution: &Execution,
        from: u32,
        buffer: ReceiveBuffer,
        slot: u16,
    ) -> Result<u32, EngineError> {
        let channel = &execution.channel;
        if from >= channel.members.count() {
            return Err(EngineError::Plan {
                what: "a message from a rank outside the group",
            });
        }
        let tag = execution.tag | i32::from(slot);
        let pattern = Pattern {
            context: channel.context + 1,
            source: Some(from),
            tag: Some(tag),
        };
        let peer = channel.members.peer(from);
        Ok(self.start_receive(Inbound {
            pattern,
            peer,
            members: None,
            buffer,
        }))
    }

    /// A request that has completed at once ends the step, if it was a receive with so many bytes; a truncation is noted for the plan.
    fn outcome(&mut self, plan: u32, request: u32) -> Result<(Outcome, u64), EngineError> {
        if !self.state.requests.slot(request).done {
            return Ok((Outcome::Started(request), 0));
        }
        let completion = self.state.requests.remove(request);
        match completion.error {
            None => Ok((Outcome::Done, completion.bytes)),
            Some(error) if !error.is_fatal() && plan != NONE => {
                self.state.requests.slot_mut(plan).completion.error.get_or_insert(error);
                Ok((Outcome::Done, completion.bytes))
            }
            Some(error) => Err(error),
        }
    }
}
