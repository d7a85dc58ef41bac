// SPDX-License-Identifier: Apache-2.0
//! What accesses in atomic mode pass: the gate of this process, and the system's lock of the file.

use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use rustix::fs::{FlockOperation, flock};

use crate::disk::Own;
use crate::plain::again;
use crate::task::Post;

/// What the accesses of this process pass one by one, in the order in which they come.
#[derive(Default)]
pub(crate) struct Gate(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    is_held: bool,
    next: u64,
    waiting: VecDeque<(u64, Post)>,
}

/// A place in the queue.
struct Turn<'a> {
    gate: &'a Gate,
    number: u64,
}

impl Gate {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn come(&self, post: &Post) -> Turn<'_> {
        let mut queue = self.queue();
        let number = queue.next;
        queue.next += 1;
        queue.waiting.push_back((number, post.clone()));
        Turn { gate: self, number }
    }

    /// Returns when it is this access's turn.
    pub(crate) async fn enter(&self, post: &Post) {
        let turn = self.come(post);
        std::future::poll_fn(|_| {
            let mut queue = turn.gate.queue();
            let is_first = queue.waiting.front().is_some_and(|first| first.0 == turn.number);
            if queue.is_held || !is_first {
                return Poll::Pending;
            }
            queue.waiting.pop_front();
            queue.is_held = true;
            Poll::Ready(())
        })
        .await;
    }

    /// The access has ended.
    pub(crate) fn leave(&self) {
        self.queue().is_held = false;
        self.call_first();
    }

    /// Tells who is first that it may be its turn.
    fn call_first(&self) {
        let first = self.queue().waiting.front().map(|first| first.1.clone());
        if let Some(post) = first {
            post.nudge();
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut queue = self.gate.queue();
        let before = queue.waiting.len();
        queue.waiting.retain(|(number, _)| *number != self.number);
        let left = queue.waiting.len() < before;
        drop(queue);
        if left {
            // It did not wait for its turn.
            self.gate.call_first();
        }
    }
}

/// Locks the file, or gives the lock back.
pub(crate) fn locked(disk: &Own, operation: FlockOperation) -> io::Result<()> {
    again(|| Ok(flock(&**disk, operation)?))
}

/// Whether the file system has locks.
pub(crate) fn can_lock(disk: &Own) -> io::Result<()> {
    match locked(disk, FlockOperation::NonBlockingLockShared) {
        Ok(()) => locked(disk, FlockOperation::Unlock),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error),
    }
}
