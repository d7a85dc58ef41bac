// SPDX-License-Identifier: Apache-2.0
//! Copies straight out of another process's memory (`process_vm_readv`), and into it (`process_vm_writev`).
//!
//! Whether the kernel allows it (Yama, containers, seccomp) is found out by doing it: before the first copy from
//! a process, 16 random bytes are read from where its block says they are, and compared. That also
//! catches a process id that means somebody else here. A refusal is noted in the block of the *sender*, so that it
//! stops offering.
//!
//! The handle in an `Rts`:
//! ```text
//!  byte 0                      8                      16
//!      +-----------------------+----------------------+
//!      | address (native)      | length in bytes      |
//!      +-----------------------+----------------------+
//! byte 16                     24
//!      +-----------------------+
//!      | revocations (native)  |
//!      +-----------------------+
//! ```
//! A sender that must have its memory back counts that in its block before it uses the memory otherwise. Whoever has
//! copied compares the count with the one in the handle: if they differ, what was copied may be anything.

use std::ffi::{c_int, c_ulong, c_void};

use isthmus_datatype::raw::{Exposed, ReadMemory, UserMemory, WriteMemory};
use isthmus_transport::sharing::Run;
use rustix::io::Errno;
use rustix::process::PTracer;

/// Of the length in a handle: the memory is to be written, and not to be read.
const TARGET: u64 = 1 << 63;

/// Bytes of a handle without its count of revocations.
pub(crate) const HANDLE_BYTES: usize = 16;

/// Where a message lies in its sender's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle {
    pub(crate) address: u64,
    pub(crate) length: u64,
}

impl Handle {
    /// Of memory of this process, to be read. Panics outside the window: that is a bug of ours.
    pub(crate) fn of(memory: &ReadMemory, length: u64) -> Self {
        Self {
            address: memory.part(0, length as usize).address() as u64,
            length,
        }
    }

    /// Of memory of this process, to be written, which a bit of the length says. Panics outside the window.
    pub(crate) fn of_target(memory: &UserMemory, length: u64) -> Self {
        Self {
            address: memory.address(length as usize) as u64,
            length: length | TARGET,
        }
    }

    /// What may be written, if it is that.
    pub(crate) fn target(self) -> Option<Self> {
        let length = self.length & !TARGET;
        (length != self.length).then_some(Self { length, ..self })
    }

    pub(crate) fn encode(self) -> [u8; HANDLE_BYTES] {
        let mut out = [0; HANDLE_BYTES];
        let (address, length) = out.split_at_mut(8);
        address.copy_from_slice(&self.address.to_ne_bytes());
        length.copy_from_slice(&self.length.to_ne_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (address, length) = bytes.split_first_chunk::<8>()?;
        let length = <[u8; 8]>::try_from(length).ok()?;
        Some(Self {
            address: u64::from_ne_bytes(*address),
            length: u64::from_ne_bytes(length),
        })
    }

    /// Address of `length` bytes at `offset`, if that is inside and all of them have addresses, and are not a target.
    pub(crate) fn part(&self, offset: u64, length: u64) -> Option<u64> {
        let end = offset.checked_add(length)?;
        if end > self.length || self.length >= TARGET {
            return None;
        }
        self.address.checked_add(end)?;
        Some(self.address + offset)
    }
}

/// A handle and its count of revocations.
pub(crate) fn split(bytes: &[u8]) -> (&[u8], Option<u64>) {
    let (handle, revoked) = bytes.split_at(bytes.len().min(HANDLE_BYTES));
    (handle, revoked.try_into().map(u64::from_ne_bytes).ok())
}

/// Lets the other processes of this user copy from this one where Yama restricts that to ancestors.
/// Without Yama the call fails, which is fine: then there is nothing to allow.
pub(crate) fn allow() {
    let _ = rustix::process::set_ptracer(PTracer::Any);
}

/// Copies `into.len()` bytes from `address` of process `pid`.
pub(crate) fn copy(pid: u32, address: u64, into: &mut [u8]) -> Result<(), Errno> {
    // SAFETY: the bytes are ours to write.
    unsafe { copy_to(pid, address, into.as_mut_ptr(), into.len()) }
}

/// Copies `length` bytes from `address` of process `pid` to exposed memory, `at` bytes behind its first. Panics outside
/// of it: that is a bug of ours.
pub(crate) fn copy_beside(
    pid: u32,
    address: u64,
    memory: &mut Exposed<WriteMemory>,
    at: u64,
    length: u64,
) -> Result<(), Errno> {
    let (at, length) = (at as usize, length as usize);
    assert!(
        at.checked_add(length).is_some_and(|end| end <= memory.length()),
        "a piece outside its message"
    );
    // SAFETY: inside; nobody of this process has the bytes meanwhile, and no reference to them is made: another process
    // writes beside them.
    unsafe { copy_to(pid, address, memory.first().wrapping_add(at), length) }
}

/// Copies so many bytes from `address` of process `pid` to here.
///
/// # Safety
/// They may be written during the call.
unsafe fn copy_to(pid: u32, mut address: u64, mut to: *mut u8, mut length: usize) -> Result<(), Errno> {
    while length > 0 {
        let local = IoVec {
            base: to.cast(),
            length,
        };
        let remote = IoVec {
            base: address as *mut c_void,
            length,
        };
        // SAFETY: `local` describes memory that may be written; `remote` is only an address in the other process, which
        // the kernel checks; both structures live during the call.
        let copied = unsafe { process_vm_readv(pid as c_int, &raw const local, 1, &raw const remote, 1, 0) };
        match usize::try_from(copied) {
            Ok(0) => return Err(Errno::FAULT),
            Ok(n) => {
                to = to.wrapping_add(n);
                address += n as u64;
                length -= n.min(length);
            }
            Err(_) => match last_error() {
                Errno::INTR => {}
                other => return Err(other),
            },
        }
    }
    Ok(())
}

/// Copies `length` bytes from address `from` of this process to address `to` of process `pid`. Any addresses may be
/// given: the kernel checks both.
pub(crate) fn write(pid: u32, mut from: u64, mut to: u64, mut length: u64) -> Result<(), Errno> {
    while length > 0 {
        let bytes = usize::try_from(length).unwrap_or(usize::MAX);
        let local = IoVec {
            base: from as *mut c_void,
            length: bytes,
        };
        let remote = IoVec {
            base: to as *mut c_void,
            length: bytes,
        };
        // SAFETY: nothing of this process is written; what the kernel cannot read it refuses. Both structures live
        // during the call.
        let copied = unsafe { process_vm_writev(pid as c_int, &raw const local, 1, &raw const remote, 1, 0) };
        match u64::try_from(copied) {
            Ok(0) => return Err(Errno::FAULT),
            Ok(n) => {
                from = from.wrapping_add(n);
                to = to.wrapping_add(n);
                length -= n;
            }
            Err(_) => match last_error() {
                Errno::INTR => {}
                other => return Err(other),
            },
        }
    }
    Ok(())
}

/// Most runs of one system call (IOV_MAX).
const MOST_RUNS: usize = 1024;

/// Which way bytes go between this process and another one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Here,
    There,
}

/// Copies runs (address, length) of process `pid`, which fill `into`.
pub(crate) fn copy_runs(pid: u32, runs: &[Run], into: &mut [u8]) -> Result<(), Errno> {
    check_runs(runs, into.len())?;
    move_runs(pid, runs, into.as_mut_ptr(), Direction::Here)
}

/// Replaces runs (address, length) of process `pid` by `from`, which fills them.
pub(crate) fn write_runs(pid: u32, runs: &[Run], from: &[u8]) -> Result<(), Errno> {
    check_runs(runs, from.len())?;
    move_runs(pid, runs, from.as_ptr().cast_mut(), Direction::There)
}

fn check_runs(runs: &[Run], bytes: usize) -> Result<(), Errno> {
    let total = runs.iter().try_fold(0_usize, |sum, run| sum.checked_add(run.1));
    if total == Some(bytes) {
        Ok(())
    } else {
        Err(Errno::INVAL)
    }
}

/// `local`: as many bytes as the runs have together, readable, and writable if bytes come here.
fn move_runs(pid: u32, runs: &[Run], local: *mut u8, way: Direction) -> Result<(), Errno> {
    let mut here = 0_usize;
    for part in runs.chunks(MOST_RUNS) {
        let mut there: Vec<IoVec> = part.iter().map(IoVec::of).collect();
        let mut left: usize = part.iter().map(|run| run.1).sum();
        let mut first = 0;
        while left > 0 {
            let own = IoVec {
                base: local.wrapping_add(here).cast(),
                length: left,
            };
            let (remote, remotes) = (there[first..].as_ptr(), (there.len() - first) as c_ulong);
            let moved = match way {
                // SAFETY: `own` describes memory that the caller lets us write; the rest are addresses in the other
                // process, which the kernel checks; all structures live during the call.
                Direction::Here => unsafe { process_vm_readv(pid as c_int, &raw const own, 1, remote, remotes, 0) },
                // SAFETY: as above, and nothing of this process is written.
                Direction::There => unsafe { process_vm_writev(pid as c_int, &raw const own, 1, remote, remotes, 0) },
            };
            let moved = match usize::try_from(moved) {
                Ok(0) => return Err(Errno::FAULT),
                Ok(moved) => moved.min(left),
                Err(_) if last_error() == Errno::INTR => 0,
                Err(_) => return Err(last_error()),
            };
            (here, left) = (here + moved, left - moved);
            first = advance(&mut there, first, moved);
        }
    }
    Ok(())
}

/// Leaves out the first bytes of runs from `first` on; gives the first that is left.
fn advance(runs: &mut [IoVec], mut first: usize, mut bytes: usize) -> usize {
    while let Some(run) = runs.get_mut(first) {
        if bytes < run.length {
            run.base = run.base.wrapping_byte_add(bytes);
            run.length -= bytes;
            break;
        }
        bytes -= run.length;
        first += 1;
    }
    first
}

impl IoVec {
    fn of(run: &Run) -> Self {
        Self {
            base: run.0 as *mut c_void,
            length: run.1,
        }
    }
}

/// `struct iovec`.
#[repr(C)]
struct IoVec {
    base: *mut c_void,
    length: usize,
}

unsafe extern "C" {
    fn process_vm_readv(
        pid: c_int,
        local: *const IoVec,
        locals: c_ulong,
        remote: *const IoVec,
        remotes: c_ulong,
        flags: c_ulong,
    ) -> isize;
    fn process_vm_writev(
        pid: c_int,
        local: *const IoVec,
        locals: c_ulong,
        remote: *const IoVec,
        remotes: c_ulong,
        flags: c_ulong,
    ) -> isize;
}

fn last_error() -> Errno {
    let error = std::io::Error::last_os_error();
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handle_survives_and_bounds_parts() {
        let handle = Handle {
            address: 0x1000,
            length: 100,
        };
        assert_eq!(Handle::decode(&handle.encode()), Some(handle));
        assert_eq!(handle.part(60, 40), Some(0x1000 + 60));
        assert_eq!(handle.part(61, 40), None);
        assert_eq!(handle.part(u64::MAX, 2), None);
        let beyond = Handle {
            address: u64::MAX - 50,
            length: 100,
        };
        assert_eq!((beyond.part(0, 50), beyond.part(0, 51)), (Some(u64::MAX - 50), None));
        let target = Handle {
            length: 100 | TARGET,
            ..handle
        };
        assert_eq!(
            (target.part(0, 1), target.target(), handle.target()),
            (None, Some(handle), None)
        );
        assert_eq!(Handle::decode(&[0; 15]), None);
        assert_eq!(Handle::decode(&[0; 17]), None);
    }

    #[test]
    fn own_memory_can_be_copied() {
        let source: Vec<u8> = (0..100_000_u32).map(|i| i as u8).collect();
        let mut copied = vec![0; source.len()];
        let own = rustix::process::getpid().as_raw_nonzero().get() as u32;
        match copy(own, source.as_ptr() as u64, &mut copied) {
            Ok(()) => assert_eq!(copied, source),
            Err(e) => assert!(matches!(e, Errno::PERM | Errno::NOSYS), "{e}"),
        }
    }

    #[test]
    fn own_memory_can_be_written() {
        let source: Vec<u8> = (0..100_000_u32).map(|i| i as u8).collect();
        let mut copied = vec![0_u8; source.len()];
        let own = rustix::process::getpid().as_raw_nonzero().get() as u32;
        match write(
            own,
            source.as_ptr() as u64,
            copied.as_mut_ptr().expose_provenance() as u64,
            source.len() as u64,
        ) {
            Ok(()) => assert_eq!(copied, source),
            Err(e) => assert!(matches!(e, Errno::PERM | Errno::NOSYS), "{e}"),
        }
    }

    #[test]
    fn runs_of_memory_are_copied_and_written() {
        let source: Vec<u8> = (0..5000_u32).map(|i| i as u8).collect();
        let mut target = vec![0_u8; 5000];
        let own = rustix::process::getpid().as_raw_nonzero().get() as u32;
        // More runs than one system call takes: every second byte.
        let runs_at = |base: u64| (0..2500).map(|i| (base + 2 * i, 1)).collect::<Vec<_>>();
        let mut packed = vec![0; 2500];
        match copy_runs(own, &runs_at(source.as_ptr().expose_provenance() as u64), &mut packed) {
            Ok(()) => assert!(packed.iter().enumerate().all(|(i, &byte)| byte == (2 * i) as u8)),
            Err(e) => return assert!(matches!(e, Errno::PERM | Errno::NOSYS), "{e}"),
        }
        let runs = runs_at(target.as_mut_ptr().expose_provenance() as u64);
        assert_eq!(write_runs(own, &runs, &packed), Ok(()));
        assert!((0..5000).all(|i| target[i] == if i % 2 == 0 { i as u8 } else { 0 }));
        assert_eq!(
            write_runs(own, &runs, &packed[1..]),
            Err(Errno::INVAL),
            "they do not fit"
        );
    }

    #[test]
    fn a_bad_address_is_an_error() {
        let own = rustix::process::getpid().as_raw_nonzero().get() as u32;
        assert!(copy(own, 1, &mut [0; 8]).is_err());
        let mut place = [0_u8; 8];
        assert!(write(own, 1, place.as_mut_ptr().expose_provenance() as u64, 8).is_err());
        assert!(write(own, place.as_ptr() as u64, 1, 8).is_err());
    }
}
