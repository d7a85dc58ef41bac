// SPDX-License-Identifier: Apache-2.0
//! The simulator against the same model written as plainly as possible: one queue for the whole world, nothing left
//! out, nothing apart.

#[path = "../../schedule/tests/seeded/mod.rs"]
mod seeded;

use isthmus_schedule::step::{Action, Circle, Plan, Step, Together};
use isthmus_schedule::{Call, Network, Operation, plan};
use isthmus_simulate::{Kind, Limits, Outcome, simulate};
use isthmus_topology::{Curve, Level, Link, Links, Topology};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// When something happens: time, whether it is no message from another local area, then what orders those of one time.
type When = (u64, bool, u64, u32, u64);
/// What took time: kind, rank, peer, begin, end, and its cause among those before.
type Record = (Kind, u32, u32, u64, u64, Option<usize>);

#[derive(Clone, Copy)]
enum What {
    Leave(u32, usize),
    Arrive(u32, u32, u16),
    Done(u32, usize),
}

#[derive(Default)]
struct Process {
    steps: Vec<Step>,
    done: Vec<bool>,
    begun: Vec<bool>,
    /// Steps before this one are done.
    first: usize,
    over: bool,
    free: (u64, Option<usize>),
}

struct Reference<'a> {
    topology: &'a Topology,
    links: &'a Links,
    plans: Vec<Box<dyn Plan>>,
    processes: Vec<Process>,
    queue: BTreeMap<When, (What, Option<usize>)>,
    count: u64,
    free_links: HashMap<(Level, u32, u32), (u64, Option<usize>)>,
    arrived: HashMap<(u32, u32, u16), u32>,
    posted: Vec<(u32, u32, u16, usize)>,
    met: HashMap<(Circle, u32), Vec<(u32, usize)>>,
    records: Vec<Record>,
    finished: Vec<(u64, Option<usize>)>,
}

impl<'a> Reference<'a> {
    fn run(call: &Call, topology: &'a Topology, network: &'a Arc<Network>) -> Self {
        let ranks = 0..topology.size();
        let mut all = Self {
            topology,
            links: network.links(),
            plans: ranks.clone().map(|me| plan(call, network, me)).collect(),
            processes: ranks.clone().map(|_| Process::default()).collect(),
            queue: BTreeMap::new(),
            count: 0,
            free_links: HashMap::new(),
            arrived: HashMap::new(),
            posted: Vec::new(),
            met: HashMap::new(),
            records: Vec::new(),
            finished: vec![(0, None); topology.size() as usize],
        };
        ranks.for_each(|rank| all.go_on(rank, None, 0, None));
        while let Some((when, (what, cause))) = all.queue.pop_first() {
            match what {
                What::Leave(rank, step) => all.leave(rank, step, when.0, cause),
                What::Arrive(from, to, slot) => all.arrive((from, to, slot), when.0, cause),
                What::Done(rank, step) => all.go_on(rank, Some(step), when.0, cause),
            }
        }
        all
    }

    fn at(&mut self, time: u64, what: What, cause: usize) {
        self.count += 1;
        self.queue.insert((time, true, 0, 0, self.count), (what, Some(cause)));
    }

    /// A step is done: begins what can begin now, those that waited for it first.
    fn go_on(&mut self, rank: u32, step: Option<usize>, now: u64, cause: Option<usize>) {
        let process = &mut self.processes[rank as usize];
        let known = process.steps.len();
        if let Some(step) = step {
            process.done[step] = true;
        }
        while process.done.get(process.first).copied().unwrap_or(false) {
            process.first += 1;
        }
        let plan = &mut self.plans[rank as usize];
        while !process.over && process.steps.len() < process.first + plan.ample_window() {
            match plan.next_step() {
                Some(step) => process.steps.push(step),
                None => process.over = true,
            }
            process.done.resize(process.steps.len(), false);
            process.begun.resize(process.steps.len(), false);
        }
        if process.over && process.first == process.steps.len() && step.is_some() {
            self.finished[rank as usize] = (now, cause);
        }
        let free = |i: &usize| {
            let after = &process.steps[*i].after;
            !process.begun[*i] && after.iter().all(|&a| process.done[a as usize])
        };
        let (first, all) = (process.first, process.steps.len());
        let waited = (first..known.max(first)).filter(free);
        let ready: Vec<usize> = waited.chain((known.max(first)..all).filter(free)).collect();
        for step in ready {
            self.processes[rank as usize].begun[step] = true;
            self.begin(rank, step, now, cause);
        }
    }

    fn begin(&mut self, rank: u32, step: usize, now: u64, cause: Option<usize>) {
        match self.processes[rank as usize].steps[step].action {
            Action::Send { to, data, .. } => {
                let cost = self.links.between(self.topology, rank, to).1.send.at(data.length);
                let (end, record) = self.occupy(Kind::Send, rank, to, cost, now, cause);
                self.at(end, What::Leave(rank, step), record);
            }
            Action::Receive { from, slot, .. } => match self.arrived.get_mut(&(from, rank, slot)) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    self.receive(from, rank, step, now, cause);
                }
                _ => self.posted.push((from, rank, slot, step)),
            },
            Action::Forward { .. } => panic!("no operation here hands on what it does not know"),
            Action::Together(_) => self.meet(rank, step, now, cause),
            Action::Copy { to: slice, .. } | Action::Reduce { target: slice, .. } => {
                let copies = matches!(self.processes[rank as usize].steps[step].action, Action::Copy { .. });
                let curve = if copies { &self.links.copy } else { &self.links.reduce };
                let cost = curve.at(slice.length);
                self.compute(rank, step, cost, now, cause);
            }
        }
    }

    fn compute(&mut self, rank: u32, step: usize, cost: u64, now: u64, cause: Option<usize>) {
        if cost == 0 {
            self.count += 1;
            let when = (now, true, 0, 0, self.count);
            self.queue.insert(when, (What::Done(rank, step), cause));
        } else {
            let (end, record) = self.occupy(Kind::Compute, rank, rank, cost, now, cause);
            self.at(end, What::Done(rank, step), record);
        }
    }

    /// All of a node begin when the last one has come.
    fn meet(&mut self, rank: u32, step: usize, now: u64, cause: Option<usize>) {
        let Action::Together(together) = self.processes[rank as usize].steps[step].action else {
            panic!("only steps together meet")
        };
        let node = |rank| self.topology.clusters_of(rank)[2];
        let members = (0..self.topology.size())
            .filter(|&other| node(other) == node(rank))
            .count();
        let met = self.met.entry((together.circle, node(rank))).or_default();
        met.push((rank, step));
        if met.len() < members {
            return;
        }
        let begin = now + self.links.level(Level::Node).latency;
        for (rank, step) in std::mem::take(met) {
            let Action::Together(Together { what, give, take, .. }) = self.processes[rank as usize].steps[step].action
            else {
                panic!("only steps together meet")
            };
            let bytes = give.length.max(take.length);
            let all = self.links.reduce.at(bytes) * (members as u64 - 1);
            let combining = match (what.reduces() && take.length > 0, bytes > 8 << 10) {
                (false, _) => 0,
                (true, false) => all,
                (true, true) => all / members as u64,
            };
            self.compute(rank, step, self.links.copy.at(bytes) + combining, begin, cause);
        }
    }

    fn leave(&mut self, rank: u32, step: usize, now: u64, cause: Option<usize>) {
        let Action::Send { to, data, slot } = self.processes[rank as usize].steps[step].action else {
            panic!("only messages leave")
        };
        let (level, link) = self.links.between(self.topology, rank, to);
        let (a, b) = (self.topology.clusters_of(rank), self.topology.clusters_of(to));
        let ends = match level {
            Level::WideArea => (a[0], b[0]),
            Level::LocalArea => (a[1], b[1]),
            Level::Machine | Level::Vendor => (a[2], 0),
            Level::Node => (rank, 0),
        };
        let free = self.free_links.entry((level, ends.0, ends.1)).or_insert((0, None));
        let cause = if free.0 > now { free.1 } else { cause };
        let begin = now.max(free.0);
        let (end, record) = (begin + link.gap.at(data.length), self.records.len());
        *free = (end, Some(record));
        self.records.push((Kind::Link, rank, to, begin, end, cause));
        self.at(end, What::Done(rank, step), record);
        self.count += 1;
        let arrival = end + link.latency;
        let when = match level {
            Level::WideArea => (arrival, false, now, rank, self.count),
            _ => (arrival, true, 0, 0, self.count),
        };
        self.queue.insert(when, (What::Arrive(rank, to, slot), Some(record)));
    }

    fn arrive(&mut self, key: (u32, u32, u16), now: u64, cause: Option<usize>) {
        match self.posted.iter().position(|p| (p.0, p.1, p.2) == key) {
            Some(place) => {
                let step = self.posted.remove(place).3;
                self.receive(key.0, key.1, step, now, cause);
            }
            None => *self.arrived.entry(key).or_default() += 1,
        }
    }

    fn receive(&mut self, from: u32, rank: u32, step: usize, now: u64, cause: Option<usize>) {
        let Action::Receive { data, .. } = self.processes[rank as usize].steps[step].action else {
            panic!("only receives wait for messages")
        };
        let cost = self.links.between(self.topology, from, rank).1.receive.at(data.length);
        let (end, record) = self.occupy(Kind::Receive, rank, from, cost, now, cause);
        self.at(end, What::Done(rank, step), record);
    }

    fn occupy(&mut self, kind: Kind, rank: u32, peer: u32, cost: u64, now: u64, cause: Option<usize>) -> (u64, usize) {
        let (free, record) = (&mut self.processes[rank as usize].free, self.records.len());
        let cause = if free.0 > now { free.1 } else { cause };
        let begin = now.max(free.0);
        *free = (begin + cost, Some(record));
        self.records.push((kind, rank, peer, begin, begin + cost, cause));
        (begin + cost, record)
    }

    /// As [`Outcome::critical_path`].
    fn path(&self) -> Vec<(Kind, u32, u32, u64, u64)> {
        let end = self.finished.iter().map(|f| f.0).max().unwrap_or(0);
        let last = self.finished.iter().find(|f| f.0 == end && f.1.is_some());
        let (mut at, mut end, mut path) = (last.and_then(|f| f.1), end, Vec::new());
        while let Some(number) = at {
            let (kind, rank, peer, begin, _, cause) = self.records[number];
            path.push((kind, rank, peer, begin, end));
            (at, end) = (cause, begin);
        }
        path.reverse();
        path
    }
}

fn path(outcome: &Outcome) -> Vec<(Kind, u32, u32, u64, u64)> {
    let told = outcome.critical_path().iter();
    told.map(|r| (r.kind, r.rank, r.peer, r.begin, r.end)).collect()
}

/// Round numbers, so that much happens at the same time; with or without a latency between the sites.
fn links(wide: u64, overhead: u64) -> Links {
    let link = |latency, gap: u64| Link {
        latency,
        gap: Curve::rate(gap * 1_000_000_000),
        send: Curve::constant(overhead),
        receive: Curve::constant(overhead),
    };
    let mut links = Links::alike([link(wide, 1), link(100, 1), link(10, 2), link(10, 10), link(10, 10)]);
    links.reduce = Curve::rate(10_000_000_000);
    links.copy = links.reduce.clone();
    links.set_pair(0, 1, link(wide / 2, 2));
    links
}

proptest! {
    #![proptest_config(seeded::cases(96))]

    #[test]
    fn the_outcome_is_that_of_the_plain_model(
        places in prop::collection::vec((0u32..4, 0u32..3, 0u32..2), 1..90),
        operation in prop::sample::select(&[
            Operation::Barrier, Operation::Bcast, Operation::Reduce, Operation::Allreduce, Operation::Gather, Operation::Scatter,
            Operation::Allgather, Operation::Alltoall, Operation::Scan, Operation::Exscan, Operation::ReduceScatterBlock,
        ][..]),
        units in prop::sample::select(&[0u64, 1, 100, 70_000, 700_000][..]),
        root in 0u32..90,
        wide in prop::sample::select(&[0u64, 1, 1000, 100_000][..]),
        overhead in 0u64..3,
        nodes in any::<bool>(),
        records in prop::sample::select(&[1usize << 20, 400, 3000][..]),
    ) {
        let topology = Topology::from_clusters(places.into_iter().map(|(s, m, n)| [s, 3 * s + m, 6 * s + 2 * m + n]));
        let rooted = matches!(operation, Operation::Bcast | Operation::Reduce | Operation::Gather | Operation::Scatter);
        let root = if rooted { root % topology.size() } else { 0 };
        let call = Call { root, nodes, ..Call::new(operation, units) };
        let network = Network::of_world(&topology, Arc::new(links(wide, overhead)), Arc::default());
        let reference = Reference::run(&call, &topology, &network);
        let outcome = simulate(&call, &topology, &network, Limits { records, ..Limits::default() }).unwrap();
        let finished: Vec<u64> = reference.finished.iter().map(|f| f.0).collect();
        prop_assert_eq!(&outcome.finished, &finished);
        prop_assert!(outcome.records_dropped || outcome.records.len() == reference.records.len());
        if outcome.path_dropped {
            prop_assert!(records < 1 << 20 && outcome.critical_path().is_empty());
        } else {
            prop_assert_eq!(path(&outcome), reference.path());
        }
    }
}
