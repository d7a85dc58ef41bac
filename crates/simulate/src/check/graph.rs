// SPDX-License-Identifier: Apache-2.0
//! Neighbourhood collectives over a graph.

use super::process::Memory;
use super::token::Token;
use super::world::{Manner, World};
use super::{Fault, Report};
use isthmus_schedule::step::{Rank, WINDOW};
use isthmus_schedule::{Blocks, Call, Edge, Neighbours, Operation, neighbor_plan};
use isthmus_topology::Shape;
use std::sync::Arc;

/// A neighbourhood collective of a whole group, at most 64 processes.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The group.
    pub shape: Arc<Shape>,
    /// Edges: from, to, units of the block. Several between the same two processes and from a process to itself may be
    /// there. In neighbor_allgather(v) the units are those of the process they come from.
    pub edges: Vec<(Rank, Rank, u64)>,
    /// Which operation.
    pub operation: Operation,
}

impl Graph {
    /// Runs the plans. The seed decides the order of steps.
    pub fn check(&self, seed: u64) -> Result<Report, Fault> {
        let manner = Manner {
            seed,
            window: WINDOW,
            commutative: true,
            unit_bytes: 1,
        };
        let members = (0..self.shape.size()).map(|rank| {
            let (call, neighbours) = self.call_of(rank);
            (neighbor_plan(&call, &Arc::new(neighbours), rank), self.input(rank))
        });
        let outcome = World::new(&self.shape, manner, members.collect()).run()?;
        for (rank, memory) in outcome.memories.iter().enumerate() {
            let got: Option<Vec<u64>> = memory.recv.iter().flatten().map(|t| t.map(|t| t.unit)).collect();
            let wanted = self.wanted(rank as Rank);
            if got.as_ref() != Some(&wanted) {
                return Err(Fault::new(format!("rank {rank} has {got:x?}, not {wanted:x?}")));
            }
        }
        Ok(Report {
            data: outcome.crossings,
            ..Report::default()
        })
    }

    fn same(&self) -> bool {
        matches!(
            self.operation,
            Operation::NeighborAllgather | Operation::NeighborAllgatherv
        )
    }

    /// Edges out of (or into) a process, each with the other end, its slot and its units.
    fn of(&self, rank: Rank, outward: bool) -> Vec<(Rank, u16, u64)> {
        let mut found = Vec::new();
        for (i, &(from, to, units)) in self.edges.iter().enumerate() {
            if (if outward { from } else { to }) == rank {
                let slot = self.edges[..i].iter().filter(|e| (e.0, e.1) == (from, to)).count();
                found.push((if outward { to } else { from }, slot as u16, units));
            }
        }
        found
    }

    fn call_of(&self, rank: Rank) -> (Call, Neighbours) {
        let (out, into) = (self.of(rank, true), self.of(rank, false));
        let edges = |list: &[(Rank, u16, u64)]| {
            let edge = |&(rank, slot, _): &(Rank, u16, u64)| Edge { rank: Some(rank), slot };
            list.iter().map(edge).collect()
        };
        let neighbours = Neighbours {
            sources: edges(&into),
            destinations: edges(&out),
        };
        let mut call = Call::new(self.operation, 0);
        call.receive_blocks = Blocks::known(into.iter().map(|e| e.2));
        call.blocks = match self.same() {
            true => Blocks::Equal(out.first().map_or(0, |e| e.2)),
            false => Blocks::known(out.iter().map(|e| e.2)),
        };
        (call, neighbours)
    }

    fn input(&self, rank: Rank) -> Memory<Token> {
        let units: u64 = self.of(rank, false).iter().map(|e| e.2).sum();
        let given = self.of(rank, true);
        let given: u64 = match self.same() {
            true => given.first().map_or(0, |e| e.2),
            false => given.iter().map(|e| e.2).sum(),
        };
        Memory {
            send: Some((0..given).map(|i| Some(Token::unit(rank, i))).collect()),
            recv: Some(vec![None; units as usize]),
        }
    }

    fn wanted(&self, rank: Rank) -> Vec<u64> {
        let mut wanted = Vec::new();
        for (from, slot, units) in self.of(rank, false) {
            let given = self.of(from, true);
            let before = given.iter().take_while(|e| (e.0, e.1) != (rank, slot));
            let at: u64 = if self.same() { 0 } else { before.map(|e| e.2).sum() };
            wanted.extend((at..at + units).map(|i| Token::unit(from, i).unit));
        }
        wanted
    }
}
