// SPDX-License-Identifier: Apache-2.0
//! What a process wants of a gateway, and a gateway of another.

/// Wish of a process: a stream to the other process.
pub const WISH_STREAM: u8 = 1;
/// Wish of a process: that the other process dials it.
pub const WISH_DIAL: u8 = 0;
/// Wish of a gateway: that the other takes bytes and ends the stream when all are there.
pub const WISH_MEASURE: u8 = 2;
/// Wish of a process: a stream to the other process that makes way for others ([`WISH_STREAM`]).
pub const WISH_BULK: u8 = 3;
/// Wish of a process: to say which keys lead where ([`crate::gate`]).
pub const WISH_LEAD: u8 = 4;

/// Most threads of a gateway that carry.
pub const MAX_THREADS: u8 = 8;
/// Wish of a gateway that dials another, for its first thread.
const WISH_THREAD: u8 = 16;

/// Wish of a gateway: that the connection is carried by this thread of the other, as it is by its own.
pub fn thread_wish(thread: u8) -> u8 {
    WISH_THREAD + thread.min(MAX_THREADS - 1)
}

/// The thread that a gateway wishes to be carried by.
pub fn wished_thread(wish: u8) -> Option<u8> {
    wish.checked_sub(WISH_THREAD).filter(|thread| *thread < MAX_THREADS)
}

/// Whether bytes of a process are to be carried.
pub fn is_stream(wish: u8) -> bool {
    matches!(wish, WISH_STREAM | WISH_BULK)
}

/// Answer to a wish: it is fulfilled as far as the gateways can do that.
pub const READY: u8 = 1;
/// Answer to a wish: it cannot be fulfilled.
pub const NO_WAY: u8 = 0;
