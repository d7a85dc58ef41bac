// SPDX-License-Identifier: Apache-2.0
//! What a communicator remembers of how its collective operations go. Forgotten when the links in force or its hints
//! change.

use std::sync::atomic::{AtomicU8, Ordering};

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
    }
}
