// SPDX-License-Identifier: Apache-2.0
//! **Allgather among leaders in rounds: in each, what a member has doubles.**
//!
//! In the round of distance d, each member sends the blocks that it has, its own and those of the d − 1 members after
//! it, to the member d before it. Blocks stand at their places from the start, so that nothing is moved at the end;
//! where they go around the end of the row they are two messages.
//!
//! | | |
//! |---|---|
//! | messages | k ⌈log2 k⌉, and d − 1 more in the round of distance d |
//! | trips | ⌈log2 k⌉ |
//! | bytes | each sends and receives every block but one once: the minimum |
//! | restrictions | results of at most 128 KiB: longer blocks had better not wait for each other |
//! | paper | Bruck, Ho, Kipnis, Upfal, Weathersby: Efficient algorithms for all-to-all communications in multiport message-passing systems, 1997 |

use crate::script::{Kind, Piece, Script};
use crate::step::Slice;
use crate::tree::Council;
use std::ops::Range;

/// Bytes of results up to which messages cost more than what is in them.
pub(super) const MOST: u64 = 128 << 10;

/// `at` gives the blocks of members, which are consecutive.
pub(super) fn exchange(script: &mut Script, council: &Council, at: impl Fn(Range<u32>) -> Slice) {
    let (me, k) = (council.index, council.size);
    for (round, (distance, count)) in rounds(k).enumerate() {
        let slot = |part: usize| Piece::numbered(2 * round as u64 + part as u64).slot(Kind::Exchange);
        let (to, from) = ((me + k - distance) % k, (me + distance) % k);
        for (part, members) in around(me, count, k).enumerate() {
            script.send(council.rank(to), at(members), slot(part));
        }
        for (part, members) in around(from, count, k).enumerate() {
            script.receive(council.rank(from), at(members), slot(part));
        }
    }
}

/// Distance and number of blocks of each round.
fn rounds(k: u32) -> impl Iterator<Item = (u32, u32)> {
    std::iter::successors(Some(1u32), |d| d.checked_mul(2))
        .take_while(move |&d| d < k)
        .map(move |d| (d, d.min(k - d)))
}

/// So many members from one on, in one or two ranges.
fn around(first: u32, count: u32, k: u32) -> impl Iterator<Item = Range<u32>> {
    let over = (first + count).saturating_sub(k);
    [first..first + count - over, 0..over]
        .into_iter()
        .filter(|part| !part.is_empty())
}

/// Messages among so many members.
pub(super) fn messages(members: u64) -> u64 {
    let k = u32::try_from(members).unwrap_or(u32::MAX);
    rounds(k).map(|(_, count)| members + u64::from(count) - 1).sum()
}
