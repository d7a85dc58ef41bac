// SPDX-License-Identifier: Apache-2.0
//! What was sent and not acknowledged.

use std::collections::{BTreeMap, VecDeque};

use isthmus_wire::segment::{Hello, Kind, Segment};

use super::{ConnectionId, Violation};

/// Where a segment belongs at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentPlace {
    /// In the stream of frames of a queue.
    Ordered {
        /// Which queue.
        queue: u8,
        /// Of the first byte in the stream.
        position: u64,
    },
    /// In the memory of a request.
    Fragment {
        /// Receiver's request.
        token: u64,
        /// Of the first byte in the message.
        offset: u64,
    },
}

/// A numbered segment with whatever holds its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece<P> {
    /// From 1, in the order in which they were first sent.
    pub number: u64,
    /// Where it belongs.
    pub place: SegmentPlace,
    /// What holds the bytes.
    pub payload: P,
}

impl<P> Piece<P> {
    /// The header, for so many bytes and these flags.
    pub fn header(&self, length: usize, flags: u8) -> Segment {
        let mut header = Segment {
            flags,
            length: length as u32,
            ..Segment::control(Kind::Ordered, self.number)
        };
        match self.place {
            SegmentPlace::Ordered { queue, position } => {
                header.queue = queue;
                header.position = position;
            }
            SegmentPlace::Fragment { token, offset } => {
                header.kind = Kind::Fragment;
                header.position = offset;
                header.token = token;
            }
        }
        header
    }
}

#[derive(Debug)]
struct Flight<P> {
    sent: u64,
    acknowledged: u64,
    pieces: VecDeque<Piece<P>>,
}

/// The sending half of a channel. `P` holds the bytes of a segment.
#[derive(Debug)]
pub struct Outgoing<P> {
    next: u64,
    /// Of connections that broke, by number: they go before anything new.
    again: BTreeMap<u64, Piece<P>>,
    flights: BTreeMap<ConnectionId, Flight<P>>,
    /// Segments that were sent more than once.
    resent: u64,
}

impl<P> Default for Outgoing<P> {
    fn default() -> Self {
        Self {
            next: 1,
            again: BTreeMap::new(),
            flights: BTreeMap::new(),
            resent: 0,
        }
    }
}

impl<P> Outgoing<P> {
    /// There is a new connection.
    pub fn open(&mut self, id: ConnectionId) {
        self.flights.insert(
            id,
            Flight {
                sent: 0,
                acknowledged: 0,
                pieces: VecDeque::new(),
            },
        );
    }

    /// A new segment leaves on this connection; `None` if there is no such connection.
    pub fn send(&mut self, id: ConnectionId, place: SegmentPlace, payload: P) -> Option<&Piece<P>> {
        let flight = self.flights.get_mut(&id)?;
        let number = self.next;
        self.next += 1;
        Some(flight.push(Piece { number, place, payload }))
    }

    /// The next segment of a broken connection leaves on this one.
    pub fn send_again(&mut self, id: ConnectionId) -> Option<&Piece<P>> {
        let flight = self.flights.get_mut(&id)?;
        let (_, piece) = self.again.pop_first()?;
        self.resent += 1;
        Some(flight.push(piece))
    }

    /// Whether segments of a broken connection wait.
    pub fn waits_again(&self) -> bool {
        !self.again.is_empty()
    }

    /// The first segment that waits because its connection broke.
    pub fn first_again(&self) -> Option<&Piece<P>> {
        self.again.first_key_value().map(|(_, piece)| piece)
    }

    /// So many segments in all have arrived on this connection. Gives those that are new among them.
    pub fn acknowledged(
        &mut self,
        id: ConnectionId,
        count: u64,
    ) -> Result<impl Iterator<Item = Piece<P>> + '_, Violation> {
        let (new, pieces) = match self.flights.get_mut(&id) {
            None => (0, None),
            Some(flight) if count > flight.sent => {
                let sent = flight.sent;
                return Err(Violation::Acknowledged { count, sent });
            }
            // An old one may come late only by a fault of the peer; it does no harm.
            Some(flight) => {
                let new = count.saturating_sub(flight.acknowledged);
                flight.acknowledged += new;
                (new as usize, Some(&mut flight.pieces))
            }
        };
        Ok(pieces.into_iter().flat_map(move |p| p.drain(..new)))
    }

    /// The connection is gone.
    pub fn lost(&mut self, id: ConnectionId) {
        if let Some(flight) = self.flights.remove(&id) {
            self.again.extend(flight.pieces.into_iter().map(|p| (p.number, p)));
        }
    }

    /// The peer says what it has: gives those that need not be sent again.
    pub fn arrived(&mut self, hello: &Hello) -> Vec<Piece<P>> {
        let known: Vec<u64> = self.again.keys().copied().filter(|n| hello.has(*n)).collect();
        known.iter().filter_map(|n| self.again.remove(n)).collect()
    }

    /// Segments that were given to this connection.
    pub fn sent(&self, id: ConnectionId) -> u64 {
        self.flights.get(&id).map_or(0, |f| f.sent)
    }

    /// Segments that were not acknowledged on this connection.
    pub fn in_flight(&self, id: ConnectionId) -> usize {
        self.flights.get(&id).map_or(0, |f| f.pieces.len())
    }

    /// Everything that was sent was acknowledged.
    pub fn is_empty(&self) -> bool {
        self.again.is_empty() && self.flights.values().all(|f| f.pieces.is_empty())
    }

    /// All that is kept.
    pub fn kept(&mut self) -> impl Iterator<Item = &mut Piece<P>> {
        let flights = self.flights.values_mut().flat_map(|f| f.pieces.iter_mut());
        self.again.values_mut().chain(flights)
    }

    /// Segments that were sent more than once.
    pub fn resent(&self) -> u64 {
        self.resent
    }

    /// Forgets everything, and gives it.
    pub fn clear(&mut self) -> Vec<Piece<P>> {
        let again = std::mem::take(&mut self.again).into_values();
        let flights = std::mem::take(&mut self.flights).into_values().flat_map(|f| f.pieces);
        again.chain(flights).collect()
    }
}

impl<P> Flight<P> {
    fn push(&mut self, piece: Piece<P>) -> &Piece<P> {
        self.sent += 1;
        self.pieces.push_back(piece);
        let last = self.pieces.len() - 1;
        &self.pieces[last]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: SegmentPlace = SegmentPlace::Ordered { queue: 0, position: 0 };

    #[test]
    fn what_was_not_acknowledged_goes_again_unless_it_has_arrived() {
        let mut out = Outgoing::default();
        out.open(1);
        out.open(2);
        for (id, payload) in [(1, 'a'), (2, 'b'), (1, 'c'), (1, 'd')] {
            out.send(id, AT, payload).unwrap();
        }
        assert!(out.send(3, AT, 'x').is_none());
        let got: Vec<char> = out.acknowledged(1, 1).unwrap().map(|p| p.payload).collect();
        assert_eq!(got, ['a']);
        assert_eq!(out.acknowledged(1, 1).unwrap().count(), 0);
        assert!(out.acknowledged(1, 4).is_err());
        out.lost(1);
        assert_eq!(out.acknowledged(1, 2).unwrap().count(), 0, "too late");
        let hello = Hello {
            below: 1,
            ranges: vec![(3, 4)],
        };
        assert_eq!(out.arrived(&hello).len(), 1);
        assert_eq!(out.send_again(2).unwrap().number, 4);
        assert!(out.send_again(2).is_none());
        let rest: Vec<char> = out.acknowledged(2, 2).unwrap().map(|p| p.payload).collect();
        assert_eq!((rest, out.is_empty(), out.resent()), (vec!['b', 'd'], true, 1));
    }
}
