// SPDX-License-Identifier: Apache-2.0
//! From the bytes of a channel's connections to frames and to the memory of the user. Knows no clock and no socket.

use std::collections::BTreeMap;
use std::time::Duration;

use isthmus_datatype::raw::WriteMemory;
use isthmus_link::channel::{self, Begun, Deframed, Deframer, Incoming, Receipts};
use isthmus_transport::{Lease, Lent, Peer, Placement};
use isthmus_wire::frame::{Header, Kind as FrameKind};
use isthmus_wire::segment::{COMPRESSED, Hello, Kind, Segment};
use rustc_hash::FxHashMap;

use crate::compression;
use crate::inbound::{self, Deliver, Inbound};
use crate::link::Arrival;
use crate::queues::FRAME;

/// The peer does not speak our protocol.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    Channel(channel::Violation),
    Frames(inbound::Violation),
    Compression(compression::Corrupt),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Channel(e) => e.fmt(f),
            Self::Frames(e) => e.fmt(f),
            Self::Compression(e) => e.fmt(f),
        }
    }
}

impl From<channel::Violation> for Fault {
    fn from(violation: channel::Violation) -> Self {
        Self::Channel(violation)
    }
}

/// Longer messages are written past the caches, whose room the thread needs for what comes next: 64 MiB took 15 % less
/// time.
const PAST_CACHES: u64 = 512 << 10;

/// What a peer says about the channel itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    Hello(Hello),
    Ack(u64),
    Streams(u64),
    Farewell,
    GivenUp,
}

/// Who gets what arrives.
pub(crate) struct Takers<'a> {
    pub(crate) peer: Peer,
    pub(crate) now: Duration,
    pub(crate) arrivals: &'a mut Vec<Arrival>,
    pub(crate) told: Vec<Notice>,
    /// Frames that measure.
    pub(crate) probes: Vec<Header>,
}

#[derive(Debug)]
struct Expectation {
    memory: Lent<WriteMemory>,
    length: u64,
    arrived: u64,
}

/// The receiving half of a channel, for all its connections.
#[derive(Debug, Default)]
pub(crate) struct Receiver {
    pub(crate) incoming: Incoming,
    streams: BTreeMap<u8, Inbound>,
    expected: FxHashMap<u64, Expectation>,
    /// The peer has said farewell.
    pub(crate) farewell: bool,
    /// Bytes that arrived compressed, and what they were.
    pub(crate) compressed: (u64, u64),
    /// For how long connections that are gone had kept this process waiting for the end of what had begun on them,
    /// since a segment was complete.
    pub(crate) unended: Duration,
}

impl Receiver {
    /// Data with this token go to `memory`.
    pub(crate) fn expect(&mut self, token: u64, memory: Lent<WriteMemory>, length: u64) {
        let arrived = 0;
        self.expected.insert(
            token,
            Expectation {
                memory,
                length,
                arrived,
            },
        );
    }

    /// Where these bytes of a message go; `None`: it was not announced.
    fn place(&self, token: u64, offset: u64, bytes: u64) -> Result<Option<Lent<WriteMemory>>, Fault> {
        let Some(expectation) = self.expected.get(&token) else {
            return Ok(None);
        };
        let length = expectation.length;
        if offset.checked_add(bytes).is_none_or(|end| end > length) {
            let outside = inbound::Violation::Outside { offset, bytes, length };
            return Err(Fault::Frames(outside));
        }
        Ok(Some(expectation.memory.clone()))
    }

    /// Whether this message is longer than what stays in a core's caches.
    fn is_long(&self, token: u64) -> bool {
        self.expected.get(&token).is_some_and(|e| e.length > PAST_CACHES)
    }

    /// So many bytes of a message are in their place. True when it is complete.
    fn placed(&mut self, token: u64, bytes: u64, peer: Peer, arrivals: &mut Vec<Arrival>) -> bool {
        let Some(expectation) = self.expected.get_mut(&token) else {
            return false;
        };
        expectation.arrived += bytes;
        let complete = expectation.arrived >= expectation.length;
        if complete {
            self.expected.remove(&token);
            arrivals.push(Arrival::Received { peer, token });
        }
        complete
    }

    /// A segment of frames is complete.
    fn ordered(&mut self, segment: &Segment, bytes: Vec<u8>, to: &mut Takers<'_>) -> Result<(), Fault> {
        let mut stream = self
            .streams
            .remove(&segment.queue)
            .unwrap_or_else(|| Inbound::new(FRAME));
        let mut whole = Whole::default();
        let mut fed = Ok(());
        let mut feed = |bytes: &[u8]| {
            if fed.is_ok() {
                fed = stream.feed(bytes, &mut whole);
            }
        };
        let at = (segment.number, segment.position);
        self.incoming.ordered(segment.queue, at, bytes, &mut feed)?;
        fed.map_err(Fault::Frames)?;
        self.streams.insert(segment.queue, stream);
        for (header, payload) in whole.0 {
            self.frame(header, payload, to)?;
        }
        Ok(())
    }

    fn frame(&mut self, header: Header, payload: Vec<u8>, to: &mut Takers<'_>) -> Result<(), Fault> {
        let peer = to.peer;
        match header.kind {
            FrameKind::Probe => to.probes.push(header),
            FrameKind::Data => {
                let (offset, bytes) = (header.auxiliary(), header.length);
                match self.place(header.token, offset, bytes)? {
                    Some(memory) => {
                        memory.with(|memory| memory.write(offset as isize, &payload));
                        self.placed(header.token, bytes, peer, to.arrivals);
                    }
                    None => to.arrivals.push(Arrival::Frame { peer, header, payload }),
                }
            }
            _ => to.arrivals.push(Arrival::Frame { peer, header, payload }),
        }
        Ok(())
    }
}

/// Frames as they are complete.
#[derive(Default)]
struct Whole(Vec<(Header, Vec<u8>)>);

impl Deliver for Whole {
    fn frame(&mut self, header: &Header, payload: &[u8]) {
        self.0.push((*header, payload.to_vec()));
    }
    fn collected(&mut self, header: &Header, payload: Vec<u8>) {
        self.0.push((*header, payload));
    }
    fn place(&mut self, _: &Header) -> Placement {
        // Only the engine knows, and it is not here.
        Placement::Collect
    }
    fn placed(&mut self, _: &Header) {}
    fn received(&mut self, _: u64) {}
}

#[derive(Debug)]
enum Stage {
    Between,
    Collect(Segment, Vec<u8>),
    /// A fragment goes straight to its place.
    Into {
        segment: Segment,
        memory: Lent<WriteMemory>,
        done: usize,
        past_caches: bool,
    },
    /// It has arrived already.
    Skip(Segment),
}

/// The receiving half of one connection.
#[derive(Debug)]
pub(crate) struct Reading {
    deframer: Deframer,
    stage: Stage,
    greeted: bool,
    pub(crate) receipts: Receipts,
    /// What has begun and not ended.
    pub(crate) begun: Begun,
}

impl Reading {
    pub(crate) fn new() -> Self {
        Self {
            deframer: Deframer::default(),
            stage: Stage::Between,
            greeted: false,
            receipts: Receipts::default(),
            begun: Begun::default(),
        }
    }

    /// Whether nothing else than the end of what has begun can bring what it brings.
    pub(crate) fn is_awaited(&self, receiver: &Receiver) -> bool {
        match &self.stage {
            Stage::Between => false,
            Stage::Collect(s, _) | Stage::Into { segment: s, .. } | Stage::Skip(s) => {
                s.is_numbered() && receiver.incoming.is_new(s.number)
            }
        }
    }

    /// Whether it is inside a long segment.
    pub(crate) fn in_long(&self) -> bool {
        match &self.stage {
            Stage::Between => false,
            Stage::Collect(s, _) | Stage::Into { segment: s, .. } | Stage::Skip(s) => s.length as usize >= 32 << 10,
        }
    }

    /// Takes all of these bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8], receiver: &mut Receiver, to: &mut Takers<'_>) -> Result<(), Fault> {
        let Self {
            deframer,
            stage,
            greeted,
            receipts,
            begun,
        } = self;
        let mut ended = false;
        let fed = deframer.feed(bytes, &mut |part| match part {
            Deframed::Head(segment) => {
                if !std::mem::replace(greeted, true) && segment.kind != Kind::Hello {
                    return Err(channel::Violation::Hello.into());
                }
                *stage = Stage::begin(segment, receiver)?;
                Ok(())
            }
            Deframed::Bytes(bytes) => {
                if stage.is_numbered() {
                    receipts.heard(to.now);
                }
                stage.bytes(bytes, receiver);
                Ok(())
            }
            Deframed::End => {
                ended = true;
                std::mem::replace(stage, Stage::Between).end(receiver, receipts, to)
            }
        });
        begun.fed(to.now, bytes.len(), ended, deframer.is_inside());
        fed
    }
}

impl Stage {
    fn begin(segment: Segment, receiver: &Receiver) -> Result<Self, Fault> {
        if !segment.is_numbered() {
            return Ok(Self::Collect(segment, Vec::new()));
        }
        if receiver.farewell {
            return Err(channel::Violation::AfterFarewell.into());
        }
        if !receiver.incoming.is_new(segment.number) {
            return Ok(Self::Skip(segment));
        }
        if segment.kind == Kind::Fragment && segment.flags & COMPRESSED == 0 {
            let bytes = u64::from(segment.length);
            if let Some(memory) = receiver.place(segment.token, segment.position, bytes)? {
                return Ok(Self::Into {
                    segment,
                    memory,
                    done: 0,
                    past_caches: receiver.is_long(segment.token),
                });
            }
        }
        Ok(Self::Collect(segment, Vec::with_capacity(segment.length as usize)))
    }

    fn is_numbered(&self) -> bool {
        match self {
            Self::Between => false,
            Self::Collect(s, _) | Self::Into { segment: s, .. } | Self::Skip(s) => s.is_numbered(),
        }
    }

    fn bytes(&mut self, bytes: &[u8], receiver: &Receiver) {
        match self {
            Self::Between | Self::Skip(_) => {}
            Self::Collect(_, all) => all.extend_from_slice(bytes),
            Self::Into {
                segment,
                memory,
                done,
                past_caches,
            } => {
                // It may have come on another connection meanwhile; then the memory may be the user's again.
                if !receiver.incoming.is_new(segment.number) {
                    *self = Self::Skip(*segment);
                    return;
                }
                let (at, past_caches) = (segment.position as isize + *done as isize, *past_caches);
                let written = memory.with(|memory| {
                    if past_caches {
                        memory.write_past_caches(at, bytes);
                    } else {
                        memory.write(at, bytes);
                    }
                });
                *done += bytes.len();
                // The request has ended, perhaps by what the peer has sent on another connection.
                if written.is_none() {
                    *self = Self::Skip(*segment);
                }
            }
        }
    }

    fn end(self, receiver: &mut Receiver, receipts: &mut Receipts, to: &mut Takers<'_>) -> Result<(), Fault> {
        let (segment, bytes) = match self {
            Self::Between => return Ok(()),
            Self::Skip(segment) => {
                receiver.incoming.arrived(segment.number)?;
                // Whoever sends again has waited long enough.
                receipts.arrived(to.now, segment.length as usize, true);
                return Ok(());
            }
            Self::Into { segment, .. } => {
                let new = receiver.incoming.arrived(segment.number)?;
                receiver.unended = Duration::ZERO;
                let bytes = u64::from(segment.length);
                let last = new && receiver.placed(segment.token, bytes, to.peer, to.arrivals);
                receipts.arrived(to.now, segment.length as usize, last);
                return Ok(());
            }
            Self::Collect(segment, bytes) => (segment, bytes),
        };
        match segment.kind {
            Kind::Hello => {
                let hello = Hello::decode(&segment, &bytes).ok_or(channel::Violation::Hello)?;
                to.told.push(Notice::Hello(hello));
            }
            Kind::Ack => to.told.push(Notice::Ack(segment.number)),
            Kind::Ask => receipts.asked(),
            Kind::Streams => to.told.push(Notice::Streams(segment.number)),
            Kind::Farewell => {
                receiver.farewell = true;
                to.told.push(Notice::Farewell);
            }
            Kind::GivenUp => to.told.push(Notice::GivenUp),
            Kind::Loose => loose(&bytes, to)?,
            Kind::Ordered | Kind::Fragment => {
                let size = bytes.len();
                receiver.unended = Duration::ZERO;
                let bytes = unpacked(&segment, bytes, receiver)?;
                let last = match segment.kind {
                    Kind::Ordered => receiver.ordered(&segment, bytes, to).map(|()| false)?,
                    _ => fragment(&segment, &bytes, receiver, to)?,
                };
                receipts.arrived(to.now, size, last);
            }
        }
        Ok(())
    }
}

fn unpacked(segment: &Segment, bytes: Vec<u8>, receiver: &mut Receiver) -> Result<Vec<u8>, Fault> {
    if segment.flags & COMPRESSED == 0 {
        return Ok(bytes);
    }
    let plain = compression::unpack(&bytes).map_err(Fault::Compression)?;
    receiver.compressed.0 += bytes.len() as u64;
    receiver.compressed.1 += plain.len() as u64;
    Ok(plain)
}

/// A fragment that did not go straight to its place. True when its message is complete.
fn fragment(segment: &Segment, bytes: &[u8], receiver: &mut Receiver, to: &mut Takers<'_>) -> Result<bool, Fault> {
    let length = bytes.len() as u64;
    let place = receiver.place(segment.token, segment.position, length)?;
    if !receiver.incoming.arrived(segment.number)? {
        return Ok(false);
    }
    if let Some(memory) = place {
        memory.with(|memory| memory.write(segment.position as isize, bytes));
        return Ok(receiver.placed(segment.token, length, to.peer, to.arrivals));
    }
    let header = Header::control(FrameKind::Data, segment.token, segment.position, length);
    to.arrivals.push(Arrival::Frame {
        peer: to.peer,
        header,
        payload: bytes.to_vec(),
    });
    Ok(false)
}

/// One frame that measures.
fn loose(bytes: &[u8], to: &mut Takers<'_>) -> Result<(), Fault> {
    let mut whole = Whole::default();
    Inbound::new(FRAME).feed(bytes, &mut whole).map_err(Fault::Frames)?;
    let probes = whole.0.iter().filter(|(h, _)| h.kind == FrameKind::Probe);
    to.probes.extend(probes.map(|(header, _)| *header));
    Ok(())
}

/// For fuzzing: bytes of a peer that passed the handshake. What came of them in order.
#[doc(hidden)]
pub fn fuzz_channel(bytes: &[u8], cut: usize) -> usize {
    let (mut receiver, mut reading, mut arrivals) = (Receiver::default(), Reading::new(), Vec::new());
    let mut target = vec![0; 4096];
    // SAFETY: `target` outlives the receiver and is not touched otherwise.
    let lease = Lease::new(unsafe { WriteMemory::new(target.as_mut_ptr(), 0, 4096) });
    receiver.expect(1, lease.lent(), 4096);
    for piece in bytes.chunks(cut.max(1)) {
        let mut to = Takers {
            peer: Peer::new(1),
            now: Duration::ZERO,
            arrivals: &mut arrivals,
            told: Vec::new(),
            probes: Vec::new(),
        };
        if reading.feed(piece, &mut receiver, &mut to).is_err() {
            break;
        }
    }
    arrivals.len()
}

#[cfg(test)]
mod tests {
    use isthmus_wire::frame::HEADER_BYTES;

    use super::*;
    use crate::outbox::encode;

    fn hello() -> Vec<u8> {
        Hello {
            below: 1,
            ranges: vec![],
        }
        .encode()
    }

    fn fragment(number: u64, offset: u64, bytes: &[u8]) -> Vec<u8> {
        let segment = Segment {
            length: bytes.len() as u32,
            position: offset,
            token: 7,
            ..Segment::control(Kind::Fragment, number)
        };
        [&segment.encode()[..], bytes].concat()
    }

    fn take(reading: &mut Reading, receiver: &mut Receiver, bytes: &[u8]) -> Result<(usize, Vec<Notice>), Fault> {
        let mut arrivals = Vec::new();
        let mut to = Takers {
            peer: Peer::new(1),
            now: Duration::ZERO,
            arrivals: &mut arrivals,
            told: Vec::new(),
            probes: Vec::new(),
        };
        reading.feed(bytes, receiver, &mut to)?;
        let told = to.told;
        Ok((arrivals.len(), told))
    }

    #[test]
    fn a_fragment_that_comes_twice_does_not_touch_memory_again() {
        let mut target = vec![0u8; 8];
        // SAFETY: below `target` is only looked at.
        let lease = Lease::new(unsafe { WriteMemory::new(target.as_mut_ptr(), 0, 8) });
        let mut receiver = Receiver::default();
        receiver.expect(7, lease.lent(), 8);
        let (mut old, mut new) = (Reading::new(), Reading::new());
        let whole = fragment(1, 0, &[5; 8]);
        let begun = [hello(), whole[..SEGMENT_HEAD + 4].to_vec()].concat();
        assert_eq!(take(&mut old, &mut receiver, &begun).unwrap().0, 0);
        let other = [hello(), fragment(1, 0, &[6; 8])].concat();
        assert_eq!(take(&mut new, &mut receiver, &other).unwrap().0, 1, "received");
        take(&mut old, &mut receiver, &whole[SEGMENT_HEAD + 4..]).unwrap();
        assert_eq!(target, [6; 8]);
        assert_eq!(old.receipts.say(), 1, "acknowledged all the same");
        let outside = fragment(2, 8, &[1]);
        receiver.expect(7, lease.lent(), 8);
        assert!(take(&mut new, &mut receiver, &outside).is_err());
    }

    #[test]
    fn what_one_connection_has_begun_does_not_go_on_when_another_one_has_ended_the_message() {
        let mut target = vec![0u8; 8];
        // SAFETY: below `target` is touched through the memory only as long as it is lent.
        let lease = Lease::new(unsafe { WriteMemory::new(target.as_mut_ptr(), 0, 8) });
        let mut receiver = Receiver::default();
        receiver.expect(7, lease.lent(), 8);
        let (mut slow, mut quick) = (Reading::new(), Reading::new());
        let whole = fragment(1, 0, &[5; 8]);
        let begun = [hello(), whole[..SEGMENT_HEAD + 4].to_vec()].concat();
        take(&mut slow, &mut receiver, &begun).unwrap();
        // The same bytes of the message again, under another number.
        let other = [hello(), fragment(2, 0, &[6; 8])].concat();
        assert_eq!(take(&mut quick, &mut receiver, &other).unwrap().0, 1, "received");
        drop(lease);
        target.fill(1);
        take(&mut slow, &mut receiver, &whole[SEGMENT_HEAD + 4..]).unwrap();
        assert_eq!(target, [1; 8]);
    }

    #[test]
    fn what_has_begun_on_a_connection_is_known_until_it_has_ended_or_come_on_another_one() {
        let (mut one, mut other, mut receiver) = (Reading::new(), Reading::new(), Receiver::default());
        let whole = fragment(1, 0, &[5; 8]);
        let begun = |reading: &Reading| reading.begun.due(Duration::ZERO).is_some();
        take(&mut one, &mut receiver, &hello()).unwrap();
        assert!(!begun(&one));
        take(&mut one, &mut receiver, &whole[..5]).unwrap();
        assert!(
            begun(&one) && !one.is_awaited(&receiver),
            "nobody knows what it will be"
        );
        take(&mut one, &mut receiver, &whole[5..SEGMENT_HEAD + 4]).unwrap();
        assert!(begun(&one) && one.is_awaited(&receiver));
        receiver.unended = Duration::from_secs(9);
        take(&mut other, &mut receiver, &[hello(), whole.clone()].concat()).unwrap();
        assert!(begun(&one) && !one.is_awaited(&receiver), "it has come");
        assert_eq!(receiver.unended, Duration::ZERO);
        take(&mut one, &mut receiver, &whole[SEGMENT_HEAD + 4..]).unwrap();
        assert!(!begun(&one));
    }

    const SEGMENT_HEAD: usize = isthmus_wire::segment::SEGMENT_BYTES;

    #[test]
    fn frames_come_in_order_from_two_connections() {
        let frame = encode(&Header::new(FrameKind::Eager, 0, 0, 5, 10, 0), &[1; 10]);
        let two = [frame.clone(), frame].concat();
        assert_eq!(two.len(), 2 * (HEADER_BYTES + 10));
        let part = |number: u64, from: usize, to: usize| {
            let segment = Segment {
                length: (to - from) as u32,
                position: from as u64,
                ..Segment::control(Kind::Ordered, number)
            };
            [&segment.encode()[..], &two[from..to]].concat()
        };
        let (mut a, mut b, mut receiver) = (Reading::new(), Reading::new(), Receiver::default());
        let late = [hello(), part(2, 20, 84)].concat();
        assert_eq!(
            take(&mut a, &mut receiver, &late).unwrap(),
            (
                0,
                vec![Notice::Hello(Hello {
                    below: 1,
                    ranges: vec![]
                })]
            )
        );
        let early = [hello(), part(1, 0, 20)].concat();
        assert_eq!(take(&mut b, &mut receiver, &early).unwrap().0, 2);
        assert!(
            take(&mut Reading::new(), &mut receiver, &part(3, 84, 84 - 1 + 1)).is_err(),
            "no hello"
        );
    }
}
