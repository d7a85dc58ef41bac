// SPDX-License-Identifier: Apache-2.0
//! Closing (MPI 5.0 section 14.2.2), and the deletion that goes with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_wire::file::What;

use crate::asking::Ask;
use crate::file::File;
use crate::service::Service;

impl File {
    /// MPI_File_close; collective. Whatever it returns the file is closed, and this process serves nobody any more.
    pub fn close(self: &Arc<Self>, service: Option<isthmus_engine::Request>) -> Result<()> {
        let processes = &self.processes;
        let deletes = self.here.mode().has(abi::MPI_MODE_DELETE_ON_CLOSE);
        let closed = match deletes && processes.guest().is_none() {
            true => delete_together(self),
            false => processes.meet(),
        };
        let stopped = service.map_or(Ok(()), |service| Service::stop(processes, service));
        closed.and(stopped)?;
        match processes.guest() {
            Some(_) => dismiss(self),
            None => Ok(()),
        }
    }
}

/// All have closed it, and one deletes it.
fn delete_together(file: &Arc<File>) -> Result<()> {
    let (here, processes) = (file.here.clone(), &file.processes);
    let tried = Arc::new(AtomicBool::new(!processes.is_deputy()));
    let delete = move || match tried.swap(true, Ordering::Relaxed) {
        true => Ok(()),
        false => here.delete_if_asked(),
    };
    let (last, early) = (delete.clone(), processes.are_near_home());
    let done = processes.together(|port, members| {
        Box::pin(async move { members.agree_at_last(&port, 0, early, delete).await.map(|()| 0) })
    });
    // Where some are lost the others are closing it all the same.
    let deleted = last();
    done.and(deleted)
}

/// Tells a guest that all have closed the file; it deletes the file, if that is asked for.
fn dismiss(file: &Arc<File>) -> Result<()> {
    let here = file.clone();
    file.processes
        .together(|port, members| {
            Box::pin(async move {
                let done = match here.processes.is_deputy() {
                    false => Ok(()),
                    true => here.ask(&port, Ask::of(What::Stop, 0)).await.map(drop),
                };
                members.agree(&port, 0, done).await?;
                Ok(0)
            })
        })
        .map(drop)
}
