// SPDX-License-Identifier: Apache-2.0
//! What is checked: a call of all members, its input and the result that MPI asks for.

use super::process::{Cause, Memory};
use super::token::Token;
use super::world::{Manner, Outcome, World};
use super::{Crossings, Fault, Report};
use isthmus_schedule::step::{Rank, WINDOW};
use isthmus_schedule::{Blocks, Call, Network, Operation, bytes, counts_phase, messages, plan};
use std::sync::Arc;

/// Sizes of blocks, in units.
#[derive(Clone, Debug)]
pub enum Counts {
    /// One size for all.
    Equal(u64),
    /// By rank: gatherv, scatterv, allgatherv, reduce_scatter.
    Each(Vec<u64>),
    /// By source and destination: alltoallv, alltoallw.
    Pairs(Vec<Vec<u64>>),
}

/// One collective call of a whole group, at most 64 processes.
#[derive(Clone, Debug)]
pub struct Case {
    /// The group.
    pub network: Arc<Network>,
    /// What all members say; `blocks` and `receive_blocks` are filled in. `in_place` counts for the root alone in
    /// rooted operations.
    pub call: Call,
    /// Sizes of blocks.
    pub counts: Counts,
}

type Units = Option<Vec<Option<Token>>>;

impl Case {
    /// A case with equal blocks.
    pub fn new(network: &Arc<Network>, operation: Operation, units: u64) -> Self {
        Self {
            network: Arc::clone(network),
            call: Call::new(operation, units),
            counts: Counts::Equal(units),
        }
    }

    /// Runs the case with the full window. The seed decides the order of steps.
    pub fn check(&self, seed: u64) -> Result<Report, Fault> {
        self.check_with(seed, WINDOW)
    }

    /// Runs the case with a window of so many steps, from the first incomplete one on.
    pub fn check_with(&self, seed: u64, window: usize) -> Result<Report, Fault> {
        let c = &self.call;
        let manner = Manner {
            seed,
            window,
            commutative: c.commutative,
            unit_bytes: c.unit_bytes,
        };
        let mut calls: Vec<Call> = self.ranks().map(|rank| self.call_of(rank)).collect();
        let counts = self.run_counts(
            &mut calls,
            Manner {
                unit_bytes: 8,
                ..manner
            },
        )?;
        let members = calls
            .iter()
            .zip(self.ranks())
            .map(|(call, rank)| (plan(call, &self.network, rank), self.input(rank)));
        let Outcome {
            memories,
            crossings: data,
            causes,
        } = World::new(&self.network, manner, members.collect()).run()?;
        self.compare(&memories)?;
        self.all_entered(&causes)?;
        self.crossings(&calls[0], &data)?;
        let trips = causes.iter().fold(Cause::default(), |all, &c| all.and(c)).trips;
        Ok(Report { data, counts, trips })
    }

    /// Over each level go as many messages and bytes as the cost card says.
    fn crossings(&self, call: &Call, counted: &Crossings) -> Result<(), Fault> {
        if let Some(stated) = bytes(call, &self.network).filter(|stated| stated.by_level != counted.bytes) {
            return Err(Fault::new(format!(
                "bytes by level: {:?}, and stated were {:?}",
                counted.bytes, stated.by_level
            )));
        }
        match messages(call, &self.network) {
            Some(stated) if stated.by_level != counted.messages => Err(Fault::new(format!(
                "messages by level: {:?}, and stated were {:?}",
                counted.messages, stated.by_level
            ))),
            _ => Ok(()),
        }
    }

    fn ranks(&self) -> std::ops::Range<Rank> {
        0..self.network.size()
    }

    /// Blocks in order of rank (alltoallv: of destination) as rank `of` has them.
    fn blocks(&self, of: Rank) -> Blocks {
        match &self.counts {
            Counts::Equal(n) => Blocks::Equal(*n),
            Counts::Each(sizes) => Blocks::known(sizes.iter().copied()),
            Counts::Pairs(sizes) => Blocks::known(sizes[of as usize].iter().copied()),
        }
    }

    fn in_place(&self, rank: Rank) -> bool {
        use Operation as O;
        let rooted = matches!(
            self.call.operation,
            O::Reduce | O::Gather | O::Gatherv | O::Scatter | O::Scatterv
        );
        self.call.in_place && (!rooted || rank == self.call.root)
    }

    /// The call as one member makes it.
    fn call_of(&self, rank: Rank) -> Call {
        let known = self.blocks(rank);
        let blocks = match (self.call.operation, &self.counts) {
            (Operation::Gatherv | Operation::Scatterv, Counts::Each(sizes)) if rank != self.call.root => {
                Blocks::Own(sizes[rank as usize])
            }
            _ => known,
        };
        let receive_blocks = match &self.counts {
            Counts::Pairs(sizes) => Blocks::known(sizes.iter().map(|row| row[rank as usize])),
            _ => Blocks::Equal(0),
        };
        Call {
            blocks,
            receive_blocks,
            in_place: self.in_place(rank),
            ..self.call.clone()
        }
    }

    /// Runs the counts phase and gives every call what it has delivered.
    fn run_counts(&self, calls: &mut [Call], manner: Manner) -> Result<Crossings, Fault> {
        let none = Vec::new();
        let sizes = match &self.counts {
            Counts::Equal(_) => return Ok(Crossings::default()),
            Counts::Each(sizes) => sizes,
            Counts::Pairs(_) => &none,
        };
        let some = |n: &u64| Some(*n);
        let member = |(call, rank): (&Call, Rank)| match counts_phase(call, &self.network, rank) {
            Some(phase) => {
                let send = match (call.operation, rank == self.call.root) {
                    _ if !phase.send.is_empty() => Some(phase.send.iter().map(some).collect()),
                    (Operation::Gatherv, _) => Some(vec![Some(sizes[rank as usize])]),
                    (_, true) => Some(sizes.iter().map(some).collect()),
                    _ => None,
                };
                (
                    phase.plan,
                    Memory {
                        send,
                        recv: Some(vec![None; phase.receive as usize]),
                    },
                )
            }
            None => (isthmus_schedule::nothing(), Memory { send: None, recv: None }),
        };
        let members = calls.iter().zip(self.ranks()).map(member).collect();
        let own = |(call, rank): (&Call, Rank)| counts_phase(call, &self.network, rank).map(|phase| phase.own);
        let own: Vec<Option<usize>> = calls.iter().zip(self.ranks()).map(own).collect();
        let Outcome {
            memories, crossings, ..
        } = World::<u64>::new(&self.network, manner, members).run()?;
        for ((call, memory), (rank, own)) in calls.iter_mut().zip(memories).zip(self.ranks().zip(own)) {
            let received: Option<Vec<u64>> = memory.recv.unwrap_or_default().into_iter().collect();
            let counts = received.ok_or_else(|| Fault::new("a count has not arrived"))?;
            if counts.is_empty() {
                continue;
            }
            let is_rooted = matches!(call.operation, Operation::Gatherv | Operation::Scatterv);
            if is_rooted && own.and_then(|own| counts.get(own)) != sizes.get(rank as usize) {
                return Err(Fault::new("the own size stands elsewhere than said"));
            }
            call.learn(counts);
        }
        Ok(crossings)
    }

    /// The user's buffers before the call.
    fn input(&self, rank: Rank) -> Memory<Token> {
        use Operation as O;
        let p = self.network.size();
        let (root, blocks) = (rank == self.call.root, self.blocks(rank));
        let row = |make: fn(Rank, u64) -> Token, n: u64| (0..n).map(|i| Some(make(rank, i))).collect::<Vec<_>>();
        let empty = |n: u64| Some(vec![None; n as usize]);
        let own = || blocks.size(rank);
        let all = || blocks.offset(p);
        let (send, recv) = match self.call.operation {
            O::Barrier => (None, None),
            O::Bcast if root => (None, Some(row(Token::unit, own()))),
            O::Bcast => (None, empty(own())),
            O::Reduce if !root => (Some(row(Token::element, own())), None),
            O::Exscan if rank == 0 => (Some(row(Token::element, own())), None),
            O::Reduce | O::Allreduce | O::Scan | O::Exscan => (Some(row(Token::element, own())), empty(own())),
            O::Gather | O::Gatherv if !root => (Some(row(Token::unit, own())), None),
            O::Gather | O::Gatherv | O::Allgather | O::Allgatherv => (Some(row(Token::unit, own())), empty(all())),
            O::Scatter | O::Scatterv if !root => (None, empty(own())),
            O::Scatter | O::Scatterv => (Some(row(Token::unit, all())), empty(own())),
            O::Alltoall => (Some(row(Token::unit, all())), empty(all())),
            O::Alltoallv | O::Alltoallw => (
                Some(row(Token::unit, all())),
                empty(self.call_of(rank).receive_blocks.offset(p)),
            ),
            O::ReduceScatter | O::ReduceScatterBlock => (Some(row(Token::element, all())), empty(own())),
            other => unreachable!("{other:?} is checked by its graph"),
        };
        if self.in_place(rank) {
            self.put_in_place(rank, send, recv)
        } else {
            Memory { send, recv }
        }
    }

    fn put_in_place(&self, rank: Rank, send: Units, recv: Units) -> Memory<Token> {
        use Operation as O;
        let recv = match (self.call.operation, send, recv) {
            (O::Scatter | O::Scatterv, send, _) => return Memory { send, recv: None },
            (O::Gather | O::Gatherv | O::Allgather | O::Allgatherv, Some(own), Some(mut all)) => {
                let at = self.blocks(rank).offset(rank) as usize;
                all[at..at + own.len()].clone_from_slice(&own);
                Some(all)
            }
            (_, Some(own), _) => Some(own),
            (_, None, recv) => recv,
        };
        Memory { send: None, recv }
    }

    /// Nobody leaves a barrier before all have entered.
    fn all_entered(&self, causes: &[Cause]) -> Result<(), Fault> {
        let all = u64::MAX >> (64 - self.network.size());
        let early = causes
            .iter()
            .position(|&c| self.call.operation == Operation::Barrier && c.ranks != all);
        early.map_or(Ok(()), |rank| {
            Err(Fault::new(format!(
                "rank {rank} can leave early: {:b}",
                causes[rank].ranks
            )))
        })
    }

    /// Compares results with what MPI asks for.
    fn compare(&self, memories: &[Memory<Token>]) -> Result<(), Fault> {
        for rank in self.ranks() {
            for (i, wanted) in self.wanted(rank).into_iter().enumerate() {
                let got = memories[rank as usize]
                    .recv
                    .as_ref()
                    .and_then(|r| r.get(i).copied().flatten());
                let same = got.is_some_and(|got| (got.unit, got.ranks) == wanted);
                if !same {
                    return Err(Fault::new(format!(
                        "rank {rank}, unit {i} of the result: {got:x?}, not {wanted:x?}"
                    )));
                }
                let first = memories[0].recv.as_ref().and_then(|r| r.get(i).copied().flatten());
                if self.call.fixed && got.map(|g| g.form) != Some(Token::in_order(wanted.1, wanted.0).form) {
                    return Err(Fault::new(format!(
                        "rank {rank}, unit {i}: not combined in the fixed order"
                    )));
                }
                if self.call.operation == Operation::Allreduce && got.map(|g| g.form) != first.map(|f| f.form) {
                    return Err(Fault::new(format!(
                        "rank {rank}, unit {i}: combined otherwise than on rank 0"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Unit and contributing ranks of each unit of a result, from its start.
    fn wanted(&self, rank: Rank) -> Vec<(u64, u64)> {
        use Operation as O;
        let (p, root, blocks) = (self.network.size(), rank == self.call.root, self.blocks(rank));
        let moved = |from: Rank, offset: u64, n: u64| {
            (offset..offset + n)
                .map(move |i| (Token::unit(from, i).unit, 1 << from))
                .collect::<Vec<_>>()
        };
        let below = |r: u32| if r == 64 { u64::MAX } else { (1u64 << r) - 1 };
        let combined = |ranks: u64, from: u64, n: u64| (from..from + n).map(|i| (i, ranks)).collect::<Vec<_>>();
        match self.call.operation {
            O::Barrier => Vec::new(),
            O::Bcast => moved(self.call.root, 0, blocks.size(0)),
            O::Reduce | O::Gather | O::Gatherv if !root => Vec::new(),
            O::Reduce | O::Allreduce => combined(below(p), 0, blocks.size(0)),
            O::Scan => combined(below(rank + 1), 0, blocks.size(0)),
            O::Exscan if rank == 0 => Vec::new(),
            O::Exscan => combined(below(rank), 0, blocks.size(0)),
            O::Gather | O::Gatherv | O::Allgather | O::Allgatherv => {
                self.ranks().flat_map(|r| moved(r, 0, blocks.size(r))).collect()
            }
            O::Scatter | O::Scatterv if self.in_place(rank) => Vec::new(),
            O::Scatter | O::Scatterv => moved(self.call.root, blocks.offset(rank), blocks.size(rank)),
            O::Alltoall | O::Alltoallv | O::Alltoallw => {
                let from = |r: Rank| (r, self.blocks(r));
                self.ranks()
                    .map(from)
                    .flat_map(|(r, b)| moved(r, b.offset(rank), b.size(rank)))
                    .collect()
            }
            O::ReduceScatter | O::ReduceScatterBlock => combined(below(p), blocks.offset(rank), blocks.size(rank)),
            other => unreachable!("{other:?} is checked by its graph"),
        }
    }
}
