// SPDX-License-Identifier: Apache-2.0
//! How operations of blocks that may differ in length begin: what is to be given, and where it goes.

use isthmus_schedule::Operation as What;
use isthmus_transport::slabs::{CellSize, Round, Slab};

use super::Rows;
use super::fetched::Fetching;
use super::slots::Slots;
use crate::groups::data::{Bound, Data, Unequal};

impl<D: Data> Rows<D> {
    pub(crate) fn new(step: Unequal, slab: &Slab, data: D, slots: Slots, rounds: [Round; 2]) -> Self {
        let mut rows = Self {
            step,
            data,
            slots,
            rounds,
            gives: [false; 2],
            writes: false,
            fetching: Fetching::default(),
            unaware: false,
            keeps: false,
            next: 0,
            silent: false,
            left: [false; 2],
            strays: Vec::new(),
        };
        rows.gives[0] = match step.what {
            What::Gatherv => slab.me != step.root,
            What::Scatterv => slab.me == step.root,
            _ => true,
        };
        if rows.is_usual() {
            rows.keeps = match step.what {
                What::Gatherv | What::Scatterv => slab.me == step.root && !step.in_place,
                _ => rows.step.is_apart(),
            };
            return rows;
        }
        let is_middle = |to: &u32| rows.slots.size(rows.given(slab, *to)) == Some(CellSize::Middle);
        let gives_middle = rows.step.receivers(slab.members).any(|to| is_middle(&to));
        // A block that has a cell for itself needs no word in another.
        let gives_short = rows.slots.count() > 1 || !gives_middle || !rows.others(slab).all(|to| is_middle(&to));
        rows.gives = [gives_short, gives_middle].map(|gives| gives && rows.gives[0]);
        match rows.step.what {
            What::Gatherv => rows.prepare_to_write(slab),
            _ => Fetching::prepare_to_fetch(&mut rows, slab),
        }
        rows.keeps = match step.what {
            What::Gatherv | What::Scatterv => slab.me == step.root && !step.in_place,
            // A short one comes out of the own cell.
            What::Allgatherv => !step.in_place && rows.slots.size(rows.given(slab, 0)).is_none(),
            _ => rows.step.is_apart(),
        };
        rows
    }

    /// Of a member that neither gives nor takes anything, and has left these of the rounds.
    pub(crate) fn passing(
        step: Unequal,
        slab: &Slab,
        data: D,
        slots: Slots,
        rounds: [Round; 2],
        left: [bool; 2],
    ) -> Self {
        Self {
            step,
            data,
            slots,
            rounds,
            gives: [false; 2],
            writes: false,
            fetching: Fetching::default(),
            unaware: false,
            keeps: false,
            next: slab.members,
            silent: false,
            left,
            strays: Vec::new(),
        }
    }

    /// The same for longer than the call that began it.
    pub(crate) fn bound(self, slab: &Slab) -> Rows<Bound> {
        let Self {
            step,
            data,
            slots,
            rounds,
            gives,
            writes,
            fetching,
            unaware,
            keeps,
            next,
            silent,
            left,
            strays,
        } = self;
        Rows {
            step,
            data: data.bound(step, slab.members),
            slots,
            rounds,
            gives,
            writes,
            fetching,
            unaware,
            keeps,
            next,
            silent,
            left,
            strays,
        }
    }
}
