// SPDX-License-Identifier: Apache-2.0
//! What tools see of an engine: counters, events, traces.

use std::time::Instant;

use isthmus_protocol::matching::Envelope;
use isthmus_transport::Peer;
use isthmus_wire::boot::Counters;
use isthmus_wire::frame::{Header, Kind};

use crate::base::counters::{Operation, Table};

pub(crate) mod observe;
pub(crate) mod trace;
pub(crate) mod waited;

use observe::{Event, EventKind, Observed, Observer, PlanEvent};
use trace::{Entry, Trace, Tracer};
use waited::{Awaited, Last, Waited};

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

/// What an engine tells tools. Costs a branch a message while nobody asks.
#[derive(Debug)]
pub struct Tools {
    table: Table,
    observer: Observer,
    /// `None`: nobody traces.
    tracer: Option<Box<Tracer>>,
    /// The collective operation that was started last.
    last: Operation,
    waited: Waited,
    /// What came last, and what that has completed.
    pub(super) came: Last,
}

impl Default for Tools {
    fn default() -> Self {
        Self {
            table: Table::new(),
            observer: Observer::default(),
            tracer: None,
            last: Operation::POINT_TO_POINT,
            waited: Waited::new(|| ""),
            came: Last::default(),
        }
    }
}

impl Tools {
    /// The operation with this name, for [`Tools::called`] and [`Engine::start_plan`](crate::Engine::start_plan).
    pub fn operation(&mut self, name: &'static str) -> Operation {
        self.table.operation(name)
    }

    /// Counts a call of an operation by the user.
    #[inline]
    pub fn called(&mut self, operation: Operation) {
        self.table.called(operation);
    }

    /// What was counted so far.
    pub fn counters(&self) -> Counters {
        Counters {
            time: self.waited.time(),
            ..self.table.export()
        }
    }

    /// From now on events of these kinds, and only these, are queued for [`Tools::observed`].
    pub fn observe(&mut self, kinds: &[EventKind]) {
        self.observer.want(kinds);
    }

    /// Takes the queued events.
    pub fn observed(&mut self) -> Observed {
        self.observer.take()
    }

    /// From now on messages and collective operations are recorded there.
    pub fn trace(&mut self) -> Trace {
        self.tracer.get_or_insert_default().trace.clone()
    }

    /// What waits are called: the MPI function that the calling thread is in. Time is counted from now on.
    pub(crate) fn name_waits(&mut self, call: fn() -> &'static str) -> Waited {
        self.waited = Waited::new(call);
        self.waited.clone()
    }

    /// Whether every wait is recorded, however short it is.
    #[inline]
    pub(crate) fn traces(&self) -> bool {
        self.tracer.is_some()
    }

    /// Whether somebody wants to hear of plans that begin or end.
    #[inline(always)]
    pub(crate) fn observes_plans(&self) -> bool {
        self.tracer.is_some()
            || self.observer.wants(EventKind::PlanStarted)
            || self.observer.wants(EventKind::PlanEnded)
    }

    pub(crate) fn name(&self, operation: Operation) -> &'static str {
        self.table.name(operation)
    }

    /// See [`Table::apart`].
    #[inline]
    pub(crate) fn apart(&self, operation: Operation) -> u32 {
        self.table.apart(operation)
    }

    /// The name of an operation that is like this.
    pub(crate) fn named(&self, is: impl Fn(&str) -> bool) -> Option<&'static str> {
        self.table.names().find(|name| is(name))
    }

    /// The collective operation that was started last; point-to-point: none was.
    pub(crate) fn last(&self) -> &'static str {
        self.table.name(self.last)
    }

    /// A collective operation is started.
    #[inline]
    pub(crate) fn begins(&mut self, operation: Operation) {
        self.last = operation;
    }

    /// Counts a message of an operation.
    #[inline]
    pub(crate) fn count(&mut self, operation: Operation, level: u8, bytes: u64) {
        self.table.sent(operation, level, bytes);
    }

    /// Counts operations that were done in memory of the node.
    pub(crate) fn count_in_memory(&mut self, operation: Operation, operations: u64, bytes: u64) {
        self.table.sent_in_memory(operation, operations, bytes);
    }

    /// This process has begun its part of a collective operation.
    #[inline(always)]
    pub(crate) fn plan_begins(&mut self, context: u32, operation: Operation, sequence: u32) {
        if self.observes_plans() {
            self.tell_of_plan(EventKind::PlanStarted, context, operation, sequence);
        }
    }

    /// It has ended it.
    #[inline(always)]
    pub(crate) fn plan_ends(&mut self, context: u32, operation: Operation, sequence: u32) {
        if self.observes_plans() {
            self.tell_of_plan(EventKind::PlanEnded, context, operation, sequence);
        }
    }

    #[cold]
    fn tell_of_plan(&mut self, kind: EventKind, context: u32, operation: Operation, sequence: u32) {
        let operation = self.table.name(operation);
        let plan = PlanEvent {
            operation,
            context,
            sequence,
        };
        let begins = kind == EventKind::PlanStarted;
        if let Some(tracer) = &self.tracer {
            tracer.push(Entry::Plan(begins, plan));
        }
        self.observer.note(kind, || match begins {
            true => Event::PlanStarted(plan),
            false => Event::PlanEnded(plan),
        });
    }

    /// A message begins to wait.
    #[inline]
    pub(crate) fn unexpected(&mut self, peer: Peer, envelope: &Envelope, bytes: u64) {
        self.observer.note(EventKind::Unexpected, || Event::Unexpected {
            peer,
            context: envelope.context.number(),
            source: envelope.source,
            tag: envelope.tag,
            bytes,
        });
    }

    pub(crate) fn lost(&mut self, peer: Peer) {
        self.observer.note(EventKind::PeerLost, || Event::PeerLost { peer });
    }

    /// A frame has left; the first one of a message is recorded.
    #[inline]
    pub(crate) fn sent(&mut self, peer: Peer, header: &Header) {
        if let Some(tracer) = &mut self.tracer {
            tracer.message(true, peer, header);
        }
    }

    /// The first frame of a message has come.
    #[inline]
    pub(crate) fn arrived(&mut self, peer: Peer, header: &Header) {
        if let Some(tracer) = &mut self.tracer {
            if matches!(header.kind, Kind::Eager | Kind::EagerSync | Kind::Rts | Kind::Announce) {
                tracer.message(false, peer, header);
            }
        }
    }

    /// When a wait that begins now began.
    #[inline]
    pub(crate) fn wait_begins(&self) -> Instant {
        self.waited.begins()
    }

    /// It is over; what came last has ended it.
    #[cold]
    pub(crate) fn wait_ends(&self, began: Instant) {
        self.waited.ends(began, self.came, true);
        if let Some(tracer) = &self.tracer {
            tracer.waited(began, self.waited.call());
        }
    }

    /// A wait in memory that the group shares, if it took long, is over as a whole or goes on in another way.
    #[inline]
    pub(crate) fn waited_together(&self, began: Option<Instant>, over: bool) {
        if let Some(began) = began {
            self.waited.ends(began, Last::TOGETHER, over);
        }
    }

    /// A direct receive that took long has ended, or goes on as an ordinary one.
    #[cold]
    pub(crate) fn waited_directly(&self, began: Instant, over: bool) {
        let what = Awaited::Message;
        self.waited.ends(began, self.came.completing(what), over);
    }
}
