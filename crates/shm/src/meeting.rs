// SPDX-License-Identifier: Apache-2.0
//! Rounds in shared memory: the transport's side of [`Meeting`].

use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_transport::SendError;
use isthmus_transport::meeting::{Lane, Meeting, Place, Round};
use rustix::io::Errno;

use crate::desk::Desk;
use crate::frames::{CELL_HEADER, Cells, FRAMES, FrameHeader, LONG_ROUNDS, SHORT_CELL, SHORT_ROUNDS};
use crate::sync::{AtomicU64, Ordering};
use crate::transport::ShmTransport;

/// What this process knows of the frames.
#[derive(Default)]
pub(crate) struct Frames {
    /// Frames where this process is among those that sleep.
    watched: Vec<usize>,
    /// Bytes from the start of a long cell that are known to have memory: frame, round, cell; only some of them, the last used.
    backed: Vec<((u32, usize, u32), usize)>,
}

/// Long cells whose memory is remembered.
const REMEMBERED: usize = 4 * LONG_ROUNDS;

impl ShmTransport {
    #[inline]
    fn desk(&self, place: &Place, round: Round) -> (&Desk, u64) {
        let header = self.segment.frame(place.frame as usize);
        match round.lane {
            Lane::Short => {
                let rounds = SHORT_ROUNDS as u64;
                (&header.short[(round.number % rounds) as usize], round.number / rounds)
            }
            Lane::Long => {
                let rounds = LONG_ROUNDS as u64;
                (&header.long[(round.number % rounds) as usize], round.number / rounds)
            }
        }
    }

    /// Where in the frame a cell begins, and how many bytes it and those behind it have.
    #[inline]
    fn cell(place: &Place, round: Round, cell: u32) -> (usize, usize) {
        let cells = Cells::of(place.members as usize);
        let (index, rest) = (cell as usize, (place.members - cell) as usize);
        match round.lane {
            Lane::Short => {
                let at = cells.short_at((round.number % SHORT_ROUNDS as u64) as usize, index);
                (at, rest * SHORT_CELL)
            }
            Lane::Long => {
                let at = cells.long_at((round.number % LONG_ROUNDS as u64) as usize, index);
                (at, rest * (cells.long_bytes() + CELL_HEADER))
            }
        }
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
            "no memory for collective operations among the processes of this node in {}: {error}; enlarge the memory file system (mount -o \
             remount,size=..., or --shm-size of the container)",
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

impl Meeting for ShmTransport {
    fn take_frame(&mut self, members: u32) -> Option<u32> {
        let frame = (1..FRAMES).find(|&frame| {
            // A frame that was never used has no memory behind it yet.
            self.segment.back_frame(frame, 0, size_of::<FrameHeader>()).is_ok() && self.segment.frame(frame).take()
        })?;
        let bytes = Cells::of(members as usize).long_start();
        if self.segment.back_frame(frame, 0, bytes).is_err() {
            self.segment.frame(frame).close();
            return None;
        }
        self.frames.backed.retain(|((f, _, _), _)| *f as usize != frame);
        self.segment.frame(frame).open(members);
        Some(frame as u32)
    }

    fn give_back_frame(&mut self, frame: u32) {
        self.frames.backed.retain(|((f, _, _), _)| *f != frame);
        self.segment.frame(frame as usize).give_back();
    }

    fn cell_bytes(&self, members: u32, lane: Lane) -> usize {
        match lane {
            Lane::Short => Cells::short_bytes(),
            Lane::Long => Cells::of(members as usize).long_bytes(),
        }
    }

    fn round_bytes(&self, members: u32, lane: Lane) -> usize {
        Cells::of(members as usize).together(self.cell_bytes(members, lane))
    }

    #[inline]
    fn is_free(&self, place: &Place, round: Round) -> bool {
        let (desk, turn) = self.desk(place, round);
        desk.is_free(turn, u64::from(place.members))
    }

    fn give(&mut self, place: &Place, round: Round, cell: u32, bytes: usize) -> Result<WriteMemory, SendError> {
        let (at, room) = Self::cell(place, round, cell);
        let whole = CELL_HEADER + bytes;
        assert!(whole <= room, "more than the cells of a round hold");
        if round.lane == Lane::Long {
            self.back(place, round, cell, at, whole)?;
        }
        self.length_word(place, at).store(bytes as u64, Ordering::Relaxed);
        let memory = self.segment.frame_memory(place.frame as usize, at, whole);
        // SAFETY: `whole` bytes inside the mapping, which outlives what the engine does with the value; until this member arrives the
        // cell is its own (rule 6).
        Ok(unsafe { WriteMemory::new(memory.add(CELL_HEADER), 0, bytes as isize) })
    }

    fn given(&self, place: &Place, round: Round, cell: u32, bytes: usize) -> (ReadMemory, u64) {
        let (at, room) = Self::cell(place, round, cell);
        let bytes = bytes.min(room - CELL_HEADER);
        let said = self.length_word(place, at).load(Ordering::Relaxed);
        let memory = self.segment.frame_memory(place.frame as usize, at, CELL_HEADER + bytes);
        // SAFETY: inside the mapping; nobody writes the cell until this member has left the round (rule 6).
        (unsafe { ReadMemory::new(memory.add(CELL_HEADER), 0, bytes as isize) }, said)
    }

    #[inline]
    fn arrive(&mut self, place: &Place, round: Round) {
        self.desk(place, round).0.arrive(1);
        self.announce(place.frame);
    }

    #[inline]
    fn arrive_for_all(&mut self, place: &Place, round: Round) {
        self.desk(place, round).0.arrive(u64::from(place.members));
        self.announce(place.frame);
    }

    #[inline]
    fn all_arrived(&self, place: &Place, round: Round) -> bool {
        let (desk, turn) = self.desk(place, round);
        desk.all_arrived(turn, u64::from(place.members))
    }

    #[inline]
    fn leave(&mut self, place: &Place, round: Round) {
        self.desk(place, round).0.leave();
        self.announce(place.frame);
    }

    fn watch(&mut self, place: &Place) {
        let frame = place.frame as usize;
        if !self.frames.watched.contains(&frame) {
            self.frames.watched.push(frame);
            self.segment.frame(frame).sleepers.add(self.slot);
        }
    }
}
