// SPDX-License-Identifier: Apache-2.0
//! Memory that a process brings to a meeting, for processes of its node that share none yet.
//!
//! It has no name: others open it by way of the process that has it (`/proc/PID/fd/NUMBER`), which the kernel allows
//! processes of the same user only, and nothing stays behind however processes end. Who comes first among the members
//! has the one that is used; the others throw theirs away.
//!
//! ```text
//!  offset    content of the file
//!  0         header of a segment, without a number of processes, and then 16 bytes: the token
//!  4096      as any segment for messages (see `segment`), once somebody has entered
//! ```
//! What others say of theirs is not believed. Only a nameless file of this user is opened, and it is used only if it
//! cannot shrink and has the token that was announced. Of other descriptors only a pipe with the announced inode
//! number is opened. A member that gives false descriptors makes the others talk by TCP; one that repeats another
//! member's only loses what is sent to it.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

use isthmus_lock::within_size_limit;
use isthmus_wire::joining::Memory;
use rustix::fs::{FileType, MemfdFlags, Mode, OFlags, SealFlags, Stat};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use crate::error::ShmError;
use crate::file::{fingerprint, system};
use crate::geometry::{Geometry, MAGIC, VERSION};

/// Bytes at the beginning that say what the file is.
const HEADER: usize = 48;
/// Where the token is in them.
const TOKEN: usize = 32;
const PAGE: u64 = 4096;

/// Memory that this process has made for a meeting, and what wakes it there.
pub struct Brought {
    file: Arc<OwnedFd>,
    pub(crate) bell: Arc<OwnedFd>,
    memory: Memory,
}

impl Brought {
    /// `token`: drawn by chance. `machine`: equal at processes of one kernel and one network.
    ///
    /// # Errors
    /// What the system has not: descriptors of processes (Linux 5.3), `/proc`, room.
    pub fn new(token: [u8; 16], machine: [u8; 32]) -> Result<Self, ShmError> {
        let path = PathBuf::from("for a meeting");
        let system = |doing, error| system(doing, &path, error);
        let node = node(machine).map_err(|e| system("find out which node this is, to make memory", e))?;
        // Without that nobody could tell that another one has died.
        pidfd_open(getpid(), PidfdFlags::empty())
            .map_err(|e| system("watch a process, to share memory with it,", e))?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("isthmus-meeting", flags).map_err(|e| system("make memory", e))?;
        rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR).map_err(|e| system("protect memory", e))?;
        within_size_limit(PAGE)
            .and_then(|()| rustix::fs::ftruncate(&file, PAGE))
            .map_err(|e| system("size memory", e))?;
        let written = rustix::io::pwrite(&file, &header(&token), 0).map_err(|e| system("write to memory", e))?;
        if written != HEADER {
            return Err(system("write to memory", Errno::NOSPC));
        }
        // Nobody can take away what others have mapped.
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK).map_err(|e| system("seal memory", e))?;
        let bell = bell().map_err(|e| system("make a doorbell", e))?;
        let number = rustix::fs::fstat(&bell).map_err(|e| system("examine a doorbell", e))?;
        let memory = Memory {
            node,
            process: std::process::id(),
            file: file.as_raw_fd().unsigned_abs(),
            bell: bell.as_raw_fd().unsigned_abs(),
            bell_number: number.st_ino,
            token,
        };
        Ok(Self {
            file: Arc::new(file),
            bell: Arc::new(bell),
            memory,
        })
    }

    /// What others have to know of it.
    pub fn memory(&self) -> Memory {
        self.memory.clone()
    }

    /// The file that all members use: of `first`, who may be this process. It is as long as they need.
    pub(crate) fn file_of(&self, first: &Memory, geometry: Geometry) -> Result<(Arc<OwnedFd>, PathBuf), ShmError> {
        let path = path_of(first.process, first.file);
        let file = match first.token == self.memory.token {
            true => self.file.clone(),
            false => reopened(first.process, first.file, OFlags::empty(), is_memory)
                .and_then(|file| check(file, &first.token))
                .map(Arc::new)
                .map_err(|e| system("open the memory of another process of this node,", &path, e))?,
        };
        enlarge(&file, geometry).map_err(|e| system("size the memory for a meeting,", &path, e))?;
        Ok((file, path))
    }
}

/// What wakes another process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BellOf {
    pub(crate) process: u32,
    descriptor: u32,
    number: u64,
}

impl BellOf {
    pub(crate) fn of(memory: &Memory) -> Self {
        Self {
            process: memory.process,
            descriptor: memory.bell,
            number: memory.bell_number,
        }
    }

    /// The process may have ended, and its number or its descriptor may be another one's.
    pub(crate) fn open(&self) -> Result<OwnedFd, Errno> {
        let is_it = |found: &Stat| kind(found) == FileType::Fifo && found.st_ino == self.number;
        reopened(self.process, self.descriptor, OFlags::NONBLOCK, is_it)
    }

    pub(crate) fn path(&self) -> PathBuf {
        path_of(self.process, self.descriptor)
    }
}

fn path_of(process: u32, descriptor: u32) -> PathBuf {
    format!("/proc/{process}/fd/{descriptor}").into()
}

fn kind(found: &Stat) -> FileType {
    FileType::from_raw_mode(found.st_mode)
}

/// A file without a name, of this user.
fn is_memory(found: &Stat) -> bool {
    kind(found) == FileType::RegularFile && found.st_nlink == 0 && found.st_uid == rustix::process::geteuid().as_raw()
}

/// A descriptor of another process, opened here if it is what is expected: nothing else is so much as opened.
fn reopened(process: u32, descriptor: u32, flags: OFlags, is_it: impl FnOnce(&Stat) -> bool) -> Result<OwnedFd, Errno> {
    let seen = rustix::fs::open(
        path_of(process, descriptor),
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    if !is_it(&rustix::fs::fstat(&seen)?) {
        return Err(Errno::BADF);
    }
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOCTTY | flags;
    let own = path_of(std::process::id(), seen.as_raw_fd().unsigned_abs());
    rustix::fs::open(own, flags, Mode::empty())
}

/// Whether it is memory that was made for this meeting.
fn check(file: OwnedFd, token: &[u8; 16]) -> Result<OwnedFd, Errno> {
    let mut found = [0; HEADER];
    let sealed = rustix::fs::fcntl_get_seals(&file)?;
    let right =
        sealed == SealFlags::SHRINK && rustix::io::pread(&file, &mut found[..], 0)? == HEADER && found == header(token);
    if right { Ok(file) } else { Err(Errno::BADF) }
}

/// All members find the same length, so it does not matter who comes first.
fn enlarge(file: &OwnedFd, geometry: Geometry) -> Result<(), Errno> {
    let total = geometry.total_bytes() as u64;
    within_size_limit(total)?;
    match rustix::fs::fstat(file)?.st_size.unsigned_abs() {
        PAGE => rustix::fs::ftruncate(file, total),
        length if length == total => Ok(()),
        _ => Err(Errno::BADF),
    }
}

fn header(token: &[u8; 16]) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&MAGIC.to_ne_bytes());
    header[8..12].copy_from_slice(&VERSION.to_ne_bytes());
    header[TOKEN..].copy_from_slice(token);
    header
}

/// A pipe that never ends: both ends are one descriptor.
fn bell() -> Result<OwnedFd, Errno> {
    let (read, _write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    let is_pipe = |found: &Stat| kind(found) == FileType::Fifo;
    reopened(
        std::process::id(),
        read.as_raw_fd().unsigned_abs(),
        OFlags::NONBLOCK,
        is_pipe,
    )
}

/// Equal at processes that may share memory: one machine, one numbering of processes, one user, one kind of processor
/// and layout. Hosts of a testbed have networks of their own, so they are machines of their own.
fn node(machine: [u8; 32]) -> Result<[u8; 48], Errno> {
    let processes = rustix::fs::stat("/proc/self/ns/pid")?.st_ino;
    // Old systems have no namespaces of users.
    let users = rustix::fs::stat("/proc/self/ns/user").map_or(0, |found| found.st_ino);
    let user = rustix::process::geteuid().as_raw();
    let layout = fingerprint(std::env::consts::ARCH) as u32 ^ VERSION;
    let mut node = [0; 48];
    node[..32].copy_from_slice(&machine);
    // The kernel numbers namespaces with 32 bits.
    let words = [processes as u32, users as u32, user, layout];
    let places = node[32..].chunks_exact_mut(4);
    places
        .zip(words)
        .for_each(|(place, word)| place.copy_from_slice(&word.to_ne_bytes()));
    Ok(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry() -> Geometry {
        Geometry::for_messages(2).expect("few processes")
    }

    fn brought(token: u8) -> Brought {
        Brought::new([token; 16], [8; 32]).expect("memory")
    }

    #[test]
    fn a_node_is_a_part_of_a_machine() {
        let other = Brought::new([1; 16], [9; 32]).expect("memory");
        assert_ne!(other.memory().node, brought(1).memory().node);
        assert_ne!(
            brought(1).memory().node[32..],
            [0; 16],
            "a user and what the system tells apart"
        );
    }

    #[test]
    fn the_memory_of_the_first_is_opened_by_the_others() {
        let (first, second) = (brought(1), brought(2));
        let memory = first.memory();
        assert_eq!(memory.node, second.memory().node, "one node");
        let inode = |file: &Arc<OwnedFd>| rustix::fs::fstat(&**file).expect("examined").st_ino;
        let (theirs, _) = second.file_of(&memory, geometry()).expect("opened");
        let own = first.file.as_raw_fd();
        let (file, path) = first.file_of(&memory, geometry()).expect("its own");
        assert_eq!((file.as_raw_fd(), inode(&file)), (own, inode(&theirs)));
        assert!(
            !path.to_string_lossy().contains("shm"),
            "it has no name: {}",
            path.display()
        );
        let length = rustix::fs::fstat(&*file).expect("examined").st_size;
        assert_eq!(length as usize, geometry().total_bytes());
        assert!(rustix::fs::ftruncate(&*theirs, 0).is_err(), "nobody takes it away");
    }

    /// What `second` makes of it.
    fn refused(memory: &Memory) -> bool {
        brought(2).file_of(memory, geometry()).is_err()
    }

    #[test]
    fn what_is_not_the_memory_of_a_meeting_is_not_touched() {
        let first = brought(1);
        let lie = |file: &OwnedFd| Memory {
            file: file.as_raw_fd().unsigned_abs(),
            ..first.memory()
        };
        let other = Memory {
            token: [7; 16],
            ..first.memory()
        };
        assert!(refused(&other), "another token");
        let gone = Memory {
            process: u32::MAX / 2,
            ..first.memory()
        };
        assert!(refused(&gone), "nobody");
        // A file of the user, which begins as it should.
        let named = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(named.path(), header(&[1; 16])).expect("written");
        assert!(refused(&lie(&OwnedFd::from(named.reopen().expect("opened")))));
        let kept = std::fs::read(named.path()).expect("read");
        assert_eq!(kept, header(&[1; 16]), "it is as it was");
        // The same without a name.
        let nameless = tempfile::tempfile().expect("a file");
        rustix::io::pwrite(&nameless, &header(&[1; 16]), 0).expect("written");
        let nameless = OwnedFd::from(nameless);
        assert!(refused(&lie(&nameless)), "it could shrink");
        assert_eq!(rustix::fs::fstat(&nameless).expect("examined").st_size as usize, HEADER);
        // What would do something when it is opened.
        assert!(refused(&lie(&first.bell)), "a pipe");
    }

    #[test]
    fn a_bell_is_opened_only_if_it_is_the_one_that_was_meant() {
        let first = brought(1);
        let right = BellOf::of(&first.memory());
        let other = BellOf {
            number: right.number + 1,
            ..right
        };
        assert!(right.open().is_ok());
        assert_eq!(
            other.open().err(),
            Some(Errno::BADF),
            "the descriptor is another one's now"
        );
        let file = BellOf {
            descriptor: first.memory.file,
            ..right
        };
        assert_eq!(file.open().err(), Some(Errno::BADF));
    }
}
