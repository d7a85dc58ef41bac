// SPDX-License-Identifier: Apache-2.0
//! Long blocks among unequal ones of a group that shares memory: straight messages beside what goes there in cells.
//!
//! Who gives a block and who takes it both know its length, so both know whether it is long.

use crate::recorded::Recorded;
use crate::script::{Kind, Piece, Script};
use crate::step::{Action, After, Buffer, Rank, Slice};
use crate::{Blocks, Call, Operation};

/// The messages of process `me`, one of `size`, for its blocks of more than `longest` bytes in a gatherv, scatterv,
/// alltoallv or alltoallw that is not in place. `None`: it has no such blocks.
pub fn long_blocks(call: &Call, size: u32, me: Rank, longest: u64) -> Option<Recorded> {
    let is_long = |units: u64| call.bytes(units) > longest;
    let slot = Piece::whole(0).slot(Kind::Share);
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
            Operation::Alltoallv | Operation::Alltoallw => (true, true),
            _ => (false, false),
        };
        if sends {
            let data = whole(Buffer::Send, &call.blocks, to);
            if is_long(data.length) {
                script.push(Action::Send { to, data, slot }, After::NONE);
                any = true;
            }
        }
        if receives {
            let by_source = match call.operation {
                Operation::Gatherv | Operation::Scatterv => &call.blocks,
                _ => &call.receive_blocks,
            };
            let data = whole(Buffer::Recv, by_source, from);
            if is_long(data.length) {
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
