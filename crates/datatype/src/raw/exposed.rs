// SPDX-License-Identifier: Apache-2.0
//! Memory whose address somebody has who asks no door: another MPI, or another process.

use super::door::{Claim, Wish};
use super::own::OwnMemory;
use super::{Owner, ReadMemory, WriteMemory};

/// Memory that is used from outside as long as this value lives. Library memory is there for as long, and its door
/// refuses whoever would come in between: what is read from outside is not written here, and what is written from
/// outside is not touched. User memory is there by its maker's promise.
///
/// Whoever cannot tell that nobody uses the address any more forgets the value: then the memory stays for good, and
/// its bytes are refused for good.
#[derive(Debug)]
#[must_use = "the memory is exposed as long as this lives"]
pub struct Exposed<M> {
    memory: M,
    claimed: Claimed,
}

/// The claim at the door of library memory; user memory has none.
#[derive(Debug)]
struct Claimed(Option<(OwnMemory, Claim)>);

impl Claimed {
    #[inline(always)]
    fn new(owner: &Owner, first: *const u8, length: usize, wish: Wish) -> Self {
        match owner {
            Owner::User => Self(None),
            Owner::Library(own) => Self::at_the_door(own, Claim::new(first, length, wish)),
        }
    }

    #[inline(never)]
    fn at_the_door(own: &OwnMemory, claim: Claim) -> Self {
        own.expose(claim);
        Self(Some((own.clone(), claim)))
    }
}

impl Drop for Claimed {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some((own, claim)) = &self.0 {
            own.conceal(claim);
        }
    }
}

impl ReadMemory {
    /// Exposes `length` bytes from `at` on to somebody who reads them. Panics outside the window, and where somebody
    /// changes one of the bytes: these are bugs of ours.
    #[inline]
    pub fn exposed(&self, at: isize, length: usize) -> Exposed<Self> {
        let memory = self.part(at, length);
        let claimed = Claimed::new(&memory.owner, memory.origin, length, Wish::Read);
        Exposed { memory, claimed }
    }
}

impl WriteMemory {
    /// Exposes `length` bytes from `at` on to somebody who changes them. Panics outside the window, and where somebody
    /// has one of the bytes already: these are bugs of ours.
    #[inline]
    pub fn exposed(&self, at: isize, length: usize) -> Exposed<Self> {
        let memory = self.part(at, length);
        let claimed = Claimed::new(&memory.owner, memory.origin, length, Wish::Change);
        Exposed { memory, claimed }
    }
}

impl<M> Exposed<M> {
    /// Whether it is library memory. User memory is as safe without this value: it has its maker's promise.
    #[inline]
    pub fn is_library(&self) -> bool {
        self.claimed.0.is_some()
    }
}

impl Exposed<ReadMemory> {
    /// Where the bytes are.
    #[inline]
    pub fn first(&self) -> *const u8 {
        self.memory.origin
    }
}

impl Exposed<WriteMemory> {
    /// Where the bytes are.
    #[inline]
    pub fn first(&self) -> *mut u8 {
        self.memory.origin
    }

    /// How many they are.
    #[inline]
    pub fn length(&self) -> usize {
        // A window begins at its origin here.
        self.memory.high as usize
    }
}

/// User memory that others may write: only unsafe code makes such memory, and has promised that it stays until the
/// operation is complete.
#[derive(Clone, Debug)]
pub struct UserMemory(WriteMemory);

impl From<UserMemory> for WriteMemory {
    fn from(memory: UserMemory) -> Self {
        memory.0
    }
}

impl ReadMemory {
    /// Whether it is the user's.
    #[inline]
    pub fn is_of_user(&self) -> bool {
        matches!(self.owner, Owner::User)
    }
}

impl WriteMemory {
    /// This memory, if it is the user's.
    #[inline]
    pub fn of_user(self) -> Option<UserMemory> {
        matches!(self.owner, Owner::User).then_some(UserMemory(self))
    }

    /// Whether it is the user's.
    #[inline]
    pub fn is_of_user(&self) -> bool {
        matches!(self.owner, Owner::User)
    }
}

impl UserMemory {
    /// # Safety
    /// As for [`WriteMemory::new`].
    pub const unsafe fn new(origin: *mut u8, low: isize, high: isize) -> Self {
        // SAFETY: the caller's promise.
        Self(unsafe { WriteMemory::new(origin, low, high) })
    }

    /// Address of the first `length` bytes behind the origin. Panics outside the window: that is a bug of ours.
    #[inline]
    pub fn address(&self, length: usize) -> usize {
        self.0.part(0, length).address()
    }
}
