// SPDX-License-Identifier: Apache-2.0
//! Elements at a target are changed, under the locks of the blocks in which they lie.

use isthmus_core::error::Result;
use isthmus_datatype::Datatype;
use isthmus_datatype::op::{OnType, Predefined, Spacing};

use crate::data::TargetData;
use crate::locks;
use crate::reach::Stream;
use crate::spot::Target;
use crate::wait;
use crate::window::Window;

/// Elements at a target, and what changes them.
pub(crate) struct Change<'a> {
    pub(crate) window: &'a Window,
    pub(crate) target: &'a Target,
    pub(crate) stream: Stream<'a>,
    pub(crate) operation: Predefined,
    pub(crate) kernel: OnType,
    /// Memory for elements on their way.
    pub(crate) scratch: Vec<u8>,
}

impl Change<'_> {
    /// Changes elements from byte `at` on by `operands`; what was there before goes to `before`, if that is as long.
    pub(crate) fn apply(&mut self, locks: u64, at: u64, operands: &[u8], before: &mut [u8]) -> Result<()> {
        exclude(self.window, locks)?;
        let done = self.change(at, operands, before);
        self.window.store.blocks().leave(locks);
        done
    }

    /// The same for whoever has the locks.
    pub(crate) fn change(&mut self, at: u64, operands: &[u8], before: &mut [u8]) -> Result<()> {
        if self.operation == Predefined::NoOp {
            return self.stream.read(at, before);
        }
        if self.operation == Predefined::Replace {
            if !before.is_empty() {
                self.stream.read(at, before)?;
            }
            return self.stream.write(at, operands);
        }
        let (mut short, mut scratch) = ([0; 256], std::mem::take(&mut self.scratch));
        let elements = match short.get_mut(..operands.len()) {
            Some(short) => short,
            None => {
                scratch.resize(scratch.len().max(operands.len()), 0);
                &mut scratch[..operands.len()]
            }
        };
        let done = self.compute(at, operands, before, elements);
        self.scratch = scratch;
        done
    }

    fn compute(&mut self, at: u64, operands: &[u8], before: &mut [u8], elements: &mut [u8]) -> Result<()> {
        self.stream.read(at, elements)?;
        before.copy_from_slice(&elements[..before.len()]);
        self.kernel.apply(Spacing::Packed, operands, elements, false);
        self.stream.write(at, elements)
    }

    /// The locks of the elements in these bytes of the stream.
    pub(crate) fn locks(&self, place: &TargetData<'_>, at: u64, length: u64) -> u64 {
        self.locks_of(place.datatype, place.count, at, length)
    }

    pub(crate) fn locks_of(&self, datatype: &Datatype, count: u64, at: u64, length: u64) -> u64 {
        let Target { rank, start, end, .. } = *self.target;
        match datatype.contiguous(count) {
            Some(_) => locks::blocks(rank, start + at, start + at + length),
            None => locks::blocks(rank, start, end),
        }
    }
}

/// Takes locks of blocks, the lowest first, so that nobody waits in a circle.
pub(crate) fn exclude(window: &Window, which: u64) -> Result<()> {
    let locks = window.store.blocks();
    let (me, mut left) = (window.comm.rank(), which);
    while left != 0 {
        let lock = left.trailing_zeros();
        if !locks.enter(lock, me) {
            if let Err(error) = wait::for_block(window.world, &window.comm, locks, lock) {
                locks.leave(which & ((1 << lock) - 1));
                return Err(error);
            }
        }
        left &= left - 1;
    }
    Ok(())
}
