// SPDX-License-Identifier: Apache-2.0
//! All processes of a run: synchronous messages, steps in random order.

use super::process::{Memory, Process};
use super::token::{Value, mix};
use super::{Crossings, Fault};
use crate::step::{Action, Plan, Rank, StepId};
use isthmus_topology::Shape;
use std::collections::{HashMap, VecDeque};

/// How a run goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// Decides the order of ready steps.
    pub(crate) seed: u64,
    /// Incomplete steps that a process holds.
    pub(crate) window: usize,
    pub(crate) commutative: bool,
    pub(crate) unit_bytes: u64,
}

/// Messages that wait for their other half.
#[derive(Default)]
struct Waiting {
    sends: VecDeque<StepId>,
    receives: VecDeque<StepId>,
}

pub(crate) struct World<'a, V> {
    shape: &'a Shape,
    manner: Manner,
    processes: Vec<Process<V>>,
    waiting: HashMap<(Rank, Rank, u16), Waiting>,
    ready: Vec<(Rank, StepId)>,
    crossings: Crossings,
}

impl<'a, V: Value> World<'a, V> {
    pub(crate) fn new(shape: &'a Shape, manner: Manner, members: Vec<(Box<dyn Plan>, Memory<V>)>) -> Self {
        let processes = members.into_iter().map(|(plan, memory)| Process::new(plan, memory, manner.window)).collect();
        let (waiting, ready) = (HashMap::new(), Vec::new());
        Self { shape, manner, processes, waiting, ready, crossings: Crossings::default() }
    }

    /// Runs all plans to their end. Gives the memories, what was crossed, and for each process the set of those that had
    /// to enter before it could leave.
    pub(crate) fn run(mut self) -> Result<(Vec<Memory<V>>, Crossings, Vec<u64>), Fault> {
        for rank in 0..self.processes.len() as Rank {
            self.refresh(rank)?;
        }
        let mut chance = self.manner.seed;
        while !self.ready.is_empty() {
            chance = mix(chance);
            let (rank, id) = self.ready.swap_remove((chance % self.ready.len() as u64) as usize);
            self.start(rank, id).map_err(|fault| fault.at(rank, id))?;
        }
        if let Some(stuck) = self.processes.iter().position(|p| !p.is_done()) {
            return Err(Fault::new(format!("rank {stuck} waits for ever; unmatched: {}", self.unmatched())));
        }
        let causes = self.processes.iter().zip(0..).map(|(p, rank)| p.all_causes(rank)).collect();
        Ok((self.processes.into_iter().map(|p| p.memory).collect(), self.crossings, causes))
    }

    fn unmatched(&self) -> String {
        let text = |(k, w): (&(Rank, Rank, u16), &Waiting)| {
            format!("{}->{} slot {}: {} sent, {} awaited", k.0, k.1, k.2, w.sends.len(), w.receives.len())
        };
        let open = self.waiting.iter().filter(|(_, w)| !w.sends.is_empty() || !w.receives.is_empty());
        open.map(text).take(8).collect::<Vec<_>>().join("; ")
    }

    fn refresh(&mut self, rank: Rank) -> Result<(), Fault> {
        let process = &mut self.processes[rank as usize];
        let ready = process.ready().map_err(|fault| Fault::new(format!("rank {rank}: {fault}")))?;
        self.ready.extend(ready.into_iter().map(|id| (rank, id)));
        Ok(())
    }

    fn start(&mut self, rank: Rank, id: StepId) -> Result<(), Fault> {
        let action = self.processes[rank as usize].action(id);
        let key = match action {
            Action::Send { to, slot, .. } => (rank, to, slot),
            Action::Receive { from, slot, .. } => (from, rank, slot),
            Action::Copy { .. } | Action::Reduce { .. } => {
                let process = &mut self.processes[rank as usize];
                process.compute(&action, self.manner.commutative)?;
                process.add_causes(id, process.causes(id, rank));
                process.complete(id);
                return self.refresh(rank);
            }
        };
        let waiting = self.waiting.entry(key).or_default();
        match action {
            Action::Send { .. } => waiting.sends.push_back(id),
            _ => waiting.receives.push_back(id),
        }
        self.deliver(key)
    }

    fn deliver(&mut self, key: (Rank, Rank, u16)) -> Result<(), Fault> {
        let (from, to, _) = key;
        if from == to || to as usize >= self.processes.len() || from as usize >= self.processes.len() {
            return Err(Fault::new(format!("a message goes from {from} to {to}")));
        }
        let Some(waiting) = self.waiting.get_mut(&key) else { return Ok(()) };
        let (Some(&send), Some(&receive)) = (waiting.sends.front(), waiting.receives.front()) else { return Ok(()) };
        waiting.sends.pop_front();
        waiting.receives.pop_front();
        let (sender, receiver) = (from as usize, to as usize);
        let Action::Send { data: source, .. } = self.processes[sender].action(send) else { unreachable!("a send") };
        let Action::Receive { data: place, .. } = self.processes[receiver].action(receive) else {
            unreachable!("a receive")
        };
        let values = self.processes[sender].read(source).map_err(|f| f.at(from, send))?;
        self.processes[receiver].write(place, values).map_err(|f| f.at(to, receive))?;
        self.crossings.count(self.shape.level_between(from, to), source.length * self.manner.unit_bytes);
        let causes = self.processes[sender].causes(send, from);
        self.processes[sender].add_causes(send, causes);
        let own = self.processes[receiver].causes(receive, to);
        self.processes[receiver].add_causes(receive, causes | own);
        self.processes[sender].complete(send);
        self.processes[receiver].complete(receive);
        self.refresh(from)?;
        self.refresh(to)
    }
}
