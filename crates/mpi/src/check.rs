// SPDX-License-Identifier: Apache-2.0
//! Checks of arguments that cost time in calls that matter, and the switch that turns them off.
//!
//! Three kinds of checks:
//! 1. what our own memory safety or termination rests on (null pointers that we would write to, handles, ranks, lengths
//!    of arrays): always done, where the argument is converted;
//! 2. what protects the program from itself (null buffers, datatypes that are not committed, buffers that overlap):
//!    here, done unless `ISTHMUS_CHECK=0` or the control variable of that name says otherwise;
//! 3. with the cargo feature `unchecked` the second kind is not even compiled.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use isthmus_abi::constants as abi;
use isthmus_core::error::{Result, Subject};
use isthmus_core::fail;
use isthmus_datatype::Datatype;

static ON: AtomicBool = AtomicBool::new(true);

/// Addresses below are never mapped, so a buffer that begins there is a null pointer, one of the small numbers that the
/// standard gives a meaning elsewhere (MPI_IN_PLACE), or MPI_BOTTOM with a datatype of relative displacements.
const NEVER_MAPPED: usize = 4096;

/// Are arguments checked?
#[inline]
pub(crate) fn on() -> bool {
    !cfg!(feature = "unchecked") && ON.load(Ordering::Relaxed)
}

/// Switches checks on or off.
pub(crate) fn switch(on: bool) {
    ON.store(on, Ordering::Relaxed);
}

/// Whether data may lie there.
#[inline]
pub(crate) fn is_memory(address: usize) -> bool {
    address >= NEVER_MAPPED
}

/// A buffer whose data lie from `offset` to `offset + length` bytes behind `address`: if there are data, memory.
#[inline]
pub(crate) fn buffer(argument: &str, address: usize, offset: i64, length: u64) -> Result<()> {
    if on() && length > 0 && address.wrapping_add(offset as usize) < NEVER_MAPPED {
        return no_buffer(argument, address, length);
    }
    Ok(())
}

#[cold]
fn no_buffer(argument: &str, address: usize, length: u64) -> Result<()> {
    match address {
        0 => fail!(
            abi::MPI_ERR_BUFFER,
            argument(argument),
            "is a null pointer, but count and datatype describe {length} bytes"
        ),
        abi::MPI_IN_PLACE => fail!(
            abi::MPI_ERR_BUFFER,
            argument(argument),
            "is MPI_IN_PLACE, which has no meaning there"
        ),
        other => fail!(
            abi::MPI_ERR_BUFFER,
            argument(argument),
            "is {other:#x}, which with this datatype is no address of {length} bytes"
        ),
    }
}

/// Memory of so many bytes that others will reach, or that is no message: an address where there can be some. Always
/// done: threads of the library write there.
pub(crate) fn memory(class: i32, argument: &str, address: usize, length: u64) -> Result<()> {
    if length == 0 || is_memory(address) {
        return Ok(());
    }
    match address {
        0 => fail!(
            class,
            argument(argument),
            "is a null pointer, expected {length} bytes of memory"
        ),
        abi::MPI_IN_PLACE => fail!(
            class,
            argument(argument),
            "is MPI_IN_PLACE, which has no meaning there; expected {length} bytes of memory"
        ),
        other => fail!(
            class,
            argument(argument),
            "is {other:#x}, which is no address of {length} bytes of memory"
        ),
    }
}

/// For calls with two messages: an error about one of them, with its arguments called as they are there.
pub(crate) trait Sided {
    /// `side` is "send" or "recv".
    fn of(self, side: &str) -> Self;
}

impl<T> Sided for Result<T> {
    fn of(self, side: &str) -> Self {
        self.map_err(|error| {
            let name = match &error.subject {
                Subject::Argument(name) | Subject::Within(name) => name.as_str(),
                Subject::Message | Subject::Named => return error,
            };
            let name = match name {
                "datatype" => format!("{side}type"),
                "buf" | "count" | "tag" => format!("{side}{name}"),
                _ => return error,
            };
            error.about(&name)
        })
    }
}

/// A buffer argument with what it holds.
#[derive(Clone, Copy)]
pub(crate) struct Region<'a> {
    /// Name of the argument in the standard.
    pub(crate) argument: &'a str,
    pub(crate) address: usize,
    pub(crate) count: u64,
    pub(crate) datatype: &'a Datatype,
}

impl Region<'_> {
    /// The addresses of the data if they are one piece, of their first byte otherwise; `None`: no data.
    fn addresses(&self) -> Option<Range<usize>> {
        if let Some((offset, length)) = self.datatype.contiguous(self.count) {
            let start = self.address.wrapping_add(offset as usize);
            return (length > 0).then(|| start..start.saturating_add(length as usize));
        }
        let (low, high) = self.datatype.window(self.count).ok()?;
        let start = self.address.wrapping_add(low as usize);
        (high > low).then(|| start..start.saturating_add(1))
    }
}

/// Buffers of one call that must not share memory (MPI 5.0 section 6.2: "aliasing"). Pieces with gaps may lie in each
/// other's gaps, so of them only the beginnings are compared.
pub(crate) fn distinct(first: Region<'_>, second: Region<'_>) -> Result<()> {
    if !on() {
        return Ok(());
    }
    let (Some(a), Some(b)) = (first.addresses(), second.addresses()) else {
        return Ok(());
    };
    if a.start < b.end && b.start < a.end {
        fail!(
            abi::MPI_ERR_BUFFER,
            "arguments {} and {} overlap: {:#x} to {:#x} and {:#x} to {:#x}; use MPI_IN_PLACE to compute in place",
            first.argument,
            second.argument,
            a.start,
            a.end,
            b.start,
            b.end
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_datatype::Basic;

    fn ints(argument: &str, address: usize, count: u64, run: impl FnOnce(Region<'_>)) {
        let Some(basic) = Basic::from_handle(isthmus_abi::handles::MPI_INT32_T.0 as u32) else {
            panic!("no such type")
        };
        run(Region {
            argument,
            address,
            count,
            datatype: &Datatype::of(basic),
        });
    }

    #[test]
    fn null_with_data_is_an_error_and_without_is_not() {
        assert!(buffer("buf", 0, 0, 0).is_ok());
        let error = buffer("sendbuf", 0, 0, 8).expect_err("null");
        assert_eq!(error.class, abi::MPI_ERR_BUFFER);
        assert!(error.to_string().contains("sendbuf"));
        assert!(
            buffer("buf", 0, 0x7000_0000, 8).is_ok(),
            "MPI_BOTTOM with absolute addresses"
        );
        assert!(buffer("buf", abi::MPI_IN_PLACE, 0, 8).is_err());
    }

    #[test]
    fn overlap_is_found_to_the_byte() {
        for (second, overlaps) in [(0x1_0000, true), (0x1_000c, true), (0x1_0010, false), (0xfff0, false)] {
            ints("sendbuf", 0x1_0000, 4, |a| {
                ints("recvbuf", second, 4, |b| {
                    assert_eq!(distinct(a, b).is_err(), overlaps, "{second:#x}");
                });
            });
        }
        ints("sendbuf", 0x1_0000, 0, |a| {
            ints("recvbuf", 0x1_0000, 4, |b| assert!(distinct(a, b).is_ok()));
        });
    }
}
