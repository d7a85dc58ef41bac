// SPDX-License-Identifier: Apache-2.0
//! Operations that come in messages, done to memory of this process under the same locks as those that come by memory.
//! Nothing here waits.

use std::borrow::Cow;

use isthmus_abi::constants as abi;
use isthmus_core::error::{Error, Result};
use isthmus_datatype::op::{OnType, Predefined};
use isthmus_datatype::raw::WriteMemory;
use isthmus_datatype::{Basic, Datatype, Foreign, Representation};
use isthmus_engine::SendBuffer;
use isthmus_wire::rma::{Does, Operation, PIECE};

use crate::attach::own_region;
use crate::change::Change;
use crate::elements::{element, on, takes_swaps};
use crate::far::landing;
use crate::locks;
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
    /// The stream as the origin has it, if that is another one.
    foreign: Option<Foreign>,
}

/// Data of an operation as this process represents them.
pub(super) struct Localized<'a> {
    pub(super) at: u64,
    pub(super) bytes: Cow<'a, [u8]>,
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
        form: Representation,
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
        let unlike = (form != Representation::LOCAL).then_some(form);
        let foreign = landing::foreign(&datatype, unlike).map_err(Wrong::Mistake)?;
        // What is asked for is counted as it is here, what comes as it is at its origin.
        let comes = !asks_only(operation);
        let bytes = match &foreign {
            Some(foreign) if comes => foreign.bytes(count).unwrap_or(0),
            _ => bytes,
        };
        let last = operation.first.checked_add(operation.length);
        if operation.length == 0 || last.is_none_or(|last| last > bytes) && operation.does != Does::Swap {
            return lie("an operation whose data do not fit its type");
        }
        let change = change(operation, &datatype, form)?;
        let memory = if window.flavor == Flavor::Dynamic {
            let region = own_region(window, start as u64, end as u64).map_err(Wrong::Mistake)?;
            region.shifted((place as u64).wrapping_sub(start as u64) as isize)
        } else {
            if start < 0 || end as u64 > window.size() {
                return match unlike {
                    // It cannot know what sizes elements have here.
                    Some(_) => Err(Wrong::Mistake(outside(window, start, end))),
                    None => lie("an operation on bytes outside of the window"),
                };
            }
            window.own_memory().shifted(place as isize)
        };
        Ok(Self {
            target: target(window, memory, start as u64, end as u64),
            datatype,
            count,
            change,
            foreign,
        })
    }

    /// Whether data are the same here as at their origin.
    pub(super) fn is_alike(&self) -> bool {
        self.foreign.is_none()
    }

    /// How many of the data's bytes from byte `at` on are whole elements; both as the origin counts.
    pub(super) fn whole(&self, at: u64, bytes: usize) -> usize {
        let Some(foreign) = &self.foreign else {
            return bytes - bytes % self.change.map_or(1, |(basic, ..)| basic.size().max(1));
        };
        let first = foreign.basics_in(at).0;
        let (mut end, _) = foreign.basics_in(at + bytes as u64);
        if let Some((basic, ..)) = self.change {
            // Pairs are two basics.
            end -= (end - first) % Datatype::of(basic).signature().elements().max(1);
        }
        (foreign.bytes_of(end) - at) as usize
    }

    /// Whole elements from byte `at` on, which their origin has sent, as they are here.
    pub(super) fn localized<'a>(&self, at: u64, data: &'a [u8]) -> Result<Localized<'a>> {
        let Some(foreign) = &self.foreign else {
            let bytes = Cow::Borrowed(data);
            return Ok(Localized { at, bytes });
        };
        let first = foreign.basics_in(at).0;
        let basics = foreign.basics_in(at + data.len() as u64).0 - first;
        let bytes = foreign
            .localize(first, basics, data)
            .map_err(|error| landing::refused(&error))?;
        let at = foreign.local_bytes_of(first);
        Ok(Localized {
            at,
            bytes: Cow::Owned(bytes),
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

    /// Memory for bytes `at .. at + length` of the stream, if they lie there in one piece as they come.
    pub(super) fn straight(&self, at: u64, length: u64) -> Option<WriteMemory> {
        let (offset, bytes) = self.datatype.contiguous(self.count)?;
        let Spot::Here(memory) = &self.target.spot else {
            return None;
        };
        let fits = self.is_alike() && at.checked_add(length).is_some_and(|end| end <= bytes);
        fits.then(|| memory.part(offset + at as isize, length as usize))
    }

    /// Replaces bytes of the stream.
    pub(super) fn put(&self, at: u64, data: &[u8]) -> Result<()> {
        self.stream()?.write(at, data)
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
            scratch: Vec::new(),
        };
        let length = operands.len().max(before.len()) as u64;
        let which = change.locks_of(&self.datatype, self.count, at, length);
        if !enter(window, which) {
            return Ok(Err(Busy));
        }
        let done = change.change(at, operands, before);
        window.store.blocks().leave(which);
        done.map(Ok)
    }

    /// Replaces an element by the first half of `data` if it is as the second; gives what was there.
    pub(super) fn swap(&self, window: &Window, data: &[u8]) -> Result<std::result::Result<Vec<u8>, Busy>> {
        let both = self.localized(0, data)?;
        let (new, old) = both.bytes.split_at(both.bytes.len() / 2);
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
        window.store.blocks().leave(which);
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

/// Whether no data come with an operation.
fn asks_only(operation: &Operation<'_>) -> bool {
    let reads = operation.does == Does::Fetch && operation.op == Predefined::NoOp.handle();
    operation.does == Does::Get || reads
}

fn outside(window: &Window, start: i64, end: i64) -> Error {
    Error::of_argument(
        abi::MPI_ERR_RMA_RANGE,
        "target_disp",
        format!(
            "leads to the bytes {start} to {end} of rank {}, whose part of the window has {}, with elements as large as \
             they are there",
            window.comm.rank(),
            window.size()
        ),
    )
}

/// What changes the elements, if that is what the operation does. `form`: how its origin represents data.
fn change(
    operation: &Operation<'_>,
    datatype: &Datatype,
    form: Representation,
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
    let size_in = |form: Representation| form.size(basic).max(1) as u64;
    let size = size_in(if asks_only(operation) {
        Representation::LOCAL
    } else {
        form
    });
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
    let locks = window.store.blocks();
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
