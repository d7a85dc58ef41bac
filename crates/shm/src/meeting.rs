// SPDX-License-Identifier: Apache-2.0
//! Rounds in shared memory: the transport's side of [`Meeting`].

use std::ops::Range;

use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_transport::meeting::{Claim, Disagreement, ENLARGE, Lane, Meeting, OFFER, Place, Round};
use isthmus_transport::{Peer, SendError, Transport};
use rustix::io::Errno;

use crate::desk::{Arrived, LONG_ROUNDS, Left, MIDDLE_ROUNDS, Turns};
use crate::frames::{
    CELL_HEADER, Cells, FRAMES, FrameHeader, NOTES, SHORT_CELL, SHORT_ROUNDS, WORD_CELL, WORD_HEADER, WORD_ROUNDS,
};
use crate::known::{Frames, MiddleCells};
use crate::pull::{HANDLE_BYTES, Handle};
use crate::segment::Segment;
use crate::sync::{AtomicU64, Ordering};
use crate::transport::ShmTransport;

/// Rounds from now whose cells are fetched: who gives in one round after the other, and takes nothing, needs the next
/// sooner than it can come.
const SOON: u64 = 6;

/// Long cells whose memory is remembered.
const REMEMBERED: usize = 4 * LONG_ROUNDS;

const _: () = assert!(MIDDLE_ROUNDS <= 32);

impl ShmTransport {
    /// Up to which turn a cell is there, and the turn of the round.
    #[inline]
    fn arrived(&self, place: &Place, round: Round, cell: u32) -> (&Arrived, u64) {
        match round.lane {
            Lane::Word | Lane::Short => {
                let (at, _) = Self::cell(place, round, cell);
                let header = self.segment.frame_memory(place.frame as usize, at, header(round.lane));
                (Self::arrived_at(header, round.lane), round.number / rounds(round.lane))
            }
            Lane::Middle | Lane::Long => {
                let rounds = rounds(round.lane);
                let members = Self::left(&self.segment, place.frame as usize, place.members as usize);
                let (member, at) = (&members[cell as usize], (round.number % rounds) as usize);
                let arrived = match round.lane {
                    Lane::Middle => &member.middle[at],
                    _ => &member.long[at],
                };
                (arrived, round.number / rounds)
            }
        }
    }

    /// Up to which turn a cell of a word or a short one is there, which begins here.
    #[inline]
    fn arrived_at<'a>(cell: *mut u8, lane: Lane) -> &'a Arrived {
        let at = if lane == Lane::Word { cell } else { cell.wrapping_add(8) };
        // SAFETY: inside the mapping, which outlives the transport; aligned to 8, as cells are to 16 or more; only
        // touched as an atomic.
        unsafe { &*at.cast::<Arrived>() }
    }

    /// After a cell was given: its writer's one in a round of words or a short one soon comes to this core, if that is
    /// not there anyway, while it does other things.
    #[inline]
    fn prepare(&self, place: &Place, round: Round, cell: u32) {
        if matches!(round.lane, Lane::Word | Lane::Short) {
            let next = Round {
                number: round.number + SOON,
                ..round
            };
            self.arrived(place, next, cell).0.fetch();
        }
    }

    /// How far the members of a place have left rounds.
    #[inline]
    fn left(segment: &Segment, frame: usize, members: usize) -> &[Left] {
        let words = segment.frame_memory(frame, Cells::LEFT_AT, members * size_of::<Left>());
        // SAFETY: inside the mapping, aligned to a page, only touched as atomics.
        unsafe { std::slice::from_raw_parts(words.cast::<Left>(), members) }
    }

    /// What this process knows of the rounds of a lane.
    #[inline]
    fn turns<'a>(frames: &'a mut Frames, place: &Place, lane: Lane) -> &'a mut Turns {
        let index = place.frame as usize;
        if frames.turns.len() <= index {
            frames.turns.resize(index + 1, [Turns::default(); Lane::COUNT]);
        }
        &mut frames.turns[index][lane as usize]
    }

    /// Where in the frame a cell begins, and how many bytes it and those behind it have.
    #[inline]
    fn cell(place: &Place, round: Round, cell: u32) -> (usize, usize) {
        let cells = Cells::of(place.members as usize);
        let (index, rest) = (cell as usize, (place.members - cell) as usize);
        match round.lane {
            Lane::Word => (cells.word_at((round.number % WORD_ROUNDS as u64) as usize), WORD_CELL),
            Lane::Short => {
                let at = cells.short_at((round.number % SHORT_ROUNDS as u64) as usize, index);
                (at, rest * SHORT_CELL)
            }
            Lane::Middle => {
                let at = cells.middle_at((round.number % MIDDLE_ROUNDS as u64) as usize, index);
                (at, rest * (cells.middle_bytes() + CELL_HEADER))
            }
            Lane::Long => {
                let at = cells.long_at((round.number % LONG_ROUNDS as u64) as usize, index);
                (at, rest * (cells.long_bytes() + CELL_HEADER))
            }
        }
    }

    /// Where a member notes what it takes a step for.
    #[inline]
    fn noted(&self, place: &Place, member: u32, step: u64) -> &AtomicU64 {
        let at = Cells::of(place.members as usize).note_at(member as usize, step);
        let word = self.segment.frame_memory(place.frame as usize, at, size_of::<u64>());
        // SAFETY: inside the mapping, aligned to 8, only touched as an atomic.
        unsafe { &*word.cast::<AtomicU64>() }
    }

    /// The word in which a member says how many bytes it gives.
    fn length_word(&self, place: &Place, at: usize) -> &AtomicU64 {
        let word = self.segment.frame_memory(place.frame as usize, at, CELL_HEADER);
        // SAFETY: inside the mapping, aligned to 128, only touched as an atomic.
        unsafe { &*word.cast::<AtomicU64>() }
    }

    /// Wakes those who sleep at a place, after something happened there.
    #[inline]
    fn announce(&mut self, frame: u32) {
        let mut asleep = Vec::new();
        let sleepers = &self.segment.frame(frame as usize).sleepers;
        sleepers.each(self.segment.geometry().processes(), |slot| asleep.push(slot));
        for slot in asleep {
            if slot != self.slot && slot < self.links.len() {
                self.ring(slot);
            }
        }
    }

    /// Makes sure that a middle cell has memory. (All cells of a frame would be up to 2 MiB, and a root that broadcasts
    /// needs the first of each round.)
    #[inline]
    fn back_middle(&mut self, place: &Place, round: Round, cell: u32) -> Result<(), SendError> {
        let at = (round.number % MIDDLE_ROUNDS as u64) as usize;
        let known = &mut self.frames.middle[place.frame as usize];
        let (bits, from, count) = match cell {
            0 => (&mut known.first, 0, 1),
            _ if cell == place.me => (&mut known.own, cell as usize, 1),
            _ => (&mut known.others, 0, place.members as usize),
        };
        if *bits >> at & 1 != 0 {
            return Ok(());
        }
        let cells = Cells::of(place.members as usize);
        let (start, end) = (cells.middle_at(at, from), cells.middle_at(at, from + count));
        let backed = self.segment.back_frame(place.frame as usize, start, end - start);
        if backed.is_ok() {
            *bits |= 1 << at;
        }
        backed.map_err(|error| self.no_memory(error))
    }

    /// Makes sure that a long cell has memory.
    fn back(&mut self, place: &Place, round: Round, cell: u32, at: usize, bytes: usize) -> Result<(), SendError> {
        let key = (place.frame, (round.number % LONG_ROUNDS as u64) as usize, cell);
        let known = self.frames.backed.iter().position(|(k, _)| *k == key);
        if known.is_some_and(|i| self.frames.backed[i].1 >= bytes) {
            return Ok(());
        }
        self.segment
            .back_frame(place.frame as usize, at, bytes)
            .map_err(|error| self.no_memory(error))?;
        match known {
            Some(i) => self.frames.backed[i].1 = bytes,
            None => {
                self.frames.backed.truncate(REMEMBERED - 1);
                self.frames.backed.insert(0, (key, bytes));
            }
        }
        Ok(())
    }

    #[cold]
    fn no_memory(&self, error: Errno) -> SendError {
        SendError::Lost(format!(
            "no memory for collective operations among the processes of this node in {}: {error}{ENLARGE}",
            self.segment.path().display()
        ))
    }

    /// Awake again: sleeps nowhere.
    pub(crate) fn unwatch_frames(&mut self) {
        while let Some(frame) = self.frames.watched.pop() {
            self.segment.frame(frame).sleepers.remove(self.slot);
        }
    }
}

/// How many rounds take turns in memory.
#[inline]
fn rounds(lane: Lane) -> u64 {
    match lane {
        Lane::Word => WORD_ROUNDS as u64,
        Lane::Short => SHORT_ROUNDS as u64,
        Lane::Middle => MIDDLE_ROUNDS as u64,
        Lane::Long => LONG_ROUNDS as u64,
    }
}

/// Bytes of what stands before what a member gives.
#[inline]
fn header(lane: Lane) -> usize {
    match lane {
        Lane::Word => WORD_HEADER,
        _ => CELL_HEADER,
    }
}

/// A note, one word: its turn (16 bits), the operation counted from 1 (5), the root (10), the block (33).
#[inline]
fn note(step: u64, claim: Claim) -> u64 {
    let what = (u64::from(claim.what) + 1) & 0x1f;
    turn(step) << 48 | what << 43 | u64::from(claim.root & 0x3ff) << 33 | claim.block & BLOCK
}

fn turn(step: u64) -> u64 {
    (step / NOTES as u64) & 0xffff
}

const BLOCK: u64 = (1 << 33) - 1;

fn read_note(note: u64) -> Claim {
    Claim {
        what: (note >> 43 & 0x1f).wrapping_sub(1) as u8,
        root: (note >> 33 & 0x3ff) as u32,
        block: note & BLOCK,
    }
}

/// In the word that says how many bytes a member gives: its cell is marked.
const MARK: u64 = 1 << 63;

const _: () = assert!(HANDLE_BYTES == OFFER);

impl Meeting for ShmTransport {
    fn is_near(&self, peer: Peer) -> bool {
        self.slots.get(peer).is_some()
    }

    fn take_frame(&mut self, members: u32) -> Option<u32> {
        let frame = (1..FRAMES).find(|&frame| {
            // A frame that was never used has no memory behind it yet.
            self.segment.back_frame(frame, 0, size_of::<FrameHeader>()).is_ok() && self.segment.frame(frame).take()
        })?;
        let bytes = Cells::of(members as usize).middle_start();
        if self.segment.back_frame(frame, 0, bytes).is_err() {
            self.segment.frame(frame).close();
            return None;
        }
        let cells = Cells::of(members as usize);
        Self::left(&self.segment, frame, members as usize)
            .iter()
            .for_each(Left::reset);
        for member in 0..members {
            let place = Place {
                frame: frame as u32,
                members,
                me: member,
            };
            (0..NOTES as u64).for_each(|step| self.noted(&place, member, step).store(0, Ordering::Relaxed));
        }
        for round in 0..SHORT_ROUNDS {
            for cell in 0..members as usize {
                let at = cells.short_at(round, cell);
                Self::arrived_at(self.segment.frame_memory(frame, at, CELL_HEADER), Lane::Short).reset();
            }
        }
        for round in 0..WORD_ROUNDS {
            let at = cells.word_at(round);
            Self::arrived_at(self.segment.frame_memory(frame, at, WORD_CELL), Lane::Word).reset();
        }
        self.segment.frame(frame).open(members);
        Some(frame as u32)
    }

    fn open_frame(&mut self, frame: u32) {
        self.frames.backed.retain(|((f, _, _), _)| *f != frame);
        if let Some(middle) = self.frames.middle.get_mut(frame as usize) {
            *middle = MiddleCells::default();
        }
        if let Some(turns) = self.frames.turns.get_mut(frame as usize) {
            *turns = [Turns::default(); Lane::COUNT];
        }
    }

    fn give_back_frame(&mut self, frame: u32) {
        self.segment.frame(frame as usize).give_back();
    }

    fn cell_bytes(&self, members: u32, lane: Lane) -> usize {
        match lane {
            Lane::Word => WORD_CELL - WORD_HEADER,
            Lane::Short => Cells::SHORT_BYTES,
            Lane::Middle => Cells::of(members as usize).middle_bytes(),
            Lane::Long => Cells::of(members as usize).long_bytes(),
        }
    }

    fn round_bytes(&self, members: u32, lane: Lane) -> usize {
        let cells = if lane == Lane::Word { 1 } else { members as usize };
        cells * (self.cell_bytes(members, lane) + header(lane)) - header(lane)
    }

    #[inline]
    fn note(&mut self, place: &Place, step: u64, claim: Claim) {
        self.noted(place, place.me, step)
            .store(note(step, claim), Ordering::Release);
    }

    fn disagreements(&self, place: &Place, step: u64) -> Vec<Disagreement> {
        let left = Self::left(&self.segment, place.frame as usize, place.members as usize);
        let others = || (0..place.members).filter(|&member| member != place.me);
        let kept = (step + 1).saturating_sub(NOTES as u64)..=step;
        let at_odds = kept.flat_map(|step| {
            // A slot has the note of this step if it is of its turn.
            let noted = move |member| {
                let note = self.noted(place, member, step).load(Ordering::Acquire);
                Some(note).filter(|&note| note != 0 && note >> 48 == turn(step))
            };
            let mine = noted(place.me);
            others().filter_map(move |member| {
                let (mine, theirs) = (mine?, noted(member)?);
                let claims = [read_note(mine), read_note(theirs)];
                (mine != theirs).then_some(Disagreement::Other { member, step, claims })
            })
        });
        let gave_up = others().filter_map(|member| {
            let no_memory = left[member as usize].has_given_up()?;
            Some(Disagreement::GaveUp { member, no_memory })
        });
        at_odds.chain(gave_up).collect()
    }

    fn give_up(&mut self, place: &Place, no_memory: bool) {
        let left = Self::left(&self.segment, place.frame as usize, place.members as usize);
        left[place.me as usize].give_up(no_memory);
        self.announce(place.frame);
    }

    #[inline]
    fn is_free(&mut self, place: &Place, round: Round) -> bool {
        let rounds = rounds(round.lane);
        let segment = &self.segment;
        let turns = Self::turns(&mut self.frames, place, round.lane);
        let members = || Self::left(segment, place.frame as usize, place.members as usize);
        turns.is_free(round.number, rounds, round.lane as usize, members)
    }

    fn give(&mut self, place: &Place, round: Round, cell: u32, bytes: usize) -> Result<WriteMemory, SendError> {
        let (at, room) = Self::cell(place, round, cell);
        let whole = header(round.lane) + bytes;
        assert!(whole <= room, "more than the cells of a round hold");
        match round.lane {
            Lane::Word | Lane::Short => {}
            Lane::Middle => self.back_middle(place, round, cell)?,
            Lane::Long => self.back(place, round, cell, at, whole)?,
        }
        match round.lane {
            Lane::Word => self.arrived(place, round, cell).0.say(bytes),
            _ => self.length_word(place, at).store(bytes as u64, Ordering::Relaxed),
        }
        let memory = self.segment.frame_memory(place.frame as usize, at, whole);
        // SAFETY: `whole` bytes inside the mapping, which outlives what the engine does with the value; until this
        // member arrives the cell is its own (rule 6).
        Ok(unsafe { WriteMemory::new(memory.wrapping_add(header(round.lane)), 0, bytes as isize) })
    }

    fn give_at_once(
        &mut self,
        place: &Place,
        round: Round,
        cell: u32,
        memory: Option<&ReadMemory>,
        bytes: usize,
        leaves: bool,
    ) -> bool {
        if !self.is_free(place, round) {
            return false;
        }
        let (at, room) = Self::cell(place, round, cell);
        let header = header(round.lane);
        assert!(header + bytes <= room, "more than the cells of a round hold");
        let to = self.segment.frame_memory(place.frame as usize, at, header + bytes);
        if let Some(from) = memory {
            // SAFETY: `bytes` bytes inside the mapping; until this member arrives the cell is its own (rule 6).
            let mut to = unsafe { WriteMemory::new(to.wrapping_add(header), 0, bytes as isize) };
            to.copy_short(from, bytes);
        }
        let (arrived, turn) = (Self::arrived_at(to, round.lane), round.number / rounds(round.lane));
        if round.lane == Lane::Word {
            arrived.last_of(turn, bytes);
        } else {
            self.length_word(place, at).store(bytes as u64, Ordering::Relaxed);
            arrived.last(turn);
        }
        self.announce(place.frame);
        self.prepare(place, round, cell);
        if leaves {
            self.leave(place, round);
        }
        true
    }

    fn given(&self, place: &Place, round: Round, cell: u32, bytes: usize) -> (ReadMemory, u64) {
        let (at, room) = Self::cell(place, round, cell);
        let header = header(round.lane);
        let bytes = bytes.min(room - header);
        let said = match round.lane {
            Lane::Word => self.arrived(place, round, cell).0.said() as u64,
            _ => self.length_word(place, at).load(Ordering::Relaxed) & !MARK,
        };
        let memory = self.segment.frame_memory(place.frame as usize, at, header + bytes);
        // SAFETY: inside the mapping; nobody writes the cell until this member has left the round (rule 6).
        (
            unsafe { ReadMemory::new(memory.wrapping_add(header), 0, bytes as isize) },
            said,
        )
    }

    fn mark(&mut self, place: &Place, round: Round, cell: u32) {
        assert!(round.lane != Lane::Word, "a cell of a word has no room for a mark");
        let (at, _) = Self::cell(place, round, cell);
        let word = self.length_word(place, at);
        word.store(word.load(Ordering::Relaxed) | MARK, Ordering::Relaxed);
    }

    fn is_marked(&self, place: &Place, round: Round, cell: u32) -> bool {
        let (at, _) = Self::cell(place, round, cell);
        round.lane != Lane::Word && self.length_word(place, at).load(Ordering::Relaxed) & MARK != 0
    }

    #[inline]
    fn arrive(&mut self, place: &Place, round: Round, cells: Range<u32>) {
        let Some(last) = cells.end.checked_sub(1) else { return };
        for cell in cells.start..last {
            let (arrived, turn) = self.arrived(place, round, cell);
            arrived.one(turn);
        }
        let (arrived, turn) = self.arrived(place, round, last);
        match round.lane {
            Lane::Word => arrived.last_of(turn, arrived.said()),
            _ => arrived.last(turn),
        }
        self.announce(place.frame);
        self.prepare(place, round, last);
    }

    #[inline]
    fn have_arrived(&self, place: &Place, round: Round, cells: Range<u32>) -> u32 {
        let count = cells.end - cells.start;
        let is_missing = |cell: &u32| {
            let (arrived, turn) = self.arrived(place, round, *cell);
            !arrived.is_there(turn)
        };
        let missing = cells.clone().find(is_missing);
        missing.map_or(count, |cell| cell - cells.start)
    }

    #[inline]
    fn leave(&mut self, place: &Place, round: Round) {
        let left = Self::left(&self.segment, place.frame as usize, place.members as usize);
        let turns = Self::turns(&mut self.frames, place, round.lane);
        let mine = &left[place.me as usize];
        if turns.leave(round.number, rounds(round.lane), round.lane as usize, mine) {
            self.announce(place.frame);
        }
    }

    fn leave_some(&mut self, place: &Place, first: Round, count: u64) -> u64 {
        let mut done = 0;
        while done < count {
            let number = first.number + done;
            if !Self::turns(&mut self.frames, place, first.lane).may_leave(number) {
                break;
            }
            self.leave(place, Round { number, ..first });
            done += 1;
        }
        done
    }

    #[inline]
    fn pass(&mut self, place: &Place, round: Round) -> bool {
        let left = Self::left(&self.segment, place.frame as usize, place.members as usize);
        let turns = Self::turns(&mut self.frames, place, round.lane);
        if !turns.may_leave(round.number) {
            return false;
        }
        let mine = &left[place.me as usize];
        if turns.pass(round.number, rounds(round.lane), round.lane as usize, mine) {
            self.announce(place.frame);
        }
        true
    }

    fn has_left(&self, place: &Place, round: Round, member: u32) -> bool {
        let left = Self::left(&self.segment, place.frame as usize, place.members as usize);
        left[member as usize].has_left(round.lane as usize, round.number)
    }

    fn offer(&self, memory: ReadMemory, length: u64) -> [u8; OFFER] {
        Handle::of(memory, length).encode()
    }

    fn fetch(&mut self, peer: Peer, offer: &[u8; OFFER], offset: u64, into: WriteMemory, length: u64) -> bool {
        // A process that has ended is noticed by those who wait for it.
        matches!(self.pull(peer, offer, offset, into, length), Ok(true))
    }

    fn watch(&mut self, place: &Place) {
        let frame = place.frame as usize;
        if !self.frames.watched.contains(&frame) {
            self.frames.watched.push(frame);
            self.segment.frame(frame).sleepers.add(self.slot);
        }
    }
}
