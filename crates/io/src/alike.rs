// SPDX-License-Identifier: Apache-2.0
//! Whether a name that this process opens is that of the opener, which alone may see what it leads to.

use isthmus_core::comm::Comm;
use isthmus_engine::Peer;

/// Whether the opener, if it is one of those who say something, says this name.
pub(crate) struct Alike {
    name: bool,
    last_part: bool,
}

impl Alike {
    /// `said`: by rank, what each has said; `mine`: what this process has.
    pub(crate) fn new(said: &[Vec<u8>], comm: &Comm, opener: Option<Peer>, mine: [u64; 7]) -> Self {
        let rank = comm.group().members().iter().position(|member| Some(*member) == opener);
        let theirs = rank.and_then(|rank| said.get(rank));
        let word = |at: usize| theirs.map(|said| crate::group::word(said.get(8 * at..).unwrap_or_default()));
        let is_same = |at: usize| word(at).is_none_or(|word| word == mine[at]);
        Self {
            name: is_same(4),
            last_part: is_same(6),
        }
    }

    /// Whether a file that is not proven to be the same is known to be another one.
    pub(crate) fn tells(&self, is_near: bool) -> bool {
        is_near && !self.name || !self.last_part
    }
}
