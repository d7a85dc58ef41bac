// SPDX-License-Identifier: Apache-2.0
//! What the kernel knows of a TCP connection.

use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

unsafe extern "C" {
    fn getsockopt(socket: c_int, level: c_int, name: c_int, value: *mut c_void, length: *mut u32) -> c_int;
}

const IPPROTO_TCP: c_int = 6;
const TCP_INFO: c_int = 11;
/// Bytes of `struct tcp_info` that are looked at.
const SIZE: usize = 216;

/// The part that matters here. What an older kernel does not tell is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TcpInfo {
    /// Time since the other end's kernel has acknowledged anything.
    pub(crate) answered: Option<Duration>,
    /// Smoothed round trip of packets, queues included.
    pub(crate) round_trip: Duration,
    /// Shortest one of late.
    pub(crate) shortest: Duration,
    /// Packets that were sent and not acknowledged yet.
    pub(crate) under_way: u32,
    /// Bytes that were given to TCP and not sent yet.
    pub(crate) unsent: u64,
    /// Bytes that TCP sent again.
    pub(crate) resent: u64,
    /// Bytes that have arrived at the other end's kernel.
    pub(crate) acknowledged: u64,
    /// Time in which there was something to send.
    pub(crate) busy: Duration,
    /// The part of it in which the receiver's or our own buffer held it back.
    pub(crate) buffered: Duration,
}

impl TcpInfo {
    /// The other end's kernel has everything that was sent.
    pub(crate) fn is_drained(&self) -> bool {
        self.under_way == 0 && self.unsent == 0
    }
}

/// Bytes between two looks that make a round trip one of a connection at work. Where less passes, most of it is the
/// time for which acknowledgements are held back.
const AT_WORK: u64 = 16 << 10;

/// The round trip of the connection that did most since the last look; `None` where none did much. Each with what it
/// had acknowledged then.
pub(crate) fn at_work(all: impl Iterator<Item = (TcpInfo, u64)>) -> Option<Duration> {
    let done = all.map(|(info, before)| (info.acknowledged.saturating_sub(before), info.round_trip));
    done.filter(|(bytes, _)| *bytes >= AT_WORK).max().map(|(_, trip)| trip)
}

/// Asks the kernel; `None` where it does not tell.
pub(crate) fn tcp_info(socket: &OwnedFd) -> Option<TcpInfo> {
    let mut bytes = [0u8; SIZE];
    let mut length = SIZE as u32;
    // SAFETY: the descriptor is open; the kernel writes at most `length` bytes to `bytes`, and how many to `length`.
    let result = unsafe {
        getsockopt(
            socket.as_raw_fd(),
            IPPROTO_TCP,
            TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return None;
    }
    let u32_at = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let u64_at = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[at..at + 8]);
        u64::from_ne_bytes(word)
    };
    Some(TcpInfo {
        answered: Some(Duration::from_millis(u64::from(u32_at(56)))),
        round_trip: Duration::from_micros(u64::from(u32_at(68))),
        shortest: Duration::from_micros(u64::from(u32_at(148))),
        under_way: u32_at(24),
        unsent: u64::from(u32_at(144)),
        resent: u64_at(208),
        acknowledged: u64_at(120),
        busy: Duration::from_micros(u64_at(168)),
        buffered: Duration::from_micros(u64_at(176).saturating_add(u64_at(184))),
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_connection_that_works_tells_the_round_trip() {
        let info = |acknowledged, milliseconds| TcpInfo {
            acknowledged,
            round_trip: Duration::from_millis(milliseconds),
            ..TcpInfo::default()
        };
        let all = [(info(900_000, 12), 100_000), (info(2_000_000, 50), 1_999_900)];
        assert_eq!(at_work(all.into_iter()), Some(Duration::from_millis(12)));
        assert_eq!(at_work(all.into_iter().skip(1)), None);
    }

    #[test]
    fn a_connection_that_was_used_has_a_round_trip() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut a = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut b = listener.accept().unwrap().0;
        a.write_all(b"x").unwrap();
        b.read_exact(&mut [0]).unwrap();
        let info = tcp_info(&a.into()).unwrap();
        assert!((1..10).contains(&info.acknowledged), "{info:?}");
        assert!(
            info.round_trip < Duration::from_secs(10) && info.resent < 1000,
            "{info:?}"
        );
        assert_eq!(tcp_info(&std::fs::File::open("/dev/null").unwrap().into()), None);
    }
}
