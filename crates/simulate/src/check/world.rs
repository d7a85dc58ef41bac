// SPDX-License-Identifier: Apache-2.0
//! All processes of a run: synchronous messages, steps in random order.

use super::process::{Cause, Memory, Process};
use super::token::{Value, mix};
use super::{Crossings, Fault};
use isthmus_schedule::Operation;
use isthmus_schedule::step::{Action, Circle, Plan, Rank, StepId, Together};
use isthmus_topology::Shape;
use std::collections::{HashMap, VecDeque};

/// How a run goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// Decides the order of ready steps.
    pub(crate) seed: u64,
    /// Steps that a process holds, from the first incomplete one on.
    pub(crate) window: usize,
    pub(crate) commutative: bool,
    pub(crate) unit_bytes: u64,
}

/// What matches a send and a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Message {
    from: Rank,
    to: Rank,
    slot: u16,
}

/// Messages that wait for their other half.
#[derive(Default)]
struct Waiting {
    sends: VecDeque<StepId>,
    receives: VecDeque<StepId>,
}

/// The end of a run.
pub(crate) struct Outcome<V> {
    pub(crate) memories: Vec<Memory<V>>,
    pub(crate) crossings: Crossings,
    /// For each process, what had to happen before it could leave.
    pub(crate) causes: Vec<Cause>,
}

pub(crate) struct World<'a, V> {
    shape: &'a Shape,
    manner: Manner,
    processes: Vec<Process<V>>,
    waiting: HashMap<Message, Waiting>,
    /// Per process and circle its steps with the others there that have begun.
    together: HashMap<(Rank, Circle), VecDeque<StepId>>,
    ready: Vec<(Rank, StepId)>,
    crossings: Crossings,
}

impl<'a, V: Value> World<'a, V> {
    pub(crate) fn new(shape: &'a Shape, manner: Manner, members: Vec<(Box<dyn Plan>, Memory<V>)>) -> Self {
        let processes = members
            .into_iter()
            .map(|(plan, memory)| Process::new(plan, memory, manner.window))
            .collect();
        let (waiting, ready) = (HashMap::new(), Vec::new());
        Self {
            together: HashMap::new(),
            shape,
            manner,
            processes,
            waiting,
            ready,
            crossings: Crossings::default(),
        }
    }

    /// Runs all plans to their end.
    pub(crate) fn run(mut self) -> Result<Outcome<V>, Fault> {
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
            return Err(Fault::new(format!(
                "rank {stuck} waits for ever; unmatched: {}",
                self.unmatched()
            )));
        }
        let causes = self
            .processes
            .iter()
            .zip(0..)
            .map(|(p, rank)| p.all_causes(rank))
            .collect();
        let memories = self.processes.into_iter().map(|p| p.memory).collect();
        Ok(Outcome {
            memories,
            crossings: self.crossings,
            causes,
        })
    }

    fn unmatched(&self) -> String {
        let text = |(message, w): (&Message, &Waiting)| {
            format!(
                "{}->{} slot {}: {} sent, {} awaited",
                message.from,
                message.to,
                message.slot,
                w.sends.len(),
                w.receives.len()
            )
        };
        let open = self
            .waiting
            .iter()
            .filter(|(_, w)| !w.sends.is_empty() || !w.receives.is_empty());
        open.map(text).take(8).collect::<Vec<_>>().join("; ")
    }

    fn refresh(&mut self, rank: Rank) -> Result<(), Fault> {
        let process = &mut self.processes[rank as usize];
        let ready = process
            .ready()
            .map_err(|fault| Fault::new(format!("rank {rank}: {fault}")))?;
        self.ready.extend(ready.into_iter().map(|id| (rank, id)));
        Ok(())
    }

    fn start(&mut self, rank: Rank, id: StepId) -> Result<(), Fault> {
        let action = self.processes[rank as usize].action(id);
        let key = match action {
            Action::Send { to, slot, .. } => Message { from: rank, to, slot },
            Action::Receive { from, slot, .. } | Action::Forward { from, slot, .. } => Message { from, to: rank, slot },
            Action::Copy { .. } | Action::Reduce { .. } => {
                let process = &mut self.processes[rank as usize];
                process.compute(&action, self.manner.commutative)?;
                process.set_causes(id, process.causes(id, rank));
                process.complete(id);
                return self.refresh(rank);
            }
            Action::Together(step) => {
                self.together.entry((rank, step.circle)).or_default().push_back(id);
                return self.meet(rank, step.circle);
            }
        };
        let waiting = self.waiting.entry(key).or_default();
        match action {
            Action::Send { .. } => waiting.sends.push_back(id),
            _ => waiting.receives.push_back(id),
        }
        self.deliver(key)
    }

    /// Who takes steps with a process in a circle, in order of their places there.
    fn circle(&self, rank: Rank, circle: Circle) -> Vec<Rank> {
        match (circle, self.shape.tiers().checked_sub(1)) {
            (Circle::All, _) | (_, None) => (0..self.processes.len() as Rank).collect(),
            (Circle::Up | Circle::Down, Some(tier)) => {
                let node = self.shape.cluster_of(tier, self.shape.position_of(rank));
                let span = self.shape.span(tier, node);
                span.map(|position| self.shape.rank_at(position)).collect()
            }
        }
    }

    /// Carries out what all of a process's circle have begun together.
    fn meet(&mut self, rank: Rank, circle: Circle) -> Result<(), Fault> {
        let members = self.circle(rank, circle);
        let begun = |&rank: &Rank| self.together.get(&(rank, circle))?.front().copied();
        let Some(ids) = members.iter().map(begun).collect::<Option<Vec<_>>>() else {
            return Ok(());
        };
        let steps = self.together_steps(&members, &ids)?;
        let mut given = Vec::new();
        for (&rank, step) in members.iter().zip(&steps) {
            given.push(self.processes[rank as usize].read(step.give)?);
        }
        let mut all = Cause::default();
        for (&rank, &id) in members.iter().zip(&ids) {
            all = all.and(self.processes[rank as usize].causes(id, rank));
        }
        for (place, (&id, step)) in ids.iter().zip(&steps).enumerate() {
            let values = taken(step, place, &given, self.manner.commutative)?;
            let process = &mut self.processes[members[place] as usize];
            process.write(step.take, values)?;
            process.set_causes(id, all);
            process.complete(id);
            self.together.entry((members[place], circle)).or_default().pop_front();
        }
        members.into_iter().try_for_each(|rank| self.refresh(rank))
    }

    fn together_steps(&self, members: &[Rank], ids: &[StepId]) -> Result<Vec<Together>, Fault> {
        let of = |(&rank, &id): (&Rank, &StepId)| match self.processes[rank as usize].action(id) {
            Action::Together(step) => step,
            _ => unreachable!("a step with all others"),
        };
        let steps: Vec<Together> = members.iter().zip(ids).map(of).collect();
        let same = |step: &Together| (step.what, step.root, step.block);
        match steps.iter().find(|step| same(step) != same(&steps[0])) {
            Some(other) => Err(Fault::new(format!("{other:?} meets {:?}", steps[0]))),
            None => Ok(steps),
        }
    }

    fn deliver(&mut self, key: Message) -> Result<(), Fault> {
        let Message { from, to, .. } = key;
        if from == to || to as usize >= self.processes.len() || from as usize >= self.processes.len() {
            return Err(Fault::new(format!("a message goes from {from} to {to}")));
        }
        let Some(waiting) = self.waiting.get_mut(&key) else {
            return Ok(());
        };
        let (Some(&send), Some(&receive)) = (waiting.sends.front(), waiting.receives.front()) else {
            return Ok(());
        };
        waiting.sends.pop_front();
        waiting.receives.pop_front();
        let (sender, receiver) = (from as usize, to as usize);
        let (values, causes) = self.processes[sender].send(send, from).map_err(|f| f.at(from, send))?;
        let level = self.shape.level_between(from, to);
        self.crossings
            .count(level, values.len() as u64 * self.manner.unit_bytes);
        let onward = self.processes[receiver]
            .receive(receive, to, values, causes.message(level))
            .map_err(|f| f.at(to, receive))?;
        self.refresh(from)?;
        if let Some((next, slot)) = onward {
            let key = Message {
                from: to,
                to: next,
                slot,
            };
            self.waiting.entry(key).or_default().sends.push_back(receive);
            self.deliver(key)?;
        }
        self.refresh(to)
    }
}

/// What a process takes of what all have given.
fn taken<V: Value>(step: &Together, rank: usize, given: &[Vec<V>], commutative: bool) -> Result<Vec<V>, Fault> {
    use Operation as O;
    let root = step.root as usize;
    let block = step.block as usize;
    let part = |values: &Vec<V>, index: usize| values[index * block..(index + 1) * block].to_vec();
    Ok(match step.what {
        O::Bcast if rank != root => given[root].clone(),
        O::Scatter if step.take.length > 0 => part(&given[root], rank),
        O::Allgather => given.concat(),
        O::Gather if rank == root => given.concat(),
        O::Alltoall => given.iter().flat_map(|values| part(values, rank)).collect(),
        O::Reduce if rank != root => Vec::new(),
        O::Exscan if rank == 0 => Vec::new(),
        O::Reduce | O::Allreduce => sum_of(given, commutative)?,
        O::Scan => sum_of(&given[..=rank], commutative)?,
        O::Exscan => sum_of(&given[..rank], commutative)?,
        O::ReduceScatterBlock => {
            let parts: Vec<Vec<V>> = given.iter().map(|values| part(values, rank)).collect();
            sum_of(&parts, commutative)?
        }
        O::Barrier | O::Bcast | O::Gather | O::Scatter => Vec::new(),
        other => return Err(Fault::new(format!("{} is nothing to do together", other.name()))),
    })
}

/// Contributions combined in order of rank.
fn sum_of<V: Value>(given: &[Vec<V>], commutative: bool) -> Result<Vec<V>, Fault> {
    let mut sum = given[0].clone();
    for next in &given[1..] {
        let pairs = sum.iter().zip(next);
        sum = pairs
            .map(|(a, b)| V::combine(a, b, commutative))
            .collect::<Result<_, _>>()?;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    //! The checker finds what it is for: plans with one fault each.

    use super::*;
    use crate::check::token::Token;
    use isthmus_schedule::step::{After, Buffer, Slice, Step};
    use isthmus_topology::Level;
    use std::collections::VecDeque;

    const A: Slice = Slice {
        buffer: Buffer::Recv,
        offset: 0,
        length: 1,
    };
    const B: Slice = Slice {
        buffer: Buffer::Recv,
        offset: 1,
        length: 1,
    };
    const OWN: Slice = Slice {
        buffer: Buffer::Send,
        offset: 0,
        length: 1,
    };

    /// Steps as they stand.
    struct Written(VecDeque<Step>);

    impl Plan for Written {
        fn scratch(&self) -> &[u64] {
            &[]
        }
        fn next_step(&mut self) -> Option<Step> {
            self.0.pop_front()
        }
    }

    fn fault(commutative: bool, plans: Vec<Vec<(Action, Vec<StepId>)>>) -> String {
        let shape = Shape::flat(plans.len() as u32, Level::Node);
        let member = |(rank, steps): (usize, Vec<(Action, Vec<StepId>)>)| {
            let steps = steps.into_iter().map(|(action, after)| Step {
                action,
                after: After::from_iter(after),
            });
            let memory = Memory {
                send: Some(vec![Some(Token::element(rank as u32, 0))]),
                recv: Some(vec![None, None]),
            };
            (Box::new(Written(steps.collect())) as Box<dyn Plan>, memory)
        };
        let members = plans.into_iter().enumerate().map(member).collect();
        let manner = Manner {
            seed: 1,
            window: 8,
            commutative,
            unit_bytes: 1,
        };
        World::new(&shape, manner, members)
            .run()
            .err()
            .map_or(String::new(), |f| f.to_string())
    }

    fn send(to: Rank, data: Slice) -> Action {
        Action::Send { to, data, slot: 0 }
    }

    fn receive(from: Rank, data: Slice) -> Action {
        Action::Receive { from, data, slot: 0 }
    }

    #[test]
    fn right_plans_pass() {
        let copy = Action::Copy { from: OWN, to: A };
        assert_eq!(
            fault(
                false,
                vec![
                    vec![(copy, vec![]), (send(1, A), vec![0])],
                    vec![(receive(0, A), vec![])]
                ]
            ),
            ""
        );
    }

    #[test]
    fn unwritten_data() {
        let text = fault(true, vec![vec![(send(1, A), vec![])], vec![(receive(0, A), vec![])]]);
        assert!(text.contains("read before it is written"), "{text}");
    }

    #[test]
    fn steps_without_order_on_the_same_data() {
        let copy = Action::Copy { from: OWN, to: A };
        let text = fault(
            true,
            vec![
                vec![(copy, vec![]), (send(1, A), vec![])],
                vec![(receive(0, A), vec![])],
            ],
        );
        assert!(text.contains("races with step 0"), "{text}");
    }

    #[test]
    fn messages_that_may_be_confused() {
        let text = fault(true, vec![vec![(send(1, OWN), vec![]), (send(1, OWN), vec![])], vec![]]);
        assert!(text.contains("races with step 0"), "{text}");
    }

    #[test]
    fn sends_that_wait_for_each_other() {
        let one = |peer| vec![(send(peer, OWN), vec![]), (receive(peer, A), vec![0])];
        let text = fault(true, vec![one(1), one(0)]);
        assert!(text.contains("waits for ever"), "{text}");
    }

    #[test]
    fn a_message_that_nobody_awaits() {
        let text = fault(true, vec![vec![(send(1, OWN), vec![])], vec![]]);
        assert!(text.contains("waits for ever"), "{text}");
    }

    #[test]
    fn messages_handed_on() {
        let forward = |most| Action::Forward {
            from: 0,
            to: 2,
            most,
            slot: 0,
        };
        let plans = |most| {
            vec![
                vec![(send(1, OWN), vec![])],
                vec![(forward(most), vec![])],
                vec![(receive(1, A), vec![])],
            ]
        };
        assert_eq!(fault(true, plans(7)), "");
        let text = fault(true, plans(0));
        assert!(text.contains("at most 0"), "{text}");
        let mut twice = plans(7);
        twice[1].push((send(2, OWN), vec![]));
        let text = fault(true, twice);
        assert!(text.contains("races with step 0"), "{text}");
    }

    #[test]
    fn operands_in_the_wrong_order_or_twice() {
        let plans = |left| {
            let copy = Action::Copy { from: OWN, to: A };
            let reduce = Action::Reduce {
                operand: B,
                target: A,
                operand_is_left: left,
            };
            vec![
                vec![(copy, vec![]), (receive(1, B), vec![]), (reduce, vec![0, 1])],
                vec![(send(0, OWN), vec![])],
            ]
        };
        assert_eq!(fault(false, plans(false)), "");
        assert_eq!(fault(true, plans(true)), "");
        let text = fault(false, plans(true));
        assert!(text.contains("out of order"), "{text}");
        let twice = Action::Reduce {
            operand: OWN,
            target: A,
            operand_is_left: false,
        };
        let text = fault(
            true,
            vec![vec![(Action::Copy { from: OWN, to: A }, vec![]), (twice, vec![0])]],
        );
        assert!(text.contains("not disjoint"), "{text}");
    }

    #[test]
    fn lengths_and_bounds() {
        let long = Slice { length: 2, ..A };
        let text = fault(
            true,
            vec![vec![(send(1, OWN), vec![])], vec![(receive(0, long), vec![])]],
        );
        assert!(text.contains("arrive in"), "{text}");
        let outside = Slice { offset: 2, ..A };
        let text = fault(
            true,
            vec![vec![(send(1, OWN), vec![])], vec![(receive(0, outside), vec![])]],
        );
        assert!(text.contains("outside memory"), "{text}");
    }

    #[test]
    fn the_users_input_is_not_written() {
        let text = fault(
            true,
            vec![vec![(send(1, OWN), vec![])], vec![(receive(0, OWN), vec![])]],
        );
        assert!(text.contains("input is written"), "{text}");
    }
}
