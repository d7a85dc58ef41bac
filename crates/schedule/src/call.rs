// SPDX-License-Identifier: Apache-2.0
//! What is asked for: one collective call, as every member can describe it without communication.

use isthmus_topology::Rank;
use std::sync::Arc;

/// A collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are MPI's")]
pub enum Operation {
    Barrier,
    Bcast,
    Reduce,
    Allreduce,
    Gather,
    Gatherv,
    Scatter,
    Scatterv,
    Allgather,
    Allgatherv,
    Alltoall,
    Alltoallv,
    Alltoallw,
    Scan,
    Exscan,
    ReduceScatterBlock,
    ReduceScatter,
    NeighborAllgather,
    NeighborAllgatherv,
    NeighborAlltoall,
    NeighborAlltoallv,
    NeighborAlltoallw,
}

impl Operation {
    /// All of them, in order of declaration.
    pub const ALL: [Self; 22] = [
        Self::Barrier,
        Self::Bcast,
        Self::Reduce,
        Self::Allreduce,
        Self::Gather,
        Self::Gatherv,
        Self::Scatter,
        Self::Scatterv,
        Self::Allgather,
        Self::Allgatherv,
        Self::Alltoall,
        Self::Alltoallv,
        Self::Alltoallw,
        Self::Scan,
        Self::Exscan,
        Self::ReduceScatterBlock,
        Self::ReduceScatter,
        Self::NeighborAllgather,
        Self::NeighborAllgatherv,
        Self::NeighborAlltoall,
        Self::NeighborAlltoallv,
        Self::NeighborAlltoallw,
    ];

    /// Name in lower case, without `MPI_`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Barrier => "barrier",
            Self::Bcast => "bcast",
            Self::Reduce => "reduce",
            Self::Allreduce => "allreduce",
            Self::Gather => "gather",
            Self::Gatherv => "gatherv",
            Self::Scatter => "scatter",
            Self::Scatterv => "scatterv",
            Self::Allgather => "allgather",
            Self::Allgatherv => "allgatherv",
            Self::Alltoall => "alltoall",
            Self::Alltoallv => "alltoallv",
            Self::Alltoallw => "alltoallw",
            Self::Scan => "scan",
            Self::Exscan => "exscan",
            Self::ReduceScatterBlock => "reduce_scatter_block",
            Self::ReduceScatter => "reduce_scatter",
            Self::NeighborAllgather => "neighbor_allgather",
            Self::NeighborAllgatherv => "neighbor_allgatherv",
            Self::NeighborAlltoall => "neighbor_alltoall",
            Self::NeighborAlltoallv => "neighbor_alltoallv",
            Self::NeighborAlltoallw => "neighbor_alltoallw",
        }
    }

    /// Whether it computes: its units are elements.
    pub fn reduces(self) -> bool {
        matches!(
            self,
            Self::Reduce | Self::Allreduce | Self::Scan | Self::Exscan | Self::ReduceScatterBlock | Self::ReduceScatter
        )
    }

    /// Whether one process gives or gets the blocks of all.
    pub fn is_rooted(self) -> bool {
        matches!(
            self,
            Self::Bcast | Self::Reduce | Self::Gather | Self::Gatherv | Self::Scatter | Self::Scatterv
        )
    }

    /// Whether it goes along the edges of a process topology.
    pub fn is_neighborhood(self) -> bool {
        matches!(
            self,
            Self::NeighborAllgather
                | Self::NeighborAllgatherv
                | Self::NeighborAlltoall
                | Self::NeighborAlltoallv
                | Self::NeighborAlltoallw
        )
    }
}

/// One collective call.
///
/// Unless a field says otherwise its value is equal on all members; then their plans match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Which operation.
    pub operation: Operation,
    /// Root of bcast, reduce, gather(v), scatter(v); else 0.
    pub root: Rank,
    /// Sizes of the blocks, in units. One block (bcast, reduce, allreduce, scan, exscan): `Equal(n)`. Blocks per
    /// process (gather, scatter, allgather, alltoall, reduce_scatter_block): `Equal(n)`. Gatherv, scatterv: `Known` at
    /// the root, `Own` or (after [`counts_phase`](crate::counts_phase)) `Subtree` elsewhere. Allgatherv,
    /// reduce_scatter: `Known`. Alltoallv and alltoallw: `Known`, the own blocks by destination, different on each
    /// member.
    pub blocks: Blocks,
    /// Alltoallv, alltoallw, neighbourhoods: the own blocks by source. Between groups see
    /// [`inter_plan`](crate::inter_plan). Else unused.
    pub receive_blocks: Blocks,
    /// Alltoallv, alltoallw: what the counts phase has delivered to this member, if anything.
    pub counts: Option<Arc<[u64]>>,
    /// Whether operands may be exchanged. Otherwise results are legal in the order of ranks.
    pub commutative: bool,
    /// Whether the order of association depends on ranks only, so that results are bit-identical for every shape.
    pub fixed: bool,
    /// Whether this member called with MPI_IN_PLACE. Rooted operations: only the root may, the others say false.
    pub in_place: bool,
    /// Bytes of one unit: only a guide for the choice of algorithms. Equal on all members, also where they represent
    /// data differently: say, the size of the element in external32.
    pub unit_bytes: u64,
    /// Long messages are cut only at multiples of so many units from the start of the buffer (e.g. the packed
    /// bytes of one element where units are bytes). At least 1.
    pub granule: u64,
    /// Whether all members share memory in which they can do it together
    /// ([`Action::Together`](crate::step::Action::Together)): they start it in the same order as their other
    /// operations, and elements of reductions are alike and without gaps at all of them.
    pub together: bool,
    /// In a group over several nodes: whether the members on each node share memory in which they can take steps
    /// together ([`Circle::Up`](crate::step::Circle::Up)), or, in a network of [whole
    /// jobs](crate::Network::with_whole_jobs), those of each job can with its MPI; the rest is as for `together`.
    pub nodes: bool,
}

impl Call {
    /// A call with one block of `units` (or blocks of `units` each), units of one byte, commutative, root 0, not in
    /// place.
    pub fn new(operation: Operation, units: u64) -> Self {
        Self {
            operation,
            root: 0,
            blocks: Blocks::Equal(units),
            receive_blocks: Blocks::Equal(0),
            counts: None,
            commutative: true,
            fixed: false,
            in_place: false,
            unit_bytes: 1,
            granule: 1,
            together: false,
            nodes: false,
        }
    }

    /// Takes what the counts phase has delivered to this member.
    pub fn learn(&mut self, counts: impl Into<Arc<[u64]>>) {
        match self.operation {
            Operation::Alltoallv | Operation::Alltoallw => self.counts = Some(counts.into()),
            _ => self.blocks = Blocks::Subtree(counts.into()),
        }
    }

    /// Bytes of which all members of a group must say the same number; `None`: there is no such number, or not every
    /// member knows it.
    pub fn common_bytes(&self) -> Option<u64> {
        use Operation as O;
        let units = match (self.operation, &self.blocks) {
            (O::Allgatherv | O::ReduceScatter, Blocks::Known(ends)) => *ends.last()?,
            (O::Barrier | O::Gatherv | O::Scatterv | O::Alltoallv | O::Alltoallw, _) => return None,
            (what, _) if what.is_neighborhood() => return None,
            (_, Blocks::Equal(units)) => *units,
            _ => return None,
        };
        units.checked_mul(self.unit_bytes)
    }

    /// Bytes of this many units.
    pub(crate) fn bytes(&self, units: u64) -> u64 {
        units.saturating_mul(self.unit_bytes)
    }
}

/// Sizes of the blocks of a call, in units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// All alike.
    Equal(u64),
    /// Unequal, by rank: where each begins in the row of blocks, and the total (p + 1 numbers).
    Known(Arc<[u64]>),
    /// Only the own block's size is known.
    Own(u64),
    /// The sizes (not sums) of the blocks of the process's own subtree, as the counts phase has delivered them.
    Subtree(Arc<[u64]>),
}

impl Blocks {
    /// Unequal blocks from their sizes by rank.
    pub fn known(sizes: impl IntoIterator<Item = u64>) -> Self {
        let mut sum = 0u64;
        let sums = sizes.into_iter().map(|n| {
            sum = sum.saturating_add(n);
            sum
        });
        Self::Known(std::iter::once(0).chain(sums).collect())
    }

    /// Size of the block of a rank, where that is known.
    ///
    /// # Panics
    /// If it is not: `Subtree`.
    pub fn size(&self, rank: Rank) -> u64 {
        match self {
            Self::Equal(n) | Self::Own(n) => *n,
            Self::Known(sums) => sums[rank as usize + 1] - sums[rank as usize],
            Self::Subtree(_) => unreachable!("blocks of a subtree are in order of position"),
        }
    }

    /// Size of the largest block that is known here.
    pub fn largest(&self) -> u64 {
        match self {
            Self::Equal(n) | Self::Own(n) => *n,
            Self::Known(sums) => sums.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0),
            Self::Subtree(sizes) => sizes.iter().copied().max().unwrap_or(0),
        }
    }

    /// Offset of the block of a rank (or, at p, the total), in the row of all blocks in order of rank.
    ///
    /// # Panics
    /// If it is not known: `Own` and `Subtree`.
    pub fn offset(&self, rank: Rank) -> u64 {
        match self {
            Self::Equal(n) => n * u64::from(rank),
            Self::Known(sums) => sums[rank as usize],
            Self::Own(_) | Self::Subtree(_) => unreachable!("offsets are known only where all sizes are"),
        }
    }
}

/// Who takes steps together in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steps {
    /// Nobody.
    None,
    /// The processes of each node, in its memory.
    Nodes,
    /// Those of each job of a vendor MPI, with that MPI, and of each node elsewhere, in its memory. The network
    /// of the plan is that of [whole jobs](crate::Network::with_whole_jobs).
    Jobs,
}
