// SPDX-License-Identifier: Apache-2.0
//! The plans of all members of a call, from what one of them would not know alone.

use isthmus_schedule::step::{Action, Buffer, Plan, Rank, Slice, Step};
use isthmus_schedule::{
    Blocks, Call, Composite, CountsPhase, Members, Network, Operation, SubPlan, counts_phase, plan,
};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes of a count.
const COUNT: u64 = 8;

/// The plan of each member. Unequal sizes are [`Blocks::Known`], by rank, for all alike: of alltoallv, what each
/// process sends to that rank. Gatherv and scatterv include their counts phase.
///
/// # Panics
/// As [`plan`](isthmus_schedule::plan()).
pub fn plans(call: &Call, network: &Arc<Network>) -> impl Iterator<Item = Box<dyn Plan>> {
    let mut told = Counting::new(call, network).run();
    (0..network.size()).map(move |me| member(call, network, me, told[me as usize].take()))
}

fn member(call: &Call, network: &Arc<Network>, me: Rank, told: Option<Vec<u64>>) -> Box<dyn Plan> {
    let mut own = call_of(call, me);
    let phase = counts_phase(&own, network, me);
    if let Some(told) = told {
        own.learn(told);
    }
    let data = plan(&own, network, me);
    let Some(CountsPhase { plan: counts, .. }) = phase else {
        return data;
    };
    // The slots of the two phases differ by themselves, and processes without a first one do not shift theirs.
    let part = |plan| {
        let whole = |buffer| Slice {
            buffer,
            offset: 0,
            length: u64::MAX >> 1,
        };
        SubPlan {
            number: 0,
            plan,
            members: Members::All,
            send: whole(Buffer::Send),
            recv: whole(Buffer::Recv),
        }
    };
    let counts = Counts {
        plan: counts,
        unit_bytes: call.unit_bytes.max(1),
    };
    let mut composite = Composite::default();
    composite.stage([part(Box::new(counts) as Box<dyn Plan>)]);
    composite.stage([part(data)]);
    Box::new(composite)
}

/// Such a call as one member makes it, as far as that is known before any message.
pub fn call_of(call: &Call, me: Rank) -> Call {
    let mut own = call.clone();
    match (call.operation, &call.blocks) {
        (Operation::Gatherv | Operation::Scatterv, Blocks::Known(_)) if me != call.root => {
            own.blocks = Blocks::Own(call.blocks.size(me));
        }
        (Operation::Alltoallv | Operation::Alltoallw, Blocks::Known(_)) => {
            own.receive_blocks = Blocks::Equal(call.blocks.size(me));
        }
        _ => {}
    }
    own
}

/// A plan that moves counts, in units of the call.
struct Counts {
    plan: Box<dyn Plan>,
    unit_bytes: u64,
}

impl Plan for Counts {
    fn scratch(&self) -> &[u64] {
        self.plan.scratch()
    }

    fn next_step(&mut self) -> Option<Step> {
        let scaled = |slice: Slice| Slice {
            offset: slice.offset * COUNT / self.unit_bytes,
            length: (slice.length * COUNT).div_ceil(self.unit_bytes),
            ..slice
        };
        let Step { action, after } = self.plan.next_step()?;
        let action = match action {
            Action::Send { to, data, slot } => Action::Send {
                to,
                data: scaled(data),
                slot,
            },
            Action::Receive { from, data, slot } => Action::Receive {
                from,
                data: scaled(data),
                slot,
            },
            Action::Copy { from, to } => Action::Copy {
                from: scaled(from),
                to: scaled(to),
            },
            other => other,
        };
        Some(Step { action, after })
    }
}

/// One process in its counts phase.
struct Counter {
    phase: CountsPhase,
    send: Vec<u64>,
    recv: Vec<u64>,
    scratch: Vec<Vec<u64>>,
    /// The step that it has come to.
    step: Option<Step>,
}

impl Counter {
    fn buffer(&mut self, slice: &Slice) -> &mut [u64] {
        let memory = match slice.buffer {
            Buffer::Send => &mut self.send,
            Buffer::Recv => &mut self.recv,
            Buffer::Scratch(i) => &mut self.scratch[i as usize],
        };
        let end = (slice.offset + slice.length) as usize;
        if memory.len() < end {
            memory.resize(end, 0);
        }
        &mut memory[slice.offset as usize..end]
    }
}

/// All counts phases with their data, one process after the other for as long as it can go on.
struct Counting {
    counters: Vec<Option<Counter>>,
    mail: FxHashMap<(Rank, Rank, u16), VecDeque<Vec<u64>>>,
}

impl Counting {
    fn new(call: &Call, network: &Arc<Network>) -> Self {
        let counter = |me: Rank| {
            let mut phase = counts_phase(&call_of(call, me), network, me)?;
            let sizes = |ranks: std::ops::Range<Rank>| ranks.map(|rank| call.blocks.size(rank)).collect();
            let send = match (call.operation, me == call.root) {
                (Operation::Gatherv, _) => sizes(me..me + 1),
                (Operation::Scatterv, true) => sizes(0..network.size()),
                _ => std::mem::take(&mut phase.send),
            };
            Some(Counter {
                scratch: vec![Vec::new(); phase.plan.scratch().len()],
                phase,
                send,
                recv: Vec::new(),
                step: None,
            })
        };
        Self {
            counters: (0..network.size()).map(counter).collect(),
            mail: FxHashMap::default(),
        }
    }

    /// What each process is told.
    fn run(mut self) -> Vec<Option<Vec<u64>>> {
        let mut ready: Vec<Rank> = (0..self.counters.len() as Rank).rev().collect();
        let mut waiting: FxHashMap<(Rank, Rank, u16), Rank> = FxHashMap::default();
        while let Some(rank) = ready.pop() {
            let Some(mut counter) = self.counters[rank as usize].take() else {
                continue;
            };
            if let Some(key) = self.advance(rank, &mut counter, &mut waiting, &mut ready) {
                waiting.insert(key, rank);
            }
            self.counters[rank as usize] = Some(counter);
        }
        let told = |counter: Option<Counter>| {
            let Counter { phase, mut recv, .. } = counter?;
            recv.resize(phase.receive as usize, 0);
            (phase.receive > 0).then_some(recv)
        };
        self.counters.into_iter().map(told).collect()
    }

    /// Until the end, or until a message is missing.
    fn advance(
        &mut self,
        rank: Rank,
        counter: &mut Counter,
        waiting: &mut FxHashMap<(Rank, Rank, u16), Rank>,
        ready: &mut Vec<Rank>,
    ) -> Option<(Rank, Rank, u16)> {
        loop {
            let step = counter.step.take().or_else(|| counter.phase.plan.next_step())?;
            match step.action {
                Action::Send { to, data, slot } => {
                    let counts = counter.buffer(&data).to_vec();
                    let key = (rank, to, slot);
                    self.mail.entry(key).or_default().push_back(counts);
                    ready.extend(waiting.remove(&key));
                }
                Action::Receive { from, data, slot } => {
                    let key = (from, rank, slot);
                    let Some(counts) = self.mail.get_mut(&key).and_then(VecDeque::pop_front) else {
                        counter.step = Some(step);
                        return Some(key);
                    };
                    counter.buffer(&data).copy_from_slice(&counts);
                }
                Action::Copy { from, to } => {
                    let counts = counter.buffer(&from).to_vec();
                    counter.buffer(&to).copy_from_slice(&counts);
                }
                Action::Reduce { operand, target, .. } => {
                    let counts = counter.buffer(&operand).to_vec();
                    let sums = counter.buffer(&target).iter_mut();
                    sums.zip(counts).for_each(|(sum, count)| *sum += count);
                }
                Action::Forward { .. } => unreachable!("counts are as many as everybody knows"),
                Action::Together(_) => unreachable!("counts travel in messages"),
            }
        }
    }
}
