// SPDX-License-Identifier: Apache-2.0
//! Unequal blocks that are so long that they go apart: straight between their owner and the root of a gatherv or
//! scatterv, over the outermost tier, with no leader between. So several processes of a site carry shares over it in
//! parallel, and nothing of a block waits until a leader has all of those of its site.
//!
//! The owner knows how long his block is, and so do the root and all who act for him: nobody needs to be told. From
//! which length on blocks do so is chosen by cost, from what all members know.

use crate::choose::Question;
use crate::cost::Flow;
use crate::row::BlockRow;
use crate::script::{Kind, Piece, Script};
use crate::step::{Action, After, Buffer, Rank, Slice};
use crate::strategy::Strategy;
use crate::{Blocks, Call, Network, star};
use std::ops::Range;

/// Lengths of blocks that are tried, bytes: powers of two from the one on, so many.
const TRIED: (u64, u32) = (16 << 10, 11);

/// How equal blocks would go.
type Together = fn(&Question, &Network, Flow) -> Strategy;

/// Bytes of a block from which on it costs less to go apart than `together`; `u64::MAX` if it never does.
pub(crate) fn length(question: &Question, network: &Network, way: Flow, together: Together) -> u64 {
    if network.tiers() < 2 || network.clusters(1) < 2 || network.clusters(1) == network.size() {
        return u64::MAX;
    }
    let tried = (0..TRIED.1).map(|power| TRIED.0 << power);
    let pays = |&block: &u64| {
        let equal = Question {
            bytes: Some(block),
            ..*question
        };
        let together = together(&equal, network, way).cost.total();
        let apart = star::cost_of_streams(network, way, block).total();
        apart.saturating_add(apart / 16) < together
    };
    tried.into_iter().find(pays).unwrap_or(u64::MAX)
}

/// Which blocks of a call go apart.
pub(crate) struct Apart<'a> {
    call: &'a Call,
    network: &'a Network,
    /// Bytes of a block from which on it does.
    length: u64,
    /// Position of the root.
    root: u32,
}

impl<'a> Apart<'a> {
    /// `None` where no block can.
    pub(crate) fn of(call: &'a Call, network: &'a Network, strategy: &Strategy) -> Option<Self> {
        let possible = strategy.segment < u64::MAX && network.tiers() > 1 && !matches!(call.blocks, Blocks::Equal(_));
        possible.then(|| Self {
            call,
            network,
            length: strategy.segment,
            root: network.position_of(call.root),
        })
    }

    /// Whether the block of a position does.
    fn goes(&self, row: &BlockRow, position: u32) -> bool {
        let near = self.network.cluster_of(1, position) == self.network.cluster_of(1, self.root);
        !near && self.call.bytes(row.length(position..position + 1)) >= self.length
    }

    /// Sizes of a row of positions without those that do.
    pub(crate) fn rest(&self, row: &BlockRow, positions: Range<u32>) -> BlockRow {
        let size = |position: u32| match self.goes(row, position) {
            true => 0,
            false => row.length(position..position + 1),
        };
        BlockRow::of_positions(positions.start, positions.map(size))
    }

    /// Messages of blocks that go apart, where all are known.
    pub(crate) fn messages(&self) -> Option<u64> {
        let Blocks::Known(_) = self.call.blocks else {
            return None;
        };
        let row = BlockRow::new(&self.call.blocks, self.network, 0);
        Some(
            (0..self.network.size())
                .filter(|&position| self.goes(&row, position))
                .count() as u64,
        )
    }

    /// What a process that is not the root does about its own block, which stands in `buffer` from the begin.
    pub(crate) fn own(&self, script: &mut Script, row: &BlockRow, position: u32, buffer: Buffer) {
        if !self.goes(row, position) {
            return;
        }
        let data = Slice {
            buffer,
            offset: 0,
            length: row.length(position..position + 1),
        };
        message(script, self.call.root, data, buffer == Buffer::Send);
    }

    /// What the root does about the blocks of others, which stand in `buffer` in order of rank: sites in turn.
    pub(crate) fn others(&self, script: &mut Script, row: &BlockRow, buffer: Buffer) {
        for position in star::in_turn(self.network).filter(|&position| self.goes(row, position)) {
            self.other(script, row, position, buffer);
        }
    }

    fn other(&self, script: &mut Script, row: &BlockRow, position: u32, buffer: Buffer) {
        let rank: Rank = self.network.rank_at(position);
        let data = Slice {
            buffer,
            offset: self.call.blocks.offset(rank),
            length: row.length(position..position + 1),
        };
        message(script, rank, data, buffer == Buffer::Send);
    }
}

/// Sends or receives a block that no other step touches.
fn message(script: &mut Script, peer: Rank, data: Slice, sends: bool) {
    let (data, slot) = (data.or_nothing(), Piece::whole(0).slot(Kind::Exchange));
    let action = match sends {
        true => Action::Send { to: peer, data, slot },
        false => Action::Receive { from: peer, data, slot },
    };
    script.push(action, After::NONE);
}
