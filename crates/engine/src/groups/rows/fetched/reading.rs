// SPDX-License-Identifier: Apache-2.0
//! What a member does with long blocks that are read: it offers its own, reads those of others, and hears what became
//! of its own.

use isthmus_schedule::Operation as What;
use isthmus_transport::slabs::{CellSize, OFFER, SharedSlabs, Slab};

use super::{Fetching, REFUSED, UNWANTED};
use crate::EngineError;
use crate::base::mistake::no_memory;
use crate::groups::data::Data;
use crate::groups::rows::slots::LENGTH;
use crate::groups::rows::{Rows, read, said};
use crate::groups::unmoved::bit;

/// No offer.
const NONE: [u8; OFFER] = [0; OFFER];

impl Fetching {
    /// Before anything is given: what there is to read, and to offer.
    pub(in crate::groups::rows) fn prepare_to_fetch<D: Data>(rows: &mut Rows<D>, slab: &Slab) {
        let Some(moving) = rows.data.moving() else { return };
        if rows.slots.fetched(rows.step.what, slab.members).is_none() {
            return;
        }
        let (me, members, root, pairs) = (slab.me, slab.members, rows.step.root, rows.step.is_apart());
        let mut fetching = Self::default();
        for to in (0..members).filter(|&to| to != me && (pairs || me == root)) {
            let length = rows.given(slab, to);
            if !rows.is_long(slab, length) {
                continue;
            }
            let (side, block) = rows.source(slab, to);
            let hears = rows.slots.size(rows.taken(slab, to)) != Some(CellSize::Middle);
            if hears && rows.data.whole(side, block, length).is_some() {
                fetching.offered |= bit(to);
            } else {
                moving.fails_to(to);
            }
        }
        if (0..members).any(|from| rows.is_long(slab, rows.taken(slab, from))) {
            let to_root = (root + members - me) % members;
            (fetching.next, fetching.end) = if pairs { (1, members) } else { (to_root, to_root + 1) };
            rows.gives[1] |= pairs;
        }
        rows.fetching = fetching;
    }

    /// What stands behind the length of a block that is elsewhere, if anything does.
    #[inline]
    pub(in crate::groups::rows) fn offer_for<D: Data>(
        rows: &Rows<D>,
        slabs: &dyn SharedSlabs,
        slab: &Slab,
        to: u32,
        length: u64,
    ) -> Option<[u8; OFFER]> {
        rows.slots.fetched(rows.step.what, slab.members)?;
        if !rows.is_long(slab, length) {
            return None;
        }
        let (side, block) = rows.source(slab, to);
        let memory = rows.data.whole(side, block, length);
        let memory = memory.filter(|_| rows.fetching.offered & bit(to) != 0);
        Some(memory.map_or(NONE, |memory| slabs.offer(&memory, length)))
    }

    /// Whether that has said where its block is.
    pub(in crate::groups::rows) fn can_fetch<D: Data>(rows: &Rows<D>, slabs: &dyn SharedSlabs, slab: &Slab) -> bool {
        let from = rows.fetching.giver(slab);
        !rows.is_long(slab, rows.taken(slab, from)) || Self::word(rows, slabs, slab, from).is_some()
    }

    /// Reads the blocks that are offered. True if anything was done.
    pub(in crate::groups::rows) fn fetch<D: Data>(
        rows: &mut Rows<D>,
        slabs: &mut dyn SharedSlabs,
        slab: &Slab,
    ) -> bool {
        let mut any = false;
        while rows.fetching.is_pending() {
            let from = rows.fetching.giver(slab);
            let length = rows.taken(slab, from);
            if rows.is_long(slab, length) {
                match Self::word(rows, slabs, slab, from) {
                    Some((says, offer)) if says == Self::as_said(rows, length) => {
                        Self::fetch_from(rows, slabs, slab, from, length, &offer);
                    }
                    None if !rows.fetching.silent => return any,
                    // It is found to be of another length when its turn comes.
                    _ => {}
                }
            }
            rows.fetching.next += 1;
            (rows.fetching.silent, any) = (false, true);
        }
        any
    }

    fn fetch_from<D: Data>(
        rows: &mut Rows<D>,
        slabs: &mut dyn SharedSlabs,
        slab: &Slab,
        from: u32,
        length: u64,
        offer: &[u8; OFFER],
    ) {
        let Some(moving) = rows.data.moving() else { return };
        if *offer == NONE {
            moving.fails_from(from);
            return;
        }
        let is_scatter = rows.step.what == What::Scatterv;
        let place = rows.data.place(if is_scatter { slab.me } else { from }, length);
        if place.is_some_and(|into| slabs.fetch(moving.peer(from), offer, 0, into, length)) {
            rows.fetching.read |= bit(from);
        } else {
            moving.fails_from(from);
            rows.fetching.refused |= bit(from);
        }
        rows.gives[1] |= is_scatter;
    }

    /// What a member says in its short cell of a block: its length, and where a long one is. `None`: nothing yet.
    fn word<D: Data>(rows: &Rows<D>, slabs: &dyn SharedSlabs, slab: &Slab, from: u32) -> Option<(u64, [u8; OFFER])> {
        let (cell, slot) = rows.cell(slab, from);
        let arrived = |round: usize| slabs.have_arrived(slab, rows.rounds[round], cell..cell + 1) == 1;
        if !arrived(0) {
            if rows.slots.count() > 1 || !arrived(1) {
                return None;
            }
            if !arrived(0) {
                // A block for which there is no word in another cell.
                return Some((0, NONE));
            }
        }
        let (room, count) = (rows.slots.short(), rows.slots.count());
        let (memory, bytes) = slabs.given(slab, rows.rounds[0], cell, room * count);
        if count > 1 {
            let at = slot * room;
            let says = u32::from_ne_bytes(read(&memory, at));
            return Some((says.into(), read(&memory, at + LENGTH)));
        }
        Some(match bytes == room as u64 {
            true => (u64::from_ne_bytes(read(&memory, 0)), read(&memory, size_of::<u64>())),
            false => (bytes, NONE),
        })
    }

    /// A length as members say it.
    fn as_said<D: Data>(rows: &Rows<D>, length: u64) -> u64 {
        if rows.slots.count() == 1 {
            length
        } else {
            said(length).into()
        }
    }

    /// Gives what became of blocks, if that is all of the own middle cell: a byte for each slot. False: it is not.
    pub(in crate::groups::rows) fn give_outcomes<D: Data>(
        rows: &Rows<D>,
        slabs: &mut dyn SharedSlabs,
        slab: &Slab,
    ) -> Result<bool, EngineError> {
        let (me, root) = (slab.me, rows.step.root);
        let (step, members) = (rows.step, slab.members);
        let others = match step.what {
            What::Scatterv if me != root => root..root + 1,
            What::Alltoallv | What::Alltoallw => 0..members,
            _ => return Ok(false),
        };
        let others = others.filter(|&of| of != me);
        let is_block = |of| rows.slots.size(rows.given(slab, of)) == Some(CellSize::Middle);
        if step.is_apart() && others.clone().any(is_block) {
            return Ok(false);
        }
        let mut cell = slabs
            .give(slab, rows.rounds[1], me, rows.slots.count())
            .map_err(no_memory)?;
        others.for_each(|of| cell.write(step.slot(me, of) as isize, &[rows.fetching.outcome(of)]));
        slabs.arrive(slab, rows.rounds[1], me..me + 1);
        Ok(true)
    }

    /// Whether the next member that is waited for has said what became of its block.
    pub(in crate::groups::rows) fn can_hear<D: Data>(rows: &Rows<D>, slabs: &dyn SharedSlabs, slab: &Slab) -> bool {
        let to = rows.fetching.hears_of();
        slabs.have_arrived(slab, rows.rounds[1], to..to + 1) == 1
    }

    /// Looks what became of the blocks that are offered. True if anything was done.
    pub(in crate::groups::rows) fn hear<D: Data>(rows: &mut Rows<D>, slabs: &dyn SharedSlabs, slab: &Slab) -> bool {
        let mut any = false;
        while !rows.fetching.knows_all() {
            let to = rows.fetching.hears_of();
            if Self::can_hear(rows, slabs, slab) {
                if Self::outcome_at(rows, slabs, slab, to) == REFUSED {
                    if let Some(moving) = rows.data.moving() {
                        moving.fails_to(to);
                    }
                }
            } else if !rows.fetching.silent {
                return any;
            }
            (rows.fetching.heard, rows.fetching.silent, any) = (to + 1, false, true);
        }
        any
    }

    /// What became of the block for a member, whose middle cell has arrived.
    fn outcome_at<D: Data>(rows: &Rows<D>, slabs: &dyn SharedSlabs, slab: &Slab, to: u32) -> u8 {
        let (count, room) = (rows.slots.count(), rows.slots.middle());
        let slot = rows.step.slot(to, slab.me);
        let (memory, bytes) = slabs.given(slab, rows.rounds[1], to, room * count);
        if bytes == count as u64 {
            let [outcome] = read(&memory, slot);
            return outcome;
        }
        // In the slot there may be a block that is not expected; in the only one there is.
        let says = Self::word(rows, slabs, slab, to).filter(|_| count > 1);
        if says.is_none_or(|(says, _)| says != Self::as_said(rows, rows.taken(slab, to))) {
            return UNWANTED;
        }
        let [outcome] = read(&memory, slot * room);
        outcome
    }

    /// Looks whether the member that is waited for has gone on without giving a block, or a word of one.
    pub(in crate::groups::rows) fn fetches_in_vain<D: Data>(
        rows: &mut Rows<D>,
        slabs: &dyn SharedSlabs,
        slab: &Slab,
    ) -> bool {
        // In this order: it leaves after it has given.
        let silent = if rows.fetching.is_pending() {
            let from = rows.fetching.giver(slab);
            slabs.has_left(slab, rows.rounds[0], from) && Self::word(rows, slabs, slab, from).is_none()
        } else {
            let to = rows.fetching.hears_of();
            slabs.has_left(slab, rows.rounds[0], to) && !Self::can_hear(rows, slabs, slab)
        };
        rows.fetching.silent = silent;
        silent
    }

    /// A member has a block of another length than this one expects: if it has offered it, it waits for a word.
    #[cold]
    pub(in crate::groups::rows) fn refuses_length<D: Data>(
        rows: &mut Rows<D>,
        slabs: &dyn SharedSlabs,
        slab: &Slab,
        says: u64,
    ) {
        if rows.slots.fetched(rows.step.what, slab.members).is_some() && rows.is_long(slab, says) {
            let me = slab.me;
            rows.gives[1] |= slabs.have_arrived(slab, rows.rounds[1], me..me + 1) == 0;
        }
    }

    /// Whether the next member's block comes in a message, by what it says.
    #[cold]
    pub(in crate::groups::rows) fn comes_after_all<D: Data>(
        rows: &Rows<D>,
        slabs: &dyn SharedSlabs,
        slab: &Slab,
    ) -> bool {
        let word = Self::word(rows, slabs, slab, rows.next);
        word.is_some_and(|(says, offer)| rows.is_long(slab, says) && offer == NONE)
    }
}
