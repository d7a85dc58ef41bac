// SPDX-License-Identifier: Apache-2.0
//! Closing (MPI 5.0 section 14.2.2), and the deletion that goes with it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_wire::file::What;

use crate::file::{File, node_of};

impl File {
    /// Whether it can be closed: nothing that the program has begun is still to be ended.
    pub fn closable(&self) -> Result<()> {
        match &*self.split.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(active) => fail!(
                abi::MPI_ERR_OTHER,
                "the split collective operation {} has not ended; end it before the file is closed",
                active.name
            ),
            None => Ok(()),
        }
    }

    /// MPI_File_close; collective. Whatever it returns the file is closed, and this process serves nobody any more.
    pub fn close(self: &Arc<Self>, service: Option<isthmus_engine::Request>) -> Result<()> {
        let closed = match self.mode.has(abi::MPI_MODE_DELETE_ON_CLOSE) && self.guest().is_none() {
            true => delete_together(self),
            false => self.meet(),
        };
        let stopped = service.map_or(Ok(()), |service| self.stop_service(service));
        closed.and(stopped)?;
        self.guest().map_or(Ok(()), |guest| dismiss(self, guest))
    }
}

/// All have closed it, and one deletes it.
fn delete_together(file: &Arc<File>) -> Result<()> {
    let (here, tried) = (file.clone(), Arc::new(AtomicBool::new(file.rank() != file.deputy())));
    let delete = move || match tried.swap(true, Ordering::Relaxed) {
        true => Ok(()),
        false => here.delete_if_asked(),
    };
    let (last, early) = (delete.clone(), is_near_home(file));
    let done = file.together(|port, members| {
        Box::pin(async move { members.agree_at_last(&port, 0, early, delete).await.map(|()| 0) })
    });
    // Where some are lost the others are closing it all the same.
    let deleted = last();
    done.and(deleted)
}

/// Whether all who use the file by themselves are on the node of the first process of its site. To them it is there
/// when its name is gone: their system knows that they have it open.
fn is_near_home(file: &File) -> bool {
    let home = file.home();
    let mut near = (0..file.size).filter(|rank| file.reach[*rank as usize]);
    file.sites.all()[file.sites.of(home)].first() == Some(&home)
        && near.all(|rank| node_of(file, rank) == node_of(file, home))
}

/// Tells a guest that all have closed the file; it deletes the file, if that is asked for.
fn dismiss(file: &Arc<File>, guest: u32) -> Result<()> {
    let here = file.clone();
    file.together(|port, members| {
        Box::pin(async move {
            let done = match here.rank() == here.deputy() {
                false => Ok(()),
                true => {
                    let asked = here.ask(&port, guest, What::Stop, 0, &[], 0);
                    here.answer(asked, 0).await.map(drop)
                }
            };
            members.agree(&port, 0, done).await?;
            Ok(0)
        })
    })
    .map(drop)
}
