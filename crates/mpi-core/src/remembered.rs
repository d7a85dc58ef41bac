// SPDX-License-Identifier: Apache-2.0
//! What a communicator remembers of how its collective operations go. Forgotten when the links in force or its hints
//! change.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

use isthmus_schedule::step::Plan;
use isthmus_schedule::{Blocks, Call, Recorded, Steps};

/// Plans that are remembered.
const PLANS: usize = 16;
/// Most steps of one. With [`PLANS`] this bounds the memory: about 100 KiB for each communicator that uses all of it.
const STEPS: usize = 48;
/// Longest list of blocks of a call that is compared with others.
const BLOCKS: usize = 64;

/// What plain operations may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shortcuts(u8);

impl Shortcuts {
    const KNOWN: u8 = 1;
    const MEMORY: u8 = 2;
    const VENDOR: u8 = 4;

    pub(crate) fn new(memory: bool, vendor: bool) -> Self {
        let of = |may, bit| if may { bit } else { 0 };
        Self(Self::KNOWN | of(memory, Self::MEMORY) | of(vendor, Self::VENDOR))
    }

    /// Any of them.
    #[inline(always)]
    pub(crate) fn any(self) -> bool {
        self.0 != Self::KNOWN
    }

    /// Memory that all members share.
    #[inline(always)]
    pub(crate) fn memory(self) -> bool {
        self.0 & Self::MEMORY != 0
    }

    /// The vendor MPI.
    #[inline(always)]
    pub(crate) fn vendor(self) -> bool {
        self.0 & Self::VENDOR != 0
    }
}

/// What is remembered.
#[derive(Default)]
pub(crate) struct Remembered {
    /// [`Shortcuts`]; 0: to be found out.
    shortcuts: AtomicU8,
    pub(super) plans: Plans,
}

/// Plans of calls that were made before.
#[derive(Debug, Default)]
pub(crate) struct Plans(Mutex<Option<Box<Made>>>);

#[derive(Debug, Default)]
struct Made {
    /// `None`: the plan is too long.
    all: Vec<(Call, Steps, Option<Recorded>)>,
    /// The one that gives way next.
    oldest: usize,
}

impl Plans {
    /// The plan of a call of members who take these steps together. Plans of equal calls are equal as long as
    /// nothing is forgotten.
    pub(crate) fn plan(&self, call: &Call, steps: Steps, make: impl Fn() -> Box<dyn Plan>) -> Box<dyn Plan> {
        if !is_comparable(&call.blocks) || !is_comparable(&call.receive_blocks) || call.counts.is_some() {
            return make();
        }
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let made = made.get_or_insert_default();
        let known = made.all.iter().find(|(c, s, _)| *s == steps && c == call);
        if let Some((_, _, recorded)) = known {
            return recorded.as_ref().map_or_else(make, Recorded::plan);
        }
        let recorded = Recorded::of(make(), STEPS);
        let plan = recorded.as_ref().map_or_else(make, Recorded::plan);
        let entry = (call.clone(), steps, recorded);
        if made.all.len() < PLANS {
            made.all.push(entry);
        } else {
            let oldest = made.oldest;
            made.all[oldest] = entry;
            made.oldest = (oldest + 1) % PLANS;
        }
        plan
    }

    fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn is_comparable(blocks: &Blocks) -> bool {
    match blocks {
        Blocks::Equal(_) | Blocks::Own(_) => true,
        Blocks::Known(sums) => sums.len() <= BLOCKS,
        Blocks::Subtree(_) => false,
    }
}

impl Remembered {
    #[inline(always)]
    pub(crate) fn shortcuts(&self, find: impl FnOnce() -> Shortcuts) -> Shortcuts {
        match self.shortcuts.load(Ordering::Relaxed) {
            0 => {
                let found = find();
                self.shortcuts.store(found.0, Ordering::Relaxed);
                found
            }
            known => Shortcuts(known),
        }
    }

    /// What is said about the communicator has changed.
    pub(crate) fn forget(&self) {
        self.shortcuts.store(0, Ordering::Relaxed);
        self.plans.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_schedule::{Network, Operation, plan};
    use isthmus_topology::{Level, Shape};
    use std::cell::Cell;

    #[test]
    fn equal_calls_are_planned_once_and_as_many_are_kept_as_are_promised() {
        let network = Network::plain(Shape::flat(4, Level::Node));
        let plans = Plans::default();
        let made = Cell::new(0);
        let ask = |units: u64| {
            let call = Call::new(Operation::Allgather, units);
            let mut found = plans.plan(&call, Steps::None, || {
                made.set(made.get() + 1);
                plan(&call, &network, 1)
            });
            let mut fresh = plan(&call, &network, 1);
            while let Some(step) = fresh.next_step() {
                assert_eq!(found.next_step(), Some(step));
            }
            assert_eq!(found.next_step(), None);
        };
        (0..3).for_each(|_| ask(8));
        assert_eq!(made.get(), 1);
        (0..PLANS as u64).for_each(|more| ask(16 + more));
        assert_eq!(made.get(), 1 + PLANS);
        ask(16 + PLANS as u64 - 1);
        assert_eq!(made.get(), 1 + PLANS, "the last one is still there");
        ask(8);
        assert_eq!(made.get(), 2 + PLANS, "the first one has given way");
        plans.forget();
        ask(8);
        assert_eq!(made.get(), 3 + PLANS);
    }
}
