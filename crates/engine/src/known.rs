// SPDX-License-Identifier: Apache-2.0
//! What the member of a group that decides how an operation's long blocks go knows of them: the trials ([`isthmus_protocol::ways`]) of steps together.
//!
//! The root of a broadcast through cells goes on while the others still take what it gave, and they take several at once; one that waits for them takes
//! longer, most of all where processes share a core. So what is compared are *bursts* of broadcasts, of which only the last is waited for.
//! (4 ranks on two cores, 64 KiB, us: copied 20; through cells 10 in a row, and 25 if each is waited for.)

use isthmus_protocol::ways::{Store, Turn, Way, Ways};
use isthmus_schedule::Operation as What;

/// Most broadcasts of a burst: as many as there are rounds of long cells or more.
const BURST: u64 = 8;

/// Broadcasts of a burst of which each takes so many rounds.
pub(crate) fn burst(what: What, pieces: u64) -> u32 {
    match what {
        What::Bcast => (2 * BURST / pieces.max(1)).clamp(2, BURST) as u32,
        _ => 1,
    }
}

/// What is known of an operation's long blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    ways: Ways,
    burst: Burst,
    stores: Ways<Store>,
    /// Of the step under way: how it stores its results, and how many bytes of them there are, if that is tried out.
    stored: Option<(Store, u64)>,
}

/// Steps of a trial that count as one.
#[derive(Clone, Copy, Debug, Default)]
struct Burst {
    way: Option<Way>,
    block: u64,
    steps: u32,
    left: u32,
    nanoseconds: u64,
}

impl Known {
    /// How blocks of so many bytes go in the next step. If it belongs to a trial, it counts to a burst of so many steps and has to be timed; it is to be
    /// waited for at its end if its turn says so.
    pub(crate) fn way(&mut self, block: u64, burst: u32) -> (Turn, bool) {
        self.stored = None;
        if self.burst.left == 0 || self.burst.block != block {
            let turn = self.ways.next(block);
            if !turn.timed {
                self.burst = Burst::default();
                return (turn, false);
            }
            self.burst = Burst {
                way: Some(turn.way),
                block,
                steps: burst,
                left: burst,
                nanoseconds: 0,
            };
        }
        self.burst.left -= 1;
        let turn = Turn {
            way: self.burst.way.unwrap_or(Way::Pull),
            timed: self.burst.left == 0,
        };
        (turn, true)
    }

    /// The same outside of trials.
    pub(crate) fn usual_way(&self, block: u64) -> Turn {
        Turn {
            way: self.ways.known(block),
            timed: false,
        }
    }

    /// How results of so many bytes are stored in the next step, and whether it has to be timed. `tries`: it may be part of a trial.
    pub(crate) fn store(&mut self, bytes: u64, tries: bool) -> (Store, bool) {
        if !tries {
            return (self.stores.known(bytes), false);
        }
        let turn = self.stores.next(bytes);
        self.stored = turn.timed.then_some((turn.way, bytes));
        (turn.way, turn.timed)
    }

    /// A step that had to be timed has taken so long.
    pub(crate) fn took(&mut self, nanoseconds: u64) {
        if let Some((store, bytes)) = self.stored.take() {
            return self.stores.took(store, bytes, nanoseconds);
        }
        let Burst { way: Some(way), .. } = self.burst else {
            return;
        };
        self.burst.nanoseconds = self.burst.nanoseconds.saturating_add(nanoseconds);
        if self.burst.left == 0 {
            let mean = self.burst.nanoseconds / u64::from(self.burst.steps);
            self.ways.took(way, self.burst.block, mean);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = 64 << 10;

    /// Takes so many steps: those that are copied take so long each, of those through cells the ones that are waited for. How many went through cells, and
    /// how many were waited for.
    fn steps(known: &mut Known, count: u32, burst: u32, cells: u64, copied: u64) -> (u32, u32) {
        let (mut streamed, mut waited) = (0, 0);
        for _ in 0..count {
            let (turn, timed) = known.way(BLOCK, burst);
            streamed += u32::from(turn.way == Way::Stream);
            waited += u32::from(turn.timed);
            if timed {
                known.took(match (turn.way, turn.timed) {
                    (Way::Pull, _) => copied,
                    (Way::Stream, true) => cells,
                    (Way::Stream, false) => 0,
                });
            }
        }
        (streamed, waited)
    }

    #[test]
    fn a_burst_counts_as_one_step_and_only_its_last_one_is_waited_for() {
        // Eight through cells take 800, one that is waited for as long as all; copies 200 each.
        let mut known = Known::default();
        let trial = 2 * (1 + 7 * 8);
        assert_eq!(steps(&mut known, trial, 8, 800, 200), (57, 14));
        assert_eq!(steps(&mut known, 30, 8, 800, 200), (30, 0), "cells are quicker");
        let mut known = Known::default();
        steps(&mut known, trial, 8, 8000, 200);
        assert_eq!(steps(&mut known, 30, 8, 8000, 200), (0, 0), "copies are quicker");
        assert_eq!(known.usual_way(BLOCK).way, Way::Pull);
    }

    #[test]
    fn another_length_ends_a_burst() {
        let mut known = Known::default();
        known.way(BLOCK, 8);
        assert!(known.way(BLOCK, 8).1);
        known.took(100);
        let (turn, timed) = known.way(16 * BLOCK, 8);
        assert!(!turn.timed && !timed, "the first of its trial");
        known.took(100);
        assert!(known.way(BLOCK, 8).1);
    }

    #[test]
    fn a_burst_fills_all_rounds() {
        let bursts = [1, 2, 8, 1000].map(|pieces| burst(What::Bcast, pieces));
        assert_eq!(bursts, [8, 8, 2, 2]);
        assert_eq!(burst(What::Alltoall, 1), 1);
    }

    #[test]
    fn stores_are_tried_apart_from_ways() {
        let mut known = Known::default();
        let bytes = 4 << 20;
        for _ in 0..16 {
            let (store, timed) = known.store(bytes, true);
            if timed {
                known.took(if store == Store::Past { 1000 } else { 500 });
            }
        }
        assert_eq!(known.store(bytes, false), (Store::Through, false));
        assert_eq!(known.usual_way(BLOCK).way, Way::Pull);
    }
}
