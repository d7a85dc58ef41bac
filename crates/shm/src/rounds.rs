// SPDX-License-Identifier: Apache-2.0
//! Rounds in shared memory: the transport's side of [`SharedSlabs`].

use std::ops::Range;
use std::sync::OnceLock;

use isthmus_datatype::raw::{ReadMemory, UserMemory, WriteMemory};
use isthmus_transport::slabs::{
    CellSize, Claim, Disagreement, ENLARGE, Given, Giving, OFFER, Part, Round, SharedSlabs, Slab, Source, Used,
};
use isthmus_transport::{Peer, SendError};
use rustix::io::Errno;

use crate::desk::sign;
use crate::pull::{self, HANDLE_BYTES, Handle};
use crate::slabs::{Cells, NOTES, WORD_CELL, WORD_HEADER};
use crate::sync::Ordering;
use crate::together::{Probe, awaiting};
use crate::transport::ShmTransport;
use crate::view::{Layout, MARK, SlabView, header, rounds};

/// Rounds from now whose cells are fetched: who gives in one round after the other, and takes nothing, needs the next
/// sooner than it can come.
const SOON: u64 = 6;

impl ShmTransport {
    /// After so many bytes of a cell were given: as much of its writer's one in a round soon comes to this core, if
    /// that is not there anyway, while it does other things. Who gives a block looks for sleepers behind a fence, so it
    /// waits until all lines of the block are there.
    #[inline]
    fn prepare(&self, slab: &Slab, round: Round, cell: u32, bytes: usize) {
        if round.size == CellSize::Long {
            return;
        }
        let next = Round {
            number: round.number + SOON,
            ..round
        };
        let view = self.layouts.view(&self.segment, slab);
        view.fetch(view.cell(next, cell).0, header(round.size) + bytes);
    }

    /// Wakes those who sleep at a place, after something happened there.
    #[inline]
    fn announce(&mut self, number: u32) {
        let sleepers = &self.segment.slab(number as usize).sleepers;
        if sleepers.are_there(self.segment.geometry().processes()) {
            self.wake_sleepers(number);
        }
    }

    #[cold]
    fn wake_sleepers(&mut self, number: u32) {
        let mut asleep = Vec::new();
        let sleepers = &self.segment.slab(number as usize).sleepers;
        sleepers.each(self.segment.geometry().processes(), |slot| asleep.push(slot));
        for slot in asleep {
            if slot != self.slot && slot < self.links.len() {
                self.ring(slot);
            }
        }
    }

    /// A slab that is this process's alone, for a group of so many members. `None`: there is no memory for it.
    fn make_ready(&mut self, number: usize, members: u32) -> Option<u32> {
        // A slab that was never used has no memory behind it yet.
        self.slabs.back_header(&self.segment, number).ok()?;
        let header = self.segment.slab(number);
        if !header.take() {
            return None;
        }
        let bytes = Cells::of(members as usize).middle_start();
        if !header.is_backed(bytes) {
            if self.segment.back_slab(number, 0, bytes).is_err() {
                header.close();
                return None;
            }
            header.was_backed(bytes);
        }
        let slab = Slab {
            number: number as u32,
            members,
            me: 0,
        };
        let stale = header.stale(members);
        SlabView::new(&self.segment, &Layout::of(&self.segment, &slab)).reset(&stale);
        header.open(members);
        Some(slab.number)
    }

    #[cold]
    fn no_memory(&self, error: Errno) -> SendError {
        SendError::Lost(format!(
            "no memory for collective operations among the processes of this node in {}: {error}{ENLARGE}",
            self.segment.path().display()
        ))
    }
}

/// See [`SharedSlabs::give`]. The value must not be used when this transport may be used otherwise.
fn cell(end: &mut ShmTransport, slab: &Slab, round: Round, cell: u32, bytes: usize) -> Result<WriteMemory, SendError> {
    let view = end.layouts.view(&end.segment, slab);
    let (at, room) = view.cell(round, cell);
    let whole = header(round.size) + bytes;
    assert!(whole <= room, "more than the cells of a round hold");
    let backed = match round.size {
        CellSize::Word | CellSize::Short => Ok(()),
        CellSize::Middle => end.slabs.back_middle(&end.segment, slab, round, cell),
        CellSize::Long => end.slabs.back_long(&end.segment, slab, round, cell, whole),
    };
    backed.map_err(|error| end.no_memory(error))?;
    match round.size {
        CellSize::Word => view.arrived_at(round.size, at).say(bytes),
        _ => view.length(at).store(bytes as u64, Ordering::Relaxed),
    }
    end.copied.cells += bytes as u64;
    let memory = view.memory(at, whole);
    // SAFETY: `whole` bytes inside the mapping; as long as the transport is borrowed it is there, and until this
    // member arrives the cell is its own (rule 6).
    Ok(unsafe { WriteMemory::new(memory.wrapping_add(header(round.size)), 0, bytes as isize) })
}

/// A note, one word: its turn (11 bits), the operator (5), the operation counted from 1 (5), the root (10), the block
/// (33).
#[inline]
fn note(step: u64, claim: Claim) -> u64 {
    let (what, operator) = ((u64::from(claim.what) + 1) & 0x1f, u64::from(claim.operator) & 0x1f);
    let which = what << 43 | u64::from(claim.root & 0x3ff) << 33;
    turn(step) << TURN_AT | operator << 48 | which | claim.block & BLOCK
}

/// All of a note but the block, and the bits of the number of the step that are not in it.
#[inline]
fn stamp(step: u64, note: u64) -> u32 {
    (note >> BLOCK_BITS) as u32 ^ (step as u32) << 24
}

fn turn(step: u64) -> u64 {
    (step / NOTES as u64) & 0x7ff
}

const TURN_AT: u32 = 53;
const BLOCK_BITS: u32 = 33;
const BLOCK: u64 = (1 << BLOCK_BITS) - 1;

fn read_note(note: u64) -> Claim {
    Claim {
        what: (note >> 43 & 0x1f).wrapping_sub(1) as u8,
        root: (note >> 33 & 0x3ff) as u32,
        operator: (note >> 48 & 0x1f) as u8,
        block: note & BLOCK,
    }
}

const _: () = assert!(HANDLE_BYTES == OFFER);

impl SharedSlabs for ShmTransport {
    fn is_near(&self, peer: Peer) -> bool {
        self.slots.get(peer).is_some()
    }

    fn take_slab(&mut self, members: u32) -> Option<u32> {
        let slabs = self.segment.geometry().slabs;
        let number = self.segment.slabs_in_use().take(slabs)?;
        let taken = self.make_ready(number, members);
        if taken.is_none() {
            self.segment.slabs_in_use().free(number);
        }
        taken
    }

    fn open_slab(&mut self, number: u32) {
        self.slabs.forget(number);
        self.layouts.forget(number);
    }

    fn give_back_slab(&mut self, number: u32, used: Used) {
        let number = number as usize;
        if self.segment.slab(number).give_back(&used) {
            self.segment.slabs_in_use().free(number);
        }
    }

    fn cell_bytes(&self, members: u32, size: CellSize) -> usize {
        match size {
            CellSize::Word => WORD_CELL - WORD_HEADER,
            CellSize::Short => Cells::SHORT_BYTES,
            CellSize::Middle => Cells::of(members as usize).middle_bytes(),
            CellSize::Long => Cells::of(members as usize).long_bytes(),
        }
    }

    fn round_bytes(&self, members: u32, size: CellSize) -> usize {
        let cells = if size == CellSize::Word { 1 } else { members as usize };
        cells * (self.cell_bytes(members, size) + header(size)) - header(size)
    }

    #[inline]
    fn note(&mut self, slab: &Slab, step: u64, claim: Claim) -> u32 {
        let (view, note) = (self.layouts.view(&self.segment, slab), note(step, claim));
        view.note(slab.me, step).store(note, Ordering::Release);
        stamp(step, note)
    }

    fn disagreements(&self, slab: &Slab, step: u64) -> Vec<Disagreement> {
        let view = self.layouts.view(&self.segment, slab);
        let others = || (0..slab.members).filter(|&member| member != slab.me);
        let kept = (step + 1).saturating_sub(NOTES as u64)..=step;
        let at_odds = kept.flat_map(|step| {
            // A slot has the note of this step if it is of its turn.
            let noted = move |member| {
                let note = view.note(member, step).load(Ordering::Acquire);
                Some(note).filter(|&note| note != 0 && note >> TURN_AT == turn(step))
            };
            let mine = noted(slab.me);
            others().filter_map(move |member| {
                let (mine, theirs) = (mine?, noted(member)?);
                let claims = [read_note(mine), read_note(theirs)];
                (mine != theirs).then_some(Disagreement::Other { member, step, claims })
            })
        });
        let gave_up = others().filter_map(|member| {
            let no_memory = view.left()[member as usize].has_given_up()?;
            Some(Disagreement::GaveUp { member, no_memory })
        });
        at_odds.chain(gave_up).collect()
    }

    fn give_up(&mut self, slab: &Slab, no_memory: bool) {
        let left = self.layouts.view(&self.segment, slab).left();
        left[slab.me as usize].give_up(no_memory);
        self.announce(slab.number);
    }

    // Who gives at once asks this first: a call costs as much as the answer.
    #[inline(always)]
    fn is_free(&mut self, slab: &Slab, round: Round) -> bool {
        let members = || self.layouts.view(&self.segment, slab).left();
        let turns = self.slabs.turns(slab, round.size);
        turns.is_free(round.number, rounds(round.size), round.size as usize, members)
    }

    fn give(&mut self, slab: &Slab, round: Round, cell: u32, bytes: usize) -> Result<Giving<'_>, SendError> {
        self::cell(self, slab, round, cell, bytes).map(Giving::new)
    }

    fn give_from(
        &mut self,
        slab: &Slab,
        from: Round,
        round: Round,
        cell: u32,
        bytes: usize,
    ) -> Result<(Source<'_>, Giving<'_>), SendError> {
        let place = |round: Round| (round.size, round.number % rounds(round.size));
        assert_ne!(place(from), place(round), "rounds that have the same memory");
        let cell = self::cell(self, slab, round, cell, bytes)?;
        Ok((Source::new(self, *slab, from), Giving::new(cell)))
    }

    fn give_at_once(
        &mut self,
        slab: &Slab,
        round: Round,
        cell: u32,
        memory: Option<&ReadMemory>,
        bytes: usize,
        leaves: bool,
    ) -> bool {
        if !self.is_free(slab, round) {
            return false;
        }
        let view = self.layouts.view(&self.segment, slab);
        let (at, room) = view.cell(round, cell);
        let header = header(round.size);
        assert!(header + bytes <= room, "more than the cells of a round hold");
        if let Some(from) = memory {
            let to = view.memory(at, header + bytes).wrapping_add(header);
            // SAFETY: `bytes` bytes inside the mapping; until this member arrives the cell is its own (rule 6).
            let mut to = unsafe { WriteMemory::new(to, 0, bytes as isize) };
            to.copy(0, from, 0, bytes);
        }
        self.copied.cells += bytes as u64;
        let (arrived, sign) = (view.arrived_at(round.size, at), sign(round));
        if round.size == CellSize::Word {
            arrived.last_of(sign, bytes);
        } else {
            view.length(at).store(bytes as u64, Ordering::Relaxed);
            arrived.last(sign);
        }
        self.announce(slab.number);
        self.prepare(slab, round, cell, bytes);
        if leaves {
            self.leave(slab, round);
        }
        true
    }

    fn give_each_at_once(&mut self, slab: &Slab, round: Round, block: &mut dyn FnMut(u32) -> ReadMemory) -> bool {
        if !self.is_free(slab, round) {
            return false;
        }
        let view = self.layouts.view(&self.segment, slab);
        let (header, sign) = (header(round.size), sign(round));
        let soon = Round {
            number: round.number + SOON,
            ..round
        };
        let ((first, room), (next, _), apart) = (view.cell(round, 0), view.cell(soon, 0), view.apart(round.size));
        // With the last one sleepers are looked for.
        let last = slab
            .members
            .wrapping_sub(if slab.me + 1 == slab.members { 2 } else { 1 });
        for cell in 0..slab.members {
            if cell == slab.me {
                continue;
            }
            let (block, offset) = (block(cell), cell as usize * apart);
            let (at, bytes) = (first + offset, usize::try_from(block.window().1).unwrap_or(0));
            assert!(
                header + bytes <= room.min(apart),
                "more than the cell of a member holds"
            );
            let to = view.memory(at, header + bytes).wrapping_add(header);
            // SAFETY: `bytes` bytes inside the mapping; until this member arrives the cell is its own (rule 6).
            let mut to = unsafe { WriteMemory::new(to, 0, bytes as isize) };
            to.copy(0, &block, 0, bytes);
            self.copied.cells += bytes as u64;
            let arrived = view.arrived_at(round.size, at);
            if round.size != CellSize::Word {
                view.length(at).store(bytes as u64, Ordering::Relaxed);
            }
            match (round.size, cell == last) {
                (CellSize::Word, false) => arrived.one_of(sign, bytes),
                (CellSize::Word, true) => arrived.last_of(sign, bytes),
                (_, false) => arrived.one(sign),
                (_, true) => arrived.last(sign),
            }
            view.fetch(next + offset, header + bytes);
        }
        if slab.members > 1 {
            self.announce(slab.number);
        }
        self.leave(slab, round);
        true
    }

    fn given(&self, slab: &Slab, round: Round, cell: u32, bytes: usize) -> (Given<'_>, u64) {
        self.layouts.view(&self.segment, slab).given(round, cell, bytes)
    }

    fn take_at_once(&self, slab: &Slab, round: Round, cell: u32, bytes: usize, part: Part<'_>) -> Option<u64> {
        let view = self.layouts.view(&self.segment, slab);
        let (arrived, sign) = view.arrived(round, cell);
        if !arrived.is_there(sign) {
            self.spread.idle(&self.segment, self.slot);
            return None;
        }
        let (given, said) = view.given(round, cell, bytes);
        if said == bytes as u64 {
            given.copy_to(part.from as isize, part.into, part.at as isize, part.length);
        }
        Some(said)
    }

    fn mark(&mut self, slab: &Slab, round: Round, cell: u32) {
        assert!(round.size != CellSize::Word, "a cell of a word has no room for a mark");
        let view = self.layouts.view(&self.segment, slab);
        let word = view.length(view.cell(round, cell).0);
        word.store(word.load(Ordering::Relaxed) | MARK, Ordering::Relaxed);
    }

    fn is_marked(&self, slab: &Slab, round: Round, cell: u32) -> bool {
        let view = self.layouts.view(&self.segment, slab);
        let length = || view.length(view.cell(round, cell).0);
        round.size != CellSize::Word && length().load(Ordering::Relaxed) & MARK != 0
    }

    #[inline]
    fn arrive(&mut self, slab: &Slab, round: Round, cells: Range<u32>) {
        let Some(last) = cells.end.checked_sub(1).filter(|last| cells.contains(last)) else {
            return;
        };
        let view = self.layouts.view(&self.segment, slab);
        for cell in cells.clone() {
            let (arrived, sign) = view.arrived(round, cell);
            match round.size {
                CellSize::Word => arrived.last_of(sign, arrived.said()),
                _ if cell < last => arrived.one(sign),
                _ => arrived.last(sign),
            }
        }
        self.announce(slab.number);
        for cell in cells {
            let view = self.layouts.view(&self.segment, slab);
            let bytes = match round.size {
                CellSize::Word => 0,
                _ => view.length(view.cell(round, cell).0).load(Ordering::Relaxed) & !MARK,
            };
            self.prepare(slab, round, cell, bytes as usize);
        }
    }

    #[inline]
    fn have_arrived(&self, slab: &Slab, round: Round, cells: Range<u32>) -> u32 {
        let count = cells.end - cells.start;
        let view = self.layouts.view(&self.segment, slab);
        let is_missing = |cell: &u32| {
            let (arrived, sign) = view.arrived(round, *cell);
            !arrived.is_there(sign)
        };
        match cells.clone().find(is_missing) {
            None => count,
            Some(cell) => {
                self.spread.idle(&self.segment, self.slot);
                cell - cells.start
            }
        }
    }

    #[inline(always)]
    fn leave(&mut self, slab: &Slab, round: Round) {
        let mine = || &self.layouts.view(&self.segment, slab).left()[slab.me as usize];
        let turns = self.slabs.turns(slab, round.size);
        if turns.leave(round.number, rounds(round.size), round.size as usize, mine) {
            self.announce(slab.number);
        }
    }

    #[inline]
    fn leave_soon(&mut self, slab: &Slab, round: Round) -> bool {
        let may = self.slabs.turns(slab, round.size).may_leave(round.number);
        if may {
            self.leave(slab, round);
        }
        may
    }

    #[inline]
    fn leave_some(&mut self, slab: &Slab, first: Round, count: u64) -> u64 {
        let mine = || &self.layouts.view(&self.segment, slab).left()[slab.me as usize];
        let (rounds, size) = (rounds(first.size), first.size as usize);
        let turns = self.slabs.turns(slab, first.size);
        let (mut done, mut says) = (0, false);
        while done < count && turns.may_leave(first.number + done) {
            says |= turns.leave(first.number + done, rounds, size, mine);
            done += 1;
        }
        if says {
            self.announce(slab.number);
        }
        done
    }

    #[inline]
    fn pass(&mut self, slab: &Slab, round: Round) -> bool {
        let mine = || &self.layouts.view(&self.segment, slab).left()[slab.me as usize];
        let turns = self.slabs.turns(slab, round.size);
        if !turns.may_leave(round.number) {
            return false;
        }
        if turns.pass(round.number, rounds(round.size), round.size as usize, mine) {
            self.announce(slab.number);
        }
        true
    }

    fn has_left(&self, slab: &Slab, round: Round, member: u32) -> bool {
        let left = self.layouts.view(&self.segment, slab).left();
        left[member as usize].has_left(round.size as usize, round.number)
    }

    fn offer(&self, memory: &ReadMemory, length: u64) -> [u8; OFFER] {
        Handle::of(memory, length).encode()
    }

    fn offer_target(&self, memory: &UserMemory, length: u64) -> [u8; OFFER] {
        Handle::of_target(memory, length).encode()
    }

    fn fetch(&mut self, peer: Peer, offer: &[u8; OFFER], offset: u64, into: WriteMemory, length: u64) -> bool {
        // The offer stands until its owner knows that all have copied, so it is never revoked. A process that has ended
        // is noticed by those who wait for it.
        matches!(self.copy_part(peer, offer, offset, into, length), Ok(true))
    }

    fn store(
        &mut self,
        slab: &Slab,
        owner: u32,
        peer: Peer,
        offer: &[u8; OFFER],
        offset: u64,
        from: ReadMemory,
    ) -> bool {
        let (first, end) = from.window();
        let length = end.saturating_sub(first) as u64;
        // The offer may say anything; which process is written to does not follow from it, and never is it this one.
        let target = Handle::decode(offer).and_then(|handle| handle.target()?.part(offset, length));
        let (Some(target), Ok(slot)) = (target, self.slot_of(peer)) else {
            return false;
        };
        if slot == self.slot {
            return false;
        }
        let Some(pid) = self.source(slot) else { return false };
        let left = self.layouts.view(&self.segment, slab).left();
        let mine = &left[slab.me as usize];
        if !mine.may_write(self.slot, &left[owner as usize]) {
            return false;
        }
        let written = pull::write(pid, from.shifted(first).address() as u64, target, length);
        mine.has_written();
        matches!(self.outcome(slot, written, length), Ok(true))
    }

    fn withdraw(&mut self, slab: &Slab) {
        let left = self.layouts.view(&self.segment, slab).left();
        left[slab.me as usize].withdraw();
        for other in left {
            // A member may say anything; nobody is waited for but other processes of this node.
            let is_other = |slot: &usize| *slot != self.slot && *slot < self.links.len();
            let Some(slot) = other.writer().filter(is_other) else {
                continue;
            };
            let probe = Probe::of(self.segment.block(slot));
            let mut lives = awaiting(probe, self.links[slot].pull_from.is_some());
            while lives() && other.writer() == Some(slot) {}
        }
    }

    fn cache_bytes(&self) -> u64 {
        static BYTES: OnceLock<u64> = OnceLock::new();
        *BYTES.get_or_init(|| cache_bytes("/sys/devices/system/cpu/cpu0/cache"))
    }

    fn watch(&mut self, slab: &Slab) {
        self.slabs.watch(&self.segment, self.slot, slab.number as usize);
    }
}

/// What a core's own cache holds where the system does not say it, bytes: as little as any that has one.
const OWN_CACHE: u64 = 256 << 10;

/// Bytes of the cache of the second level, by the system's tree of caches.
fn cache_bytes(at: &str) -> u64 {
    let word = |index: u32, name: &str| std::fs::read_to_string(format!("{at}/index{index}/{name}")).ok();
    let bytes = |index: u32| {
        let (level, size) = (word(index, "level")?, word(index, "size")?);
        let kilobytes: u64 = size.trim().strip_suffix('K')?.parse().ok()?;
        (level.trim() == "2").then_some(kilobytes << 10)
    };
    (0..4).find_map(bytes).filter(|&bytes| bytes > 0).unwrap_or(OWN_CACHE)
}

#[cfg(test)]
mod tests;
