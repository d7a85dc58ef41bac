// SPDX-License-Identifier: Apache-2.0
//! Numbers of contexts of communicators over several jobs.
//!
//! ```text
//!  2^30 + block * 2^20 … + 2^20 - 1       one of 1024 blocks for each meeting of two groups
//!    first 16                             of the meeting itself: its intercommunicator, the end of its members, files
//!    the rest                             one range per member, in order, equally long
//! ```
//! Every job numbers its own contexts without asking others. Numbers of several jobs are agreed on where the groups
//! meet: a block that no member of either uses. Whatever is made of the new communicator gets its numbers from that
//! block, so no more agreement is needed. A block is free again at a process when all that was made of it is gone.

use std::sync::{Arc, Mutex, PoisonError};

use isthmus_wire::joining::{BLOCKS, Used};

/// First number of the first block.
pub(crate) const FIRST: u32 = 1 << 30;
/// Numbers of a block.
pub(crate) const LENGTH: u32 = 1 << 20;
/// Numbers at the beginning of a block that the meeting has for itself.
pub(crate) const OWN: u32 = 16;

const _: () = assert!(
    BLOCKS as u32 as u64 * LENGTH as u64 == 1 << 30,
    "blocks fill what single jobs leave free"
);

/// Blocks that this process uses.
#[derive(Debug)]
pub(crate) struct Blocks(Mutex<Used>);

impl Default for Blocks {
    fn default() -> Self {
        Self(Mutex::new([0; BLOCKS / 8]))
    }
}

impl Blocks {
    /// Which are in use.
    pub(crate) fn used(&self) -> Used {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, block: u16, used: bool) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(byte) = all.get_mut(usize::from(block) / 8) else {
            return false;
        };
        let bit = 1 << (block % 8);
        let changes = (*byte & bit != 0) != used;
        *byte = if used { *byte | bit } else { *byte & !bit };
        changes
    }
}

/// One that nobody uses, drawn by chance: threads that agree on two at the same time seldom draw the same one.
pub(crate) fn choose(used: &Used, chance: &[u8; 32]) -> Option<u16> {
    let free: Vec<u16> = (0..BLOCKS as u16)
        .filter(|&block| used[usize::from(block) / 8] & 1 << (block % 8) == 0)
        .collect();
    let drawn = u64::from_le_bytes(std::array::from_fn(|at| chance[at]));
    free.get(usize::try_from(drawn % free.len().max(1) as u64).unwrap_or(0))
        .copied()
}

/// The use of a block by this process.
#[derive(Debug)]
pub(crate) struct Block {
    number: u16,
    of: Arc<Blocks>,
}

impl Block {
    /// `None`: it is in use here.
    pub(crate) fn claim(of: &Arc<Blocks>, number: u16) -> Option<Self> {
        of.set(number, true).then(|| Self { number, of: of.clone() })
    }

    /// The first of its numbers.
    pub(crate) fn first(&self) -> u32 {
        FIRST + u32::from(self.number) * LENGTH
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.of.set(self.number, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_used_once_at_a_time() {
        let all = Arc::new(Blocks::default());
        let last = (BLOCKS - 1) as u16;
        let block = Block::claim(&all, last).expect("it is free");
        assert_eq!(block.first() + LENGTH, 1 << 31);
        assert!(Block::claim(&all, last).is_none());
        assert!(Block::claim(&all, BLOCKS as u16).is_none(), "there is none");
        drop(block);
        assert!(Block::claim(&all, last).is_some());
    }

    #[test]
    fn a_free_one_is_drawn() {
        let mut used = [0xff; BLOCKS / 8];
        assert_eq!(choose(&used, &[1; 32]), None);
        used[3] = 0b1110_1111;
        for chance in 0..=255 {
            assert_eq!(choose(&used, &[chance; 32]), Some(28));
        }
    }
}
