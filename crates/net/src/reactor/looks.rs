// SPDX-License-Identifier: Apache-2.0
//! Looks of a thread of the program that waits, and looks again and again: most of them find nothing.

/// One look in so many asks the poller all the same: it tells of those who want to connect.
const ASKS: u32 = 16;

/// Looks at connections.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// How many there were.
    made: u32,
    /// The last one has found something to do.
    pub(super) found: bool,
}

impl Looks {
    /// One more; whether it is to ask the poller.
    pub(super) fn asks(&mut self) -> bool {
        self.made = self.made.wrapping_add(1);
        self.made % ASKS == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_look_in_so_many_asks_the_poller() {
        let mut looks = Looks::default();
        let asked = (0..3 * ASKS).filter(|_| looks.asks()).count();
        assert_eq!(asked, 3);
    }
}
