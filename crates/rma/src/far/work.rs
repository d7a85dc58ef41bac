// SPDX-License-Identifier: Apache-2.0
//! Operations that come in messages, done to memory of this process under the same locks as those that come by memory.
//! Nothing here waits.

use isthmus_abi::constants as abi;
use isthmus_core::error::{Error, Result};
use isthmus_datatype::op::{OnType, Predefined};
use isthmus_datatype::raw::WriteMemory;
use isthmus_datatype::{Basic, Datatype};
use isthmus_engine::SendBuffer;
use isthmus_wire::rma::{Does, Operation, PIECE};

use crate::accumulate::{Change, element, on, takes_swaps};
use crate::attach::own_region;
use crate::locks::{self, BlockLocks};
use crate::reach::Stream;
use crate::spot::{Spot, Target};
use crate::window::{Flavor, Window};

/// Looks at the lock of a block before something else is done.
const LOOKS: u32 = 300;

/// Elements here that an operation is about.
pub(super) struct Elements {
    pub(super) datatype: Datatype,
    pub(super) count: u64,
    target: Target,
    /// For those that change elements.
    change: Option<(Basic, Predefined, OnType)>,
}

/// What is wrong with an operation.
pub(super) enum Wrong {
    /// An honest process does not send it.
    Lie(&'static str),
    /// The program's mistake.
    Mistake(Error),
}

/// The lock of a block is taken: another time.
pub(super) struct Busy;

impl Elements {
    /// Finds what an operation is about, and checks everything that its origin has said.
    pub(super) fn of(
        window: &Window,
        operation: &Operation<'_>,
        datatype: Datatype,
    ) -> std::result::Result<Self, Wrong> {
        let lie = |what| Err(Wrong::Lie(what));
        let (count, place) = (operation.count, operation.place);
        let (Ok(bytes), Ok((low, high))) = (datatype.bytes(count), datatype.window(count)) else {
            return lie("an operation on more data than there can be");
        };
        let ends = (place.checked_add(low as i64), place.checked_add(high as i64));
        let (Some(start), Some(end)) = ends else {
            return lie("an operation on bytes beyond all memory");
        };
        let last = operation.first.checked_add(operation.length);
        if operation.length == 0 || last.is_none_or(|last| last > bytes) && operation.does != Does::Swap {
            return lie("an operation whose data do not fit its type");
        }
        let change = change(operation, &datatype)?;
        let memory = if window.flavor == Flavor::Dynamic {
            let region = own_region(window, start as u64, end as u64).map_err(Wrong::Mistake)?;
            region.shifted((place as u64).wrapping_sub(start as u64) as isize)
        } else {
            if start < 0 || end as u64 > window.size() {
                return lie("an operation on bytes outside of the window");
            }
            window.own.shifted(place as isize)
        };
        Ok(Self {
            target: target(window, memory, start as u64, end as u64),
            datatype,
            count,
            change,
        })
    }

    fn stream(&self) -> Result<Stream<'_>> {
        Stream::new(&self.target.spot, &self.datatype, self.count)
    }

    /// What a get sends. The memory is read until it has left.
    pub(super) fn data(&self) -> Result<SendBuffer> {
        let Spot::Here(memory) = &self.target.spot else {
            return Ok(SendBuffer::EMPTY);
        };
        Ok(SendBuffer::typed(memory.reading(), &self.datatype, self.count)?)
    }

    /// Replaces bytes of the stream.
    pub(super) fn put(&self, at: u64, data: &[u8]) -> Result<()> {
        self.stream()?.write(at, data)
    }

    /// Bytes of an element.
    pub(super) fn unit(&self) -> usize {
        self.change.map_or(1, |(basic, ..)| basic.size().max(1))
    }

    /// Changes whole elements from byte `at` on; what was there goes to `before`, if that is as long.
    pub(super) fn change(
        &self,
        window: &Window,
        at: u64,
        operands: &[u8],
        before: &mut [u8],
    ) -> Result<std::result::Result<(), Busy>> {
        let Some((_, operation, kernel)) = self.change else {
            return Ok(Ok(()));
        };
        let mut change = Change {
            window,
            target: &self.target,
            stream: self.stream()?,
            operation,
            kernel,
        };
        let length = operands.len().max(before.len()) as u64;
        let which = change.locks_of(&self.datatype, self.count, at, length);
        if !enter(window, which) {
            return Ok(Err(Busy));
        }
        let done = change.change(at, operands, before);
        BlockLocks::of(window.store.words(), window.parts.count()).leave(which);
        done.map(Ok)
    }

    /// Replaces an element by the first half of `data` if it is as the second; gives what was there.
    pub(super) fn swap(&self, window: &Window, data: &[u8]) -> Result<std::result::Result<Vec<u8>, Busy>> {
        let (new, old) = data.split_at(data.len() / 2);
        let which = locks::blocks(self.target.rank, self.target.start, self.target.end);
        let mut stream = self.stream()?;
        if !enter(window, which) {
            return Ok(Err(Busy));
        }
        let mut before = vec![0; old.len()];
        let mut swapped = stream.read(0, &mut before);
        if swapped.is_ok() && before == old {
            swapped = stream.write(0, new);
        }
        BlockLocks::of(window.store.words(), window.parts.count()).leave(which);
        swapped.map(|()| Ok(before))
    }
}

fn target(window: &Window, memory: WriteMemory, start: u64, end: u64) -> Target {
    Target {
        rank: window.comm.rank(),
        spot: Spot::Here(memory),
        start,
        end,
    }
}

/// What changes the elements, if that is what the operation does.
fn change(
    operation: &Operation<'_>,
    datatype: &Datatype,
) -> std::result::Result<Option<(Basic, Predefined, OnType)>, Wrong> {
    let lie = |what| Err(Wrong::Lie(what));
    if matches!(operation.does, Does::Put | Does::Get) {
        let whole = operation.does == Does::Put || Ok(operation.length) == datatype.bytes(operation.count);
        return match operation.op == 0 && operation.first == 0 && whole {
            true => Ok(None),
            false => lie("a put or get that says more than it needs"),
        };
    }
    let Some(basic) = element(datatype) else {
        return lie("an operation on elements of different types");
    };
    let size = basic.size().max(1) as u64;
    if operation.does == Does::Swap {
        let one = datatype.basic().is_some() && operation.count == 1 && operation.length == 2 * size;
        return match one && takes_swaps(basic) && operation.data.len() as u64 == operation.length {
            true => Ok(None),
            false => lie("a swap of something else than an element"),
        };
    }
    let Some(known) = Predefined::from_handle(operation.op) else {
        return lie("an operation on elements that there is not");
    };
    let Ok(kernel) = on(known, basic) else {
        return lie("an operation that its elements do not have");
    };
    let reads = known == Predefined::NoOp;
    let fits = match reads {
        true => operation.does == Does::Fetch && operation.length <= PIECE && operation.data.is_empty(),
        false => operation.first == 0,
    };
    if !fits || operation.length % size != 0 || operation.first % size != 0 {
        return lie("an operation on pieces of elements");
    }
    Ok(Some((basic, known, kernel)))
}

impl Elements {
    /// Whether elements are read only.
    pub(super) fn reads(&self) -> bool {
        self.change
            .is_some_and(|(_, operation, _)| operation == Predefined::NoOp)
    }
}

/// Takes locks of blocks, if that needs no waiting.
fn enter(window: &Window, which: u64) -> bool {
    let locks = BlockLocks::of(window.store.words(), window.parts.count());
    let (me, mut left) = (window.comm.rank(), which);
    while left != 0 {
        let lock = left.trailing_zeros();
        let entered = (0..LOOKS).any(|_| {
            let entered = locks.enter(lock, me);
            if !entered {
                std::hint::spin_loop();
            }
            entered
        });
        if !entered {
            locks.leave(which & ((1 << lock) - 1));
            return false;
        }
        left &= left - 1;
    }
    true
}

/// The error class of something that has gone wrong here.
pub(super) fn class(error: &Error) -> u32 {
    u32::try_from(error.class).unwrap_or(abi::MPI_ERR_OTHER as u32)
}
