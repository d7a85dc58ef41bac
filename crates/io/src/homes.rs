// SPDX-License-Identifier: Apache-2.0
//! Where names without a site are. A name keeps the site at which a process of those who open it has opened it before,
//! so a file that all have opened is the same one for whoever opens it again alone, or deletes it.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Component;
use std::sync::{Mutex, PoisonError};

use isthmus_core::comm::{Comm, RememberedWhereabouts, Whereabouts};
use isthmus_core::world::World;
use isthmus_engine::Peer;

use crate::name::Site;

/// Names that a process knows; of more, those that it has known longest are forgotten.
const MOST: usize = 1 << 16;

/// What this process has opened.
static KNOWN: Mutex<Option<Openers>> = Mutex::new(None);

/// Who opened a file first.
#[derive(Clone, Debug)]
struct Opened {
    by: Peer,
    /// Among whom.
    among: RememberedWhereabouts,
}

/// A name, and whose it is: tests have several processes in one.
type Key = (usize, Vec<u8>);

#[derive(Default)]
struct Openers {
    openers: HashMap<Key, Opened>,
    order: VecDeque<Key>,
}

impl Openers {
    fn insert(&mut self, key: Key, opened: Opened) {
        if let Some(known) = self.openers.get_mut(&key) {
            // Those who have met still have it from this process.
            if known.by != opened.by || opened.among.is_abroad() {
                *known = opened;
            }
            return;
        }
        self.openers.insert(key.clone(), opened);
        self.order.push_back(key);
        if self.order.len() > MOST {
            let oldest = self.order.pop_front().unwrap_or_default();
            self.openers.remove(&oldest);
        }
    }

    fn find(&self, key: &Key) -> Option<Opened> {
        self.openers.get(key).cloned()
    }
}

/// One for all ways to write a path: `./x`, `.//x` and `x`.
fn key<W>(world: &W, path: &[u8]) -> Key {
    let parts = std::path::Path::new(OsStr::from_bytes(path)).components();
    let path: std::path::PathBuf = parts.filter(|part| *part != Component::CurDir).collect();
    let path = path.into_os_string().as_bytes().to_vec();
    (std::ptr::from_ref(world) as usize, path)
}

fn known(world: &World, path: &[u8]) -> Option<Opened> {
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.as_ref()?.find(&key(world, path))
}

/// The process that opened the file of this name first, as far as this one knows, by its rank among these; or another
/// one of its site.
pub(crate) fn find(all: &Whereabouts<'_>, path: &[u8]) -> Option<u32> {
    if !Site::are_several(all) {
        return None;
    }
    let opened = known(all.world(), path)?;
    all.rank_of(opened.by).or_else(|| {
        let there = match all.world().rank_of(opened.by) {
            Some(_) => Whereabouts::in_world(all.world()),
            None => opened.among.whereabouts(all.world())?,
        };
        let site = Site::of(&there, opened.by)?;
        (0..all.count()).find(|&rank| all.peer(rank).and_then(|peer| Site::of(all, peer)) == Some(site))
    })
}

/// Where the file of this name is: the process of another job that has opened it first, as far as this process knows,
/// by its rank among those who have met.
pub(crate) fn abroad<'w>(world: &'w World, path: &[u8]) -> Option<(Whereabouts<'w>, u32)> {
    let opened = known(world, path)?;
    if world.rank_of(opened.by).is_some() {
        return None;
    }
    let all = opened.among.whereabouts(world)?;
    let rank = all.rank_of(opened.by)?;
    Some((all, rank))
}

/// The communicator that opens a file: what it is made of, or, where the file is known to be at a site of another job
/// and a process opens it alone, one of which the process there can be a guest.
pub(crate) fn abroad_if_alone(world: &World, comm: &Comm, path: &[u8]) -> Option<std::sync::Arc<Comm>> {
    if comm.size() > 1 {
        return None;
    }
    let (all, _) = abroad(world, path)?;
    all.alone().ok()
}

/// A name means the file that this process has opened first, from now on.
pub(crate) fn keep(all: &Whereabouts<'_>, path: &[u8], by: Peer) {
    if Site::are_several(all) {
        let opened = Opened {
            by,
            among: all.remembered(),
        };
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_or_insert_default().insert(key(all.world(), path), opened);
    }
}

/// Whether this process has opened the file of this name itself, together with these, who have met.
pub(crate) fn is_shared(all: &Whereabouts<'_>, path: &[u8]) -> bool {
    known(all.world(), path).is_some_and(|opened| opened.by == all.world().me() && opened.among.is_of(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_known_however_it_is_written_and_the_oldest_is_forgotten() {
        let world = 0_u8;
        let mut known = Openers::default();
        let insert = |known: &mut Openers, path: &[u8], by| {
            let by = Peer::new(by);
            let among = RememberedWhereabouts::default();
            known.insert(key(&world, path), Opened { by, among });
        };
        let find = |known: &Openers, path: &[u8]| known.find(&key(&world, path)).map(|opened| opened.by.number());
        insert(&mut known, b"./dir//x", 3);
        assert_eq!(find(&known, b"dir/x"), Some(3));
        assert_eq!(find(&known, b"dir/./x/"), Some(3));
        assert_eq!(find(&known, b"/dir/x"), None);
        assert_eq!(find(&known, b"dir/../x"), None);
        insert(&mut known, b"dir/x", 4);
        assert_eq!(find(&known, b"./dir//x"), Some(4));
        for number in 0..MOST {
            assert_eq!(find(&known, b"dir/x"), Some(4));
            insert(&mut known, format!("{number}").as_bytes(), 0);
        }
        assert_eq!(find(&known, b"dir/x"), None);
        assert_eq!((known.openers.len(), known.order.len()), (MOST, MOST));
    }
}
