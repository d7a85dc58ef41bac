// SPDX-License-Identifier: Apache-2.0
//! How the blocks of a step together are cut into pieces, and in which rounds they go.

use crate::groups::Cut;
use isthmus_schedule::{ALONE, COPIED, Operation as What};
use isthmus_transport::slabs::{CellSize, SharedSlabs, Slab};

/// Longest piece of a broadcast: its receivers begin while the root goes on.
const BROADCAST: u64 = 128 << 10;

/// Short rounds of a step that may be copied.
const COPY_ROUNDS: u64 = 2;

impl Cut {
    /// Blocks fit into the shortest cells.
    pub(crate) fn is_short(&self) -> bool {
        matches!(self.size, CellSize::Word | CellSize::Short)
    }

    /// `all`: the members of the place are those of the group.
    #[inline]
    pub(crate) fn new(slabs: &dyn SharedSlabs, what: What, members: u32, block: u64, unit: u64, all: bool) -> Self {
        let room = |size| {
            let cell = slabs.cell_bytes(members, size) as u64;
            match what {
                // Only long cells leave the memory between them free.
                What::Bcast if size == CellSize::Long => (slabs.round_bytes(members, size) as u64).min(BROADCAST),
                // Nobody needs one for itself.
                what if gives_others(what) => cell / u64::from(members - 1).max(1),
                _ => cell,
            }
        };
        let twice = matches!(what, What::Allreduce | What::Reduce) && block > ALONE;
        let one_gives = matches!(what, What::Bcast | What::Scatter);
        let may = |&size: &CellSize| block <= room(size) && (size != CellSize::Word || one_gives);
        if let Some(size) = [CellSize::Word, CellSize::Short, CellSize::Middle]
            .into_iter()
            .find(may)
        {
            return Self {
                twice,
                ..Self::of_one_round(size, block)
            };
        }
        // Whole elements, or whole cache lines.
        let room = room(CellSize::Long);
        let grain = if unit > 1 || room < 64 { unit } else { 64 };
        let piece = (room / grain * grain).max(1);
        Self {
            size: CellSize::Long,
            piece,
            pieces: block.div_ceil(piece),
            twice,
            pulls: all && may_copy(what, members, block),
            rows: false,
        }
    }

    /// A block that fits into a cell of this size.
    pub(crate) fn of_one_round(size: CellSize, block: u64) -> Self {
        Self {
            size,
            piece: block.max(1),
            pieces: 1,
            twice: false,
            pulls: false,
            rows: false,
        }
    }

    /// In cells of which size the blocks go, if they take one round, and no long cells.
    pub(crate) fn one_round(&self) -> Option<CellSize> {
        (self.size != CellSize::Long && !self.twice).then_some(self.size)
    }

    /// Of an operation of blocks that may differ in length.
    pub(crate) fn of_rows() -> Self {
        Self {
            size: CellSize::Short,
            piece: 1,
            pieces: 1,
            twice: false,
            pulls: false,
            rows: true,
        }
    }

    /// Rounds in each size.
    pub(crate) fn rounds(&self) -> [u64; CellSize::COUNT] {
        let mut rounds = [0; CellSize::COUNT];
        if self.pulls {
            rounds[CellSize::Short as usize] = COPY_ROUNDS;
        }
        rounds[CellSize::Middle as usize] = u64::from(self.rows);
        rounds[self.size as usize] += self.long_rounds();
        rounds
    }

    /// Rounds of the cells in which pieces go.
    pub(crate) fn long_rounds(&self) -> u64 {
        self.pieces * if self.twice { 2 } else { 1 }
    }
}

/// Whether blocks of so many bytes may be copied. Who reduces what several give would copy one block after another
/// while all wait for it; through cells each goes on when it has given, and the work is shared. (4 members on two
/// cores, 64 KiB, us, copied / through cells: 23 / 16.)
pub(crate) fn may_copy(what: What, members: u32, block: u64) -> bool {
    let several_copy = matches!(
        what,
        What::Bcast | What::Scatter | What::Gather | What::Allgather | What::Alltoall | What::ReduceScatterBlock
    );
    (several_copy || (what == What::Reduce && members <= 2)) && block >= COPIED
}

/// Those whose contributions a member needs for its result.
pub(crate) fn contributors(what: What, slab: &Slab) -> std::ops::Range<u32> {
    match what {
        What::Scan => 0..slab.me + 1,
        What::Exscan => 0..slab.me,
        _ => 0..slab.members,
    }
}

/// Whether each member gives one block to each other, and has its own itself.
#[inline]
pub(super) fn gives_others(what: What) -> bool {
    matches!(what, What::Alltoall | What::ReduceScatterBlock)
}

/// Number of the block for a member among those that another gives.
#[inline]
pub(super) fn place_among_others(member: u32, giver: u32) -> u32 {
    member - u32::from(member > giver)
}
