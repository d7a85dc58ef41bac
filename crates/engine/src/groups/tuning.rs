// SPDX-License-Identifier: Apache-2.0
//! Tuning of an operation's long blocks, at the member of a group that decides how they go: the trials
//! ([`isthmus_protocol::ways`]) of steps together, and what they have shown.
//!
//! The root of a broadcast through cells goes on while the others still take what it gave, and they take several at
//! once; one that waits for them takes longer, most of all where processes share a core. So what is compared are
//! *bursts* of broadcasts, of which only the last is waited for. (4 ranks on two cores, 64 KiB, us: copied 20; through
//! cells 10 in a row, and 25 if each is waited for.)

use isthmus_protocol::ways::{Delivery, Store, Turn, Ways};

/// Most broadcasts of a burst: one for each round of long cells.
const BURST: u64 = 8;

/// Broadcasts of a burst of which each takes so many rounds.
pub(crate) fn burst(pieces: u64) -> u32 {
    (2 * BURST / pieces.max(1)).clamp(2, BURST) as u32
}

/// How the long blocks of one operation go quickest, as far as it has been tried.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tuning {
    ways: Ways,
    burst: Option<Burst>,
    stores: Ways<Store>,
}

/// Steps that count as one.
#[derive(Clone, Copy, Debug)]
struct Burst {
    turn: Turn,
    block: u64,
    steps: u32,
    left: u32,
    nanoseconds: u64,
}

/// What the time of a step is a sample of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sample {
    /// It belongs to a burst.
    Burst,
    /// Blocks of so many bytes went this way.
    Way(Delivery, u64),
    /// Results of so many bytes were stored like this.
    Store(Store, u64),
}

impl Tuning {
    /// How blocks of so many bytes go in the next step.
    pub(crate) fn way(&mut self, block: u64) -> (Turn, Option<Sample>) {
        let turn = self.ways.next(block);
        (turn, turn.timed.then_some(Sample::Way(turn.way, block)))
    }

    /// The same where so many steps count as one. A step is to be waited for at its end if its turn says so.
    pub(crate) fn way_in_bursts(&mut self, block: u64, steps: u32) -> (Turn, Option<Sample>) {
        let (ways, goes_on) = (&mut self.ways, |burst: &Burst| burst.left > 0 && burst.block == block);
        let mut burst = self.burst.filter(goes_on).unwrap_or_else(|| Burst {
            turn: ways.next(block),
            block,
            steps,
            left: steps,
            nanoseconds: 0,
        });
        burst.left -= 1;
        self.burst = Some(burst);
        let Turn { way, timed } = burst.turn;
        let turn = Turn {
            way,
            timed: timed && burst.left == 0,
        };
        (turn, timed.then_some(Sample::Burst))
    }

    /// The same outside of trials.
    pub(crate) fn usual_way(&self, block: u64) -> (Turn, Option<Sample>) {
        let turn = Turn {
            way: self.ways.known(block),
            timed: false,
        };
        (turn, None)
    }

    /// How results of so many bytes are stored in the next step. `tries`: it may be part of a trial.
    pub(crate) fn store(&mut self, bytes: u64, tries: bool) -> (Store, Option<Sample>) {
        if !tries {
            return (self.stores.known(bytes), None);
        }
        let turn = self.stores.next(bytes);
        (turn.way, turn.timed.then_some(Sample::Store(turn.way, bytes)))
    }

    /// A step whose time is a sample of this has taken so long.
    pub(crate) fn took(&mut self, sample: Sample, nanoseconds: u64) {
        match sample {
            Sample::Store(store, bytes) => self.stores.took(store, bytes, nanoseconds),
            Sample::Way(way, block) => self.ways.took(way, block, nanoseconds),
            Sample::Burst => {
                let Some(burst) = self.burst.as_mut().filter(|burst| burst.turn.timed) else {
                    return;
                };
                burst.nanoseconds = burst.nanoseconds.saturating_add(nanoseconds);
                if burst.left == 0 {
                    let mean = burst.nanoseconds / u64::from(burst.steps);
                    self.ways.took(burst.turn.way, burst.block, mean);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = 64 << 10;

    /// Takes so many steps: those that are copied take so long each, of those through cells the ones that are waited
    /// for. How many went through cells, and how many were waited for.
    fn steps(tuning: &mut Tuning, count: u32, burst: u32, cells: u64, copied: u64) -> (u32, u32) {
        let (mut streamed, mut waited) = (0, 0);
        for _ in 0..count {
            let (turn, sample) = tuning.way_in_bursts(BLOCK, burst);
            streamed += u32::from(turn.way == Delivery::Stream);
            waited += u32::from(turn.timed);
            let time = match (turn.way, turn.timed) {
                (Delivery::Pull, _) => copied,
                (Delivery::Stream, true) => cells,
                (Delivery::Stream, false) => 0,
            };
            if let Some(sample) = sample {
                tuning.took(sample, time);
            }
        }
        (streamed, waited)
    }

    #[test]
    fn a_burst_counts_as_one_step_and_only_its_last_one_is_waited_for() {
        // Eight through cells take 800, one that is waited for as long as all; copies 200 each.
        let mut tuning = Tuning::default();
        let trial = 2 * 8 * 8;
        assert_eq!(steps(&mut tuning, trial, 8, 800, 200), (64, 14));
        assert_eq!(steps(&mut tuning, 30, 8, 800, 200), (30, 0), "cells are quicker");
        let mut tuning = Tuning::default();
        steps(&mut tuning, trial, 8, 8000, 200);
        assert_eq!(steps(&mut tuning, 30, 8, 8000, 200), (0, 0), "copies are quicker");
        assert_eq!(tuning.usual_way(BLOCK).0.way, Delivery::Pull);
    }

    #[test]
    fn another_length_ends_a_burst() {
        let mut tuning = Tuning::default();
        steps(&mut tuning, 8, 8, 100, 100);
        assert_eq!(tuning.way_in_bursts(BLOCK, 8).1, Some(Sample::Burst));
        tuning.took(Sample::Burst, 100);
        let (turn, sample) = tuning.way_in_bursts(16 * BLOCK, 8);
        assert_eq!((turn.timed, sample), (false, None), "the first of its trial");
        tuning.took(Sample::Burst, 100);
        assert_eq!(tuning.way_in_bursts(BLOCK, 8).1, Some(Sample::Burst));
    }

    #[test]
    fn a_burst_fills_all_rounds() {
        assert_eq!([1, 2, 8, 1000].map(burst), [8, 8, 2, 2]);
    }

    #[test]
    fn stores_are_tried_apart_from_ways() {
        let mut tuning = Tuning::default();
        let bytes = 4 << 20;
        for _ in 0..16 {
            let (store, sample) = tuning.store(bytes, true);
            if let Some(sample) = sample {
                tuning.took(sample, if store == Store::Past { 1000 } else { 500 });
            }
        }
        assert_eq!(tuning.store(bytes, false), (Store::Through, None));
        assert_eq!(tuning.usual_way(BLOCK).0.way, Delivery::Pull);
    }

    #[test]
    fn single_steps_may_overlap() {
        let mut tuning = Tuning::default();
        let begun: Vec<_> = (0..16).map(|_| tuning.way(BLOCK).1).collect();
        for sample in begun.into_iter().rev().flatten() {
            let Sample::Way(way, block) = sample else {
                panic!("{sample:?}")
            };
            tuning.took(sample, if way == Delivery::Stream { 500 } else { 1000 });
            assert_eq!(block, BLOCK);
        }
        assert_eq!(tuning.usual_way(BLOCK).0.way, Delivery::Stream);
    }
}
