// SPDX-License-Identifier: Apache-2.0
//! The file of a [segment](crate::segment) that has a name: who makes it, and what is believed of one that is there.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use isthmus_lock::within_size_limit;
use rustix::fs::{AtFlags, CWD, FallocateFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::error::ShmError;
use crate::geometry::{Geometry, MAGIC, VERSION};

pub(crate) fn system(doing: &'static str, path: &Path, error: Errno) -> ShmError {
    ShmError::System {
        doing,
        path: path.to_owned(),
        source: error.into(),
    }
}

pub(crate) fn open_existing(path: &Path) -> Result<Option<OwnedFd>, ShmError> {
    match rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty()) {
        Ok(file) => Ok(Some(file)),
        Err(Errno::NOENT) => Ok(None),
        Err(e) => Err(system("open the shared memory file", path, e)),
    }
}

/// Makes the file under a name of its own and gives it the real name; if another process was faster, takes that one's.
pub(crate) fn create(path: &Path, job: &str, slot: usize, geometry: Geometry) -> Result<OwnedFd, ShmError> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{slot}"));
    let temporary = PathBuf::from(name);
    // Only this slot uses that name: a file that is there was left by a process killed right here.
    let _ = rustix::fs::unlink(&temporary);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(&temporary, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|e| system("create the shared memory file", &temporary, e))?;
    let linked = fill(&file, &temporary, job, geometry).and_then(|()| {
        match rustix::fs::linkat(CWD, &temporary, CWD, path, AtFlags::empty()) {
            Ok(()) => Ok(Some(file)),
            Err(Errno::EXIST) => Ok(None),
            Err(e) => Err(system("name the shared memory file", path, e)),
        }
    });
    let _ = rustix::fs::unlink(&temporary);
    match linked? {
        Some(file) => Ok(file),
        // It can only be gone again if all others have joined, and they cannot have without us.
        None => open_existing(path)?.ok_or_else(|| system("open the shared memory file", path, Errno::NOENT)),
    }
}

fn fill(file: &OwnedFd, path: &Path, job: &str, geometry: Geometry) -> Result<(), ShmError> {
    let total = geometry.total_bytes() as u64;
    within_size_limit(total)
        .and_then(|()| rustix::fs::ftruncate(file, total))
        .map_err(|e| system("size the shared memory file", path, e))?;
    reserve(file, path, geometry)?;
    let mut header = [0_u8; 32];
    header[..8].copy_from_slice(&MAGIC.to_ne_bytes());
    header[8..12].copy_from_slice(&VERSION.to_ne_bytes());
    header[12..16].copy_from_slice(&(geometry.processes() as u32).to_ne_bytes());
    header[16..24].copy_from_slice(&(geometry.ring_bytes() as u64).to_ne_bytes());
    header[24..].copy_from_slice(&fingerprint(job).to_ne_bytes());
    match rustix::io::pwrite(file, &header, 0) {
        Ok(32) => Ok(()),
        Ok(_) => Err(system("write to the shared memory file", path, Errno::NOSPC)),
        Err(e) => Err(system("write to the shared memory file", path, e)),
    }
}

/// Memory behind all that has some from the beginning.
pub(crate) fn reserve(file: &OwnedFd, path: &Path, geometry: Geometry) -> Result<(), ShmError> {
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, geometry.reserved_bytes() as u64) {
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        Err(Errno::INTR) => reserve(file, path, geometry),
        Err(e) => Err(system("reserve memory for the shared memory file", path, e)),
    }
}

pub(crate) fn check_file(file: &OwnedFd, path: &Path, geometry: Geometry) -> Result<(), ShmError> {
    let found = rustix::fs::fstat(file).map_err(|e| system("examine the shared memory file", path, e))?;
    let foreign = |what: String| {
        Err(ShmError::Foreign {
            path: path.to_owned(),
            what,
        })
    };
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return foreign("it is not an ordinary file".into());
    }
    if found.st_uid != rustix::process::geteuid().as_raw() {
        return foreign(format!("it belongs to user {}", found.st_uid));
    }
    if found.st_size as u64 != geometry.total_bytes() as u64 {
        return foreign(format!(
            "it has {} bytes instead of {}",
            found.st_size,
            geometry.total_bytes()
        ));
    }
    Ok(())
}

/// FNV-1a of the job's name: tells jobs apart, protects nothing.
pub(crate) fn fingerprint(job: &str) -> u64 {
    job.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
