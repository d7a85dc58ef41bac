// SPDX-License-Identifier: Apache-2.0
//! Memory of the library's own.

use std::sync::Arc;

use super::{ReadMemory, WriteMemory};

/// Memory that the library owns and lends to its own operations: intermediate results, agreement on contexts. Aligned
/// to 16 bytes, as C's `malloc` does. Clones are the same memory; it lives as long as the last of them.
///
/// [`OwnMemory::memory`] and [`OwnMemory::reading`] give values with a clone inside, so the memory may be forgotten at
/// any time.
#[derive(Clone, Debug)]
pub struct OwnMemory(Arc<Owned>);

#[derive(Debug)]
struct Owned {
    origin: *mut u8,
    low: isize,
    high: isize,
    /// Owns what `origin` points into; never touched through this.
    _bytes: Vec<u128>,
}

// SAFETY: the memory belongs to the value; the addresses into it are used as the module `raw` says.
unsafe impl Send for Owned {}
// SAFETY: shared references only copy addresses and read the content when no operation is under way.
unsafe impl Sync for Owned {}

impl OwnMemory {
    /// The bytes `low .. high` around an origin, which is aligned to 16 bytes; all 0.
    pub fn new(low: isize, high: isize) -> Self {
        assert!(low <= high, "memory of negative size");
        let pad = low.rem_euclid(16);
        let bytes = pad as usize + high.abs_diff(low);
        let mut owner = vec![0_u128; bytes.div_ceil(16)];
        let origin = owner.as_mut_ptr().cast::<u8>().wrapping_offset(pad - low);
        Self(Arc::new(Owned {
            origin,
            low,
            high,
            _bytes: owner,
        }))
    }

    /// Memory with this content from the origin on.
    pub fn with(content: &[u8]) -> Self {
        let own = Self::new(0, content.len() as isize);
        own.memory().write(0, content);
        own
    }

    /// The first byte, and the one behind the last, as seen from the origin.
    pub fn bounds(&self) -> (isize, isize) {
        (self.0.low, self.0.high)
    }

    /// Nobody else has it, nor a value of it.
    pub fn is_unshared(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// The memory, to read and write.
    pub fn memory(&self) -> WriteMemory {
        WriteMemory {
            origin: self.0.origin,
            low: self.0.low,
            high: self.0.high,
            owner: Some(self.clone()),
        }
    }

    /// The memory, to read.
    pub fn reading(&self) -> ReadMemory {
        self.memory().reading()
    }

    /// A copy of the bytes `low .. high`. No operation that writes them may be under way.
    pub fn content(&self) -> Vec<u8> {
        let (low, high) = (self.0.low, self.0.high);
        self.reading().slice(low, high.abs_diff(low)).to_vec()
    }
}
