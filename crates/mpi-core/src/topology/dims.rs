// SPDX-License-Identifier: Apache-2.0
//! MPI_Dims_create: a number as a product of factors that are as close to each other as possible.

use isthmus_abi::constants as abi;

use crate::error::Result;
use crate::fail;

/// Fills in the zeros of `dims` such that the product of all is `nodes`; what it fills in does not increase.
pub fn balance(nodes: i32, dims: &mut [i32]) -> Result<()> {
    if nodes <= 0 {
        fail!(abi::MPI_ERR_ARG, argument("nnodes"), "is {nodes}, expected at least 1");
    }
    if let Some((at, bad)) = dims.iter().enumerate().find(|(_, d)| **d < 0) {
        fail!(
            abi::MPI_ERR_DIMS,
            argument(format!("dims[{at}]")),
            "is {bad}, expected 0 or more"
        );
    }
    let fixed = dims.iter().filter(|d| **d > 0).try_fold(1i32, |p, &d| p.checked_mul(d));
    let free = dims.iter().filter(|d| **d == 0).count();
    let Some(rest) = fixed
        .filter(|f| nodes % f == 0 && (free > 0 || *f == nodes))
        .map(|f| nodes / f)
    else {
        fail!(
            abi::MPI_ERR_DIMS,
            argument("nnodes"),
            "is {nodes}, but the dimensions that are given, {dims:?}, do not divide it evenly"
        )
    };
    let best = Search::best(rest, free);
    for (dim, factor) in dims.iter_mut().filter(|d| **d == 0).zip(best) {
        *dim = factor;
    }
    Ok(())
}

/// Looks for the factors whose largest and smallest are closest; among equals for those with the largest smallest one,
/// second smallest one, and so on.
struct Search {
    divisors: Vec<i32>,
    chosen: Vec<i32>,
    best: Option<Vec<i32>>,
}

impl Search {
    fn best(number: i32, parts: usize) -> Vec<i32> {
        let mut search = Self {
            divisors: divisors(number),
            chosen: Vec::with_capacity(parts),
            best: None,
        };
        search.fill(number, parts, number);
        search.best.unwrap_or_default()
    }

    /// Chooses `parts` more factors of `rest`, none above `limit`.
    fn fill(&mut self, rest: i32, parts: usize, limit: i32) {
        if parts == 0 {
            if rest == 1 && self.better() {
                self.best = Some(self.chosen.clone());
            }
            return;
        }
        let divisors: Vec<i32> = self
            .divisors
            .iter()
            .copied()
            .filter(|&d| d <= limit && rest % d == 0)
            .collect();
        // The largest factor is at least the root, and the closest ones are near it: good answers come first.
        for factor in divisors {
            if !reaches(factor, parts, rest) {
                continue;
            }
            if self.hopeless(factor, rest, parts) {
                break;
            }
            self.chosen.push(factor);
            self.fill(rest / factor, parts - 1, factor);
            self.chosen.pop();
        }
    }

    fn spread(chosen: &[i32]) -> i32 {
        let (first, last) = (chosen.first(), chosen.last());
        first.copied().unwrap_or(1) - last.copied().unwrap_or(1)
    }

    fn better(&self) -> bool {
        let Some(best) = &self.best else { return true };
        let order = Self::spread(&self.chosen).cmp(&Self::spread(best));
        order
            .then_with(|| best.iter().rev().cmp(self.chosen.iter().rev()))
            .is_lt()
    }

    /// With this factor, and larger ones, next: can nothing better than the best come of it? The smallest of the
    /// remaining factors is at most their root.
    fn hopeless(&self, factor: i32, rest: i32, parts: usize) -> bool {
        let Some(best) = &self.best else { return false };
        let first = self.chosen.first().copied().unwrap_or(factor);
        let smallest = f64::from(rest).powf(1.0 / parts as f64).floor() as i32 + 1;
        self.chosen.is_empty() && first - smallest > Self::spread(best)
    }
}

/// Is `rest` at most `factor` to the power of `parts`?
fn reaches(factor: i32, parts: usize, rest: i32) -> bool {
    let mut power = 1i64;
    for _ in 0..parts {
        power *= i64::from(factor);
        if power >= i64::from(rest) {
            return true;
        }
        if factor == 1 {
            return false;
        }
    }
    false
}

/// All divisors, smallest first.
fn divisors(number: i32) -> Vec<i32> {
    let mut small: Vec<i32> = (1..)
        .take_while(|d| i64::from(*d) * i64::from(*d) <= i64::from(number))
        .filter(|d| number % d == 0)
        .collect();
    let large: Vec<i32> = small
        .iter()
        .rev()
        .map(|d| number / d)
        .filter(|d| *d != small[small.len() - 1])
        .collect();
    small.extend(large);
    small
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims(nodes: i32, mut given: Vec<i32>) -> Vec<i32> {
        balance(nodes, &mut given).unwrap();
        given
    }

    #[test]
    fn factors_are_close_and_do_not_increase() {
        assert_eq!(dims(6, vec![0, 0]), [3, 2]);
        assert_eq!(dims(7, vec![0, 0]), [7, 1]);
        assert_eq!(dims(6, vec![0, 3, 0]), [2, 3, 1]);
        assert_eq!(dims(16, vec![0; 3]), [4, 2, 2]);
        assert_eq!(dims(12, vec![0; 2]), [4, 3]);
        assert_eq!(dims(36, vec![0; 3]), [4, 3, 3]);
        assert_eq!(dims(60, vec![0; 3]), [5, 4, 3]);
        assert_eq!(dims(1, vec![0; 4]), [1; 4]);
        assert_eq!(dims(1 << 30, vec![0; 10]), [8; 10]);
        assert_eq!(
            dims(2 * 3 * 5 * 7 * 11 * 13 * 17 * 19, vec![0; 3])
                .iter()
                .product::<i32>(),
            9_699_690
        );
        assert_eq!(dims(i32::MAX, vec![0; 2]), [i32::MAX, 1]);
    }

    #[test]
    fn what_cannot_be_filled_in_is_named() {
        for (nodes, mut given) in [
            (7, vec![2, 0]),
            (6, vec![2, 2]),
            (6, vec![-1, 0]),
            (-1, vec![0]),
            (0, vec![0]),
        ] {
            assert!(balance(nodes, &mut given).is_err(), "{nodes} {given:?}");
        }
    }
}
