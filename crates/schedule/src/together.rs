// SPDX-License-Identifier: Apache-2.0
//! **In shared memory: all processes of the group meet there, one step each.**
//!
//! | | |
//! |---|---|
//! | messages | none |
//! | trips | none |
//! | restrictions | all members share memory, and start their operations in the same order ([`Call::together`]) |
//! | paper | – |
//!
//! Reductions combine in order of rank from the left, whatever their length; the fixed order of association is another
//! one.

use crate::amount::Cost;
use crate::cost::{ALONE, SWITCH, combining};
use crate::form::TOGETHER;
use crate::step::{Action, After, Buffer, Circle, Plan, Rank, Slice, Step, Together};
use crate::{Blocks, Call, Network, Operation, Overrides};
use isthmus_topology::Level;

/// Longest block of an alltoall, bytes, among more than so many processes: longer ones wait for memory, whoever copies
/// them, and processes that exchange them pair by pair are up to a tenth quicker (1 MiB, 8 and 16 processes; up to 512
/// KiB they are not, and at 64 KiB they take 1.3 to 1.8 times as long).
const ALLTOALL: u64 = 512 << 10;
const FEW: u32 = 4;

/// Most bytes of all blocks of a reduce_scatter_block through cells: of longer ones messages bring halves, which are
/// combined on the way, unless members copy their parts from each other ([`COPIED`]).
const PARTS: u64 = 64 << 10;

/// Shortest blocks, bytes, that members copy straight out of each other's memory where they can: for others the rounds
/// in which they say where the blocks are cost too much.
pub const COPIED: u64 = 32 << 10;

/// The only step of an operation in shared memory.
struct Once(Option<Together>);

impl Plan for Once {
    fn scratch(&self) -> &[u64] {
        &[]
    }

    fn next_step(&mut self) -> Option<Step> {
        let action = Action::Together(self.0.take()?);
        Some(Step {
            action,
            after: After::NONE,
        })
    }
}

/// The plan of process `me`, if the group shares memory and the operation is quickest there.
pub(crate) fn plan(call: &Call, network: &Network, me: Rank) -> Option<Box<dyn Plan>> {
    let step = together(call, network.overrides(), network.size(), me)?;
    Some(Box::new(Once(Some(step))))
}

/// The only step of process `me`, one of `size`, in an operation, if the group shares memory and the operation is
/// quickest there.
pub fn together(call: &Call, overrides: &Overrides, size: u32, me: Rank) -> Option<Together> {
    if !call.together || call.fixed {
        return None;
    }
    let (what, block) = match (&call.blocks, call.operation) {
        (_, what @ Operation::Barrier) => (what, 0),
        (Blocks::Equal(0), _) => return None,
        (Blocks::Equal(units), what) => (what, *units),
        (Blocks::Known(ends), _) => long_and_alike(call, ends)?,
        _ => return None,
    };
    if !overrides.is_empty() {
        let said = overrides.about(call.operation, None, call.bytes(block));
        if said.name.is_some_and(|name| name != TOGETHER) {
            return None;
        }
    }
    let (give, take) = sides(call, what, block, size, me)?;
    Some(Together {
        circle: Circle::All,
        what,
        root: call.root,
        block,
        give,
        take,
    })
}

/// Blocks of which all members know that they are equally long, and so long that they are copied: the same as those of
/// the operation of equal blocks. (Shorter ones have their own cells.)
fn long_and_alike(call: &Call, ends: &[u64]) -> Option<(Operation, u64)> {
    let what = match call.operation {
        Operation::Allgatherv => Operation::Allgather,
        Operation::ReduceScatter => Operation::ReduceScatterBlock,
        _ => return None,
    };
    let block = *ends.get(1)?;
    let alike = ends.windows(2).all(|ends| ends[1] - ends[0] == block);
    (alike && call.bytes(block) >= COPIED).then_some((what, block))
}

/// What it is expected to take, for processes that come at the same time: memory is copied as cells become full, so
/// giving and taking go on side by side.
pub(crate) fn cost(call: &Call, network: &Network) -> Option<Cost> {
    let step = together(call, network.overrides(), network.size(), call.root)?;
    let (links, all) = (network.links(), u64::from(network.size()));
    let mut cost = Cost::default().and("memory between processes", links.level(Level::Node).latency);
    // Everybody runs once more after the last one has come.
    let crowd = all.div_ceil(u64::from(links.processors.max(1)));
    if crowd > 1 {
        cost = cost.and(
            format!("{all} processes on {} processors", links.processors),
            2 * crowd * SWITCH,
        );
    }
    let (copy, reduce) = work(&step, call, network);
    if copy > 0 {
        cost = cost.and("copying", copy);
    }
    if reduce > 0 {
        cost = cost.and("combining", reduce);
    }
    Some(cost)
}

/// Nanoseconds that the process which does most copies and combines.
pub(crate) fn work(step: &Together, call: &Call, network: &Network) -> (u64, u64) {
    let (links, all) = (network.links(), u64::from(network.size()));
    let most = step.give.length.max(step.take.length);
    let reduce = match step.what.reduces() {
        true => combining(links, call.bytes(step.block), all),
        false => 0,
    };
    (links.copy.at(call.bytes(most)), reduce)
}

/// What the process gives and takes. `None`: nothing to be done together.
fn sides(call: &Call, what: Operation, block: u64, size: u32, me: Rank) -> Option<(Slice, Slice)> {
    use Operation as O;
    let nothing = Slice::NOTHING;
    let slice = |buffer, first: u64, blocks: u64| Slice {
        buffer,
        offset: first * block,
        length: blocks * block,
    };
    let all = u64::from(size);
    let own = |blocks: u64| slice(Buffer::Send, 0, blocks);
    let result = |blocks: u64| slice(Buffer::Recv, 0, blocks);
    let root = me == call.root;
    Some(match (what, call.in_place) {
        (O::Barrier, _) => (nothing, nothing),
        (O::Bcast, _) if root => (result(1), nothing),
        (O::Bcast, _) => (nothing, result(1)),
        (O::Reduce, false) => (own(1), if root { result(1) } else { nothing }),
        (O::Reduce | O::Allreduce, true) => (result(1), result(1)),
        (O::Allreduce, false) => (own(1), result(1)),
        (O::Gather, false) => (own(1), if root { result(all) } else { nothing }),
        (O::Gather | O::Allgather, true) => (slice(Buffer::Recv, u64::from(me), 1), result(all)),
        (O::Allgather, false) => (own(1), result(all)),
        (O::Scatter, true) => (own(all), nothing),
        (O::Scatter, false) => (if root { own(all) } else { nothing }, result(1)),
        (O::Scan | O::Exscan, _) if call.bytes(block) > ALONE => return None,
        (O::ReduceScatterBlock, in_place)
            if call.bytes(block).saturating_mul(all) > PARTS && (in_place || call.bytes(block) < COPIED) =>
        {
            return None;
        }
        (O::Scan, false) => (own(1), result(1)),
        (O::Scan, true) => (result(1), result(1)),
        (O::Exscan, in_place) => {
            let give = if in_place { result(1) } else { own(1) };
            (give, if me == 0 { nothing } else { result(1) })
        }
        (O::ReduceScatterBlock, false) => (own(all), result(1)),
        (O::ReduceScatterBlock, true) => (result(all), result(1)),
        (O::Alltoall, _) if size > FEW && call.bytes(block) > ALLTOALL => return None,
        (O::Alltoall, false) => (own(all), result(all)),
        (O::Alltoall, true) => (result(all), result(all)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What of an operation of these blocks, in bytes, is done as one step.
    fn step(operation: Operation, blocks: &[u64]) -> Option<(Operation, u64)> {
        let mut call = Call::new(operation, 0);
        (call.together, call.unit_bytes) = (true, 1);
        call.blocks = Blocks::known(blocks.iter().copied());
        let step = together(&call, &Overrides::default(), blocks.len() as u32, 0)?;
        Some((step.what, step.block))
    }

    #[test]
    fn known_blocks_that_are_long_and_alike_are_equal_blocks() {
        use Operation as O;
        assert_eq!(step(O::Allgatherv, &[COPIED; 3]), Some((O::Allgather, COPIED)));
        assert_eq!(
            step(O::ReduceScatter, &[COPIED + 1; 4]),
            Some((O::ReduceScatterBlock, COPIED + 1))
        );
        assert_eq!(step(O::Allgatherv, &[COPIED, COPIED + 1]), None);
        assert_eq!(step(O::Allgatherv, &[COPIED - 1; 3]), None);
        // Of these not all members know the lengths.
        assert_eq!(step(O::Gatherv, &[COPIED; 3]), None);
        assert_eq!(step(O::Alltoallv, &[COPIED; 3]), None);
    }
}
