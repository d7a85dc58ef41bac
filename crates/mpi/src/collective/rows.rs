// SPDX-License-Identifier: Apache-2.0
//! Operations of blocks that may differ in length about which nothing else is unusual: each block lies in one piece,
//! what a process gives itself does not lie where it takes it, and no argument is wrong. `None`: the general way finds
//! out what is. Nothing is allocated here: arrays are read where they lie.

use std::ffi::c_int;

use isthmus_abi::handles as h;
use isthmus_core::collective::{PlainAlong, PlainUnequal};
use isthmus_core::topology::Neighbours;
use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_engine::{Arithmetic, Pieces, Unequal as Step};
use isthmus_schedule::Operation;

use super::arguments::{Elements, List, Memory, Types, Unequal};
use super::membership::Membership;
use super::pieces::{LONGEST, Piece, width_of};
use crate::c::{Source, Target};
use crate::check;

/// Unequal blocks, each in one piece.
#[derive(Clone, Copy)]
struct UnequalPieces<'a, B> {
    buffer: B,
    counts: List<'a>,
    displacements: List<'a>,
    widths: Widths<'a>,
    /// Bytes of the longest block.
    longest: u64,
}

/// Bytes of the elements of blocks.
#[derive(Clone, Copy)]
enum Widths<'a> {
    /// The same in all; displacements count elements.
    One(u64),
    /// Those of a datatype for each; displacements count bytes.
    Each(&'a [h::Datatype]),
}

impl Widths<'_> {
    #[inline]
    fn of(&self, block: usize) -> Option<u64> {
        match self {
            Self::One(width) => Some(*width),
            Self::Each(datatypes) => width_of(datatypes[block]),
        }
    }

    /// Bytes in which a displacement counts.
    #[inline]
    fn step(&self) -> i64 {
        match self {
            Self::One(width) => *width as i64,
            Self::Each(_) => 1,
        }
    }
}

impl<'a, B: Memory> UnequalPieces<'a, B> {
    fn of(blocks: &'a Unequal<B>, n: usize) -> Option<Self> {
        let widths = match &blocks.datatypes {
            Types::One(datatype) => Widths::One(width_of(*datatype)?),
            Types::Each(datatypes) => Widths::Each(datatypes.slice("datatypes", n).ok()?),
        };
        let (counts, displacements) = blocks.lists(n).ok().filter(|_| !blocks.is_in_place())?;
        let mut row = Self {
            buffer: blocks.buffer,
            counts,
            displacements,
            widths,
            longest: 0,
        };
        for block in 0..n {
            let bytes = u64::try_from(counts.at(block)).ok()?.checked_mul(widths.of(block)?)?;
            let at = displacements.at(block).checked_mul(widths.step())?;
            if bytes > 0 && !check::is_memory(row.buffer.address().wrapping_add_signed(at as isize)) {
                return None;
            }
            row.longest = row.longest.max(bytes);
        }
        (row.longest <= LONGEST).then_some(row)
    }

    #[inline]
    fn bytes(&self, block: usize) -> u64 {
        // There was a width when the arrays were read.
        self.counts.at(block) as u64 * self.widths.of(block).unwrap_or(0)
    }

    #[inline]
    fn piece(&self, block: usize) -> Piece<B> {
        Piece {
            buffer: self.buffer,
            offset: self.displacements.at(block) * self.widths.step(),
            bytes: self.bytes(block),
        }
    }
}

/// A buffer.
enum Side<'a, B> {
    /// The operation does not use it.
    None,
    One(Piece<B>),
    /// Blocks of so many bytes, one behind the other.
    Equal(Piece<B>, u64),
    Many(UnequalPieces<'a, B>),
}

impl<B: Memory> Side<'_, B> {
    #[inline]
    fn piece(&self, block: u32) -> Option<Piece<B>> {
        match self {
            Self::None => None,
            Self::One(piece) => Some(*piece),
            Self::Equal(all, bytes) => Some(Piece {
                offset: all.offset + (u64::from(block) * bytes) as i64,
                bytes: *bytes,
                ..*all
            }),
            Self::Many(row) => Some(row.piece(block as usize)),
        }
    }

    #[inline]
    fn bytes(&self, block: u32) -> u64 {
        match self {
            Self::None => 0,
            Self::One(piece) => piece.bytes,
            Self::Equal(_, bytes) => *bytes,
            Self::Many(row) => row.bytes(block as usize),
        }
    }

    #[inline]
    fn longest(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::One(piece) => piece.bytes,
            Self::Equal(_, bytes) => *bytes,
            Self::Many(row) => row.longest,
        }
    }
}

/// The blocks of an operation as its arguments say where they are.
pub(super) struct Blocks<'a> {
    send: Side<'a, Source>,
    receive: Side<'a, Target>,
    /// Bytes of the longest of them.
    longest: u64,
    computes: Option<Arithmetic>,
}

impl<'a> Blocks<'a> {
    #[inline(always)]
    fn new(send: Side<'a, Source>, receive: Side<'a, Target>) -> Self {
        Self {
            longest: send.longest().max(receive.longest()),
            send,
            receive,
            computes: None,
        }
    }
}

impl Pieces for Blocks<'_> {
    #[inline]
    fn send(&self, to: u32) -> ReadMemory {
        self.send.piece(to).map_or(ReadMemory::EMPTY, |piece| piece.memory())
    }

    #[inline]
    fn receive(&self, from: u32) -> WriteMemory {
        let piece = self.receive.piece(from);
        piece.map_or(WriteMemory::EMPTY, |piece| piece.memory())
    }

    #[inline]
    fn sends(&self, to: u32) -> u64 {
        self.send.bytes(to)
    }

    #[inline]
    fn receives(&self, from: u32) -> u64 {
        self.receive.bytes(from)
    }

    #[inline]
    fn longest(&self) -> u64 {
        self.longest
    }

    fn computes(&self) -> Option<&Arithmetic> {
        self.computes.as_ref()
    }
}

/// A block that a process gives itself: as long as what it takes, and elsewhere.
fn is_apart(give: &Piece<Source>, take: &Piece<Target>) -> bool {
    let (from, to, bytes) = (give.address(), take.address(), give.bytes as usize);
    let apart = from.wrapping_add(bytes) <= to || to.wrapping_add(bytes) <= from;
    give.bytes == take.bytes && (apart || bytes == 0)
}

fn plain<'a>(
    what: Operation,
    root: u32,
    in_place: bool,
    send: Side<'a, Source>,
    receive: Side<'a, Target>,
) -> PlainUnequal<Blocks<'a>> {
    PlainUnequal {
        step: Step {
            what,
            root,
            in_place,
            own: (0, 0),
            operator: 0,
        },
        pieces: Blocks::new(send, receive),
    }
}

pub(super) fn gatherv<'a>(
    member: &Membership,
    from: &Elements<Source>,
    into: &'a Unequal<Target>,
    root: c_int,
) -> Option<PlainUnequal<Blocks<'a>>> {
    let (what, root) = (Operation::Gatherv, member.plain_root(root)?);
    let piece = || Piece::of(from, 1).filter(|_| !from.is_in_place());
    if member.comm.rank() != root {
        return Some(plain(what, root, false, Side::One(piece()?), Side::None));
    }
    let row = UnequalPieces::of(into, member.size())?;
    if from.is_in_place() {
        return Some(plain(what, root, true, Side::None, Side::Many(row)));
    }
    let own = piece().filter(|piece| is_apart(piece, &row.piece(member.rank())))?;
    Some(plain(what, root, false, Side::One(own), Side::Many(row)))
}

pub(super) fn scatterv<'a>(
    member: &Membership,
    from: &'a Unequal<Source>,
    into: &Elements<Target>,
    root: c_int,
) -> Option<PlainUnequal<Blocks<'a>>> {
    let (what, root) = (Operation::Scatterv, member.plain_root(root)?);
    let piece = || Piece::of(into, 1).filter(|_| !into.is_in_place());
    if member.comm.rank() != root {
        return Some(plain(what, root, false, Side::None, Side::One(piece()?)));
    }
    let row = UnequalPieces::of(from, member.size())?;
    if into.is_in_place() {
        return Some(plain(what, root, true, Side::Many(row), Side::None));
    }
    let own = piece().filter(|piece| is_apart(&row.piece(member.rank()), piece))?;
    Some(plain(what, root, false, Side::Many(row), Side::One(own)))
}

pub(super) fn allgatherv<'a>(
    member: &Membership,
    from: &Elements<Source>,
    into: &'a Unequal<Target>,
) -> Option<PlainUnequal<Blocks<'a>>> {
    let (what, row) = (Operation::Allgatherv, UnequalPieces::of(into, member.size())?);
    if from.is_in_place() {
        return Some(plain(what, 0, true, Side::None, Side::Many(row)));
    }
    let own = Piece::of(from, 1).filter(|piece| is_apart(piece, &row.piece(member.rank())))?;
    Some(plain(what, 0, false, Side::One(own), Side::Many(row)))
}

/// Alltoallv and alltoallw.
pub(super) fn alltoallv<'a>(
    member: &Membership,
    what: Operation,
    from: &'a Unequal<Source>,
    into: &'a Unequal<Target>,
) -> Option<PlainUnequal<Blocks<'a>>> {
    let (give, take) = (
        UnequalPieces::of(from, member.size())?,
        UnequalPieces::of(into, member.size())?,
    );
    let me = member.rank();
    let (own, sides) = ((give.piece(me), take.piece(me)), (Side::Many(give), Side::Many(take)));
    is_apart(&own.0, &own.1).then(|| plain(what, 0, false, sides.0, sides.1))
}

/// `own`: elements before those of this process, and these.
pub(super) fn reduce_scatter<'a>(
    from: &Elements<Source>,
    into: &Elements<Target>,
    own: [u64; 2],
    computes: Arithmetic,
) -> Option<PlainUnequal<Blocks<'a>>> {
    if from.is_in_place() || into.is_in_place() {
        return None;
    }
    let (give, take) = (Piece::of(from, 1)?, Piece::of(into, 1)?);
    let (first, result) = (give.address(), take.address());
    let apart = first.wrapping_add(give.bytes as usize) <= result || result.wrapping_add(take.bytes as usize) <= first;
    if !apart && give.bytes > 0 {
        return None;
    }
    let mut plain = plain(Operation::ReduceScatter, 0, false, Side::One(give), Side::One(take));
    plain.step.own = (own[0], own[1]);
    plain.pieces.computes = Some(computes);
    Some(plain)
}

/// Equal blocks, one behind the other.
fn equal<B: Memory>(elements: &Elements<B>, blocks: usize) -> Option<Side<'static, B>> {
    let all = Piece::of(elements, blocks).filter(|_| !elements.is_in_place())?;
    Some(Side::Equal(all, all.bytes.checked_div(blocks as u64).unwrap_or(0)))
}

/// Longest block that goes along an edge without a plan: longer ones are sent and received in many ways.
const ALONG: u64 = 4096;

fn along<'a>(what: Operation, send: Side<'a, Source>, receive: Side<'a, Target>) -> Option<PlainAlong<Blocks<'a>>> {
    let pieces = Blocks::new(send, receive);
    (pieces.longest() <= ALONG).then_some(PlainAlong { what, pieces })
}

/// The same block to all neighbours.
pub(super) fn neighbor_allgather(
    edges: &Neighbours,
    from: &Elements<Source>,
    into: &Elements<Target>,
) -> Option<PlainAlong<Blocks<'static>>> {
    let own = Piece::of(from, 1).filter(|_| !from.is_in_place())?;
    along(
        Operation::NeighborAllgather,
        Side::One(own),
        equal(into, edges.sources.len())?,
    )
}

pub(super) fn neighbor_allgatherv<'a>(
    edges: &Neighbours,
    from: &Elements<Source>,
    into: &'a Unequal<Target>,
) -> Option<PlainAlong<Blocks<'a>>> {
    let own = Piece::of(from, 1).filter(|_| !from.is_in_place())?;
    let row = UnequalPieces::of(into, edges.sources.len())?;
    along(Operation::NeighborAllgatherv, Side::One(own), Side::Many(row))
}

pub(super) fn neighbor_alltoall(
    edges: &Neighbours,
    from: &Elements<Source>,
    into: &Elements<Target>,
) -> Option<PlainAlong<Blocks<'static>>> {
    along(
        Operation::NeighborAlltoall,
        equal(from, edges.destinations.len())?,
        equal(into, edges.sources.len())?,
    )
}

/// Neighbor_alltoallv and neighbor_alltoallw.
pub(super) fn neighbor_alltoallv<'a>(
    edges: &Neighbours,
    what: Operation,
    from: &'a Unequal<Source>,
    into: &'a Unequal<Target>,
) -> Option<PlainAlong<Blocks<'a>>> {
    let give = UnequalPieces::of(from, edges.destinations.len())?;
    let take = UnequalPieces::of(into, edges.sources.len())?;
    along(what, Side::Many(give), Side::Many(take))
}
