// SPDX-License-Identifier: Apache-2.0
//! Peers that are lost or have left: what makes one so, how it learns of it, and when the engine is told.

use isthmus_transport::{Peer, SendError, Sink};

use super::{Blocked, ShmTransport};
use crate::gone::Gone;
use crate::ring::PushError;
use crate::segment::STATE_LEFT;
use crate::sync::Ordering;

impl ShmTransport {
    #[cold]
    pub(super) fn refused(&mut self, slot: usize, payload: usize, error: PushError) -> SendError {
        match error {
            PushError::Full => {
                let link = &mut self.links[slot];
                if !link.blocked {
                    link.blocked = true;
                    self.blocked.push(Blocked { slot, payload });
                    self.chores = true;
                }
                SendError::WouldBlock
            }
            PushError::NoMemory(number) => {
                self.give_up(slot);
                let error = std::io::Error::from_raw_os_error(number);
                SendError::Lost(format!(
                    "cannot send to {} of this node: no memory for its ring in {}: {error}{}",
                    self.name_of(self.links[slot].peer),
                    self.segment.path().display(),
                    self.segment.hint()
                ))
            }
        }
    }

    /// Takes nothing from `slot` any more, and tells it: it may wait for an answer that it cannot get.
    pub(super) fn give_up(&mut self, slot: usize) {
        self.segment.block(slot).give_up(self.slot);
        self.ring(slot);
    }

    /// Looks whether `slot` has given this process up, or has left a meeting: it does that without waiting for those of
    /// other jobs when one of them is lost.
    pub(super) fn look_for_its_end(&mut self, slot: usize) {
        // In a meeting, who is not known yet is asked again when it is, and who stays unknown may say what it likes.
        let Some(link) = self
            .links
            .get(slot)
            .filter(|link| !link.lost && link.peer != Peer::NONE)
        else {
            return;
        };
        let gone = if self.segment.block(self.slot).is_given_up(slot) {
            Gone::Lost(format!(
                "{} on this node has given this process up: its own error says why. It may have had no memory for \
                 what processes of the node share{}",
                self.name_of(link.peer),
                self.segment.hint()
            ))
        } else if self.met.is_some() && self.segment.block(slot).state.load(Ordering::Acquire) == STATE_LEFT {
            Gone::Left
        } else {
            return;
        };
        self.gone.push((slot, gone));
        self.chores = true;
    }

    #[cold]
    pub(super) fn poll_bell(&mut self) {
        let mut rung = Vec::new();
        self.segment.block(self.slot).bell.take(|slot| rung.push(slot));
        for slot in rung {
            self.activate(slot);
            self.look_for_its_end(slot);
        }
    }

    #[cold]
    pub(super) fn report_gone(&mut self, sink: &mut dyn Sink) {
        for (slot, how) in std::mem::take(&mut self.gone) {
            let link = &mut self.links[slot];
            if link.lost {
                continue;
            }
            // What it has sent before counts, also if it has not said so any more.
            if self.segment.block(self.slot).is_open(slot) && link.reader.ready() {
                self.activate(slot);
                self.gone.push((slot, how));
                continue;
            }
            link.lost = true;
            match how {
                Gone::Lost(why) => sink.lost(link.peer, &why),
                Gone::Left => sink.ended(link.peer),
            }
        }
    }
}
