// SPDX-License-Identifier: Apache-2.0
//! User memory as values: the one place of this room with unsafe code.
//!
//! A value is made by an unsafe constructor, in the room that meets C, which promises what MPI asks of
//! the user: the memory stays valid, and is not written (for [`ReadMemory`]) or not touched at all (for
//! [`WriteMemory`]) by others, until the operation that got the value has completed. The methods are
//! safe because of that promise; all of them check ranges.
//!
//! `origin` is the address that MPI calls the buffer; data may lie before it (negative displacements),
//! so a value carries the window `[low, high)` relative to it that the datatype and count can touch.

/// Memory that an operation may read.
#[derive(Clone, Copy, Debug)]
pub struct ReadMemory {
    origin: *const u8,
    low: isize,
    high: isize,
}

/// Memory that an operation may write (and read: reductions).
#[derive(Clone, Copy, Debug)]
pub struct WriteMemory {
    origin: *mut u8,
    low: isize,
    high: isize,
}

// SAFETY: the constructor's promise covers every thread of the process; the values are plain addresses.
unsafe impl Send for ReadMemory {}
// SAFETY: as for `ReadMemory`.
unsafe impl Send for WriteMemory {}
// SAFETY: reading through shared references is what the promise allows.
unsafe impl Sync for ReadMemory {}
// SAFETY: writing needs `&mut self` or a copy that the promise makes unique to the operation.
unsafe impl Sync for WriteMemory {}

impl ReadMemory {
    /// Memory of length 0.
    pub const EMPTY: Self = Self { origin: std::ptr::null(), low: 0, high: 0 };

    /// # Safety
    /// `origin + low .. origin + high` must be readable and unwritten until the operation is complete.
    pub const unsafe fn new(origin: *const u8, low: isize, high: isize) -> Self {
        Self { origin, low, high }
    }

    /// Address of the buffer, for transports that hand it to the kernel or to another process.
    pub fn address(&self) -> usize {
        self.origin as usize
    }

    /// The bytes `at .. at + length` relative to the origin. Panics outside the window: that is a bug of ours.
    #[inline]
    pub fn slice(&self, at: isize, length: usize) -> &[u8] {
        if length == 0 {
            return &[];
        }
        assert!(at >= self.low && at + length as isize <= self.high, "read outside the user's buffer");
        // SAFETY: inside the window, which the constructor's caller promised readable.
        unsafe { std::slice::from_raw_parts(self.origin.offset(at), length) }
    }
}

impl WriteMemory {
    /// Memory of length 0.
    pub const EMPTY: Self = Self { origin: std::ptr::null_mut(), low: 0, high: 0 };

    /// # Safety
    /// `origin + low .. origin + high` must be writable and untouched by others until the operation is complete.
    pub const unsafe fn new(origin: *mut u8, low: isize, high: isize) -> Self {
        Self { origin, low, high }
    }

    /// Address of the buffer.
    pub fn address(&self) -> usize {
        self.origin as usize
    }

    /// The same memory for reading.
    pub fn reading(&self) -> ReadMemory {
        ReadMemory { origin: self.origin, low: self.low, high: self.high }
    }

    /// The bytes `at .. at + length` relative to the origin. Panics outside the window: that is a bug of ours.
    #[inline]
    pub fn slice(&mut self, at: isize, length: usize) -> &mut [u8] {
        if length == 0 {
            return &mut [];
        }
        assert!(at >= self.low && at + length as isize <= self.high, "write outside the user's buffer");
        // SAFETY: inside the window, which the constructor's caller promised to this operation alone.
        unsafe { std::slice::from_raw_parts_mut(self.origin.offset(at), length) }
    }
}
