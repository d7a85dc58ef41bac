// SPDX-License-Identifier: Apache-2.0
//! What the cache holds, its limit, and what is removed to keep it.

use super::lease::{self, LEASE, is_locked};
use super::{INCOMING, Store};
use crate::content::{hex, unhex};
use crate::error::{StageError, failed};
use isthmus_wire::grid::Hash;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Most bytes of a cache unless its user says otherwise.
pub const USUAL_LIMIT: u64 = 50 << 30;
/// What has begun to arrive and then did not go on for so long is given up.
const ABANDONED: Duration = Duration::from_secs(7 * 86_400);
/// Space that is left on the disk for others.
const RESERVE: u64 = 64 << 20;
/// How names of directories that are being removed begin.
const REMOVED: &str = ".removed-";

/// A file that the cache holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its name; empty for one that has not arrived completely.
    pub name: String,
    /// Its hash.
    pub hash: Hash,
    /// Bytes on the disk.
    pub size: u64,
    /// Since it was last used.
    pub age: Duration,
    /// Whether somebody uses it.
    pub used: bool,
}

impl Store {
    /// Most bytes of this cache.
    pub fn limit(&self) -> u64 {
        let text = fs::read_to_string(self.cache.join("limit")).unwrap_or_default();
        text.trim().parse().unwrap_or(USUAL_LIMIT)
    }

    /// Sets that, and removes what is above it.
    pub fn set_limit(&self, limit: u64) -> Result<(), StageError> {
        let file = self.cache.join("limit");
        let part = crate::local::beside(&file);
        fs::write(&part, format!("{limit}\n"))
            .and_then(|()| fs::rename(&part, &file))
            .map_err(failed("write", &file))?;
        self.shrink(limit);
        Ok(())
    }

    /// What it holds, longest unused first.
    pub fn list(&self) -> Vec<Held> {
        let mut held: Vec<Held> = fs::read_dir(self.files())
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| self.held(&entry.path()))
            .collect();
        held.sort_by_key(|h| std::cmp::Reverse(h.age));
        held
    }

    fn held(&self, path: &Path) -> Option<Held> {
        let file_name = path.file_name()?.to_str()?;
        if let Some(hash) = file_name.strip_prefix(".partial-") {
            let metadata = fs::symlink_metadata(path).ok()?;
            return Some(Held {
                name: String::new(),
                hash: unhex(hash)?,
                size: metadata.blocks() * 512,
                age: age(&metadata),
                used: age(&metadata) < Duration::from_secs(60),
            });
        }
        let hash = unhex(file_name)?;
        let mut names: Vec<(String, u64)> = fs::read_dir(path)
            .ok()?
            .flatten()
            .filter(|e| e.file_name() != LEASE)
            .filter_map(|e| Some((e.file_name().into_string().ok()?, e.metadata().ok()?.len())))
            .collect();
        names.sort();
        let lease = path.join(LEASE);
        Some(Held {
            name: names.iter().map(|(n, _)| n.as_str()).collect::<Vec<_>>().join(", "),
            hash,
            // Further names are links to the same content.
            size: names.first().map_or(0, |(_, size)| *size),
            age: fs::metadata(&lease).as_ref().map_or(Duration::ZERO, age),
            used: is_locked(&lease),
        })
    }

    /// Removes everything that is not in use. How many bytes that were.
    pub fn clear(&self) -> u64 {
        self.shrink(0)
    }

    /// Removes what was used longest ago until no more than `limit` bytes are left, or only what is in use. How many
    /// bytes went.
    fn shrink(&self, limit: u64) -> u64 {
        self.sweep();
        let held = self.list();
        let before: u64 = held.iter().map(|h| h.size).sum();
        let mut total = before;
        for file in held {
            let abandoned = file.name.is_empty() && file.age > ABANDONED;
            if (total > limit || abandoned) && !file.used && self.remove_unused(&file.hash) {
                total = total.saturating_sub(file.size);
            }
        }
        before - total
    }

    /// Makes room for a file.
    pub(super) fn make_room(&self, size: u64) -> Result<(), StageError> {
        let limit = self.limit();
        self.shrink(limit.saturating_sub(size));
        let total: u64 = self.list().iter().map(|h| h.size).sum();
        if total.saturating_add(size) > limit {
            return Err(StageError::Full {
                size,
                room: limit.saturating_sub(total),
                bound: "the limit of the cache; see isthmus cache limit",
            });
        }
        let free = || rustix::fs::statvfs(self.files()).map(|s| s.f_bavail.saturating_mul(s.f_frsize));
        let wanted = size.saturating_add(RESERVE);
        if free().is_ok_and(|free| free < wanted) {
            // Rather an empty cache than a full disk.
            self.shrink(total.saturating_sub(wanted));
        }
        match free() {
            Ok(free) if free < wanted => Err(StageError::Full {
                size,
                room: free.saturating_sub(RESERVE),
                bound: "the disk is full",
            }),
            _ => Ok(()),
        }
    }

    /// Removes a file unless somebody uses it.
    pub(super) fn remove_unused(&self, hash: &Hash) -> bool {
        let directory = self.files().join(hex(hash));
        let gone = self.remove_partial(hash);
        let remove = || -> Result<(), StageError> {
            let lease = directory.join(LEASE);
            let _alone = lease::alone(&lease).map_err(failed("lease", &lease))?;
            // It goes at once and whole: who comes now makes a directory anew, and who waits for the lease sees that.
            let removed = self.unique(REMOVED)?;
            fs::rename(&directory, &removed).map_err(failed("rename to", &removed))?;
            fs::remove_dir_all(&removed).map_err(failed("remove", &removed))
        };
        remove().is_ok() || gone
    }

    /// Removes what killed processes have left.
    fn sweep(&self) {
        for entry in fs::read_dir(self.files()).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_str().unwrap_or_default();
            if name.starts_with(REMOVED) {
                let _ = fs::remove_dir_all(entry.path());
            } else if name.starts_with(INCOMING) && entry.metadata().is_ok_and(|m| age(&m) > ABANDONED) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

fn age(metadata: &fs::Metadata) -> Duration {
    let modified = metadata.modified().ok();
    modified
        .and_then(|m| SystemTime::now().duration_since(m).ok())
        .unwrap_or_default()
}
