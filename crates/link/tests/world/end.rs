// SPDX-License-Identifier: Apache-2.0
//! One of the two processes.

use std::collections::VecDeque;
use std::time::Duration;

use isthmus_link::channel::{
    Begun, ConnectionId, Deframed, Deframer, Incoming, Outgoing, Receipts, SegmentPlace, Violation,
};
use isthmus_link::dial::{Cause, Dial};
use isthmus_link::filling::{Demand, Filling, Use};
use isthmus_link::ladder::{Rung, direct};
use isthmus_link::life::{Carrier, Down, Gone, Life, Moment, Opening, Unreached, Upkeep, Wanted};
use isthmus_link::line::{By, Line, Via};
use isthmus_link::pipe::Look;
use isthmus_link::sharing::{Class, Takes};
use isthmus_wire::hello::Purpose;
use isthmus_wire::segment::{Hello, Kind, Segment};

use super::{World, address_of, gateway, ms};

const DIAL_TIME: Duration = Duration::from_secs(10);
/// Segments of one connection that wait to be acknowledged.
const WINDOW: usize = 8;
/// All classes, the better ones first.
const CLASSES: [Class; 3] = [Class::Latency, Class::Normal, Class::Bulk];

/// What attempts come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Refused,
    Closed,
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

impl Cause for Why {
    fn is_refused(&self) -> bool {
        *self == Self::Refused
    }
    fn is_silent(&self) -> bool {
        false
    }
    fn is_about_certificates(&self) -> bool {
        false
    }
    fn is_stranger(&self) -> bool {
        *self == Self::Closed
    }
}

/// A connection of this end.
pub(crate) struct Wire {
    line: Line,
    number: u64,
    receipts: Receipts,
    begun: Begun,
    deframer: Deframer,
    collected: Option<(Segment, Vec<u8>)>,
    said: Vec<u8>,
    reaches: bool,
}

impl Carrier for Wire {
    fn line(&self) -> &Line {
        &self.line
    }
    fn line_mut(&mut self) -> &mut Line {
        &mut self.line
    }
    fn receipts(&mut self) -> &mut Receipts {
        &mut self.receipts
    }
    fn begun(&mut self) -> &mut Begun {
        &mut self.begun
    }
    fn is_between(&self) -> bool {
        true
    }
    fn is_flushed(&self) -> bool {
        self.said.is_empty()
    }
    fn reaches(&self) -> bool {
        self.reaches
    }
    fn say(&mut self, kind: Kind) {
        self.said.extend_from_slice(&Segment::control(kind, 0).encode());
    }
}

/// What one end says at a time.
#[derive(Clone, Debug)]
struct Message {
    class: Class,
    bytes: Vec<u8>,
}

pub(crate) struct End {
    me: usize,
    patience: Duration,
    pub(crate) life: Life<Wire>,
    pub(crate) dial: Option<Dial<Why>>,
    out: Outgoing<Message>,
    incoming: Incoming,
    /// By class, as the next two.
    waiting: [VecDeque<Message>; 3],
    position: [u64; 3],
    pub(crate) got: [Vec<u8>; 3],
    /// Classes that have been used.
    asked: Demand,
    filling: Filling,
    acknowledged: u64,
    farewell: bool,
    pub(crate) closing: bool,
    /// Only through the gateway, as was settled at first.
    pub(crate) by_gateway: bool,
    pub(crate) alarm: Duration,
    pub(crate) lost: Option<String>,
    /// How often the channel had lost all its connections.
    pub(crate) cuts: u32,
    pub(crate) opened: u32,
}

impl End {
    pub(super) fn new(me: usize, patience: Duration) -> Self {
        Self {
            me,
            patience,
            life: Life::default(),
            dial: None,
            out: Outgoing::default(),
            incoming: Incoming::default(),
            waiting: Default::default(),
            position: [0; 3],
            got: Default::default(),
            asked: Demand::default(),
            filling: Filling::default(),
            acknowledged: 0,
            farewell: false,
            closing: false,
            by_gateway: false,
            alarm: Duration::MAX,
            lost: None,
            cuts: 0,
            opened: 0,
        }
    }

    /// Wants to say this.
    pub(crate) fn push(world: &mut World, me: usize, class: Class, bytes: Vec<u8>) {
        let end = &mut world.ends[me];
        end.asked.latency |= class == Class::Latency;
        end.asked.bulk |= class == Class::Bulk;
        end.waiting[class as usize].push_back(Message { class, bytes });
        if world.ends[me].life.handle_wanted() == Wanted::Dial {
            Self::dial(world, me, Purpose::First);
        }
        world.ends[me].alarm = world.now;
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.iter().all(VecDeque::is_empty) && self.out.is_empty()
    }

    /// What this connection sends next.
    fn next_piece(&mut self, id: ConnectionId, takes: Takes) -> Option<Vec<u8>> {
        let again = self.out.first_again().is_some_and(|p| takes.takes(p.payload.class));
        let piece = if again {
            self.out.send_again(id)?
        } else {
            let ready = |class: &Class| takes.takes(*class) && !self.waiting[*class as usize].is_empty();
            let class = CLASSES.into_iter().find(ready)?;
            let message = self.waiting[class as usize].pop_front()?;
            let position = &mut self.position[class as usize];
            let place = SegmentPlace::Ordered {
                queue: class as u8,
                position: *position,
            };
            *position += message.bytes.len() as u64;
            self.out.send(id, place, message)?
        };
        let bytes = &piece.payload.bytes;
        Some([&piece.header(bytes.len(), 0).encode()[..], bytes].concat())
    }

    pub(super) fn admits(&self, purpose: Purpose, deciding: bool, now: Duration) -> bool {
        self.life.admits(purpose, deciding, now)
    }

    fn rungs(&self, purpose: Purpose, reached: bool) -> Vec<Rung> {
        let through = Rung {
            address: gateway(),
            by: By::Gateway,
            after: Duration::ZERO,
        };
        match (self.by_gateway, purpose) {
            (true, Purpose::First) => vec![through],
            (true, _) => [
                direct([address_of(1 - self.me)]),
                vec![Rung {
                    after: ms(500),
                    ..through
                }],
            ]
            .concat(),
            // Behind a firewall nobody is dialled; it calls.
            (false, _) if !reached => Vec::new(),
            (false, _) => direct([address_of(1 - self.me)]),
        }
    }

    fn dial(world: &mut World, me: usize, purpose: Purpose) {
        if world.ends[me].dial.is_none() {
            let rungs = world.ends[me].rungs(purpose, world.reached[1 - me]);
            world.ends[me].dial = Some(Dial::new(purpose, world.now, DIAL_TIME, rungs, Vec::new()));
            world.ends[me].alarm = world.now;
        }
    }

    pub(super) fn attempt_failed(world: &mut World, me: usize, at: (u64, usize), purpose: Purpose, why: Why) {
        let (number, candidate) = at;
        let (now, end) = (world.now, &mut world.ends[me]);
        if purpose.is_more() {
            return end.life.handle_not_coming();
        }
        // Of an earlier dialling, perhaps.
        let Some(dial) = end.dial.as_mut().filter(|d| d.under_way().any(|n| n == number)) else {
            return;
        };
        dial.handle_failed(candidate, why, now);
        end.alarm = now;
        if dial.is_refused(end.life.last_seen()) {
            let report = dial.explain();
            Self::unreached(world, me, &report, true);
        }
    }

    fn unreached(world: &mut World, me: usize, report: &str, refused: bool) {
        let end = &mut world.ends[me];
        let unreached = end.life.handle_unreached(world.now, end.patience, refused);
        Self::stop_dialling(world, me);
        match unreached {
            Unreached::Again => Self::dial(world, me, Purpose::Resume),
            Unreached::NotAway => Self::lose(world, me, format!("cannot be reached: {report}")),
            Unreached::Lost(why) => Self::lose(world, me, format!("{why}. {report}")),
        }
    }

    fn lose(world: &mut World, me: usize, why: String) {
        world.say(format!("{me} has lost the other: {why}"));
        for wire in world.ends[me].life.handle_end(true).into_values() {
            world.close(wire.number, me);
        }
        world.ends[me].lost = Some(why);
    }

    fn stop_dialling(world: &mut World, me: usize) {
        let Some(dial) = world.ends[me].dial.take() else { return };
        for number in dial.under_way() {
            world.close(number, me);
            if world.connections.get(&number).is_some_and(|c| c.at[me].is_none()) {
                world.connections.remove(&number);
            }
        }
    }

    pub(super) fn open(
        world: &mut World,
        me: usize,
        number: u64,
        purpose: Purpose,
        dialled: Option<By>,
        by: By,
    ) -> ConnectionId {
        for id in world.ends[me].life.replaced(purpose) {
            Self::drop_connection(world, me, id);
        }
        let now = world.now;
        let other = match by {
            By::Direct => address_of(1 - me),
            By::Gateway | By::Call => gateway(),
        };
        let via = Via::of(purpose, dialled, || match by {
            By::Direct => Via::Direct,
            By::Gateway | By::Call => Via::OurGateway,
        });
        let end = &mut world.ends[me];
        let id = end.life.next_id();
        let wire = Wire {
            line: Line::new(purpose, via, now),
            number,
            receipts: Receipts::default(),
            begun: Begun::default(),
            deframer: Deframer::default(),
            collected: None,
            said: end.incoming.hello().encode(),
            reaches: true,
        };
        let how = Opening {
            dialled: dialled.is_some(),
            address: Some(other),
            by_gateway: end.life.address() == Some(gateway()),
        };
        end.out.open(id);
        end.cuts += u32::from(end.life.handle_opened(id, wire, how).is_some());
        end.opened += 1;
        end.alarm = now;
        if !purpose.is_more() {
            // This one is under way no more.
            if let Some(dial) = end.dial.take() {
                for other in dial.under_way().filter(|n| *n != number) {
                    world.close(other, me);
                    world.connections.remove(&other);
                }
            }
        }
        id
    }

    fn drop_connection(world: &mut World, me: usize, id: ConnectionId) {
        world.ends[me].out.lost(id);
        if let Some(wire) = world.ends[me].life.lines.remove(&id) {
            world.close(wire.number, me);
        }
    }

    pub(super) fn connection_down(world: &mut World, me: usize, id: ConnectionId, why: Down<'_>) {
        let end = &mut world.ends[me];
        if !end.life.lines.contains_key(&id) {
            return;
        }
        let how = end.life.end_of(id, why);
        Self::drop_connection(world, me, id);
        let (now, end) = (world.now, &mut world.ends[me]);
        let last_word = end.farewell || end.closing;
        let gone = end.life.handle_lost(how, why.to_string(), last_word, now);
        world.say(format!("{me}: {why}: {gone:?}"));
        match gone {
            Gone::Nothing | Gone::Resend => {}
            Gone::End => drop(world.ends[me].life.handle_end(false)),
            Gone::Dial(_) => Self::dial(world, me, Purpose::Resume),
        }
        world.ends[me].alarm = now;
    }

    pub(super) fn hear(world: &mut World, me: usize, id: ConnectionId, bytes: &[u8]) {
        let (now, end) = (world.now, &mut world.ends[me]);
        end.alarm = now;
        let Some(wire) = end.life.lines.get_mut(&id) else {
            return;
        };
        wire.line.vigil.heard(now);
        let (mut told, mut ended) = (Vec::new(), false);
        let (collected, receipts, incoming) = (&mut wire.collected, &mut wire.receipts, &mut end.incoming);
        let got = &mut end.got;
        let mut to = |part: Deframed<'_>| -> Result<(), Violation> {
            match part {
                Deframed::Head(segment) => *collected = Some((segment, Vec::new())),
                Deframed::Bytes(bytes) => collected.as_mut().unwrap().1.extend_from_slice(bytes),
                Deframed::End => {
                    ended = true;
                    let (segment, bytes) = collected.take().unwrap();
                    match segment.kind {
                        Kind::Ask => receipts.asked(),
                        Kind::Ordered => {
                            receipts.arrived(now, bytes.len(), false);
                            let at = (segment.number, segment.position);
                            let got = &mut got[usize::from(segment.queue)];
                            incoming.ordered(segment.queue, at, bytes, &mut |b| got.extend_from_slice(b))?;
                        }
                        _ => told.push((segment, bytes)),
                    }
                }
            }
            Ok(())
        };
        wire.deframer.feed(bytes, &mut to).unwrap();
        wire.begun.fed(now, bytes.len(), ended, wire.deframer.is_inside());
        for (segment, bytes) in told {
            let end = &mut world.ends[me];
            match segment.kind {
                Kind::Hello => {
                    end.out.arrived(&Hello::decode(&segment, &bytes).unwrap());
                    for worse in end.life.handle_hello(id) {
                        Self::drop_connection(world, me, worse);
                    }
                }
                Kind::Ack => {
                    let arrived = end.out.acknowledged(id, segment.number).unwrap();
                    end.acknowledged += arrived.map(|p| p.payload.bytes.len() as u64).sum::<u64>();
                }
                Kind::Streams => Self::dial_more(world, me, segment.number as usize),
                Kind::Farewell => end.farewell = true,
                kind => unreachable!("{kind:?}"),
            }
        }
    }

    /// Does what is due now.
    pub(super) fn turn(world: &mut World, me: usize) {
        world.ends[me].alarm = Duration::MAX;
        Self::dial_on(world, me);
        Self::speak(world, me);
        Self::upkeep(world, me);
        Self::speak(world, me);
        let (now, end) = (world.now, &mut world.ends[me]);
        if end.closing && end.is_idle() && end.life.handle_idle() {
            end.alarm = now;
        }
        if end.life.wants_better(now, true, true) && world.ends[me].by_gateway {
            world.ends[me].life.handle_coming();
            world.connect(me, (address_of(1 - me), By::Direct), 0, Purpose::Better);
        }
        Self::look(world, me);
    }

    /// Looks whether there should be more connections. Whoever was called asks the other end for them.
    fn look(world: &mut World, me: usize) {
        let (now, delay, end) = (world.now, world.delay, &mut world.ends[me]);
        if end.life.lines.is_empty() || !end.filling.is_due(now) {
            return;
        }
        let look = Look {
            acknowledged: end.acknowledged,
            backlog: !end.is_idle(),
            round_trip: delay * 2,
            shortest: delay * 2,
            // Here connections fill the link by themselves.
            by_rate: true,
            streams: end.life.expected(),
            most: 64,
            ..Look::default()
        };
        let bands = end.life.bands(end.asked.latency, end.asked.bulk);
        let used = Use {
            asked: end.asked,
            bands,
            relayed: false,
        };
        let looked = end.filling.handle_look(now, look, used);
        if !end.is_idle() {
            end.alarm = end.alarm.min(end.filling.poll_timeout());
        }
        let Some(count) = looked.connections else { return };
        match end.life.address() {
            Some(_) => Self::dial_more(world, me, count),
            None => {
                let wire = end.life.lines.values_mut().next();
                let word = Segment::control(Kind::Streams, count as u64).encode();
                wire.into_iter().for_each(|wire| wire.said.extend_from_slice(&word));
                end.alarm = now;
            }
        }
    }

    fn dial_more(world: &mut World, me: usize, count: usize) {
        while let Some(address) = world.ends[me].life.room_for(count) {
            world.ends[me].life.handle_coming();
            let by = if address == gateway() { By::Gateway } else { By::Direct };
            world.connect(me, (address, by), 0, Purpose::More);
        }
    }

    fn dial_on(world: &mut World, me: usize) {
        let now = world.now;
        let Some(dial) = &world.ends[me].dial else { return };
        if dial.is_over(now) {
            let report = dial.explain();
            return Self::unreached(world, me, &report, false);
        }
        while let Some((attempt, purpose)) = world.ends[me]
            .dial
            .as_mut()
            .and_then(|d| Some((d.poll_attempt(now)?, d.purpose())))
        {
            let number = world.connect(me, (attempt.address, attempt.by), attempt.candidate, purpose);
            if let Some(dial) = &mut world.ends[me].dial {
                dial.handle_begun(attempt.candidate, number);
            }
        }
        let end = &mut world.ends[me];
        let next = end.dial.as_ref().map_or(Duration::MAX, Dial::poll_timeout);
        end.alarm = end.alarm.min(next);
    }

    fn speak(world: &mut World, me: usize) {
        let (now, end) = (world.now, &mut world.ends[me]);
        let bands = end.life.bands(end.asked.latency, end.asked.bulk);
        let shares = end.life.shares(bands);
        let ids: Vec<ConnectionId> = end.life.lines.keys().copied().collect();
        let mut leaving = Vec::new();
        for (id, takes) in ids.into_iter().zip(shares) {
            let Some(wire) = end.life.lines.get_mut(&id) else {
                continue;
            };
            if wire.receipts.is_due(now) {
                let ack = Segment::control(Kind::Ack, wire.receipts.say());
                wire.said.extend_from_slice(&ack.encode());
            }
            let (number, is_ready) = (wire.number, wire.line.is_ready());
            let mut said = vec![std::mem::take(&mut wire.said)];
            while is_ready && end.out.in_flight(id) < WINDOW {
                let Some(piece) = end.next_piece(id, takes) else {
                    break;
                };
                said.push(piece);
            }
            said.retain(|bytes| !bytes.is_empty());
            leaving.extend(said.into_iter().map(|bytes| (number, bytes)));
        }
        for (number, bytes) in leaving {
            world.send(number, me, bytes);
        }
    }

    fn upkeep(world: &mut World, me: usize) {
        let (now, up) = (world.now, world.up);
        let Self {
            life, out, patience, ..
        } = &mut world.ends[me];
        // Whose kernel answers: nothing passes while the network is down.
        life.lines.values_mut().for_each(|wire| wire.reaches = up);
        let moment = Moment {
            now,
            patience: *patience,
            listens: true,
            unended: Duration::ZERO,
        };
        let next = match life.handle_timeout(moment, |id| out.in_flight(id), |_| true) {
            Upkeep::Away(end) => end,
            Upkeep::AwayTooLong => {
                let report = world.ends[me].dial.as_ref().map(Dial::explain).unwrap_or_default();
                return Self::unreached(world, me, &report, false);
            }
            Upkeep::NeverEnds(time) => return Self::lose(world, me, format!("it has not ended it for {time:?}")),
            Upkeep::Connections { next, dead, .. } => {
                for (id, time) in dead {
                    Self::connection_down(world, me, id, Down::Silent(time));
                }
                next
            }
        };
        let end = &mut world.ends[me];
        end.alarm = end.alarm.min(next.max(now + ms(1)));
    }
}
