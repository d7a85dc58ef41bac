// SPDX-License-Identifier: Apache-2.0
//! Where names without a site are. A name keeps the site at which a process of those who open it has opened it before,
//! so a file that all have opened is the same one for whoever opens it again alone, or deletes it.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Component;
use std::sync::{Mutex, PoisonError};

use isthmus_core::comm::Comm;
use isthmus_core::world::World;

use crate::name::Site;

/// Names that a process knows; of more, those that it has known longest are forgotten.
const MOST: usize = 1 << 16;

/// What this process has opened.
static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

#[derive(Default)]
struct Known {
    /// Who opened it first, by the rank in MPI_COMM_WORLD.
    openers: HashMap<Vec<u8>, u32>,
    order: VecDeque<Vec<u8>>,
}

impl Known {
    fn insert(&mut self, path: &[u8], opener: u32) {
        let key = key(path);
        if self.openers.insert(key.clone(), opener).is_some() {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > MOST {
            let oldest = self.order.pop_front().unwrap_or_default();
            self.openers.remove(&oldest);
        }
    }

    fn find(&self, path: &[u8]) -> Option<u32> {
        self.openers.get(&key(path)).copied()
    }
}

/// One for all ways to write a path: `./x`, `.//x` and `x`.
fn key(path: &[u8]) -> Vec<u8> {
    let parts = std::path::Path::new(OsStr::from_bytes(path)).components();
    let path: std::path::PathBuf = parts.filter(|part| *part != Component::CurDir).collect();
    path.into_os_string().as_bytes().to_vec()
}

/// The process that opened the file of this name first, as far as this one knows.
pub(crate) fn find(world: &World, path: &[u8]) -> Option<u32> {
    if !Site::are_several(world) {
        return None;
    }
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.as_ref()?.find(path).filter(|opener| *opener < world.size())
}

/// A name means the file that this process has opened first, from now on.
pub(crate) fn keep(world: &World, path: &[u8], opener: u32) {
    if Site::are_several(world) {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_or_insert_default().insert(path, opener);
    }
}

/// Whether all processes of a communicator belong to this job: ranks in its MPI_COMM_WORLD mean the same to all.
pub(crate) fn is_own(world: &World, comm: &Comm) -> bool {
    comm.group().members().iter().all(|peer| world.rank_of(*peer).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_known_however_it_is_written_and_the_oldest_is_forgotten() {
        let mut known = Known::default();
        known.insert(b"./dir//x", 3);
        assert_eq!(known.find(b"dir/x"), Some(3));
        assert_eq!(known.find(b"dir/./x/"), Some(3));
        assert_eq!(known.find(b"/dir/x"), None);
        assert_eq!(known.find(b"dir/../x"), None);
        known.insert(b"dir/x", 4);
        assert_eq!(known.find(b"./dir//x"), Some(4));
        for number in 0..MOST {
            assert_eq!(known.find(b"dir/x"), Some(4));
            known.insert(format!("{number}").as_bytes(), 0);
        }
        assert_eq!(known.find(b"dir/x"), None);
        assert_eq!((known.openers.len(), known.order.len()), (MOST, MOST));
    }
}
