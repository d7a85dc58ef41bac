// SPDX-License-Identifier: Apache-2.0
//! Buffers of operations that move data among processes that represent them differently.
//!
//! The units of such a plan are bytes of the packed stream in the common form, on every member, so that a process can
//! pass on what it does not know the type of. The plan works on a copy of the buffer in that form: what it reads is
//! converted before, what it has written is converted when it has ended. That costs the memory of a copy and two passes
//! over the data.

use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{Basic, Datatype, Foreign, Packer, Representation, Unpacker};

use crate::EngineError;
use crate::base::binding::{Blocks, BoundBuffer};
use crate::base::block::Block;

/// A buffer in another form.
#[derive(Debug)]
pub(crate) struct Staged {
    /// What the plan uses.
    pub(super) buffer: BoundBuffer,
    memory: OwnMemory,
    parts: Vec<Chunk>,
    /// What holds data: read from the user's buffer, or written by the plan.
    known: Ranges,
    written: Ranges,
}

#[derive(Debug)]
struct Chunk {
    /// First byte in the stream.
    start: u64,
    length: u64,
    block: Block,
    /// `None`: bytes that are the same in both forms.
    foreign: Option<Foreign>,
}

fn outside<E>(_: E) -> EngineError {
    EngineError::Plan {
        what: "a buffer larger than the address space",
    }
}

fn conversion(what: isthmus_datatype::ConversionError) -> EngineError {
    EngineError::Conversion {
        source: 0,
        tag: -1,
        what,
    }
}

impl Staged {
    /// The buffer in this form; `None` if it is the same there.
    pub(crate) fn new(buffer: &BoundBuffer, form: Representation) -> Result<Option<Self>, EngineError> {
        let mut parts: Vec<Chunk> = Vec::new();
        let mut start = 0u64;
        let mut push = |block: &Block| {
            let foreign = match &block.described {
                Some(described) => Foreign::new(&described.datatype, form).map_err(conversion)?,
                None => None,
            };
            let length = match (&foreign, &block.described) {
                (Some(foreign), Some(described)) => foreign.bytes(described.count).map_err(outside)?,
                _ => block.length,
            };
            parts.push(Chunk {
                start,
                length,
                block: block.clone(),
                foreign,
            });
            start = start.checked_add(length).ok_or(()).map_err(outside)?;
            Ok::<(), EngineError>(())
        };
        match &buffer.blocks {
            Blocks::None => {}
            Blocks::One(block) => push(block)?,
            Blocks::Many(blocks) => blocks.iter().try_for_each(|(_, block)| push(block))?,
        }
        if parts.iter().all(|part| part.foreign.is_none()) {
            return Ok(None);
        }
        let memory = OwnMemory::new(0, isize::try_from(start).map_err(outside)?);
        let block = Block::own(&memory, &Datatype::of(Basic::Byte), start).map_err(outside)?;
        Ok(Some(Self {
            buffer: BoundBuffer::one(block),
            memory,
            parts,
            known: Ranges::default(),
            written: Ranges::default(),
        }))
    }

    /// The plan will read these bytes.
    pub(crate) fn before_reading(&mut self, at: u64, length: u64) -> Result<(), EngineError> {
        let end = at.saturating_add(length);
        for (from, to) in self.known.gaps(at, end) {
            for part in overlapping(&self.parts, from, to) {
                part.load(&self.memory, from, to)?;
            }
        }
        self.known.insert(at, end);
        Ok(())
    }

    /// The plan will write these bytes.
    pub(crate) fn before_writing(&mut self, at: u64, length: u64) {
        let end = at.saturating_add(length);
        self.known.insert(at, end);
        self.written.insert(at, end);
    }

    /// The plan has ended: what it has written goes to the user's memory. The first value that does not fit is the
    /// error.
    pub(crate) fn deliver(&self) -> Result<(), EngineError> {
        let mut result = Ok(());
        for &(from, to) in &self.written.0 {
            for part in overlapping(&self.parts, from, to) {
                let stored = part.store(&self.memory, from, to);
                result = result.and(stored);
            }
        }
        result
    }
}

fn overlapping(parts: &[Chunk], from: u64, to: u64) -> impl Iterator<Item = &Chunk> {
    let first = parts.partition_point(|part| part.start + part.length <= from);
    parts[first..].iter().take_while(move |part| part.start < to)
}

impl Chunk {
    /// The bytes `from .. to` of the stream that are in this part, counted from its start.
    fn inside(&self, from: u64, to: u64) -> (u64, u64) {
        (
            from.max(self.start) - self.start,
            to.min(self.start + self.length) - self.start,
        )
    }

    fn load(&self, memory: &OwnMemory, from: u64, to: u64) -> Result<(), EngineError> {
        let (from, to) = self.inside(from, to);
        let (mut memory, at) = (memory.memory(), (self.start + from) as isize);
        let length = (to - from) as usize;
        let (Some(foreign), Some(described)) = (&self.foreign, &self.block.described) else {
            memory.with_mut(at, length, |target| self.block.read(from, target));
            return Ok(());
        };
        // Whole basics around the range.
        let (first, _) = foreign.basics_in(from);
        let (last, rest) = foreign.basics_in(to);
        let basics = last + u64::from(rest > 0) - first;
        let start = foreign.bytes_of(first);
        let mut piece = vec![0; (foreign.bytes_of(first + basics) - start) as usize];
        let mut packer = Packer::new(&described.datatype, described.count, described.read.clone()).map_err(outside)?;
        foreign
            .pack(first, basics, &mut packer, &mut piece)
            .map_err(conversion)?;
        let skip = (from - start) as usize;
        memory.write(at, &piece[skip..skip + length]);
        Ok(())
    }

    fn store(&self, memory: &OwnMemory, from: u64, to: u64) -> Result<(), EngineError> {
        let (from, to) = self.inside(from, to);
        let memory = memory.reading();
        let (Some(foreign), Some(described)) = (&self.foreign, &self.block.described) else {
            let (at, length) = ((self.start + from) as isize, (to - from) as usize);
            memory.with(at, length, |data| self.block.write(from, data));
            return Ok(());
        };
        let Some(write) = described.write.clone() else {
            return Ok(());
        };
        // Whole basics within the range: others have not arrived whole.
        let (before, rest) = foreign.basics_in(from);
        let first = before + u64::from(rest > 0);
        let basics = foreign.basics_in(to).0.saturating_sub(first);
        let start = foreign.bytes_of(first);
        let length = foreign.bytes_of(first + basics) - start;
        let mut unpacker = Unpacker::new(&described.datatype, described.count, write).map_err(outside)?;
        memory
            .with((self.start + start) as isize, length as usize, |data| {
                foreign.unpack(first, basics, data, &mut unpacker)
            })
            .map_err(conversion)
    }
}

/// Disjoint ranges in order, none touching the next.
#[derive(Debug, Default)]
struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    fn insert(&mut self, from: u64, to: u64) {
        if from >= to {
            return;
        }
        let first = self.0.partition_point(|&(_, end)| end < from);
        let last = self.0.partition_point(|&(start, _)| start <= to);
        let (mut from, mut to) = (from, to);
        if first < last {
            from = from.min(self.0[first].0);
            to = to.max(self.0[last - 1].1);
        }
        self.0.splice(first..last, [(from, to)]);
    }

    /// What of the range is in none.
    fn gaps(&self, from: u64, to: u64) -> Vec<(u64, u64)> {
        let (mut gaps, mut at) = (Vec::new(), from);
        for &(start, end) in &self.0[self.0.partition_point(|&(_, end)| end <= from)..] {
            if start >= to {
                break;
            }
            if at < start {
                gaps.push((at, start));
            }
            at = at.max(end);
        }
        if at < to {
            gaps.push((at, to));
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_merge_and_leave_gaps() {
        let mut ranges = Ranges::default();
        for (from, to) in [(10, 20), (30, 40), (5, 5), (40, 45), (0, 2)] {
            ranges.insert(from, to);
        }
        assert_eq!(ranges.0, [(0, 2), (10, 20), (30, 45)]);
        assert_eq!(ranges.gaps(1, 50), [(2, 10), (20, 30), (45, 50)]);
        assert_eq!(ranges.gaps(12, 18), []);
        ranges.insert(2, 31);
        assert_eq!(ranges.0, [(0, 45)]);
    }
}
