// SPDX-License-Identifier: Apache-2.0
//! Packets of connections between sites leave at the pace of the link, and the pace is remembered.
//!
//! A message that begins after a pause finds the window of the last one open. Without pacing TCP sends all of it at the
//! speed of the local network; a router whose queue holds one bandwidth-delay product drops a part of that, and the
//! rate goes down for seconds (measured with 16 MiB at 100 Mbit/s and 75 ms, cubic: 1.46 to 1.91 s; with pacing 1.46 to
//! 1.48 s). A limit that nobody reaches makes Linux pace at somewhat more than window by round trip, whatever the
//! congestion control.
//!
//! What a connection has found out about its link is what messages after a pause begin with, if it is not forgotten:
//! cubic takes back its window after an idle time of a few round trips, and after single lost packets. BBR keeps its
//! estimate of the rate and does not take a loss for a full queue. It is asked for where the system has it and lets
//! everybody use it (16 MiB to two sites, 75 ms: the first time 1.16 s, with cubic 2.1 to 2.5 s; then alike).

use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::net::sockopt;

use crate::tcpinfo::tcp_info;

unsafe extern "C" {
    fn setsockopt(socket: c_int, level: c_int, name: c_int, value: *const c_void, length: u32) -> c_int;
}

/// Slower than this nobody is made.
const LEAST: u64 = 1000;
/// A terabyte per second; kernels before 4.20 read the lower half: 4 GB/s.
const LIMIT: u64 = (1 << 40) | 0xffff_fffe;

/// Paces what the socket sends, at no more than so many bytes per second; false where the kernel cannot.
pub(crate) fn pace(socket: &OwnedFd, limit: Option<f64>) -> bool {
    let rate = limit.map_or(LIMIT, |limit| (limit as u64).max(LEAST));
    // SOL_SOCKET and SO_MAX_PACING_RATE; a few architectures have numbers of their own.
    let (level, name) = match cfg!(any(target_arch = "mips", target_arch = "sparc64")) {
        true => return false,
        false => (1, 47),
    };
    // SAFETY: the descriptor is open; the value is eight bytes that are read during the call.
    let result = unsafe {
        setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const rate).cast(),
            size_of::<u64>() as u32,
        )
    };
    result == 0
}

/// Bytes that a connection sends before it is paced and asks for BBR: more than [`probe`](crate::reactor) sends for
/// measuring. The meter takes the gaps between arrivals for the pace of the link; a connection that is paced from its
/// begin sends, as long as its window is smaller than the link could take, at a pace of its own (measured so: 34 to 74
/// Mbit/s for 100).
pub(crate) const MEASURING: u64 = 2 << 20;

/// Round trips shorter than this are of a local network, whoever calls its machines different sites. What a pause or a
/// loss costs there is soon made up for; a timer for each few packets is not (64 MiB between two namespaces of a
/// virtual machine whose control is BBR, in turns, medians of 6 to 10: plain 1.8 GB/s, without BBR 3.3; with TLS 1.3,
/// without BBR and pacing 1.6).
const NEAR: Duration = Duration::from_micros(500);

/// Whether the connection is so short that it needs no pacing. Then it has no congestion control either that paces by
/// itself, as far as the system lets us choose.
pub(crate) fn spare_the_near(socket: &OwnedFd) -> bool {
    let near = is_near(tcp_info(socket).map(|info| info.shortest).unwrap_or_default());
    let paced = || sockopt::tcp_congestion(socket).is_ok_and(|name| name.starts_with("bbr"));
    if near && paced() {
        // Cubic is what most systems have; everybody may ask for Reno.
        let _ = sockopt::set_tcp_congestion(socket, "cubic").or_else(|_| sockopt::set_tcp_congestion(socket, "reno"));
    }
    near
}

/// Zero is a round trip that is not known.
fn is_near(shortest: Duration) -> bool {
    !shortest.is_zero() && shortest < NEAR
}

/// Asks for the congestion control that suits long fat links; false where it is not to be had.
pub(crate) fn control(socket: &OwnedFd) -> bool {
    sockopt::set_tcp_congestion(socket, "bbr").is_ok()
}

/// After so long BBR may begin anew at a moment without traffic. It does not look for the shortest round trip by itself
/// before ten seconds have passed.
const REST: Duration = Duration::from_secs(4);

/// Whether BBR, which began so long ago, should begin anew, now that nothing is under way. Every ten seconds it lets
/// next to nothing be under way for 200 ms and a round trip, to see the shortest one: in the middle of a message if one
/// happens to be sent then (measured with reductions of 16 MiB, 100 Mbit/s, 75 ms, one a second: one of six took 1030
/// to 1110 ms and not 815). Who is paced at a rate that is known loses nothing by beginning anew.
pub(crate) fn is_stale(since: Duration) -> bool {
    since >= REST
}

/// Makes BBR look for the rate as at the begin of a connection: doubling it each round trip. Afterwards it tries no
/// more than a quarter more, every eight of them, so a connection that was paced too slowly at its begin would need
/// seconds. Another control for a moment makes Linux begin anew.
pub(crate) fn look_anew(socket: &OwnedFd) {
    let _ = sockopt::set_tcp_congestion(socket, "reno");
    control(socket);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_near_are_spared_and_the_far_and_unknown_are_not() {
        let near = [0, 1, 499_999, 500_000, 20_000_000].map(|n| is_near(Duration::from_nanos(n)));
        assert_eq!(near, [false, true, true, false, false]);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let socket: OwnedFd = std::net::TcpStream::connect(listener.local_addr().unwrap())
            .unwrap()
            .into();
        let trip = tcp_info(&socket).unwrap().shortest;
        // Asked for where it is to be had.
        control(&socket);
        if spare_the_near(&socket) {
            assert!(trip < NEAR, "{trip:?}");
            assert_ne!(sockopt::tcp_congestion(&socket).unwrap(), "bbr");
        }
        assert!(!spare_the_near(&listener.into()), "it has no round trip");
    }

    #[test]
    fn tcp_sockets_can_be_paced_and_files_cannot() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(pace(&listener.into(), Some(1e6)));
        assert!(!pace(&std::fs::File::open("/dev/null").unwrap().into(), None));
    }
}
