// SPDX-License-Identifier: Apache-2.0
//! What a connection of the wide area that is new or has been idle costs longer messages: TCP lets few packets pass
//! before the first of them is acknowledged, and twice as many in each round trip after it (RFC 6928, RFC 5681).
//! Several leaders of a site have a first window each.

use super::{Council, Phase};
use isthmus_topology::{Level, Link};

/// Bytes before the first acknowledgement: ten packets.
const FIRST: u64 = 10 * 1448;
/// Bytes of messages from which on connections are taken for open: what has carried so much goes by the rate that it
/// has found, after idle times too.
pub(crate) const OPEN: u64 = 2 << 20;

/// Nanoseconds for which a link stands idle while so many bytes open the window of their connection.
fn waiting(link: &Link, bytes: u64) -> u64 {
    let round = link.latency.saturating_mul(2);
    let (mut left, mut window, mut time) = (bytes, FIRST, 0u64);
    while left > window {
        let busy = link.gap.at(window);
        if busy >= round {
            break;
        }
        time = time.saturating_add(round - busy);
        left -= window;
        window = window.saturating_mul(2);
    }
    time
}

impl Council<'_> {
    /// For [`Phase`]: so many bytes on each connection, on so many connections one after the other.
    pub(super) fn carried(&self, bytes: u64, times: u64) -> (u64, u64) {
        match self.level() {
            Level::WideArea => (bytes, times),
            _ => (0, 0),
        }
    }

    /// Nanoseconds that opening windows add to a message that goes through these phases in so many pieces on each
    /// connection.
    pub(crate) fn opening(&self, phases: &[Phase], pieces: u64) -> u64 {
        let longest = |bytes: u64| {
            let times = self.some_pairs().map(|(a, b)| waiting(self.link(a, b), bytes));
            times.max().unwrap_or(0)
        };
        let of_phase = |phase: &Phase| match phase.carried {
            (0, _) => 0,
            (bytes, times) => longest(bytes.saturating_mul(pieces)).saturating_mul(times),
        };
        phases.iter().map(of_phase).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_for_each_window_that_the_link_outlasts() {
        // 10 ms, a megabyte in a second.
        let link = Link::simple(10_000_000, 1_000_000, 0);
        assert_eq!(waiting(&link, FIRST), 0);
        assert_eq!(waiting(&link, FIRST + 1), 20_000_000 - 14_480_000);
        // The second window takes longer than a round trip.
        assert_eq!(waiting(&link, 1 << 20), 20_000_000 - 14_480_000);
        let fast = Link::simple(10_000_000, 1_000_000_000_000, 0);
        assert_eq!(waiting(&fast, 1 << 20) / 1_000_000, 6 * 20 - 1);
    }
}
