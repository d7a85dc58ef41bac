// SPDX-License-Identifier: Apache-2.0
//! Operations are counted, in bytes of their frames, so that whoever ends an epoch need not ask whether they are done.
//!
//! **A fence** adds up what all have sent to each member, and each waits until so much is done at it. Members leave a
//! fence at different times: operations of one that is ahead must not count for another that is behind. So frames say
//! whether they follow an odd fence, and a target counts both apart. What follows a fence that is not over at its
//! target waits there. Nobody is ahead by two, since all come to a fence.
//!
//! **MPI_Win_complete** says how much its process has ever sent to the target. What it sends is done in order.

use std::collections::BTreeMap;

/// What a process has sent to the members of a window.
#[derive(Default)]
pub(crate) struct Counts {
    /// Whether the number of fences so far is odd.
    odd: bool,
    /// Bytes since the last fence, and since there is the window, by rank: of those it has sent anything.
    sent: BTreeMap<u32, (u64, u64)>,
}

impl Counts {
    /// Whether what is sent now follows an odd fence.
    pub(crate) fn is_odd(&self) -> bool {
        self.odd
    }

    /// Operations of so many bytes go to a member: whether they follow an odd fence.
    pub(crate) fn send(&mut self, rank: u32, bytes: u64) -> bool {
        let (since, all) = self.sent.entry(rank).or_default();
        *since += bytes;
        *all += bytes;
        self.odd
    }

    /// A fence: what each member was sent since the last one, and whether that was an odd one.
    pub(crate) fn fence(&mut self, members: u32) -> (Vec<u64>, bool) {
        let mut each = vec![0; members as usize];
        for (&rank, (since, _)) in &mut self.sent {
            each[rank as usize] = std::mem::take(since);
        }
        let odd = self.odd;
        self.odd = !odd;
        (each, odd)
    }

    /// What a member was ever sent.
    pub(crate) fn of(&self, rank: u32) -> u64 {
        self.sent.get(&rank).map_or(0, |&(_, all)| all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_tells_what_was_sent_since_the_last_one() {
        let mut counts = Counts::default();
        assert!(!counts.send(2, 50) && !counts.send(0, 1) && !counts.send(2, 7));
        assert_eq!(counts.fence(3), (vec![1, 0, 57], false));
        assert!(counts.send(2, 5));
        assert_eq!(counts.fence(3), (vec![0, 0, 5], true));
        assert_eq!(counts.fence(3), (vec![0, 0, 0], false));
        assert_eq!((counts.of(2), counts.of(1)), (62, 0));
    }
}
