// SPDX-License-Identifier: Apache-2.0
//! Inputs made from good ones: bits flipped, lengths made large, pieces cut, doubled and joined.

/// Longest input, bytes.
const MAX_INPUT: usize = 1 << 16;
/// Values at which integers and lengths turn over.
const EDGES: [u64; 8] = [0, 1, 0x7f, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX];

/// A stream of inputs, the same for the same seed and corpus.
pub(crate) struct Mutator {
    random: Random,
    corpus: Vec<Vec<u8>>,
}

impl Mutator {
    pub(crate) fn new(seed: u64, corpus: Vec<Vec<u8>>) -> Self {
        Self {
            random: Random(seed),
            corpus,
        }
    }

    /// The next input: a good one with up to eight changes, or once in 16 pure noise.
    pub(crate) fn next_input(&mut self) -> Vec<u8> {
        if self.corpus.is_empty() || self.random.below(16) == 0 {
            let length = self.random.below(256);
            return (0..length).map(|_| self.random.next() as u8).collect();
        }
        let mut input = self.pick();
        for _ in 0..self.random.below(9) {
            self.change(&mut input);
        }
        input.truncate(MAX_INPUT);
        input
    }

    fn pick(&mut self) -> Vec<u8> {
        let index = self.random.below(self.corpus.len());
        self.corpus[index].clone()
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.random.below(input.len() + 1);
        match self.random.below(7) {
            0 => self.flip_bit(input, at),
            1 => self.overwrite(input, at),
            2 => input.truncate(at),
            3 => drop(input.drain(at..(at + self.random.below(9)).min(input.len()))),
            4 => input.insert(at, self.random.next() as u8),
            5 => input.extend_from_within(at..),
            _ => {
                let other = self.pick();
                let from = self.random.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
        }
    }

    fn flip_bit(&mut self, input: &mut [u8], at: usize) {
        if let Some(byte) = input.get_mut(at) {
            *byte ^= 1 << self.random.below(8);
        }
    }

    /// Writes an edge value of one to eight bytes.
    fn overwrite(&mut self, input: &mut [u8], at: usize) {
        let edge = EDGES[self.random.below(EDGES.len())].to_le_bytes();
        let width = (1 << self.random.below(4)).min(input.len() - at);
        input[at..at + width].copy_from_slice(&edge[..width]);
    }
}

/// splitmix64: small, and good enough to choose changes.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 if `end` is 0.
    fn below(&mut self, end: usize) -> usize {
        if end == 0 {
            0
        } else {
            (self.next() % end as u64) as usize
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_inputs() {
        let inputs = |seed| {
            let mut mutator = Mutator::new(seed, vec![vec![1, 2, 3, 4], b"key = 1".to_vec()]);
            (0..500).map(|_| mutator.next_input()).collect::<Vec<_>>()
        };
        assert_eq!(inputs(7), inputs(7));
        assert_ne!(inputs(7), inputs(8));
    }

    #[test]
    fn an_empty_input_can_be_changed() {
        let mut mutator = Mutator::new(3, vec![Vec::new()]);
        assert!((0..500).all(|_| mutator.next_input().len() <= MAX_INPUT));
    }
}
