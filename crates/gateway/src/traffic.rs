// SPDX-License-Identifier: Apache-2.0
//! What one thread carries to one area. Other threads look at it when they choose one for a stream, and when they
//! report.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Counters; none of them orders anything else.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    sent: AtomicU64,
    received: AtomicU64,
    streams: AtomicUsize,
    connections: AtomicUsize,
}

impl Traffic {
    /// So many bytes have gone out.
    pub(crate) fn sends(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// So many bytes have come in.
    pub(crate) fn receives(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes out and in, since the beginning.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        (self.sent.load(Ordering::Relaxed), self.received.load(Ordering::Relaxed))
    }

    /// One more stream.
    pub(crate) fn begins(&self) {
        self.streams.fetch_add(1, Ordering::Relaxed);
    }

    /// So many streams are over.
    pub(crate) fn ends(&self, streams: usize) {
        self.streams.fetch_sub(streams, Ordering::Relaxed);
    }

    /// Streams now.
    pub(crate) fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }

    /// One more connection to the other gateway, or one less.
    pub(crate) fn connects(&self, more: bool) {
        if more {
            self.connections.fetch_add(1, Ordering::Relaxed);
        } else {
            self.connections.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Connections to the other gateway now.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}
