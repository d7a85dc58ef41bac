// SPDX-License-Identifier: Apache-2.0
//! What a process knows of the frames in which groups meet.

use isthmus_transport::meeting::{Lane, Place, Round};
use rustix::io::Errno;

use crate::desk::{LONG_ROUNDS, MIDDLE_ROUNDS, Turns};
use crate::frames::{Cells, FRAMES, FrameHeader};
use crate::segment::Segment;

/// Long cells whose memory is remembered.
const REMEMBERED: usize = 4 * LONG_ROUNDS;

const _: () = assert!(MIDDLE_ROUNDS <= 32 && FRAMES <= 32);

/// What this process knows of the frames.
#[derive(Default)]
pub(crate) struct Frames {
    /// Frames where this process is among those that sleep.
    watched: Vec<usize>,
    /// Per frame and lane, how far rounds are.
    turns: Vec<[Turns; Lane::COUNT]>,
    /// Frames whose header is known to have memory, which it keeps: a bit for each.
    headers: u32,
    /// Per frame, what is known of middle cells.
    middle: [MiddleCells; FRAMES],
    /// Long cells that are known to have memory; only some of them, the last used.
    long: Vec<LongCell>,
}

/// Which middle cells of a frame are known to have memory: a bit for each round.
#[derive(Clone, Copy, Debug, Default)]
struct MiddleCells {
    /// Those of the first member.
    first: u32,
    /// Those of this one.
    own: u32,
    /// All others.
    others: u32,
}

/// A long cell that has memory.
struct LongCell {
    frame: u32,
    /// Which of the rounds that take turns.
    round: usize,
    cell: u32,
    /// Bytes from its start.
    bytes: usize,
}

impl Frames {
    /// How far the rounds of a lane are.
    #[inline]
    pub(crate) fn turns(&mut self, place: &Place, lane: Lane) -> &mut Turns {
        let index = place.frame as usize;
        if self.turns.len() <= index {
            self.turns.resize(index + 1, [Turns::default(); Lane::COUNT]);
        }
        &mut self.turns[index][lane as usize]
    }

    /// A new group has this frame: nothing is known of it.
    pub(crate) fn forget(&mut self, frame: u32) {
        self.long.retain(|long| long.frame != frame);
        if let Some(middle) = self.middle.get_mut(frame as usize) {
            *middle = MiddleCells::default();
        }
        if let Some(turns) = self.turns.get_mut(frame as usize) {
            *turns = [Turns::default(); Lane::COUNT];
        }
    }

    /// Makes sure that the header of a frame has memory. Whoever looks for a free one among many that are in use does
    /// not ask the system for each of them.
    pub(crate) fn back_header(&mut self, segment: &Segment, frame: usize) -> Result<(), Errno> {
        if self.headers >> frame & 1 == 0 {
            segment.back_frame(frame, 0, size_of::<FrameHeader>())?;
            self.headers |= 1 << frame;
        }
        Ok(())
    }

    /// Makes sure that a middle cell has memory. (All cells of a frame would be up to 2 MiB, and a root that broadcasts
    /// needs the first of each round.)
    #[inline]
    pub(crate) fn back_middle(
        &mut self,
        segment: &Segment,
        place: &Place,
        round: Round,
        cell: u32,
    ) -> Result<(), Errno> {
        let at = (round.number % MIDDLE_ROUNDS as u64) as usize;
        let known = &mut self.middle[place.frame as usize];
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
        segment.back_frame(place.frame as usize, start, end - start)?;
        *bits |= 1 << at;
        Ok(())
    }

    /// Makes sure that the first bytes of a long cell have memory.
    pub(crate) fn back_long(
        &mut self,
        segment: &Segment,
        place: &Place,
        round: Round,
        cell: u32,
        bytes: usize,
    ) -> Result<(), Errno> {
        let (frame, round) = (place.frame, (round.number % LONG_ROUNDS as u64) as usize);
        let is_it = |long: &LongCell| long.frame == frame && long.round == round && long.cell == cell;
        let known = self.long.iter().position(is_it);
        if known.is_some_and(|i| self.long[i].bytes >= bytes) {
            return Ok(());
        }
        let at = Cells::of(place.members as usize).long_at(round, cell as usize);
        segment.back_frame(frame as usize, at, bytes)?;
        match known {
            Some(i) => self.long[i].bytes = bytes,
            None => {
                self.long.truncate(REMEMBERED - 1);
                self.long.insert(
                    0,
                    LongCell {
                        frame,
                        round,
                        cell,
                        bytes,
                    },
                );
            }
        }
        Ok(())
    }

    /// The process in `slot`, which is this one, is to be woken by what happens in a frame.
    pub(crate) fn watch(&mut self, segment: &Segment, slot: usize, frame: usize) {
        if !self.watched.contains(&frame) {
            self.watched.push(frame);
            segment.frame(frame).sleepers.add(slot);
        }
    }

    /// Awake again: it sleeps nowhere.
    pub(crate) fn unwatch(&mut self, segment: &Segment, slot: usize) {
        while let Some(frame) = self.watched.pop() {
            segment.frame(frame).sleepers.remove(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Geometry;

    #[test]
    fn a_process_sleeps_in_a_frame_once_and_nowhere_when_it_is_awake() {
        let at = tempfile::tempdir().expect("a directory");
        let geometry = Geometry::new(2).expect("few processes");
        let segment = Segment::open(&at.path().join("segment"), "known", 0, geometry).expect("opened");
        let asleep = || {
            let mut slots = Vec::new();
            segment.frame(0).sleepers.each(2, |slot| slots.push(slot));
            slots
        };
        let mut frames = Frames::default();
        frames.watch(&segment, 1, 0);
        frames.watch(&segment, 1, 0);
        assert_eq!((asleep(), frames.watched.len()), (vec![1], 1));
        frames.unwatch(&segment, 1);
        assert_eq!((asleep(), frames.watched.len()), (vec![], 0));
    }

    #[test]
    fn of_a_frame_that_another_group_takes_nothing_is_known() {
        let at = tempfile::tempdir().expect("a directory");
        let geometry = Geometry::new(2).expect("few processes");
        let segment = Segment::open(&at.path().join("segment"), "known", 0, geometry).expect("opened");
        let place = |frame| Place {
            frame,
            members: 2,
            me: 1,
        };
        let mut frames = Frames::default();
        for frame in [3, 4] {
            let round = |lane| Round { lane, number: 0 };
            frames
                .back_middle(&segment, &place(frame), round(Lane::Middle), 1)
                .expect("memory");
            frames
                .back_long(&segment, &place(frame), round(Lane::Long), 0, 100)
                .expect("memory");
            frames.turns(&place(frame), Lane::Short);
        }
        frames.forget(3);
        let known = |frame: usize| {
            (
                frames.middle[frame].own,
                frames.long.iter().filter(|l| l.frame as usize == frame).count(),
            )
        };
        assert_eq!((known(3), known(4)), ((0, 0), (1, 1)));
    }
}
