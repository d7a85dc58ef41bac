// SPDX-License-Identifier: Apache-2.0
//! Collectives between the two groups of an intercommunicator.

use super::process::Memory;
use super::token::Token;
use super::world::{Manner, World};
use super::{Crossings, Fault, Report};
use isthmus_schedule::step::{Plan, Rank, WINDOW};
use isthmus_schedule::{Blocks, Call, Network, Operation, Sides, inter_counts_phase, inter_plan};
use std::sync::Arc;

/// A collective call of two whole groups, together at most 64 processes: the ranks below `low` and the others.
#[derive(Clone, Debug)]
pub struct Groups {
    /// Both groups together.
    pub network: Arc<Network>,
    /// Number of processes of the first group, not 0 and not all.
    pub low: Rank,
    /// What all members say; `blocks` and `receive_blocks` are filled in. Root: a rank of both together.
    pub call: Call,
    /// Units by rank; for operations with equal blocks those of ranks 0 and `low` count for their groups, and in
    /// reductions that of rank 0 for all. Alltoallv: rank i has (units of i + j) mod 3 units for j.
    pub units: Vec<u64>,
}

impl Groups {
    /// Runs the plans. The seed decides the order of steps.
    pub fn check(&self, seed: u64) -> Result<Report, Fault> {
        let manner = Manner {
            seed,
            window: WINDOW,
            commutative: self.call.commutative,
            unit_bytes: self.call.unit_bytes,
        };
        let mut calls: Vec<Call> = self.ranks().map(|rank| self.call_of(rank)).collect();
        let counts = self.run_counts(&mut calls, manner)?;
        let members = calls.iter().zip(self.ranks()).map(|(call, rank)| {
            let plan: Box<dyn Plan> = match self.takes_part(rank) {
                true => inter_plan(call, &self.network, &self.sides(rank), rank),
                false => isthmus_schedule::nothing(),
            };
            (plan, self.input(rank))
        });
        let outcome = World::new(&self.network, manner, members.collect()).run()?;
        for (rank, memory) in self.ranks().zip(&outcome.memories) {
            let got = memory.recv.as_deref().unwrap_or_default();
            let wanted = self.wanted(rank);
            for (i, wanted) in wanted.iter().enumerate() {
                let unit = got.get(i).copied().flatten();
                if unit.map(|t| (t.unit, t.ranks)) != Some(*wanted) {
                    return Err(Fault::new(format!("rank {rank}, unit {i}: {unit:x?}, not {wanted:x?}")));
                }
            }
        }
        Ok(Report {
            data: outcome.crossings,
            counts,
            ..Report::default()
        })
    }

    fn ranks(&self) -> std::ops::Range<Rank> {
        0..self.network.size()
    }

    fn sides(&self, rank: Rank) -> Sides {
        let (low, high) = (0..self.low, self.low..self.network.size());
        match low.contains(&rank) {
            true => Sides {
                local: low,
                remote: high,
            },
            false => Sides {
                local: high,
                remote: low,
            },
        }
    }

    fn takes_part(&self, rank: Rank) -> bool {
        !self.call.operation.is_rooted() || rank == self.call.root || self.sides(rank).remote.contains(&self.call.root)
    }

    /// Size of the own block of a rank where blocks are by rank.
    fn units_of(&self, rank: Rank) -> u64 {
        use Operation as O;
        match self.call.operation {
            O::Gatherv | O::Scatterv | O::Allgatherv => self.units[rank as usize],
            O::Allgather | O::Alltoall if rank >= self.low => self.units[self.low as usize],
            _ => self.units[0],
        }
    }

    /// Alltoall(v): what `from` has for `to`.
    fn pair(&self, from: Rank, to: Rank) -> u64 {
        match self.call.operation {
            Operation::Alltoall => self.units_of(from),
            _ => (self.units[from as usize] + u64::from(to)) % 3,
        }
    }

    /// Blocks of reduce_scatter: by rank within a group, the total the same in both.
    fn shares(&self, group: &std::ops::Range<Rank>) -> Vec<u64> {
        let total = u64::from(self.low) * u64::from(self.network.size() - self.low) * self.units[0];
        let count = u64::from(group.end - group.start);
        match self.call.operation {
            Operation::ReduceScatterBlock => vec![total / count; count as usize],
            _ => (0..count).map(|i| if i == 0 { total } else { 0 }).collect(),
        }
    }

    fn call_of(&self, rank: Rank) -> Call {
        use Operation as O;
        let sides = self.sides(rank);
        let (root, own) = (rank == self.call.root, self.units_of(rank));
        let theirs = sides.remote.clone();
        let known = |sizes: Vec<u64>| Blocks::known(sizes);
        let remote = || known(theirs.clone().map(|r| self.units_of(r)).collect());
        let (blocks, receive_blocks) = match self.call.operation {
            O::Gatherv | O::Scatterv if root => (remote(), Blocks::Equal(0)),
            O::Gatherv | O::Scatterv => (Blocks::Own(own), Blocks::Equal(0)),
            O::Allgather => (Blocks::Equal(own), Blocks::Equal(self.units_of(theirs.start))),
            O::Allgatherv => (Blocks::Own(own), remote()),
            O::Alltoall => (Blocks::Equal(own), Blocks::Equal(self.units_of(theirs.start))),
            O::Alltoallv => (
                known(theirs.clone().map(|r| self.pair(rank, r)).collect()),
                known(theirs.clone().map(|r| self.pair(r, rank)).collect()),
            ),
            O::ReduceScatterBlock => (Blocks::Equal(self.shares(&sides.local)[0]), Blocks::Equal(0)),
            O::ReduceScatter => (known(self.shares(&sides.local)), Blocks::Equal(0)),
            _ => (Blocks::Equal(own), Blocks::Equal(0)),
        };
        Call {
            blocks,
            receive_blocks,
            ..self.call.clone()
        }
    }

    fn run_counts(&self, calls: &mut [Call], manner: Manner) -> Result<Crossings, Fault> {
        let manner = Manner {
            unit_bytes: 8,
            ..manner
        };
        let members = calls.iter().zip(self.ranks()).map(|(call, rank)| {
            let phase = match self.takes_part(rank) {
                true => inter_counts_phase(call, &self.network, &self.sides(rank), rank),
                false => None,
            };
            let Some(phase) = phase else {
                let nothing = Memory { send: None, recv: None };
                return (isthmus_schedule::nothing(), nothing);
            };
            let send = match call.operation == Operation::Scatterv && rank == call.root {
                true => std::iter::once(0)
                    .chain(self.sides(rank).remote.map(|r| self.units_of(r)))
                    .map(Some)
                    .collect(),
                false => vec![Some(self.units_of(rank))],
            };
            let recv = vec![None; phase.receive as usize];
            (
                phase.plan,
                Memory {
                    send: Some(send),
                    recv: Some(recv),
                },
            )
        });
        let outcome = World::<u64>::new(&self.network, manner, members.collect()).run()?;
        for (call, memory) in calls.iter_mut().zip(outcome.memories) {
            let received: Option<Vec<u64>> = memory.recv.unwrap_or_default().into_iter().collect();
            match received {
                None => return Err(Fault::new("a count has not arrived")),
                Some(counts) if !counts.is_empty() => call.blocks = Blocks::Subtree(counts.into()),
                Some(_) => {}
            }
        }
        Ok(outcome.crossings)
    }

    fn input(&self, rank: Rank) -> Memory<Token> {
        use Operation as O;
        let sides = self.sides(rank);
        let (root, own) = (rank == self.call.root, self.units_of(rank));
        let row = |make: fn(Rank, u64) -> Token, n: u64| Some((0..n).map(|i| Some(make(rank, i))).collect());
        let empty = |n: u64| Some(vec![None; n as usize]);
        let all = || sides.remote.clone().map(|r| self.units_of(r)).sum();
        let (send, recv) = match self.call.operation {
            O::Barrier => (None, None),
            O::Bcast if root => (None, row(Token::unit, own)),
            O::Bcast => (None, empty(own)),
            O::Reduce if root => (None, empty(own)),
            O::Reduce => (row(Token::element, own), None),
            O::Allreduce => (row(Token::element, own), empty(own)),
            O::Gather | O::Gatherv if root => (None, empty(all())),
            O::Gather | O::Gatherv => (row(Token::unit, own), None),
            O::Scatter | O::Scatterv if root => (row(Token::unit, all()), None),
            O::Scatter | O::Scatterv => (None, empty(own)),
            O::Allgather | O::Allgatherv => (row(Token::unit, own), empty(all())),
            O::Alltoall | O::Alltoallv => (
                row(Token::unit, sides.remote.clone().map(|r| self.pair(rank, r)).sum()),
                empty(sides.remote.clone().map(|r| self.pair(r, rank)).sum()),
            ),
            _ => {
                let shares = self.shares(&sides.local);
                let mine = shares[(rank - sides.local.start) as usize];
                (row(Token::element, shares.iter().sum()), empty(mine))
            }
        };
        Memory { send, recv }
    }

    /// Unit and contributing ranks of each unit of a result.
    fn wanted(&self, rank: Rank) -> Vec<(u64, u64)> {
        use Operation as O;
        let sides = self.sides(rank);
        let (root, own) = (rank == self.call.root, self.units_of(rank));
        let moved = |from: Rank, at: u64, n: u64| {
            (at..at + n)
                .map(|i| (Token::unit(from, i).unit, 1 << from))
                .collect::<Vec<_>>()
        };
        let theirs: u64 = sides.remote.clone().map(|r| 1 << r).sum();
        let combined = |at: u64, n: u64| (at..at + n).map(|i| (i, theirs)).collect::<Vec<_>>();
        let all = || {
            let remote = sides.remote.clone();
            remote.flat_map(|r| moved(r, 0, self.units_of(r))).collect()
        };
        match self.call.operation {
            _ if !self.takes_part(rank) => Vec::new(),
            O::Barrier => Vec::new(),
            O::Bcast => moved(self.call.root, 0, own),
            O::Reduce | O::Gather | O::Gatherv if !root => Vec::new(),
            O::Gather | O::Gatherv | O::Allgather | O::Allgatherv => all(),
            O::Reduce | O::Allreduce => combined(0, own),
            O::Scatter | O::Scatterv if root => Vec::new(),
            O::Scatter | O::Scatterv => {
                let before = (sides.local.start..rank).map(|r| self.units_of(r)).sum();
                moved(self.call.root, before, own)
            }
            O::Alltoall | O::Alltoallv => {
                let block = |from: Rank| {
                    let before = (sides.local.start..rank).map(|r| self.pair(from, r)).sum();
                    moved(from, before, self.pair(from, rank))
                };
                sides.remote.clone().flat_map(block).collect()
            }
            _ => {
                let (shares, i) = (self.shares(&sides.local), (rank - sides.local.start) as usize);
                combined(shares[..i].iter().sum(), shares[i])
            }
        }
    }
}
