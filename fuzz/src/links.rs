// SPDX-License-Identifier: Apache-2.0
//! Targets of links and trunks.

use std::time::Instant;

/// What may happen while a connection is measured.
pub(crate) fn gauge(bytes: &[u8]) {
    isthmus_link::fuzz::gauge(bytes, Instant::now());
}

/// What may happen to the machines of links: any bytes are as good as these.
pub(crate) fn happenings() -> Vec<Vec<u8>> {
    (0..4)
        .map(|first| (first..=255).step_by(1 + usize::from(first)).collect())
        .collect()
}

/// Handshakes of each kind that come to their end: both read in turn, and seal where there is TLS.
pub(crate) fn handshakes() -> Vec<Vec<u8>> {
    let turns = [0, 255, 0, 254, 2, 0, 2, 1].repeat(8);
    (0..128).map(|how| [&[how], &turns[..]].concat()).collect()
}

/// What the other end would say: a question, a wish for a thread, a stream of its own, data on it, its end, an answer.
pub(crate) fn trunks() -> Vec<Vec<u8>> {
    let (mut trunk, mut events) = (isthmus_link::trunk::Trunk::new(false), Vec::new());
    trunk.ping(7);
    trunk.want(1);
    let asked = trunk.open(1, 0, 1).map(|_| trunk.output(1 << 16, &mut events));
    let data = [
        4, 2, 0, 0, 0, 3, 0, 0, 1, 2, 3, 6, 2, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0,
    ]
    .to_vec();
    vec![[asked.unwrap_or_default(), data].concat()]
}

/// Records of TLS.
pub(crate) fn records(bytes: &[u8]) {
    isthmus_net::fuzz_records(bytes);
}

/// Kind, length and content of each record.
pub(crate) fn record_lists() -> Vec<Vec<u8>> {
    let (alert, handshake, data) = (21, 22, 23);
    vec![
        vec![data, 3, 1, 2, 3, data, 0, data, 1, 9],
        vec![handshake, 5, 24, 0, 0, 1, 1, data, 2, 4, 5],
        vec![0, 6, 1, 2, data, 0, 0, 0, data, 1, 7],
        vec![data, 1, 8, alert, 2, 1, 0],
    ]
}
