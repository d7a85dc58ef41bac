// SPDX-License-Identifier: Apache-2.0
//! Handles of objects that the program made: small numbers in a pointer's place.
//!
//! ```text
//!  bit 63            31                                  5 4      0
//!      +--------------+-----------------------------------+--------+
//!      | 0            | index + 128                       | kind   |
//!      +--------------+-----------------------------------+--------+
//! ```
//! So a handle is never below 0x1000 (the predefined ones are, MPI 5.0 chapter 20), is a positive C int
//! for `MPI_X_toint`, and tells its kind, so that a communicator given as a datatype is found out.
//!
//! Access rules of [`Table`]:
//! 1. A slot's content changes only under the lock of the table.
//! 2. [`Table::get`] reads a slot without the lock. MPI forbids the program to free an object while another
//!    call uses its handle, so a slot that is read does not change meanwhile.
//! 3. Chunks are never moved or freed; a chunk pointer is published with release order.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::turns::{Guard, Turns};

/// A handle as C passes it: the pointer's value.
pub(crate) type Handle = usize;

/// Bits of a handle that tell its kind.
const KIND_BITS: u32 = 5;
/// Number of the first object: its handle is not among those that the ABI may give a meaning.
const FIRST: usize = isthmus_abi::PREDEFINED_HANDLES_END >> KIND_BITS;
/// Most objects of one kind: the handle of the last is still a positive C int.
const MOST: usize = (i32::MAX as usize >> KIND_BITS) - FIRST;
const CHUNKS: usize = 20;
const SMALLEST: usize = 64;

const _: () = assert!(SMALLEST * ((1 << CHUNKS) - 1) >= MOST, "the chunks hold all objects");

/// What a handle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Kind {
    Comm = 1,
    Group = 2,
    Datatype = 3,
    Op = 4,
    Request = 5,
    Info = 6,
    Errhandler = 7,
    Message = 8,
    Session = 9,
    PvarSession = 10,
    PvarHandle = 11,
    CvarHandle = 12,
    EventRegistration = 13,
    EventInstance = 14,
    Enum = 15,
    Win = 16,
    File = 17,
}

const _: () = assert!((Kind::File as usize) < 1 << KIND_BITS, "the last kind has room");

/// The handle of something that is always there, by its number among its kind.
pub(crate) fn fixed(kind: Kind, number: usize) -> Handle {
    ((number + FIRST) << KIND_BITS) | kind as usize
}

/// The number of a handle of [`fixed`].
#[inline]
pub(crate) fn fixed_index(kind: Kind, handle: Handle) -> Option<usize> {
    let of_kind = handle & ((1 << KIND_BITS) - 1) == kind as usize;
    of_kind.then(|| (handle >> KIND_BITS).checked_sub(FIRST))?
}

/// All objects of one kind.
pub(crate) struct Table<T> {
    kind: Kind,
    chunks: [AtomicPtr<Slot<T>>; CHUNKS],
    free: Turns<Free>,
}

type Slot<T> = UnsafeCell<Option<T>>;

struct Free {
    indices: Vec<u32>,
    next: u32,
    /// How often an object came, went or was changed.
    changes: u64,
}

impl Free {
    const NONE: Self = Self {
        indices: Vec::new(),
        next: 0,
        changes: 0,
    };
}

// SAFETY: rules 1 and 2 of the module: content is shared only for reading, and changed under the lock.
unsafe impl<T: Send + Sync> Sync for Table<T> {}

#[inline]
fn locate(index: usize) -> (usize, usize) {
    // Chunk c holds SMALLEST << c slots and begins at SMALLEST * (2^c - 1).
    let chunk = (index / SMALLEST + 1).ilog2() as usize;
    (chunk, index - SMALLEST * ((1 << chunk) - 1))
}

impl<T> Table<T> {
    pub(crate) const fn new(kind: Kind) -> Self {
        Self {
            kind,
            chunks: [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNKS],
            free: Turns::never(Free::NONE),
        }
    }

    /// For objects that are made and freed only by functions that need MPI to be initialized (see the module `turns`):
    /// cheap where threads take turns.
    pub(crate) const fn in_turns(kind: Kind) -> Self {
        Self {
            kind,
            chunks: [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNKS],
            free: Turns::new(Free::NONE),
        }
    }

    #[inline]
    fn free(&self) -> Guard<'_, Free> {
        // SAFETY: the methods of this type take it once and call nothing of others meanwhile; the second half is what
        // `in_turns` asks of its caller.
        unsafe { self.free.lock() }
    }

    #[inline]
    fn slot(&self, index: usize) -> Option<&Slot<T>> {
        let (chunk, offset) = locate(index);
        let base = self.chunks.get(chunk)?.load(Ordering::Acquire);
        if base.is_null() {
            return None;
        }
        // SAFETY: rule 3: a published chunk has SMALLEST << chunk slots, and offset is below that.
        let slot = unsafe { base.add(offset) };
        // SAFETY: as above, and slots are never freed.
        Some(unsafe { &*slot })
    }

    #[inline]
    fn index(&self, handle: Handle) -> Option<usize> {
        fixed_index(self.kind, handle)
    }

    /// Stores an object and gives its handle. Always part of its caller: an object that came by reference would be
    /// read, right after it was written in smaller pieces, as a whole, for which processors wait until all that was
    /// written before has left.
    #[inline(always)]
    pub(crate) fn insert(&self, value: T) -> Handle {
        let mut free = self.free();
        free.changes += 1;
        let index = free.indices.pop().unwrap_or_else(|| {
            assert!((free.next as usize) < MOST, "more than {MOST} objects of one kind");
            free.next += 1;
            free.next - 1
        }) as usize;
        let (chunk, offset) = locate(index);
        let mut base = self.chunks[chunk].load(Ordering::Acquire);
        if base.is_null() {
            base = self.add_chunk(chunk);
        }
        // SAFETY: rule 3: the chunk has that slot.
        let slot = unsafe { base.add(offset) };
        // SAFETY: rule 1: the lock is held; the slot is free, so nobody reads it, and it holds nothing to drop.
        unsafe { slot.write(UnsafeCell::new(Some(value))) };
        self.handle(index)
    }

    /// Makes room; the lock is held.
    #[cold]
    fn add_chunk(&self, chunk: usize) -> *mut Slot<T> {
        let fresh: Vec<Slot<T>> = (0..SMALLEST << chunk).map(|_| UnsafeCell::new(None)).collect();
        let base = Box::leak(fresh.into_boxed_slice()).as_mut_ptr();
        self.chunks[chunk].store(base, Ordering::Release);
        base
    }

    /// Changes an object, of a table whose users take turns, or which no other call uses meanwhile.
    pub(crate) fn update(&self, handle: Handle, change: impl FnOnce(&mut T)) {
        let Some(slot) = self.index(handle).and_then(|index| self.slot(index)) else {
            return;
        };
        let mut free = self.free();
        free.changes += 1;
        // SAFETY: rule 1: the lock is held; by the promise above nobody reads the slot.
        if let Some(value) = unsafe { &mut *slot.get() } {
            change(value);
        }
    }

    /// The object of a handle, `None` if there is none.
    #[inline]
    pub(crate) fn get(&self, handle: Handle) -> Option<&T> {
        let slot = self.slot(self.index(handle)?)?;
        // SAFETY: rule 2.
        unsafe { (*slot.get()).as_ref() }
    }

    /// How often an object came, went or was changed: as long as this is the same, handles name what they named.
    #[inline]
    pub(crate) fn changes(&self) -> u64 {
        self.free().changes
    }

    /// Takes every object out; their handles are invalid from now on.
    pub(crate) fn clear(&self) {
        let next = self.free().next;
        for index in 0..next as usize {
            drop(self.remove(self.handle(index)));
        }
    }

    fn handle(&self, index: usize) -> Handle {
        fixed(self.kind, index)
    }

    /// Drops an object; its handle is invalid from now on.
    #[inline]
    pub(crate) fn discard(&self, handle: Handle) {
        let Some((index, slot)) = self.index(handle).and_then(|index| Some((index, self.slot(index)?))) else {
            return;
        };
        let mut free = self.free();
        // SAFETY: rules 1 and 2: the lock is held and the program does not use the handle any more.
        let place = unsafe { &mut *slot.get() };
        if place.is_some() {
            free.changes += 1;
            free.indices.push(index as u32);
            *place = None;
        }
    }

    /// Takes an object out; its handle is invalid from now on.
    pub(crate) fn remove(&self, handle: Handle) -> Option<T> {
        let index = self.index(handle)?;
        let mut free = self.free();
        let slot = self.slot(index)?;
        // SAFETY: rules 1 and 2: the lock is held and the program does not use the handle any more.
        let value = unsafe { (*slot.get()).take() }?;
        free.changes += 1;
        free.indices.push(index as u32);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Kind; 17] = [
        Kind::Comm,
        Kind::Group,
        Kind::Datatype,
        Kind::Op,
        Kind::Request,
        Kind::Info,
        Kind::Errhandler,
        Kind::Message,
        Kind::Session,
        Kind::PvarSession,
        Kind::PvarHandle,
        Kind::CvarHandle,
        Kind::EventRegistration,
        Kind::EventInstance,
        Kind::Enum,
        Kind::Win,
        Kind::File,
    ];

    #[test]
    fn handles_of_every_kind_are_positive_ints_and_no_predefined_ones() {
        for kind in KINDS {
            for number in [0, 1, SMALLEST, MOST - 1] {
                let handle = fixed(kind, number);
                assert!(
                    handle >= isthmus_abi::PREDEFINED_HANDLES_END,
                    "{kind:?} {number}: {handle:#x}"
                );
                assert!(i32::try_from(handle).is_ok(), "{kind:?} {number}: {handle:#x}");
                assert_eq!(fixed_index(kind, handle), Some(number));
            }
        }
    }

    #[test]
    fn a_handle_is_of_one_kind() {
        for kind in KINDS {
            let handle = fixed(kind, 7);
            let of: Vec<Kind> = KINDS
                .into_iter()
                .filter(|k| fixed_index(*k, handle).is_some())
                .collect();
            assert_eq!(of, [kind]);
        }
    }

    #[test]
    fn predefined_handles_are_of_no_table() {
        for handle in 0..isthmus_abi::PREDEFINED_HANDLES_END {
            assert!(
                KINDS.iter().all(|kind| fixed_index(*kind, handle).is_none()),
                "{handle:#x}"
            );
        }
    }

    #[test]
    fn handles_are_found_and_reused() {
        let table = Table::new(Kind::Group);
        let handles: Vec<_> = (0..1000).map(|i| table.insert(i)).collect();
        assert!(handles.iter().all(|h| *h >= 0x1000 && i32::try_from(*h).is_ok()));
        assert!(handles.iter().enumerate().all(|(i, h)| table.get(*h) == Some(&i)));
        assert_eq!(table.remove(handles[7]), Some(7));
        assert_eq!(table.get(handles[7]), None);
        assert_eq!(table.insert(7000), handles[7]);
        assert_eq!(table.get(handles[7] + 1), None, "a handle of another kind");
        assert_eq!(table.get(0x101), None, "a predefined handle");
    }
}
