// SPDX-License-Identifier: Apache-2.0
//! Memory of the library's own, and the door to its bytes. It knows nothing of the values that are made of it.

use std::alloc::{Layout, alloc_zeroed};
use std::fmt;
use std::sync::Arc;

use super::door::{Claim, Door, Lending, Turn};

/// Memory that the library owns and lends to its own operations: intermediate results, agreement on contexts. Aligned
/// to 16 bytes, as C's `malloc` does, unless it was [given](OwnMemory::of). Clones are the same memory; it lives as
/// long as the last of them.
///
/// [`OwnMemory::memory`] and [`OwnMemory::reading`] (`raw/values.rs`) give values with a clone inside, so the memory
/// may be forgotten at any time.
#[derive(Clone)]
pub struct OwnMemory(Arc<Owned>);

struct Owned {
    origin: *mut u8,
    low: isize,
    high: isize,
    door: Door,
    /// Owns what `origin` points into; never touched through this as long as anybody has the memory.
    bytes: Bytes,
}

/// What owns the bytes.
enum Bytes {
    /// Made here, aligned.
    Own(#[expect(dead_code, reason = "only dropped")] Vec<u128>),
    Given(Vec<u8>),
}

// SAFETY: the memory belongs to the value; whoever touches it asks its door.
unsafe impl Send for Owned {}
// SAFETY: as for `Send`.
unsafe impl Sync for Owned {}

impl OwnMemory {
    /// The bytes `low .. high` around an origin, which is aligned to 16 bytes; all 0.
    pub fn new(low: isize, high: isize) -> Self {
        assert!(low <= high, "memory of negative size");
        let pad = low.rem_euclid(16);
        let bytes = pad as usize + high.abs_diff(low);
        Self::from_vector(low, high, vec![0_u128; bytes.div_ceil(16)])
    }

    /// The same where others say how much it is; `None`: there is no such memory.
    pub fn try_new(low: isize, high: isize) -> Option<Self> {
        let length = high.checked_sub(low).filter(|length| *length >= 0)?;
        let bytes = length.checked_add(low.rem_euclid(16))? as usize;
        let (words, layout) = (bytes.div_ceil(16), Layout::array::<u128>(bytes.div_ceil(16)).ok()?);
        if words == 0 {
            return Some(Self::from_vector(low, high, Vec::new()));
        }
        // SAFETY: the layout is not of size 0.
        let start = unsafe { alloc_zeroed(layout) }.cast::<u128>();
        if start.is_null() {
            return None;
        }
        // SAFETY: allocated for so many words, all of which are 0.
        let owner = unsafe { Vec::from_raw_parts(start, words, words) };
        Some(Self::from_vector(low, high, owner))
    }

    fn from_vector(low: isize, high: isize, mut owner: Vec<u128>) -> Self {
        let pad = low.rem_euclid(16);
        let origin = owner.as_mut_ptr().cast::<u8>().wrapping_offset(pad - low);
        Self(Arc::new(Owned {
            origin,
            low,
            high,
            door: Door::default(),
            bytes: Bytes::Own(owner),
        }))
    }

    /// The memory of a vector, from the origin on. It is aligned as that is, so it is for data of no type.
    pub fn of(mut bytes: Vec<u8>) -> Self {
        let (origin, length) = (bytes.as_mut_ptr(), bytes.len());
        Self(Arc::new(Owned {
            origin,
            low: 0,
            // A vector has at most so many bytes.
            high: length as isize,
            door: Door::default(),
            bytes: Bytes::Given(bytes),
        }))
    }

    /// The first byte, and the one behind the last, as seen from the origin.
    pub fn bounds(&self) -> (isize, isize) {
        (self.0.low, self.0.high)
    }

    /// Nobody else has it, nor a value of it.
    pub fn is_unshared(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Where the origin is.
    #[inline]
    pub(super) fn origin(&self) -> *mut u8 {
        self.0.origin
    }

    /// The vector that it is [of](Self::of), if nobody else has it.
    pub(super) fn into_vector(self) -> Result<Vec<u8>, Self> {
        match Arc::try_unwrap(self.0) {
            Ok(Owned {
                bytes: Bytes::Given(bytes),
                ..
            }) => Ok(bytes),
            Ok(owned) => Err(Self(Arc::new(owned))),
            Err(owned) => Err(Self(owned)),
        }
    }

    /// For a copy: see [`Door::turn`].
    #[inline]
    pub(super) fn turn(&self, claim: Claim) -> Turn<'_> {
        self.0.door.turn(&[claim])
    }

    /// For a copy from this memory to that one: the turn of either, in an order that is the same for all threads.
    pub(super) fn both<'a>(&'a self, read: Claim, to: &'a Self, change: Claim) -> (Turn<'a>, Option<Turn<'a>>) {
        let (here, there) = (Arc::as_ptr(&self.0), Arc::as_ptr(&to.0));
        if here == there {
            return (self.0.door.turn(&[read, change]), None);
        }
        if here < there {
            let turn = self.turn(read);
            return (turn, Some(to.turn(change)));
        }
        let turn = to.turn(change);
        (turn, Some(self.turn(read)))
    }

    /// For a closure: see [`Door::lend`]. A call, as is giving back: user memory needs neither.
    #[inline(never)]
    pub(super) fn lend(&self, claim: Claim) -> Lending<'_> {
        self.0.door.lend(claim)
    }

    /// For what is used from outside: see [`Door::expose`].
    pub(super) fn expose(&self, claim: Claim) {
        self.0.door.expose(claim);
    }

    /// Ends that.
    pub(super) fn conceal(&self, claim: &Claim) {
        self.0.door.conceal(claim);
    }
}

/// Without the content, which somebody may be changing.
impl fmt::Debug for OwnMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnMemory({}..{})", self.0.low, self.0.high)
    }
}
