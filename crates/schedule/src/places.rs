// SPDX-License-Identifier: Apache-2.0
//! Scratch memory in places of one piece of a long message, used again by later pieces.

use crate::script::{Cut, Piece, Script};
use crate::step::{Buffer, Slice};

impl Cut {
    /// Scratch memory for pieces that are dealt out to shares, with so many places in each lane of a share. Lanes are a
    /// multiple of the shares, so that a lane's pieces are all of one share.
    pub(crate) fn places(&self, script: &mut Script, spares: impl ExactSizeIterator<Item = u64>) -> Places {
        self.places_of(script, spares, self.piece.min(self.total))
    }

    /// The same where places are of so many units.
    pub(crate) fn places_of(
        &self,
        script: &mut Script,
        spares: impl ExactSizeIterator<Item = u64>,
        piece: u64,
    ) -> Places {
        let lanes = self.lanes.min(self.pieces());
        let rows = lanes.div_ceil((spares.len() as u64).max(1));
        let mut first = 0;
        let shares = spares.map(|spares| {
            first += spares * rows;
            (first - spares * rows, spares)
        });
        let shares = shares.collect();
        Places {
            buffer: script.memory(first * piece),
            piece,
            rows,
            shares,
        }
    }

    /// Scratch memory with `spares` places for a piece in each lane.
    pub(crate) fn pool(&self, script: &mut Script, spares: u64) -> Pool {
        let piece = self.piece.min(self.total);
        let lanes = self.lanes.min(self.pieces());
        Pool {
            buffer: script.memory(spares * piece * lanes),
            piece,
            spares,
        }
    }
}

/// Scratch memory in places of one piece.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pool {
    buffer: Buffer,
    piece: u64,
    spares: u64,
}

impl Pool {
    /// Place `index` of a piece's lane, as long as the piece.
    pub(crate) fn place(&self, piece: &Piece, index: usize) -> Slice {
        let offset = (piece.lane * self.spares + index as u64) * self.piece;
        Slice {
            buffer: self.buffer,
            offset,
            length: piece.length,
        }
    }
}

/// Scratch memory in places of one piece, for several shares.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    buffer: Buffer,
    piece: u64,
    /// Lanes of each share.
    rows: u64,
    /// First place of each share, and places of one lane.
    shares: Box<[(u64, u64)]>,
}

impl Places {
    /// Place `index` of a piece's lane, as long as the piece.
    pub(crate) fn place(&self, piece: &Piece, index: usize) -> Slice {
        let count = self.shares.len() as u64;
        let (first, spares) = self.shares[(piece.number % count) as usize];
        let place = first + piece.number / count % self.rows * spares + index as u64;
        Slice {
            buffer: self.buffer,
            offset: place * self.piece,
            length: piece.length,
        }
    }
}

impl Pool {
    /// `count` places of a piece's lane without gaps between them. A pool is used either so or with [`Pool::place`].
    pub(crate) fn row(&self, piece: &Piece, first: u64, count: u64) -> Slice {
        Slice {
            buffer: self.buffer,
            offset: piece.lane * self.spares * self.piece + first * piece.length,
            length: count * piece.length,
        }
    }
}
