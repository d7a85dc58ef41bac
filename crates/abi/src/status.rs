// SPDX-License-Identifier: Apache-2.0
//! `MPI_Status`: eight C integers, of which the last five belong to the library.

use core::ffi::c_int;

/// `MPI_Status`. A program may copy it by assignment, so it holds no pointer.
///
/// ```text
/// byte  0        4     8       12           16           20        24       28
///       | SOURCE | TAG | ERROR | count low  | count high | flags |       form      |
/// ```
/// The count is that of received bytes; bit 0 of the flags says cancelled. The form is 0, or for a message that was
/// probed and whose sender represents data differently, how it does.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// `MPI_SOURCE`: rank of the sender in the communicator.
    pub source: c_int,
    /// `MPI_TAG`
    pub tag: c_int,
    /// `MPI_ERROR`: set only by calls that complete several requests.
    pub error: c_int,
    /// For the library; use the methods.
    internal: [c_int; 5],
}

const CANCELLED: c_int = 1;

impl Status {
    /// A status with this source and tag, no error, not cancelled, and `bytes` received.
    pub const fn new(source: c_int, tag: c_int, bytes: i64) -> Self {
        let mut status = Self {
            source,
            tag,
            error: 0,
            internal: [0; 5],
        };
        status.set_bytes(bytes);
        status
    }

    /// The empty status of section 3.7.3: any source, any tag, nothing received.
    pub const fn empty() -> Self {
        Self::new(crate::constants::MPI_ANY_SOURCE, crate::constants::MPI_ANY_TAG, 0)
    }

    /// Number of received bytes.
    pub const fn bytes(&self) -> i64 {
        ((self.internal[1] as i64) << 32) | (self.internal[0] as u32 as i64)
    }

    /// Sets the number of received bytes.
    pub const fn set_bytes(&mut self, bytes: i64) {
        self.internal[0] = bytes as c_int;
        self.internal[1] = (bytes >> 32) as c_int;
    }

    /// How the counted bytes are represented; `None`: as in this process.
    pub const fn form(&self) -> Option<[u8; 8]> {
        let (low, high) = (self.internal[3] as u32 as u64, self.internal[4] as u32 as u64);
        match low | high << 32 {
            0 => None,
            form => Some(form.to_le_bytes()),
        }
    }

    /// Sets how the counted bytes are represented.
    pub const fn set_form(&mut self, form: [u8; 8]) {
        let form = u64::from_le_bytes(form);
        self.internal[3] = form as c_int;
        self.internal[4] = (form >> 32) as c_int;
    }

    /// Whether the operation was cancelled.
    pub const fn cancelled(&self) -> bool {
        self.internal[2] & CANCELLED != 0
    }

    /// Sets whether the operation was cancelled.
    pub const fn set_cancelled(&mut self, cancelled: bool) {
        let others = self.internal[2] & !CANCELLED;
        self.internal[2] = if cancelled { others | CANCELLED } else { others };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_is_that_of_the_abi() {
        assert_eq!((size_of::<Status>(), align_of::<Status>()), (32, 4));
    }

    #[test]
    fn counts_beyond_32_bits_survive() {
        for bytes in [0, 1, i64::from(u32::MAX), 1 << 40, i64::MAX] {
            assert_eq!(Status::new(0, 0, bytes).bytes(), bytes);
        }
    }

    #[test]
    fn the_form_survives() {
        let mut status = Status::new(0, 0, i64::MAX);
        assert_eq!(status.form(), None);
        status.set_form([2, 8, 8, 16, 113, 4, 1, 0]);
        assert_eq!(
            (status.form(), status.bytes()),
            (Some([2, 8, 8, 16, 113, 4, 1, 0]), i64::MAX)
        );
    }

    #[test]
    fn cancelled_does_not_touch_the_count() {
        let mut status = Status::new(3, 4, 5);
        status.set_cancelled(true);
        assert!(status.cancelled());
        status.set_cancelled(false);
        assert_eq!(status, Status::new(3, 4, 5));
    }
}
