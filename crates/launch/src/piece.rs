// SPDX-License-Identifier: Apache-2.0
//! Data of processes on their way to a gateway: how much of it waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Data of processes that wait until nothing else does.
#[derive(Debug)]
pub(crate) struct Piece {
    bytes: Vec<u8>,
    data: usize,
    waiting: Arc<AtomicUsize>,
}

impl Piece {
    /// A message with so many bytes of processes.
    pub(crate) fn new(bytes: Vec<u8>, data: usize, waiting: &Arc<AtomicUsize>) -> Self {
        waiting.fetch_add(data, Ordering::Relaxed);
        Self {
            bytes,
            data,
            waiting: Arc::clone(waiting),
        }
    }

    /// It is about to be written.
    pub(crate) fn take(mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.waiting.fetch_sub(self.data, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc;

    #[test]
    fn what_waits_is_counted_until_it_is_written_or_gone() {
        let waiting = Arc::new(AtomicUsize::new(0));
        let (queue, mut pieces) = mpsc::unbounded_channel();
        for _ in 0..3 {
            queue.send(Piece::new(vec![0; 20], 10, &waiting)).unwrap();
        }
        assert_eq!(waiting.load(Ordering::Relaxed), 30);
        assert_eq!(pieces.try_recv().unwrap().take().len(), 20);
        assert_eq!(waiting.load(Ordering::Relaxed), 20);
        drop(pieces);
        drop(queue);
        assert_eq!(waiting.load(Ordering::Relaxed), 0);
    }
}
