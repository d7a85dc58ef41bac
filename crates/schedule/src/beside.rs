// SPDX-License-Identifier: Apache-2.0
//! Long blocks among unequal ones of a group that shares memory: straight messages beside what goes there in cells.
//!
//! Who gives a block and who takes it both know its length, so both know whether it is long.

use crate::recorded::Recorded;
use crate::script::{Kind, Piece, Script};
use crate::step::{Action, After, Buffer, Rank, Slice};
use crate::{Blocks, Call, Operation};

/// Slot of such a message.
pub const LONG_BLOCK: u16 = Piece::whole(0).slot(Kind::Share);

/// The messages of process `me`, one of `size`, for its long blocks in a gatherv, scatterv or allgatherv, or in an
/// alltoallv or alltoallw that is not in place; `is_long` says it of a block by its giver, its taker and its bytes, and
/// says the same where it is given and where it is taken. `None`: there are none.
///
/// A block of an allgatherv goes from its owner to everybody, too: each member copies it once, out of the owner's
/// memory, and waits for nobody who hands it on.
pub fn long_blocks(call: &Call, size: u32, me: Rank, is_long: impl Fn(Rank, Rank, u64) -> bool) -> Option<Recorded> {
    let is_long = |giver, taker, units| is_long(giver, taker, call.bytes(units));
    let slot = LONG_BLOCK;
    let whole = |buffer, blocks: &Blocks, rank| match blocks {
        Blocks::Known(_) => slice(buffer, blocks.offset(rank), blocks.size(rank)),
        _ => slice(buffer, 0, blocks.size(rank)),
    };
    let mut script = Script::default();
    let mut any = false;
    for d in 1..size {
        let (to, from) = ((me + d) % size, (me + size - d) % size);
        let (sends, receives) = match call.operation {
            Operation::Gatherv => (me != call.root && to == call.root, me == call.root),
            Operation::Scatterv => (me == call.root, me != call.root && from == call.root),
            Operation::Alltoallv | Operation::Alltoallw | Operation::Allgatherv => (true, true),
            _ => (false, false),
        };
        if sends {
            let data = match call.operation {
                Operation::Allgatherv if call.in_place => whole(Buffer::Recv, &call.blocks, me),
                Operation::Allgatherv => slice(Buffer::Send, 0, call.blocks.size(me)),
                _ => whole(Buffer::Send, &call.blocks, to),
            };
            if is_long(me, to, data.length) {
                script.push(Action::Send { to, data, slot }, After::NONE);
                any = true;
            }
        }
        if receives {
            let by_source = match call.operation {
                Operation::Gatherv | Operation::Scatterv | Operation::Allgatherv => &call.blocks,
                _ => &call.receive_blocks,
            };
            let data = whole(Buffer::Recv, by_source, from);
            if is_long(from, me, data.length) {
                script.push(Action::Receive { from, data, slot }, After::NONE);
                any = true;
            }
        }
    }
    any.then(|| Recorded::of(Box::new(script), usize::MAX)).flatten()
}

fn slice(buffer: Buffer, offset: u64, length: u64) -> Slice {
    Slice { buffer, offset, length }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What goes from whom to whom (bytes), as the senders say it and as the receivers do.
    fn messages(call: impl Fn(Rank) -> Call, size: u32, longest: u64) -> [Vec<(Rank, Rank, Slice)>; 2] {
        let mut told = [Vec::new(), Vec::new()];
        for me in 0..size {
            let Some(plan) = long_blocks(&call(me), size, me, |_, _, bytes| bytes > longest) else {
                continue;
            };
            let mut plan = plan.plan();
            while let Some(step) = plan.next_step() {
                match step.action {
                    Action::Send { to, data, .. } => told[0].push((me, to, data)),
                    Action::Receive { from, data, .. } => told[1].push((from, me, data)),
                    other => panic!("{other:?}"),
                }
            }
        }
        for told in &mut told {
            told.sort_by_key(|(from, to, _)| (*from, *to));
        }
        told
    }

    #[test]
    fn long_blocks_of_an_allgatherv_go_from_their_owner_to_everybody() {
        let lengths = [10, 100, 50, 200];
        for in_place in [false, true] {
            let call = |_| {
                let mut call = Call::new(Operation::Allgatherv, 0);
                call.blocks = Blocks::known(lengths);
                call.in_place = in_place;
                call
            };
            let [sent, received] = messages(call, 4, 50);
            let long = |rank: &Rank| lengths[*rank as usize] > 50;
            let pairs: Vec<(Rank, Rank)> = (0..4)
                .filter(long)
                .flat_map(|from| (0..4).filter(move |&to| to != from).map(move |to| (from, to)))
                .collect();
            for told in [&sent, &received] {
                let told: Vec<_> = told.iter().map(|(from, to, _)| (*from, *to)).collect();
                assert_eq!(told, pairs);
            }
            for (from, _, data) in &received {
                let offset = lengths[..*from as usize].iter().sum();
                assert_eq!(*data, slice(Buffer::Recv, offset, lengths[*from as usize]));
            }
            for ((_, _, data), (_, _, lands)) in sent.iter().zip(&received) {
                let source = if in_place {
                    *lands
                } else {
                    slice(Buffer::Send, 0, lands.length)
                };
                assert_eq!(*data, source);
            }
        }
    }
}
