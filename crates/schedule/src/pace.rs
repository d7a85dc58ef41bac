// SPDX-License-Identifier: Apache-2.0
//! What is quick keeps in step with what is slow: in a long reduction over the wide area a process begins with a piece
//! when it has passed the one a few pieces before on.
//!
//! All processes of a site could hand on everything in the first moments, one process after the other, and then wait
//! for the slow links. On the processors that they share with those who serve these links the first piece would come
//! late, and links stay idle which nothing makes up for later. (24 processes at three sites on two processors, 16 MiB
//! at 100 Mbit/s: the first pieces of an allreduce, which did not keep in step then, left after 20 to 150 of 1100 ms.
//! Two pieces ahead, four, sixteen: reductions with root 13 take 803, 819 and 845 ms, allreduces 1041, 1073 and 1111
//! ms.)
//!
//! Nobody waits for a slow link: then each piece would take a share of its latency.

use crate::script::{Cut, Script};
use crate::step::StepId;
use crate::strategy::Strategy;
use crate::tree::Family;
use std::collections::VecDeque;

/// Of the last pieces that one process has passed on, the step with which it did.
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

    /// From here on all steps wait until the piece that is so far behind has passed.
    pub(crate) fn hold_back(&self, script: &mut Script) {
        let full = self.passed.len() >= self.ahead;
        script.hold_back(self.passed.front().copied().filter(|_| full));
    }

    /// Passes with the last step that was written, a message to the parent, where the process is not at the outermost
    /// tier.
    pub(crate) fn sent(&mut self, script: &Script, family: &Family) {
        if family.outer.is_none() {
            self.pass(script);
        }
    }

    /// The next piece passes with the last step that was written.
    pub(crate) fn pass(&mut self, script: &Script) {
        self.passed.extend(script.latest());
        if self.passed.len() > self.ahead {
            self.passed.pop_front();
        }
    }
}

/// Pieces with which a process may begin before it has passed the first of them on.
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
