// SPDX-License-Identifier: Apache-2.0
//! Data as symbols.

use super::Fault;

/// What stands in one unit of memory.
pub(crate) trait Value: Clone + std::fmt::Debug {
    /// left ∘ right.
    fn combine(left: &Self, right: &Self, commutative: bool) -> Result<Self, Fault>;
}

/// A unit of data: where it comes from and, for reductions, from whom it was combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// Reductions: index of the element. Else: owner and offset.
    pub(crate) unit: u64,
    /// Set of ranks; groups under check have at most 64 members.
    pub(crate) ranks: u64,
    /// Lowest rank, and one above the highest.
    interval: (u32, u32),
    /// Hash of the way it was combined: equal hashes round equally.
    pub(crate) form: u64,
}

impl Token {
    /// An element of a contribution.
    pub(crate) fn element(rank: u32, index: u64) -> Self {
        Self {
            unit: index,
            ranks: 1 << rank,
            interval: (rank, rank + 1),
            form: mix(u64::from(rank) + 1),
        }
    }

    /// An element of the ranks of a set that is 0 to r, combined in the fixed order: split at the greatest power of two
    /// below.
    pub(crate) fn in_order(ranks: u64, index: u64) -> Self {
        fn of(low: u32, high: u32, index: u64) -> Token {
            if high - low == 1 {
                return Token::element(low, index);
            }
            let middle = low + (high - low).next_power_of_two() / 2;
            let (left, right) = (of(low, middle, index), of(middle, high, index));
            Token {
                ranks: left.ranks | right.ranks,
                interval: (low, high),
                form: mix(left.form.rotate_left(7) ^ mix(right.form)),
                ..left
            }
        }
        of(0, 64 - ranks.leading_zeros(), index)
    }

    /// A unit of somebody's data.
    pub(crate) fn unit(rank: u32, offset: u64) -> Self {
        Self {
            unit: (u64::from(rank) << 40) + offset,
            ..Self::element(rank, 0)
        }
    }
}

impl Value for Token {
    fn combine(left: &Self, right: &Self, commutative: bool) -> Result<Self, Fault> {
        if left.unit != right.unit {
            return Err(Fault::new(format!(
                "element {} is combined with element {}",
                left.unit, right.unit
            )));
        }
        if left.ranks & right.ranks != 0 {
            return Err(Fault::new(format!(
                "contributions {:b} and {:b} are not disjoint",
                left.ranks, right.ranks
            )));
        }
        if !commutative && left.interval.1 != right.interval.0 {
            return Err(Fault::new(format!(
                "ranks {:?} ∘ {:?} is out of order",
                left.interval, right.interval
            )));
        }
        Ok(Self {
            unit: left.unit,
            ranks: left.ranks | right.ranks,
            interval: (
                left.interval.0.min(right.interval.0),
                left.interval.1.max(right.interval.1),
            ),
            form: mix(left.form.rotate_left(7) ^ mix(right.form)),
        })
    }
}

/// Counts are added.
impl Value for u64 {
    fn combine(left: &Self, right: &Self, _: bool) -> Result<Self, Fault> {
        let sum = left.checked_add(*right);
        sum.ok_or_else(|| Fault::new("counts overflow"))
    }
}

/// A step of the splitmix64 generator.
pub(crate) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
