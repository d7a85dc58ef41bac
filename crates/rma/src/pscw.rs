// SPDX-License-Identifier: Apache-2.0
//! Post, start, complete, wait (MPI 5.0 section 12.5.2): each tells its partners in a short message.
//!
//! Start does not wait for posts; the first operation on a process does, and complete for those of all. Complete does
//! not wait for operations on other nodes either: it says how many bytes of them the target was sent, and wait waits
//! until so many are done.

use isthmus_abi::constants as abi;
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_core::group::Group;
use isthmus_datatype::raw::OwnMemory;
use isthmus_engine::{Completion, Engine, Mode, ReceiveBuffer, SendBuffer};

use crate::asserts::{POST, START, check_assert};
use crate::far;
use crate::partners::Word;
use crate::window::{Window, locked};

/// A process may be accessed.
const POSTED: i32 = 1;
/// Nobody who says so accesses it any more.
const COMPLETED: i32 = 2;

fn done(completion: &Completion) -> Result<()> {
    completion
        .error
        .as_ref()
        .map_or(Ok(()), |error| Err(Error::from(error)))
}

/// Ranks of a group's members in the window.
fn ranks(window: &Window, group: &Group) -> Result<Vec<u32>> {
    let all = window.comm.group();
    let found: Vec<_> = group.members().iter().filter_map(|&peer| all.rank_of(peer)).collect();
    if found.len() != group.size() {
        fail!(
            abi::MPI_ERR_GROUP,
            argument("group"),
            "has {} processes that are not of the window",
            group.size() - found.len()
        );
    }
    Ok(found)
}

/// Tells processes something, each with a number.
fn tell(window: &Window, ranks: &[u32], what: i32, number: &dyn Fn(u32) -> u64) {
    let mut engine = window.world.engine().lock();
    for &rank in ranks {
        let number = SendBuffer::owned(number(rank).to_le_bytes().into());
        let sent = engine.isend(window.comm.channel(), rank, what, Mode::Standard, number);
        // What becomes of it whoever waits for it learns.
        engine.release(sent);
    }
}

fn expect(window: &Window, rank: u32, what: i32) -> Word {
    let number = OwnMemory::new(0, 8);
    let buffer = ReceiveBuffer::contiguous(number.memory(), 0, 8);
    let mut engine = window.world.engine().lock();
    let request = engine.irecv(window.comm.channel(), Some(rank), Some(what), buffer);
    Word { rank, request, number }
}

/// The bytes of operations that a process says it has sent.
fn told(word: &Word) -> u64 {
    let number = word.number.content();
    number.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Before an operation: waits until the process may be accessed, if that was asked for.
pub(crate) fn await_post(window: &Window, rank: u32) -> Result<()> {
    loop {
        let word = {
            let mut posts = locked(&window.seldom.partners.posts);
            let at = posts.iter().position(|word| word.rank == rank);
            at.map(|at| posts.swap_remove(at))
        };
        // One process may be in the group only once, so this is done once.
        let Some(word) = word else { return Ok(()) };
        // Its memory must live until it has come: a machine's own MPI writes there.
        window.world.wait(word.request)?;
    }
}

impl Window {
    /// MPI_Win_post.
    pub fn post(&self, group: &Group, assert: i32) -> Result<()> {
        check_assert(assert, POST, "MPI_MODE_NOCHECK, MPI_MODE_NOSTORE and MPI_MODE_NOPUT")?;
        let ranks = ranks(self, group)?;
        self.epochs.lock().post()?;
        let expected = ranks.iter().map(|&rank| expect(self, rank, COMPLETED)).collect();
        *locked(&self.seldom.partners.completions) = expected;
        self.sync();
        tell(self, &ranks, POSTED, &|_| 0);
        Ok(())
    }

    /// MPI_Win_start.
    pub fn start(&self, group: &Group, assert: i32) -> Result<()> {
        check_assert(assert, START, "MPI_MODE_NOCHECK")?;
        let ranks = ranks(self, group)?;
        self.epochs.lock().start(ranks.clone())?;
        let expected = ranks.into_iter().map(|rank| expect(self, rank, POSTED));
        *locked(&self.seldom.partners.posts) = expected.collect();
        Ok(())
    }

    /// MPI_Win_complete.
    pub fn complete(&self) -> Result<()> {
        let ranks = self.epochs.lock().complete()?;
        let posts = std::mem::take(&mut *locked(&self.seldom.partners.posts));
        let mut result = Ok(());
        for word in posts {
            let ended = self.world.wait(word.request).map(drop);
            result = result.and(ended);
        }
        self.sync();
        let completed = far::complete(self, &ranks, |sent| tell(self, &ranks, COMPLETED, sent));
        result.and(completed)
    }

    /// MPI_Win_wait.
    pub fn wait(&self) -> Result<()> {
        self.epochs.lock().check_exposed()?;
        let expected = std::mem::take(&mut *locked(&self.seldom.partners.completions));
        let mut result = Ok(());
        for word in expected {
            let ended = self.world.wait(word.request).map(|_| {
                let bytes = told(&word);
                let done = |engine: &mut Engine| far::has_done_of(self, engine, word.rank, bytes).then_some(());
                self.world.engine().wait(done);
            });
            result = result.and(ended);
        }
        self.epochs.lock().hide();
        self.sync();
        result
    }

    /// MPI_Win_test: whether the exposure has ended.
    pub fn test(&self) -> Result<bool> {
        self.epochs.lock().check_exposed()?;
        let mut expected = locked(&self.seldom.partners.completions);
        let mut result = Ok(());
        {
            let mut engine = self.world.engine().lock();
            engine.progress();
            expected.retain_mut(|word| match engine.core.test(word.request) {
                None => true,
                Some(completion) if completion.error.is_none() => {
                    let over = far::has_done_of(self, &mut engine, word.rank, told(word));
                    if over {
                        engine.core.take(word.request);
                    }
                    !over
                }
                Some(completion) => {
                    result = done(completion);
                    engine.core.take(word.request);
                    false
                }
            });
        }
        let over = expected.is_empty();
        drop(expected);
        if over {
            self.epochs.lock().hide();
            self.sync();
        } else {
            self.world.engine().idle();
        }
        result.map(|()| over)
    }
}
