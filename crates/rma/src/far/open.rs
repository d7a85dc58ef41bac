// SPDX-License-Identifier: Apache-2.0
//! A window whose members may operate on it in messages: what the target does with their frames.
//!
//! Frames of an origin are applied in their order. One that has to wait, for the lock of this process or for that of a
//! block, keeps all that follow it; the credit of the protocol bounds how many these are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use isthmus_core::error::Error;
use isthmus_datatype::raw::WriteMemory;
use isthmus_engine::{EngineError, Lease, Lent, Members, Peer, Port, Taken};
use isthmus_lock::shared::LockKind;
use isthmus_wire::frame::Header;
use isthmus_wire::rma::bundle::MAX_BUNDLE;
use isthmus_wire::rma::{Does, MAX_OPERATION, Operation, What};

use super::doing::{Doing, Step, kind_of, refuse_late, tell_late};
use super::origin::{Origin, Turn, WaitingFrame};
use super::outgoing::{Answered, Outgoing, halves};
use crate::window::Window;

/// Looks at a lock that nobody has who lives, before those who wait for it begin anew.
const MOST_FUTILE: u32 = 10_000;

/// See the module.
pub(super) struct Open {
    window: Arc<Window>,
    origins: BTreeMap<Peer, Origin>,
    /// Answers that have not left.
    pub(super) leaving: u32,
    /// A lock was given back.
    pub(super) left: bool,
    /// Data that this process has asked for and that have not come whole.
    pub(super) asks: u32,
    /// Bytes of operations that are done, since the last even and the last odd fence. See [`counts`](super::counts).
    done: [u64; 2],
    /// Whether the number of fences that are over here is odd. What follows the next one has to wait for it.
    odd: bool,
    trouble: Option<Box<Trouble>>,
}

/// What nearly no window has: programs have thousands of them.
#[derive(Default)]
struct Trouble {
    /// Members that are gone.
    lost: BTreeSet<Peer>,
    /// How often origins were found waiting for a lock that nobody has who lives.
    futile: u32,
    /// What has gone wrong at targets.
    failed: Option<Error>,
}

impl Open {
    pub(super) fn new(window: Arc<Window>) -> Self {
        Self {
            window,
            origins: BTreeMap::new(),
            leaving: 0,
            left: false,
            asks: 0,
            done: [0; 2],
            odd: false,
            trouble: None,
        }
    }

    pub(super) fn window(&self) -> &Arc<Window> {
        &self.window
    }

    fn is_lost(&self, peer: Peer) -> bool {
        self.trouble
            .as_ref()
            .is_some_and(|trouble| trouble.lost.contains(&peer))
    }

    /// Whether a member is gone.
    fn has_losses(&self) -> bool {
        self.trouble.as_ref().is_some_and(|trouble| !trouble.lost.is_empty())
    }

    /// Whether the peer is a member of the window.
    pub(super) fn has(&self, peer: Peer) -> bool {
        self.members().contains(peer)
    }

    pub(super) fn members(&self) -> &Members {
        &self.window.comm.channel().members
    }

    /// A mistake in an operation of this process, for whoever waits for that.
    pub(super) fn told(&self, error: &Error) -> EngineError {
        let named = self.window.named(error);
        EngineError::Elsewhere {
            class: named.class,
            text: named.to_string().into(),
        }
    }

    /// The program hears of the first mistake.
    pub(super) fn fail(&mut self, error: Error) {
        self.trouble.get_or_insert_default().failed.get_or_insert(error);
    }

    /// The first mistake, once.
    pub(super) fn failed(&mut self) -> Option<Error> {
        self.trouble.as_mut()?.failed.take()
    }

    /// Whether frames, or tickets, wait.
    pub(super) fn waits(&self) -> bool {
        self.origins.values().any(Origin::waits)
    }

    /// Whether frames wait for what nobody will tell about: the lock of a block, which nobody has for long.
    pub(super) fn is_busy(&self) -> bool {
        self.origins.values().any(|origin| origin.busy) || self.has_losses() && self.waits()
    }

    /// An answer has left.
    pub(super) fn answered(&mut self, peer: Peer, answered: Answered) {
        self.leaving -= 1;
        self.done[usize::from(answered.odd)] += answered.frame;
        if let Some(origin) = self.origins.get_mut(&peer) {
            origin.copied -= answered.copied.min(origin.copied);
            origin.lent -= u64::from(answered.lent).min(origin.lent);
            origin.done += answered.frame;
        }
    }

    /// See [`Desk::has_done`](super::desk::Desk::has_done).
    pub(super) fn has_done(&mut self, odd: bool, bytes: u64) -> bool {
        let gone = self.has_losses();
        let done = &mut self.done[usize::from(odd)];
        let all = *done >= bytes || gone;
        if all {
            // This count is used again after the next fence, which all come to only when this one is over.
            *done = 0;
            self.odd = !odd;
        }
        all
    }

    /// See [`Desk::has_done_of`](super::desk::Desk::has_done_of).
    pub(super) fn has_done_of(&self, peer: Peer, bytes: u64) -> bool {
        let done = self.origins.get(&peer).map_or(0, |origin| origin.done);
        done >= bytes || self.is_lost(peer)
    }

    /// A frame of an origin.
    pub(super) fn take(
        &mut self,
        port: &mut Port<'_>,
        out: &mut Outgoing,
        (peer, header): (Peer, &Header),
        payload: &[u8],
    ) -> Taken {
        let waits = self.origins.get(&peer).is_some_and(Origin::waits);
        // What is tried is never kept: its origin has other locks meanwhile.
        if !waits || What::from_tag(header.tag) == Some(What::Try) {
            match self.step(port, out, (peer, header), payload) {
                Step::Over => return Taken::Done,
                Step::Answered { .. } => return Taken::Kept,
                Step::Lie(what) => {
                    port.accuse(peer, what);
                    return Taken::Done;
                }
                Step::Later { .. } => {}
            }
        }
        let origin = self.origins.entry(peer).or_default();
        origin.kept.push_back(WaitingFrame {
            header: *header,
            payload: payload.into(),
        });
        Taken::Kept
    }

    /// Memory for the data of a frame that a transport is about to read, if they go there as they come and nothing has
    /// to be waited for. It is lent until they are there, or their origin or the window is gone.
    pub(super) fn place(&mut self, peer: Peer, header: &Header) -> Option<Lent<WriteMemory>> {
        let in_time = header.common == self.odd || self.has_losses();
        let origin = self.origins.get_mut(&peer)?;
        let begun = origin.begun.as_ref().filter(|begun| begun.does == Does::Put)?;
        let next = header.auxiliary() == begun.got && (1..=begun.length - begun.got).contains(&header.length);
        if !next || origin.waits() || !in_time {
            return None;
        }
        let memory = begun.elements.as_ref()?.straight(begun.got, header.length)?;
        Some(origin.placing.insert(Lease::new(memory)).lent())
    }

    /// The data of a frame are there.
    pub(super) fn placed(&mut self, peer: Peer, header: &Header) {
        let Some(origin) = self.origins.get_mut(&peer) else {
            return;
        };
        let Some(begun) = origin.begun.as_mut().filter(|_| origin.placing.take().is_some()) else {
            return;
        };
        begun.got += header.length;
        if begun.got == begun.length {
            origin.begun = None;
        }
        origin.done += header.length;
        self.done[usize::from(header.common)] += header.length;
    }

    /// Does a frame, if it can be done now.
    fn step(&mut self, port: &mut Port<'_>, out: &mut Outgoing, from: (Peer, &Header), payload: &[u8]) -> Step {
        let (peer, header) = from;
        let what = What::from_tag(header.tag);
        let in_time = header.common == self.odd || self.has_losses();
        let origin = self.origins.entry(peer).or_default();
        let moves = matches!(what, Some(What::Operate | What::Data | What::Bundle));
        if moves && !in_time {
            // Its origin has left a fence that is not over here. Nobody comes to one any more when a member is lost.
            return Step::Later { block: false };
        }
        let mut doing = Doing {
            window: &self.window,
            origin,
            port,
            out,
            from,
        };
        let between = doing.origin.begun.is_none() && doing.origin.pieces.is_empty();
        let step = match what {
            Some(What::Try) if payload.is_empty() && doing.origin.waits() => doing.refuse(),
            Some(What::Operate) => doing.whole(payload, MAX_OPERATION, Doing::operation),
            Some(What::Bundle) => doing.whole(payload, MAX_BUNDLE, Doing::bundle),
            Some(What::Data) => doing.data(payload),
            Some(What::Flush) if between && payload.is_empty() => doing.done(),
            Some(What::Lock) if between && payload.is_empty() && doing.origin.turn == Turn::Free => {
                let kind = kind_of(u64::from(halves(header).1));
                doing.origin.join(&self.window, kind);
                Step::Over
            }
            Some(What::Try) if between && payload.is_empty() && doing.origin.turn == Turn::Free => doing.lock_at_once(),
            // Whoever comes next must not change what has not left.
            Some(What::Unlock) if doing.origin.lent > 0 => Step::Later { block: false },
            Some(What::Unlock) if between && payload.is_empty() && doing.origin.leave(&self.window) => {
                self.left = true;
                doing.done()
            }
            _ => Step::Lie("a lock, an unlock or a flush of a window out of turn"),
        };
        match step {
            Step::Answered { copied, lent } => {
                self.leaving += 1;
                origin.copied += copied;
                origin.lent += u64::from(lent);
            }
            Step::Over => {
                self.done[usize::from(header.common)] += header.length;
                origin.done += header.length;
            }
            _ => {}
        }
        // What is tried overtakes what waits.
        if what != Some(What::Try) {
            origin.busy = step == Step::Later { block: true };
        }
        step
    }

    /// Lets in who is next, and does what has waited. True if anything was done.
    pub(super) fn go_on(&mut self, port: &mut Port<'_>, out: &mut Outgoing) -> bool {
        let mut any = false;
        loop {
            let mut again = false;
            let waiting = self.origins.iter().filter(|(_, origin)| origin.waits());
            let waiting: Vec<Peer> = waiting.map(|(&peer, _)| peer).collect();
            for peer in waiting {
                again |= self.go_on_with(port, out, peer);
            }
            any |= again;
            // A lock that was given back may let in somebody who was looked at before.
            if !std::mem::take(&mut self.left) && !again {
                return any;
            }
        }
    }

    fn go_on_with(&mut self, port: &mut Port<'_>, out: &mut Outgoing, peer: Peer) -> bool {
        let mut any = false;
        self.recover();
        let Some(origin) = self.origins.get_mut(&peer) else {
            return false;
        };
        if origin.enter(&self.window) {
            any = true;
            if origin.gone {
                self.left |= origin.leave(&self.window);
                self.origins.remove(&peer);
                return true;
            }
        }
        loop {
            let origin = self.origins.entry(peer).or_default();
            if matches!(origin.turn, Turn::Waits(..)) {
                return any;
            }
            let Some(WaitingFrame { header, payload }) = origin.kept.pop_front() else {
                return any;
            };
            match self.step(port, out, (peer, &header), &payload) {
                Step::Over => port.done(peer, header.length),
                Step::Answered { .. } => {}
                Step::Lie(what) => {
                    port.accuse(peer, what);
                    port.done(peer, header.length);
                    self.origins.entry(peer).or_default().kept.clear();
                    return true;
                }
                Step::Later { .. } => {
                    let origin = self.origins.entry(peer).or_default();
                    origin.kept.push_front(WaitingFrame { header, payload });
                    return any;
                }
            }
            any = true;
        }
    }

    /// What lost members of this node had of the lock of this process, and of blocks, goes on to others.
    fn recover(&mut self) {
        if !self.has_losses() {
            return;
        }
        let members = self.members();
        let is_lost = |rank| rank < members.count() && self.is_lost(members.peer(rank));
        let lock = self.window.store.lock(self.window.rank());
        lock.recover(&is_lost);
        self.window.store.blocks().recover(&is_lost);
        let mut turns = self.origins.values().map(|origin| origin.turn);
        let next = turns.clone().filter_map(|turn| match turn {
            Turn::Waits(LockKind::Shared | LockKind::Exclusive, ticket) => Some(ticket),
            _ => None,
        });
        let next = next.min();
        let all = turns
            .clone()
            .filter(|turn| matches!(turn, Turn::Waits(LockKind::All, _)));
        let all = all.count() as u64;
        // Whoever died between two steps has told nobody how far it came. Then those who wait begin anew.
        let futile = !turns.any(|turn| matches!(turn, Turn::Holds(_))) && !lock.is_wanted_near(&is_lost);
        let trouble = self.trouble.get_or_insert_default();
        trouble.futile = if futile { trouble.futile + 1 } else { 0 };
        if trouble.futile > MOST_FUTILE && (next.is_some() || all > 0) {
            trouble.futile = 0;
            lock.restart(next, all);
        }
    }

    /// A peer is gone: it neither has nor wants locks any more.
    pub(super) fn lose(&mut self, port: &mut Port<'_>, out: &mut Outgoing, peer: Peer) {
        self.trouble.get_or_insert_default().lost.insert(peer);
        self.recover();
        self.part_with(peer);
        self.go_on(port, out);
    }

    /// The window is freed before all have ended what they do. Whoever waits for an answer hears of that, and locks go
    /// on to others of the node, who may still have the window.
    pub(super) fn abandon(&mut self, port: &mut Port<'_>, out: &mut Outgoing) {
        let context = self.window.context_number();
        let all: Vec<Peer> = self.origins.keys().copied().collect();
        for peer in all {
            let origin = self.origins.entry(peer).or_default();
            let begun = origin.begun.as_ref().map_or(0, |begun| begun.question);
            tell_late(port, peer, context, begun);
            if !origin.pieces.is_empty() {
                tell_late(port, peer, context, Operation::question_of(&origin.pieces));
            }
            for WaitingFrame { header, payload } in origin.kept.drain(..) {
                refuse_late(port, peer, &header, &payload);
                port.done(peer, header.length);
            }
            self.part_with(peer);
        }
        self.go_on(port, out);
    }

    /// An origin neither has nor wants locks any more. A ticket of it stays until its turn has come.
    fn part_with(&mut self, peer: Peer) {
        let Some(mut origin) = self.origins.remove(&peer) else {
            return;
        };
        if !origin.give_up(&self.window) {
            let gone = Origin {
                turn: origin.turn,
                gone: true,
                ..Origin::default()
            };
            self.origins.insert(peer, gone);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sent::Far;

    #[test]
    fn a_window_over_nodes_is_small_whatever_its_members() {
        // Programs have thousands of windows. What is known of a member is there when it has been reached.
        let sizes = [size_of::<Far>(), size_of::<Open>(), size_of::<Window>()];
        assert!(sizes[0] <= 8 && sizes[1] <= 72 && sizes[2] <= 248, "{sizes:?}");
    }
}
