// SPDX-License-Identifier: Apache-2.0
//! Long blocks of a gatherv: their owners write them to the root's memory, all at once, where in messages the root
//! would copy one after another.
//!
//! ```text
//!  short cell of an owner     the length of its block, as of every block that is elsewhere
//!  middle cell of the root    of each member: bytes that the root expects of it (u64, native), 0 if they go
//!                             through cells | the transport's offer; zeros if they go in a message, or their place
//!                             is not in one piece, or not the user's
//!  middle cell of an owner    one byte: 1 if it could not write its block
//! ```
//! The root gives its cell before anything else if it expects such a block. A root that does not, and finds that an
//! owner has one, gives it then, because that owner waits for it. What could not be written goes in a message
//! afterwards: owner and root both know.
//!
//! An owner that finds another length writes nothing: the mistake is the root's to find. Where only one of the two
//! lengths goes in a message, the owner sends it all the same, and the root receives it: neither waits in vain.

use isthmus_schedule::Operation as What;
use isthmus_transport::slabs::{OFFER, SharedSlabs, Slab};

use super::fetched::Fetching;
use super::slots::ENTRY;
use super::{Found, Rows, read};
use crate::EngineError;
use crate::base::mistake::no_memory;
use crate::groups::data::{Data, Side};
use crate::groups::strays::Stray;

impl<D: Data> Rows<D> {
    /// Before anything is given: what there is to write, or to say.
    pub(super) fn prepare_to_write(&mut self, slab: &Slab) {
        if self.data.moving().is_none() {
            return;
        }
        match slab.me == self.step.root {
            true => self.gives[1] = (0..slab.members).any(|of| expects_written(self, slab, of)),
            false => self.writes = self.is_long(slab, self.data.length(Side::Send, 0)),
        }
    }

    pub(super) fn have_places_come(&self, slabs: &dyn SharedSlabs, slab: &Slab) -> bool {
        let root = self.step.root;
        slabs.have_arrived(slab, self.rounds[1], root..root + 1) == 1
    }

    /// Writes the own block, if the root has said where. False: it is still to come.
    pub(super) fn write_own(&mut self, slabs: &mut dyn SharedSlabs, slab: &Slab) -> bool {
        if !self.have_places_come(slabs, slab) {
            // A root that has gone on without saying it expects nothing.
            self.writes = !std::mem::take(&mut self.silent);
            return !self.writes;
        }
        self.writes = false;
        let (root, all) = (self.step.root, slab.members as usize * ENTRY);
        let (places, said) = slabs.given(slab, self.rounds[1], root, all);
        let at = slab.me as usize * ENTRY;
        let own = self.data.length(Side::Send, 0);
        let Some(moving) = self.data.moving() else {
            return true;
        };
        let expected = u64::from_ne_bytes(read(&places, at));
        if said != all as u64 || expected != own {
            if said == all as u64 && is_sent(self, slab, expected) {
                moving.fails_to(root);
            }
            return true;
        }
        let offer = read::<OFFER>(&places, at + size_of::<u64>());
        let block = self.data.whole(Side::Send, 0, own);
        let written = block.is_some_and(|block| {
            let block = block.part(0, own as usize);
            slabs.store(slab, root, moving.peer(root), &offer, 0, block)
        });
        if !written {
            moving.fails_to(root);
        }
        self.gives[1] = true;
        true
    }

    /// Gives what is said of long blocks: the root where they go, an owner whether it could write. False: this member
    /// has nothing to say of them.
    pub(super) fn give_words(&self, slabs: &mut dyn SharedSlabs, slab: &Slab) -> Result<bool, EngineError> {
        if self.step.what != What::Gatherv {
            return Ok(false);
        }
        match slab.me == self.step.root {
            true => give_places(self, slabs, slab)?,
            false if self.is_long(slab, self.data.length(Side::Send, 0)) => give_outcome(self, slabs, slab)?,
            false => return Ok(false),
        }
        Ok(true)
    }

    /// The root looks for the outcome of a block whose owner has said the right length.
    pub(super) fn look_for_outcome(&self, slabs: &dyn SharedSlabs, slab: &Slab, of: u32) -> Found<'static> {
        let Some(moving) = self.data.moving() else {
            return Found::Nothing;
        };
        if slabs.have_arrived(slab, self.rounds[1], of..of + 1) == 0 {
            return Found::Missing;
        }
        let (outcome, said) = slabs.given(slab, self.rounds[1], of, 1);
        let [failed] = read(&outcome, 0);
        if said != 1 || failed != 0 {
            moving.fails_from(of);
        }
        Found::Nothing
    }

    /// The next member has said another length than this process expects: whether a message is missing, or comes that
    /// nobody waits for.
    #[cold]
    pub(super) fn note_stray(&mut self, slabs: &dyn SharedSlabs, slab: &Slab, said: u64, expected: u64) {
        let mut comes = is_sent(self, slab, said);
        if self.step.what != What::Gatherv {
            comes |= Fetching::comes_after_all(self, slabs, slab);
        } else if self.is_long(slab, said) || self.is_long(slab, expected) {
            // Where the other length is that of a block which is written, it comes in a message and is received.
            return;
        }
        match (comes, is_sent(self, slab, expected)) {
            (false, true) => self.strays.push(Stray::Missing(self.next)),
            (true, false) => self.strays.push(Stray::Unexpected(self.next)),
            _ => {}
        }
    }

    /// The root has found that the next member has a block of another length. One that waits for its place is to be
    /// told that there is none, and one that comes in a message is to be received.
    #[cold]
    pub(super) fn has_found_another_length(&mut self, slabs: &dyn SharedSlabs, slab: &Slab, said: u64) {
        let me = slab.me;
        if me != self.step.root {
            return;
        }
        if self.is_long(slab, said) {
            self.gives[1] = slabs.have_arrived(slab, self.rounds[1], me..me + 1) == 0;
        } else if is_sent(self, slab, said) && expects_written(self, slab, self.next) {
            if let Some(moving) = self.data.moving() {
                moving.fails_from(self.next);
            }
        }
    }
}

/// Whether the root expects a member to write its block.
fn expects_written<D: Data>(rows: &Rows<D>, slab: &Slab, of: u32) -> bool {
    rows.is_long(slab, rows.taken(slab, of))
}

/// Whether blocks of so many bytes go in messages.
fn is_sent<D: Data>(rows: &Rows<D>, slab: &Slab, bytes: u64) -> bool {
    bytes > rows.slots.longest() && !rows.is_long(slab, bytes)
}

/// The root says where blocks go.
pub(super) fn give_places<D: Data>(
    rows: &Rows<D>,
    slabs: &mut dyn SharedSlabs,
    slab: &Slab,
) -> Result<(), EngineError> {
    let mut places = Vec::with_capacity(slab.members as usize * ENTRY);
    for of in 0..slab.members {
        let (bytes, is_written) = (rows.taken(slab, of), expects_written(rows, slab, of));
        let expected = if is_written || is_sent(rows, slab, bytes) {
            bytes
        } else {
            0
        };
        let target = is_written.then(|| rows.data.target(of, expected)).flatten();
        let offer = target.map_or([0; OFFER], |target| slabs.offer_target(&target, expected));
        places.extend_from_slice(&expected.to_ne_bytes());
        places.extend_from_slice(&offer);
    }
    let mut cell = slabs
        .give(slab, rows.rounds[1], slab.me, places.len())
        .map_err(no_memory)?;
    cell.write(0, &places);
    slabs.arrive(slab, rows.rounds[1], slab.me..slab.me + 1);
    Ok(())
}

/// Says whether it could.
pub(super) fn give_outcome<D: Data>(
    rows: &Rows<D>,
    slabs: &mut dyn SharedSlabs,
    slab: &Slab,
) -> Result<(), EngineError> {
    let me = slab.me;
    let failed = rows
        .data
        .moving()
        .is_some_and(|moving| moving.has_failed_to(rows.step.root));
    let mut cell = slabs.give(slab, rows.rounds[1], me, 1).map_err(no_memory)?;
    cell.write(0, &[u8::from(failed)]);
    slabs.arrive(slab, rows.rounds[1], me..me + 1);
    Ok(())
}
