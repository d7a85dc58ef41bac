// SPDX-License-Identifier: Apache-2.0
//! What happens inside, for tools: events are queued while somebody has asked for their kind, and taken outside every
//! lock.

use std::collections::VecDeque;
use std::time::Instant;

use isthmus_transport::Peer;

/// Events that wait at most; later ones are counted and dropped.
const LONGEST: usize = 1024;

/// Kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EventKind {
    /// A message arrived that matches no posted receive.
    Unexpected,
    /// A process cannot be reached any more.
    PeerLost,
    /// This process has begun its part of a collective operation.
    PlanStarted,
    /// This process has ended its part of a collective operation.
    PlanEnded,
}

impl EventKind {
    /// All of them, by number.
    pub const ALL: [Self; 4] = [Self::Unexpected, Self::PeerLost, Self::PlanStarted, Self::PlanEnded];

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// [`EventKind::Unexpected`]
    Unexpected {
        /// Sender, by its rank in MPI_COMM_WORLD.
        peer: Peer,
        /// Context of the communicator.
        context: u32,
        /// Rank of the sender in the communicator.
        source: u32,
        /// Tag.
        tag: i32,
        /// Length of the message.
        bytes: u64,
    },
    /// [`EventKind::PeerLost`]
    PeerLost {
        /// Its rank in MPI_COMM_WORLD.
        peer: Peer,
    },
    /// [`EventKind::PlanStarted`]
    PlanStarted(PlanEvent),
    /// [`EventKind::PlanEnded`]
    PlanEnded(PlanEvent),
}

/// Which collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanEvent {
    /// Its name.
    pub operation: &'static str,
    /// Context of the communicator.
    pub context: u32,
    /// Number of the operation in the communicator, as the tags of its messages have it.
    pub sequence: u32,
}

impl Event {
    /// Its kind.
    pub fn kind(&self) -> EventKind {
        match self {
            Self::Unexpected { .. } => EventKind::Unexpected,
            Self::PeerLost { .. } => EventKind::PeerLost,
            Self::PlanStarted(_) => EventKind::PlanStarted,
            Self::PlanEnded(_) => EventKind::PlanEnded,
        }
    }
}

/// Events since the last time.
#[derive(Debug, Default)]
pub struct Observed {
    /// In the order in which they happened, with the time.
    pub events: VecDeque<(Instant, Event)>,
    /// How many of each kind were dropped because nobody took them in time.
    pub dropped: [u64; EventKind::ALL.len()],
}

#[derive(Debug, Default)]
pub(crate) struct Observer {
    wanted: u8,
    observed: Observed,
}

impl Observer {
    pub(crate) fn want(&mut self, kinds: &[EventKind]) {
        self.wanted = kinds.iter().fold(0, |bits, kind| bits | kind.bit());
    }

    #[inline]
    pub(crate) fn wants(&self, kind: EventKind) -> bool {
        self.wanted & kind.bit() != 0
    }

    /// Notes an event if somebody wants its kind.
    #[inline]
    pub(crate) fn note(&mut self, kind: EventKind, event: impl FnOnce() -> Event) {
        if self.wants(kind) {
            self.queue(event());
        }
    }

    #[cold]
    fn queue(&mut self, event: Event) {
        if self.observed.events.len() < LONGEST {
            self.observed.events.push_back((Instant::now(), event));
        } else {
            self.observed.dropped[event.kind() as usize] += 1;
        }
    }

    pub(crate) fn take(&mut self) -> Observed {
        std::mem::take(&mut self.observed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_wanted_events_are_kept_and_their_number_is_bounded() {
        let mut observer = Observer::default();
        let lost = |peer| move || Event::PeerLost { peer };
        observer.note(EventKind::PeerLost, lost(Peer::new(1)));
        assert!(observer.take().events.is_empty());
        observer.want(&[EventKind::PeerLost]);
        for peer in 0..LONGEST as u32 + 3 {
            observer.note(EventKind::PeerLost, lost(Peer::new(peer)));
            observer.note(EventKind::Unexpected, || unreachable!("nobody wants it"));
        }
        let observed = observer.take();
        assert_eq!(observed.events.len(), LONGEST);
        assert_eq!(observed.events[0].1, Event::PeerLost { peer: Peer::new(0) });
        assert_eq!(observed.dropped, [0, 3, 0, 0]);
        assert_eq!(observer.take().dropped, [0; 4]);
    }
}
