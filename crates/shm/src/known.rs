// SPDX-License-Identifier: Apache-2.0
//! What a process knows of the frames in which groups meet.

use isthmus_transport::meeting::Lane;

use crate::desk::Turns;
use crate::frames::FRAMES;

/// What this process knows of the frames.
#[derive(Default)]
pub(crate) struct Frames {
    /// Frames where this process is among those that sleep.
    pub(crate) watched: Vec<usize>,
    /// Per frame and lane, how far rounds are.
    pub(crate) turns: Vec<[Turns; Lane::COUNT]>,
    /// Per frame, what is known of middle cells.
    pub(crate) middle: [MiddleCells; FRAMES],
    /// Bytes from the start of a long cell that are known to have memory: frame, round, cell; only some of them, the
    /// last used.
    pub(crate) backed: Vec<((u32, usize, u32), usize)>,
}

/// Which middle cells of a frame are known to have memory: a bit for each round.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MiddleCells {
    /// Those of the first member.
    pub(crate) first: u32,
    /// Those of this one.
    pub(crate) own: u32,
    /// All others.
    pub(crate) others: u32,
}
