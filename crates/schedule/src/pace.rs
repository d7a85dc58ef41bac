// SPDX-License-Identifier: Apache-2.0
//! What is quick keeps in step with what is slow: inside a site pieces are only so far ahead of the same message's pieces on the links between
//! sites.
//!
//! All processes of a site could hand on everything in the first moments, and then wait for the slow links. On the processors that they share
//! with those who serve these links, the first pieces there would come late, and links stay idle which nothing makes up for later.
//! (24 processes at three sites on two processors, a reduction of 16 MiB at 100 Mbit/s: the first 200 of 900 ms.)

use crate::script::{Cut, Script};
use crate::step::StepId;
use crate::strategy::Strategy;
use crate::tree::Family;
use std::collections::VecDeque;

/// Pieces that those inside a site may at least be ahead: processors have other work at times.
pub(crate) const LEAST: u64 = 16;

/// The steps of one process on the links between sites, as far back as steps inside its site look.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    /// Pieces; a multiple of the shares, so that a piece waits for one of its own share.
    ahead: usize,
    /// Of the last so many pieces.
    passed: VecDeque<StepId>,
}

impl Pace {
    /// For a message that is cut so; none where nothing is slow, or pieces are few.
    pub(crate) fn of(strategy: &Strategy, cut: &Cut) -> Option<Self> {
        let ahead = ahead(strategy)?;
        (ahead < cut.pieces()).then(|| Self {
            ahead: ahead as usize,
            passed: VecDeque::with_capacity(ahead as usize + 1),
        })
    }

    /// From here on all steps wait until the slow links have passed the piece that is so far behind.
    pub(crate) fn hold_back(&self, script: &mut Script) {
        let full = self.passed.len() >= self.ahead;
        script.hold_back(self.passed.front().copied().filter(|_| full));
    }

    /// The next piece's step on a slow link.
    pub(crate) fn pass(&mut self, step: StepId) {
        self.passed.push_back(step);
        if self.passed.len() > self.ahead {
            self.passed.pop_front();
        }
    }
}

/// Pieces that those inside a site may be ahead.
fn ahead(strategy: &Strategy) -> Option<u64> {
    let shares = u64::from(strategy.shares.max(1));
    strategy.ahead?.checked_next_multiple_of(shares)
}

impl Strategy {
    /// How a message is cut at a process: who is not on a link between sites needs memory for few pieces.
    pub(crate) fn in_step(&self, cut: Cut, families: &[Family]) -> Cut {
        match ahead(self) {
            Some(ahead)
                if families
                    .iter()
                    .all(|family| family.outer.is_none() && family.parent.is_some()) =>
            {
                Cut {
                    lanes: cut.lanes.min(ahead),
                    ..cut
                }
            }
            _ => cut,
        }
    }
}
