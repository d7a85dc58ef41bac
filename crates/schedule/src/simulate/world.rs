// SPDX-License-Identifier: Apache-2.0
//! All processes and links, and the queue of events.

use super::outcome::{Kind, LinkUse, NONE, Outcome, Record};
use super::process::Process;
use super::{Limits, Stopped};
use crate::check::Crossings;
use crate::step::{Action, Plan, Rank, StepId};
use isthmus_topology::{Level, Links, Topology};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

/// A message: who sends it, to whom, its slot.
type Key = (Rank, Rank, u16);

/// Something that will happen. `cause` is the record that ends then.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A message leaves its sender.
    Leave { rank: Rank, step: StepId },
    /// A message arrives.
    Arrive { key: Key },
    /// A step is complete.
    Done { rank: Rank, step: StepId },
}

/// Ordered by time, then by when it was decided.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    time: u64,
    number: u64,
    what: What,
    cause: u32,
}

/// Messages that have arrived, or receives that wait, of one key. Never both.
enum Waiting {
    Arrived(u32),
    Posted(VecDeque<StepId>),
}

struct LinkState {
    used: LinkUse,
    free_at: u64,
    last: u32,
}

pub(super) struct World<'a> {
    topology: &'a Topology,
    links: &'a Links,
    unit_bytes: u64,
    limits: Limits,
    processes: Vec<Process>,
    finished: Vec<u64>,
    events: BinaryHeap<Reverse<Event>>,
    decided: u64,
    handled: u64,
    waiting: HashMap<Key, Waiting>,
    link_numbers: HashMap<(Level, u32, u32), u32>,
    link_states: Vec<LinkState>,
    crossings: Crossings,
    records: Vec<Record>,
    records_dropped: bool,
    last: u32,
}

impl<'a> World<'a> {
    pub(super) fn new(topology: &'a Topology, links: &'a Links, unit_bytes: u64, limits: Limits) -> Self {
        Self {
            topology,
            links,
            unit_bytes,
            limits,
            processes: Vec::new(),
            finished: Vec::new(),
            events: BinaryHeap::new(),
            decided: 0,
            handled: 0,
            waiting: HashMap::new(),
            link_numbers: HashMap::new(),
            link_states: Vec::new(),
            crossings: Crossings::default(),
            records: Vec::new(),
            records_dropped: false,
            last: NONE,
        }
    }

    pub(super) fn run(mut self, plans: impl Iterator<Item = Box<dyn Plan>>) -> Result<Outcome, Stopped> {
        let mut ready = Vec::new();
        for (rank, plan) in (0..).zip(plans) {
            self.processes.push(Process::new(plan));
            self.finished.push(0);
            self.processes[rank as usize].fill(&mut ready);
            ready.drain(..).for_each(|step| self.start(rank, step, 0, NONE));
        }
        while let Some(Reverse(event)) = self.events.pop() {
            self.handled += 1;
            if self.handled > self.limits.events {
                return Err(Stopped::TooLong {
                    events: self.limits.events,
                });
            }
            match event.what {
                What::Leave { rank, step } => self.leave(rank, step, event.time, event.cause),
                What::Arrive { key } => self.arrive(key, event.time, event.cause),
                What::Done { rank, step } => self.done(rank, step, event, &mut ready),
            }
        }
        if let Some(stuck) = self.processes.iter().position(|p| !p.is_over()) {
            return Err(Stopped::Stuck { rank: stuck as u32 });
        }
        Ok(self.outcome())
    }

    fn outcome(self) -> Outcome {
        let mut links: Vec<LinkUse> = self.link_states.iter().map(|l| l.used).collect();
        links.sort_unstable_by_key(|l| (l.level, l.from, l.to));
        Outcome {
            finished: self.finished,
            crossings: self.crossings,
            links,
            records: self.records,
            records_dropped: self.records_dropped,
            events: self.handled,
            last: self.last,
        }
    }

    fn at(&mut self, time: u64, what: What, cause: u32) {
        self.decided += 1;
        self.events.push(Reverse(Event {
            time,
            number: self.decided,
            what,
            cause,
        }));
    }

    fn done(&mut self, rank: Rank, step: StepId, event: Event, ready: &mut Vec<StepId>) {
        let process = &mut self.processes[rank as usize];
        process.complete(step, ready);
        if process.is_over() {
            self.finished[rank as usize] = event.time;
            // Events come in order of time: the last one to be over is the latest.
            self.last = event.cause;
        }
        ready
            .drain(..)
            .for_each(|next| self.start(rank, next, event.time, event.cause));
    }

    /// A step can run from now on.
    fn start(&mut self, rank: Rank, step: StepId, now: u64, cause: u32) {
        match self.processes[rank as usize].action(step) {
            Action::Send { to, data, .. } => {
                let bytes = self.bytes(data.length);
                let cost = self.links.between(self.topology, rank, to).1.send.at(bytes);
                let (end, record) = self.occupy(Kind::Send, rank, to, bytes, cost, (now, cause));
                self.at(end, What::Leave { rank, step }, record);
            }
            Action::Receive { from, slot, .. } => self.post((from, rank, slot), step, now, cause),
            Action::Copy { to, .. } => {
                self.compute(rank, step, self.links.copy.at(self.bytes(to.length)), (now, cause))
            }
            Action::Reduce { target, .. } => {
                self.compute(
                    rank,
                    step,
                    self.links.reduce.at(self.bytes(target.length)),
                    (now, cause),
                );
            }
        }
    }

    fn compute(&mut self, rank: Rank, step: StepId, cost: u64, (now, cause): (u64, u32)) {
        if cost == 0 {
            return self.at(now, What::Done { rank, step }, cause);
        }
        let (end, record) = self.occupy(Kind::Compute, rank, rank, 0, cost, (now, cause));
        self.at(end, What::Done { rank, step }, record);
    }

    /// The message takes its link as soon as that is free.
    fn leave(&mut self, rank: Rank, step: StepId, now: u64, cause: u32) {
        let Action::Send { to, data, slot } = self.processes[rank as usize].action(step) else {
            unreachable!("only messages leave")
        };
        let bytes = self.bytes(data.length);
        let (level, link) = self.links.between(self.topology, rank, to);
        let (gap, latency) = (link.gap.at(bytes), link.latency);
        let record = self.next_record();
        let state = self.link(level, rank, to);
        let cause = if state.free_at > now { state.last } else { cause };
        let begin = now.max(state.free_at);
        let end = begin.saturating_add(gap);
        (state.free_at, state.last) = (end, record);
        state.used.messages += 1;
        state.used.bytes = state.used.bytes.saturating_add(bytes);
        state.used.busy = state.used.busy.saturating_add(gap);
        self.crossings.count(level, bytes);
        self.keep(Record {
            kind: Kind::Link,
            level,
            rank,
            peer: to,
            cause,
            bytes,
            begin,
            end,
        });
        self.at(end, What::Done { rank, step }, record);
        let key = (rank, to, slot);
        self.at(end.saturating_add(latency), What::Arrive { key }, record);
    }

    fn link(&mut self, level: Level, from: Rank, to: Rank) -> &mut LinkState {
        let (a, b) = (self.topology.clusters_of(from), self.topology.clusters_of(to));
        let (from, to) = match level {
            Level::WideArea => (a[0], b[0]),
            Level::LocalArea => (a[1], b[1]),
            Level::Machine | Level::Vendor => (a[2], u32::MAX),
            Level::Node => (from, u32::MAX),
        };
        let next = self.link_states.len() as u32;
        let number = *self.link_numbers.entry((level, from, to)).or_insert(next);
        if number == next {
            let used = LinkUse {
                level,
                from,
                to,
                messages: 0,
                bytes: 0,
                busy: 0,
            };
            self.link_states.push(LinkState {
                used,
                free_at: 0,
                last: NONE,
            });
        }
        &mut self.link_states[number as usize]
    }

    /// A receive waits for its message, or takes it.
    fn post(&mut self, key: Key, step: StepId, now: u64, cause: u32) {
        match self.waiting.get_mut(&key) {
            Some(Waiting::Arrived(messages)) => {
                *messages -= 1;
                if *messages == 0 {
                    self.waiting.remove(&key);
                }
                self.receive(key, step, now, cause);
            }
            Some(Waiting::Posted(steps)) => steps.push_back(step),
            None => _ = self.waiting.insert(key, Waiting::Posted([step].into())),
        }
    }

    fn arrive(&mut self, key: Key, now: u64, cause: u32) {
        match self.waiting.get_mut(&key) {
            Some(Waiting::Posted(steps)) => {
                let step = steps.pop_front();
                if steps.is_empty() {
                    self.waiting.remove(&key);
                }
                if let Some(step) = step {
                    self.receive(key, step, now, cause);
                }
            }
            Some(Waiting::Arrived(messages)) => *messages += 1,
            None => _ = self.waiting.insert(key, Waiting::Arrived(1)),
        }
    }

    fn receive(&mut self, (from, rank, _): Key, step: StepId, now: u64, cause: u32) {
        let Action::Receive { data, .. } = self.processes[rank as usize].action(step) else {
            unreachable!("only receives wait for messages")
        };
        let bytes = self.bytes(data.length);
        let cost = self.links.between(self.topology, from, rank).1.receive.at(bytes);
        let (end, record) = self.occupy(Kind::Receive, rank, from, bytes, cost, (now, cause));
        self.at(end, What::Done { rank, step }, record);
    }

    /// Occupies a process and keeps the record. Gives the end and the record's number.
    fn occupy(&mut self, kind: Kind, rank: Rank, peer: Rank, bytes: u64, cost: u64, since: (u64, u32)) -> (u64, u32) {
        let record = self.next_record();
        let (begin, end, cause) = self.processes[rank as usize].occupy(since.0, cost, since.1, record);
        self.keep(Record {
            kind,
            level: self.topology.level_between(rank, peer),
            rank,
            peer,
            cause,
            bytes,
            begin,
            end,
        });
        (end, record)
    }

    fn next_record(&self) -> u32 {
        if self.records_dropped {
            NONE
        } else {
            self.records.len() as u32
        }
    }

    fn keep(&mut self, record: Record) {
        if self.records_dropped {
            return;
        }
        if self.records.len() >= self.limits.records.min(NONE as usize) {
            self.records = Vec::new();
            self.records_dropped = true;
            return;
        }
        self.records.push(record);
    }

    fn bytes(&self, units: u64) -> u64 {
        units.saturating_mul(self.unit_bytes)
    }
}
