// SPDX-License-Identifier: Apache-2.0
//! The order of sites in which the narrowest link of a ring is as wide as it can be. Long blocks of an allgather go
//! around it ([`allgather`](crate::allgather)).

use crate::routes::{Ways, neighbours};
use isthmus_topology::Link;

/// Members of a ring: with three there is only one.
const MEMBERS: std::ops::RangeInclusive<u32> = 4..=12;
/// Bytes by which links are compared.
const LONG: u64 = 1 << 20;

/// The ways around the best ring of so many members; `None` if they are few or many. `link`: between two of them.
pub(crate) fn ways<'a>(members: u32, link: impl Fn(u32, u32) -> &'a Link) -> Option<Ways> {
    if !MEMBERS.contains(&members) {
        return None;
    }
    Some(Ways::around(&order(members, |a, b| link(a, b).gap.at(LONG))))
}

/// The order in which the slowest link is quickest, and of such the one in which all together are. `gap` is the time of
/// a long message.
fn order(members: u32, gap: impl Fn(u32, u32) -> u64) -> Vec<u32> {
    let length = |order: &[u32]| {
        let next = order.iter().cycle().skip(1);
        let gaps = || order.iter().zip(next.clone()).map(|(&a, &b)| gap(a, b));
        (gaps().max(), gaps().fold(0u64, u64::saturating_add))
    };
    let mut order: Vec<u32> = (0..members).collect();
    let mut best = length(&order);
    loop {
        let tried = neighbours(&order).map(|order| (length(&order), order));
        match tried.min() {
            Some((time, better)) if time < best => (best, order) = (time, better),
            _ => return order,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrow_links_are_left_out() {
        // Four sites in a square whose sides are wide, and whose diagonals are 0-1 and 2-3.
        let gap = |a: u32, b: u32| if a / 2 == b / 2 { 100 } else { 1 };
        let order = order(4, gap);
        let ways = Ways::around(&order);
        for from in 0..4 {
            let path: Vec<u32> = order
                .iter()
                .cycle()
                .skip_while(|&&m| m != from)
                .take(4)
                .copied()
                .collect();
            for step in path.windows(2) {
                assert_eq!(ways.before(from, step[1]), step[0]);
                assert_eq!(gap(step[0], step[1]), 1, "{order:?}");
            }
        }
    }
}
