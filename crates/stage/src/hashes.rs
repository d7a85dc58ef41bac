// SPDX-License-Identifier: Apache-2.0
//! Hashes of large files at home, remembered, so that the second job with the same input need not read it.
//!
//! ```text
//!  <cache>/isthmus/hashes/<hash of the path>     magic, device, inode, size, time of change (s, ns), piece hashes
//! ```
//! What is remembered counts as long as the file has the same device, inode, size and times of change; a file that was
//! changed within the last seconds is not remembered, since its next change might not show.

use crate::content;
use isthmus_wire::grid::Hash;
use isthmus_wire::service::Manifest;
use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Smaller files are read faster than they are remembered.
const SMALL: u64 = 8 << 20;
/// A change so short ago may be followed by one with the same time.
const SETTLING: Duration = Duration::from_secs(2);
/// Not used for so long it is forgotten.
const EXPIRY: Duration = Duration::from_secs(90 * 86_400);
const MAGIC: &[u8; 8] = b"isthmus1";

/// The manifest of a file, remembered in this cache or made.
pub fn manifest(path: &Path, cache: Option<&Path>) -> io::Result<Manifest> {
    let metadata = fs::metadata(path)?;
    let cache = cache.filter(|_| metadata.len() >= SMALL);
    let place = cache.map(|cache| place(cache, path));
    if let Some(known) = place.as_deref().and_then(|p| recall(p, &metadata)) {
        return Ok(known);
    }
    let manifest = content::manifest_of(path)?;
    let after = fs::metadata(path)?;
    if identity(&after) != identity(&metadata) || after.len() != manifest.size {
        return Err(io::Error::other("it changed while it was read"));
    }
    let settled = after
        .modified()
        .ok()
        .and_then(|m| SystemTime::now().duration_since(m).ok());
    if let Some(place) = place.filter(|_| settled.is_some_and(|age| age > SETTLING)) {
        // Not to remember costs only time.
        let _ = remember(&place, &after, &manifest);
    }
    Ok(manifest)
}

fn place(cache: &Path, path: &Path) -> PathBuf {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = Sha256::digest(whole.as_os_str().as_bytes());
    cache.join("hashes").join(content::hex(&name[..16]))
}

fn identity(metadata: &fs::Metadata) -> [u64; 7] {
    [
        metadata.dev(),
        metadata.ino(),
        metadata.len(),
        metadata.mtime() as u64,
        metadata.mtime_nsec() as u64,
        metadata.ctime() as u64,
        metadata.ctime_nsec() as u64,
    ]
}

fn recall(place: &Path, metadata: &fs::Metadata) -> Option<Manifest> {
    let (known, manifest) = decode(&fs::read(place).ok()?)?;
    (known == identity(metadata)).then_some(manifest)
}

fn remember(place: &Path, metadata: &fs::Metadata, manifest: &Manifest) -> io::Result<()> {
    let directory = place.parent().unwrap_or(place);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    for old in fs::read_dir(directory)?.flatten() {
        let age = old.metadata().and_then(|m| m.modified()).ok();
        if age.and_then(|m| m.elapsed().ok()).is_some_and(|age| age > EXPIRY) {
            let _ = fs::remove_file(old.path());
        }
    }
    let part = crate::local::beside(place);
    fs::write(&part, encode(&identity(metadata), manifest))?;
    fs::rename(&part, place)
}

fn encode(identity: &[u64; 7], manifest: &Manifest) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    identity.iter().for_each(|n| bytes.extend(n.to_le_bytes()));
    manifest.pieces.iter().for_each(|piece| bytes.extend(piece));
    bytes
}

/// What was remembered: the file's identity and its manifest.
pub(crate) fn decode(bytes: &[u8]) -> Option<([u64; 7], Manifest)> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (numbers, pieces) = rest.split_at_checked(56)?;
    let mut identity = [0; 7];
    for (number, bytes) in identity.iter_mut().zip(numbers.chunks_exact(8)) {
        *number = u64::from_le_bytes(bytes.try_into().ok()?);
    }
    let pieces: Vec<Hash> = pieces.chunks(32).map(|p| p.try_into().ok()).collect::<Option<_>>()?;
    let manifest = Manifest {
        hash: content::root(identity[2], &pieces),
        size: identity[2],
        pieces,
    };
    content::is_sound(&manifest).then_some((identity, manifest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_is_read_again() {
        let top = tempfile::tempdir().unwrap();
        let (file, cache) = (top.path().join("data"), top.path().join("cache"));
        fs::write(&file, vec![1; SMALL as usize]).unwrap();
        let long_ago = SystemTime::now() - Duration::from_secs(1000);
        let set = || {
            fs::OpenOptions::new()
                .write(true)
                .open(&file)
                .unwrap()
                .set_modified(long_ago)
                .unwrap()
        };
        set();
        let first = manifest(&file, Some(&cache)).unwrap();
        assert_eq!(first, content::manifest_of(&file).unwrap());
        let kept = place(&cache, &file);
        let (identity, known) = decode(&fs::read(&kept).unwrap()).unwrap();
        assert_eq!(known, first);
        // What is remembered is believed ...
        let forged = Manifest {
            pieces: vec![[9; 32]; 8],
            ..first.clone()
        };
        fs::write(&kept, encode(&identity, &forged)).unwrap();
        assert_eq!(manifest(&file, Some(&cache)).unwrap().pieces, forged.pieces);
        // ... until the file changes, even with the old time.
        fs::write(&file, vec![2; SMALL as usize]).unwrap();
        set();
        assert_eq!(
            manifest(&file, Some(&cache)).unwrap(),
            content::manifest_of(&file).unwrap()
        );
        assert!(decode(b"isthmus1 short").is_none());
    }
}
