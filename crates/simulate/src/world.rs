// SPDX-License-Identifier: Apache-2.0
//! What happens: all processes, and what each event does.

use super::areas::Areas;
use super::circles::Circles;
use super::journal::Journal;
use super::limits::{Limits, Stopped};
use super::outcome::{Kind, LinkUse, NONE, Outcome, Record};
use super::process::{Process, Task};
use super::queue::{Delivery, Event, Key, Moment, What};
use super::wires::{Cost, Wires};
use crate::check::Crossings;
use isthmus_schedule::step::{Plan, Rank, StepId};
use isthmus_schedule::{Jobs, Steps, combining, natively};
use isthmus_topology::{Level, Links, Topology};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

pub(super) struct World<'a> {
    links: &'a Links,
    unit_bytes: u64,
    limits: Limits,
    processes: Vec<Process>,
    finished: Vec<u64>,
    areas: Areas,
    /// The area whose events are handled.
    here: u32,
    handled: u64,
    circles: Circles<'a>,
    wires: Wires<'a>,
    crossings: Crossings,
    /// Units of the messages under way, if some are handed on by processes that do not know it.
    lengths: Option<FxHashMap<Key, VecDeque<u64>>>,
    journal: Journal,
    /// The last process to be over (of several, the lowest rank), when, and its last record.
    last: (u64, Rank, u32),
}

/// What a process is occupied with.
struct Work {
    kind: Kind,
    level: Level,
    rank: Rank,
    peer: Rank,
    bytes: u64,
    /// Nanoseconds.
    cost: u64,
}

impl<'a> World<'a> {
    pub(super) fn new(topology: &'a Topology, links: &'a Links, steps: Steps, unit_bytes: u64, limits: Limits) -> Self {
        Self {
            links,
            unit_bytes,
            limits,
            processes: Vec::with_capacity(topology.size() as usize),
            finished: Vec::with_capacity(topology.size() as usize),
            areas: Areas::new(topology, links),
            here: 0,
            handled: 0,
            circles: Circles::new(topology, steps),
            wires: Wires::new(topology, links, limits.window),
            crossings: Crossings::default(),
            lengths: None,
            journal: Journal::new(limits.records),
            last: (0, 0, NONE),
        }
    }

    pub(super) fn run(mut self, plans: impl Iterator<Item = Box<dyn Plan>>) -> Result<Outcome, Stopped> {
        let mut ready = Vec::new();
        for (rank, plan) in (0..).zip(plans) {
            self.here = self.areas.home(rank);
            if plan.forwards() {
                self.lengths.get_or_insert_default();
            }
            self.processes.push(Process::new(plan));
            self.finished.push(0);
            self.processes[rank as usize].fill(&mut ready);
            ready.drain(..).for_each(|step| self.start(rank, step, Moment::BEGIN));
        }
        (0..self.areas.all.len() as u32).for_each(|area| self.areas.leave(area));
        while let Some(until) = self.areas.horizon() {
            while let Some(area) = self.areas.next(until) {
                self.visit(area, until, &mut ready)?;
                self.areas.leave(area);
            }
        }
        if let Some(stuck) = self.processes.iter().position(|p| !p.is_over()) {
            return Err(Stopped::Stuck { rank: stuck as u32 });
        }
        Ok(self.outcome())
    }

    /// Handles the events of an area that are not later.
    fn visit(&mut self, area: u32, until: u64, ready: &mut Vec<StepId>) -> Result<(), Stopped> {
        self.here = area;
        while let Some(event) = self.areas.all[area as usize].queue.pop(until) {
            self.handled += 1;
            if self.handled > self.limits.events {
                return Err(Stopped::TooLong {
                    events: self.limits.events,
                });
            }
            match event.what {
                What::Leave { rank, step } => self.leave(rank, step, event.moment()),
                What::Arrive { from, to, slot } => self.arrive(Key { from, to, slot }, event.moment()),
                What::Done { rank, step } => self.done(rank, step, &event, ready),
            }
            if self.journal.is_full() {
                self.forget();
            }
        }
        Ok(())
    }

    fn outcome(self) -> Outcome {
        let (time, _, last) = self.last;
        let (records_dropped, path_dropped) = (self.journal.partial, self.journal.closed);
        let (records, path) = self.journal.finish(last, time);
        let own = (0..).zip(&self.processes);
        let own = own.filter_map(|(rank, process)| process.lane.used(Level::Node, rank, NONE));
        let mut links: Vec<LinkUse> = self.wires.used().chain(own).collect();
        links.sort_unstable_by_key(|l| (l.level, l.from, l.to));
        Outcome {
            finished: self.finished,
            crossings: self.crossings,
            links,
            records,
            records_dropped,
            path,
            path_dropped,
            events: self.handled,
        }
    }

    fn at(&mut self, time: u64, what: What, cause: u32) {
        let event = Event { time, what, cause };
        self.areas.all[self.here as usize].queue.push(event);
    }

    fn done(&mut self, rank: Rank, step: StepId, event: &Event, ready: &mut Vec<StepId>) {
        if self.processes[rank as usize].work(step).task == Task::Forward {
            self.processes[rank as usize].turn(step);
            return self.start(rank, step, event.moment());
        }
        let process = &mut self.processes[rank as usize];
        process.complete(step, ready);
        if process.is_over() {
            self.finished[rank as usize] = event.time;
            let (time, other, record) = self.last;
            if record == NONE || event.time > time || (event.time == time && rank < other) {
                self.last = (event.time, rank, event.cause);
            }
        }
        ready.drain(..).for_each(|next| self.start(rank, next, event.moment()));
    }

    /// A step can run from now on.
    fn start(&mut self, rank: Rank, step: StepId, now: Moment) {
        let work = self.processes[rank as usize].work(step);
        let bytes = self.bytes(work.units);
        match work.task {
            Task::Send => {
                let cost = self.wires.cost(rank, work.peer, bytes);
                let level = cost.level;
                let (end, record) = self.occupy(
                    Work {
                        kind: Kind::Send,
                        level,
                        rank,
                        peer: work.peer,
                        bytes,
                        cost: cost.send,
                    },
                    now,
                );
                self.at(end, What::Leave { rank, step }, record);
            }
            Task::Receive | Task::Forward => {
                let (from, to, slot) = (work.peer, rank, work.slot);
                if self.areas.all[self.here as usize].take(Key { from, to, slot }) {
                    self.receive(Key { from, to, slot }, step, now);
                } else {
                    self.processes[rank as usize].post(from, slot, step);
                }
            }
            Task::Copy => self.compute(rank, step, self.links.copy.at(bytes), now),
            Task::Reduce => self.compute(rank, step, self.links.reduce.at(bytes), now),
            Task::Together | Task::Blocks | Task::Combine => self.meet(rank, step, now),
        }
    }

    /// A process has come to something that all of a circle do together. When the last one is there they begin.
    fn meet(&mut self, rank: Rank, step: StepId, now: Moment) {
        let circle = self.processes[rank as usize].work(step).peer;
        let Some(met) = self.circles.come(circle, rank, step) else {
            return;
        };
        if let Some(job) = met.job {
            return self.meet_natively(&met.members, job, now);
        }
        let begin = now.after(self.links.level(Level::Node).latency);
        let expected = met.members.len() as u64;
        for (rank, step) in met.members {
            let work = self.processes[rank as usize].work(step);
            let bytes = self.bytes(work.units);
            let combine = match work.task {
                Task::Combine => combining(self.links, bytes, expected),
                _ => 0,
            };
            // Each copies and combines.
            let cost = self.links.copy.at(bytes).saturating_add(combine);
            self.compute(rank, step, cost, begin);
        }
    }

    /// The same with a vendor MPI.
    fn meet_natively(&mut self, members: &[(Rank, StepId)], job: Jobs, now: Moment) {
        let works = || {
            members
                .iter()
                .map(|&(rank, step)| self.processes[rank as usize].work(step))
        };
        let units = works().map(|work| work.units).max().unwrap_or(0);
        let combines = works().any(|work| work.task == Task::Combine);
        let share = match works().any(|work| work.task == Task::Blocks) {
            true => units / u64::from(job.nodes.max(1)),
            false => units,
        };
        let spent = natively(self.links, job, combines, [units, share].map(|units| self.bytes(units)));
        let begin = now.after(spent.depth.saturating_sub(spent.process));
        for &(rank, step) in members {
            self.compute(rank, step, spent.process, begin);
        }
    }

    fn compute(&mut self, rank: Rank, step: StepId, cost: u64, now: Moment) {
        if cost == 0 {
            return self.at(now.time, What::Done { rank, step }, now.cause);
        }
        let (end, record) = self.occupy(
            Work {
                kind: Kind::Compute,
                level: Level::Node,
                rank,
                peer: rank,
                bytes: 0,
                cost,
            },
            now,
        );
        self.at(end, What::Done { rank, step }, record);
    }

    /// The message takes its link as soon as that is free.
    fn leave(&mut self, rank: Rank, step: StepId, now: Moment) {
        let work = self.processes[rank as usize].work(step);
        let (to, slot, bytes) = (work.peer, work.slot, self.bytes(work.units));
        let cost = self.wires.cost(rank, to, bytes);
        let Cost { level, latency, .. } = cost;
        let record = self.journal.next();
        let lane = match level {
            Level::Node => &mut self.processes[rank as usize].lane,
            _ => self.wires.lane(level, rank, to),
        };
        let busy = lane.take(bytes, cost.gap, now, record);
        if let Some(lengths) = &mut self.lengths {
            let units = lengths.entry(Key { from: rank, to, slot }).or_default();
            units.push_back(work.units);
        }
        self.crossings.count(level, bytes);
        self.journal.keep(Record {
            kind: Kind::Link,
            level,
            rank,
            peer: to,
            cause: busy.cause,
            bytes,
            begin: busy.begin,
            end: busy.end,
        });
        self.at(busy.end, What::Done { rank, step }, record);
        if level > Level::WideArea {
            let arrival = busy.end.saturating_add(latency);
            return self.at(arrival, What::Arrive { from: rank, to, slot }, record);
        }
        let arrival = self.wires.arrival(rank, to, bytes, &busy, latency);
        self.areas.deliver(Delivery {
            time: arrival,
            decided: now.time,
            from: rank,
            number: self.handled,
            to,
            slot,
            cause: record,
        });
    }

    fn arrive(&mut self, key: Key, now: Moment) {
        match self.processes[key.to as usize].take(key.from, key.slot) {
            Some(step) => self.receive(key, step, now),
            None => self.areas.all[self.here as usize].keep(key),
        }
    }

    fn receive(&mut self, key: Key, step: StepId, since: Moment) {
        let Key { from, to: rank, .. } = key;
        let work = self.processes[rank as usize].work(step);
        let units = self.received(key, step);
        let bytes = self.bytes(units.unwrap_or(work.units));
        let cost = self.wires.cost(from, rank, bytes);
        let (end, record) = self.occupy(
            Work {
                kind: Kind::Receive,
                level: cost.level,
                rank,
                peer: from,
                bytes,
                cost: cost.receive,
            },
            since,
        );
        self.at(end, What::Done { rank, step }, record);
    }

    /// Units of a message that is received, where that is noted; a step that hands it on learns them.
    fn received(&mut self, key: Key, step: StepId) -> Option<u64> {
        let units = self.lengths.as_mut()?.get_mut(&key)?.pop_front()?;
        let process = &mut self.processes[key.to as usize];
        if process.work(step).task == Task::Forward {
            process.carry(step, units);
        }
        Some(units)
    }

    /// Occupies a process and keeps the record. Gives the end and the record's number.
    fn occupy(&mut self, work: Work, now: Moment) -> (u64, u32) {
        let record = self.journal.next();
        let busy = self.processes[work.rank as usize].occupy(now, work.cost, record);
        self.journal.keep(Record {
            kind: work.kind,
            level: work.level,
            rank: work.rank,
            peer: work.peer,
            cause: busy.cause,
            bytes: work.bytes,
            begin: busy.begin,
            end: busy.end,
        });
        (busy.end, record)
    }

    /// Forgets the records that no critical path can go through any more.
    fn forget(&mut self) {
        let mut marks = self.journal.marks();
        self.ends(&mut |record| {
            if let Some(mark) = marks.get_mut(*record as usize) {
                *mark = true;
            }
        });
        let moved = self.journal.forget(marks);
        self.ends(&mut |record| *record = moved.of(*record));
    }

    /// Visits the records that may become causes.
    fn ends(&mut self, visit: &mut impl FnMut(&mut u32)) {
        for process in &mut self.processes {
            visit(process.last());
            visit(&mut process.lane.last);
        }
        self.areas.all.iter_mut().for_each(|a| a.queue.causes(visit));
        self.wires.causes(visit);
        visit(&mut self.last.2);
    }

    fn bytes(&self, units: u64) -> u64 {
        units.saturating_mul(self.unit_bytes)
    }
}
