// SPDX-License-Identifier: Apache-2.0
//! Closing (MPI 5.0 section 14.2.2), and the deletion that goes with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use isthmus_abi::constants as abi;
use isthmus_core::error::{Error, Result};
use isthmus_wire::file::What;

use crate::asking::{Ask, LEAVES};
use crate::file::File;
use crate::group::Last;
use crate::processes::Processes;
use crate::service::Service;

/// A file that all have come to close.
pub struct Closing {
    file: Arc<File>,
    /// What went wrong so far, the same for all.
    outcome: Result<()>,
    /// Not all have come: some are lost, and others may still use the file.
    unmet: bool,
}

impl File {
    /// Begins MPI_File_close; collective. An error means that the file stays open at all processes: one of them has a
    /// split collective operation that has not ended.
    pub fn begin_close(self: &Arc<Self>) -> Result<Closing> {
        self.splits.settle(self.processes.world());
        let (here, ended) = (self.here.clone(), self.splits.have_ended());
        let stays = ended.is_err();
        let mine = ended.and_then(|()| here.flush());
        let (delete, last) = (self.here.clone(), last(self));
        let acts = self.processes.is_deputy();
        let work = move || if acts { delete.delete_if_asked() } else { Ok(()) };
        let kept = Arc::new(AtomicBool::new(false));
        let stays_open = kept.clone();
        let met = Arc::new(AtomicBool::new(false));
        let have_met = met.clone();
        let outcome = self.processes.together(|post, members| {
            Box::pin(async move {
                let come = members.come_to_close(&post, 0, stays, mine, last, work);
                let (stays, outcome) = come.await?;
                have_met.store(true, Ordering::Relaxed);
                stays_open.store(stays, Ordering::Relaxed);
                outcome.map(|()| 0)
            })
        });
        if kept.load(Ordering::Relaxed) {
            return Err(outcome.err().unwrap_or_else(not_ended));
        }
        // Where some are lost the others are closing it all the same.
        let deleted = match acts && last != Last::Nothing {
            true => here.delete_if_asked(),
            false => Ok(()),
        };
        Ok(Closing {
            file: self.clone(),
            outcome: outcome.and(deleted),
            unmet: !met.load(Ordering::Relaxed),
        })
    }
}

/// What is to be done at the end, and when.
fn last(file: &File) -> Last {
    let deletes = file.here.mode().has(abi::MPI_MODE_DELETE_ON_CLOSE) && file.processes.guest().is_none();
    match deletes {
        false => Last::Nothing,
        true if file.processes.are_near_home() => Last::InSite,
        true => Last::Everywhere,
    }
}

fn not_ended() -> Error {
    Error::new(abi::MPI_ERR_OTHER, "a split collective operation has not ended")
}

impl Closing {
    /// Ends it. Whatever it returns the file is closed, and this process does nothing for others any more. Those who
    /// have not come to close it are told so when they ask.
    pub fn end(self, service: Option<isthmus_engine::Request>) -> Result<()> {
        let processes = &self.file.processes;
        let why = self.outcome.as_ref().err().filter(|_| self.unmet);
        let why = why.map(|error| error.class);
        let stopped = service.map_or(Ok(()), |service| Service::stop(processes, service, why));
        if why.is_some() {
            leave(processes);
        }
        let outcome = self.outcome.and(stopped);
        let closed = match processes.guest() {
            Some(guest) => dismiss(&self.file, guest, outcome),
            None => outcome,
        };
        // In any case.
        let here = self.file.here.close();
        closed.and(here)
    }
}

/// Whoever answers questions of this process hears that it asks none any more. A guest hears it in any case.
fn leave(processes: &Processes) {
    let (me, guest) = (processes.rank(), processes.guest());
    let others = processes.asked().into_iter();
    let others: Vec<u32> = others.filter(|&rank| rank != me && Some(rank) != guest).collect();
    // Who is lost does not have to hear it.
    _ = processes.alone(|post| {
        Box::pin(async move {
            for rank in others {
                _ = post.send(rank, LEAVES, Vec::new()).sent().await;
            }
            Ok(0)
        })
    });
}

/// Each tells a guest that it has closed the file, whatever came of that. When all have, the guest closes it, deletes
/// it if that is asked for, and tells the first one how that went.
fn dismiss(file: &Arc<File>, guest: u32, outcome: Result<()>) -> Result<()> {
    let (here, well) = (file.clone(), outcome.is_ok());
    let dismissed = file.processes.together(|post, members| {
        Box::pin(async move {
            let done = match here.processes.is_deputy() {
                true => here.ask(&post, Ask::of(What::Stop, 0)).await.map(drop),
                // If the guest is lost, the first one hears it too.
                false => {
                    let _ = post.send(guest, LEAVES, Vec::new()).sent().await;
                    Ok(())
                }
            };
            match well {
                true => members.agree(&post, 0, done).await.map(|()| 0),
                false => done.map(|()| 0),
            }
        })
    });
    let dismissed = dismissed.map(drop);
    outcome.and(dismissed)
}
