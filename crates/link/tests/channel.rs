// SPDX-License-Identifier: Apache-2.0
//! A channel over connections that are cut, in virtual time: nothing is lost, doubled or out of order.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use isthmus_link::channel::{
    ConnectionId, Deframed, Deframer, Duty, Incoming, Outgoing, Receipts, SILENCE, SegmentPlace, Vigil, Violation,
};
use isthmus_wire::segment::{Hello, Kind, Segment};
use proptest::prelude::*;

const STEP: Duration = Duration::from_millis(5);

/// One direction of a connection: bytes with the time at which they arrive.
#[derive(Default)]
struct Wire {
    bytes: VecDeque<(Duration, Vec<u8>)>,
}

struct Line {
    deframer: Deframer,
    collected: Option<(Segment, Vec<u8>)>,
    receipts: Receipts,
    vigil: Vigil,
    ready: bool,
    greeted: bool,
}

/// One of the two processes.
struct End {
    out: Outgoing<Vec<u8>>,
    incoming: Incoming,
    lines: BTreeMap<ConnectionId, Line>,
    waiting: VecDeque<(SegmentPlace, Vec<u8>)>,
    streams: BTreeMap<u8, Vec<u8>>,
    fragments: Vec<u64>,
}

impl End {
    fn new(messages: &[(u8, usize)]) -> Self {
        let (mut positions, mut waiting) = (BTreeMap::<u8, u64>::new(), VecDeque::new());
        for (i, (queue, size)) in messages.iter().enumerate() {
            let bytes = vec![i as u8; *size];
            let place = if *queue == 3 {
                SegmentPlace::Fragment {
                    token: i as u64,
                    offset: 0,
                }
            } else {
                let position = positions.entry(*queue).or_default();
                *position += *size as u64;
                let position = *position - *size as u64;
                SegmentPlace::Ordered {
                    queue: *queue,
                    position,
                }
            };
            waiting.push_back((place, bytes));
        }
        Self {
            out: Outgoing::default(),
            incoming: Incoming::default(),
            lines: BTreeMap::new(),
            waiting,
            streams: BTreeMap::new(),
            fragments: Vec::new(),
        }
    }

    fn open(&mut self, id: ConnectionId, now: Duration, wire: &mut Wire, delay: Duration) {
        self.out.open(id);
        let line = Line {
            deframer: Deframer::default(),
            collected: None,
            receipts: Receipts::default(),
            vigil: Vigil::new(now),
            ready: false,
            greeted: false,
        };
        self.lines.insert(id, line);
        wire.bytes.push_back((now + delay, self.incoming.hello().encode()));
    }

    fn lose(&mut self, id: ConnectionId) {
        self.out.lost(id);
        self.lines.remove(&id);
    }

    fn hear(&mut self, id: ConnectionId, now: Duration, bytes: &[u8]) {
        let Self {
            lines,
            incoming,
            out,
            streams,
            fragments,
            ..
        } = self;
        let Some(line) = lines.get_mut(&id) else { return };
        line.vigil.heard(now);
        let Line {
            deframer,
            collected,
            receipts,
            ready,
            greeted,
            ..
        } = line;
        let mut to = |part: Deframed<'_>| -> Result<(), Violation> {
            match part {
                Deframed::Head(segment) => *collected = Some((segment, Vec::new())),
                Deframed::Bytes(bytes) => collected.as_mut().unwrap().1.extend_from_slice(bytes),
                Deframed::End => {
                    let (segment, bytes) = collected.take().unwrap();
                    assert_eq!(segment.kind == Kind::Hello, !std::mem::replace(greeted, true));
                    match segment.kind {
                        Kind::Hello => {
                            out.arrived(&Hello::decode(&segment, &bytes).unwrap());
                            *ready = true;
                        }
                        Kind::Ack => drop(out.acknowledged(id, segment.number)?.count()),
                        Kind::Ask => receipts.asked(),
                        Kind::Ordered => {
                            receipts.arrived(now, bytes.len(), false);
                            let stream = streams.entry(segment.queue).or_default();
                            let at = (segment.number, segment.position);
                            incoming.ordered(segment.queue, at, bytes, &mut |b| stream.extend_from_slice(b))?;
                        }
                        Kind::Fragment => {
                            receipts.arrived(now, bytes.len(), false);
                            if incoming.arrived(segment.number)? {
                                fragments.push(segment.token);
                            }
                        }
                        Kind::Streams | Kind::Loose | Kind::Farewell | Kind::GivenUp => unreachable!(),
                    }
                }
            }
            Ok(())
        };
        deframer.feed(bytes, &mut to).unwrap();
    }

    /// What leaves on this connection now; `None`: it is given up.
    fn speak(&mut self, id: ConnectionId, now: Duration) -> Option<Vec<u8>> {
        let line = self.lines.get_mut(&id)?;
        let mut said = Vec::new();
        match line.vigil.duty(now, self.out.in_flight(id) > 0, true) {
            Duty::GiveUp => return None,
            Duty::Ask => {
                line.vigil.asked(now);
                said.extend_from_slice(&Segment::control(Kind::Ask, 0).encode());
            }
            Duty::Wait(_) => {}
        }
        if line.receipts.is_due(now) {
            said.extend_from_slice(&Segment::control(Kind::Ack, line.receipts.say()).encode());
        }
        if line.ready {
            let piece = if self.out.waits_again() {
                self.out.send_again(id)
            } else if let Some((place, bytes)) = self.waiting.pop_front() {
                self.out.send(id, place, bytes)
            } else {
                return Some(said);
            };
            let piece = piece?;
            said.extend_from_slice(&piece.header(piece.payload.len(), 0).encode());
            said.extend_from_slice(&piece.payload);
        }
        Some(said)
    }

    fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.out.is_empty()
    }
}

/// What happens to the connections.
#[derive(Clone, Debug)]
enum Event {
    Open,
    /// Both ends are told at once.
    Reset,
    /// Nobody is told; bytes under way are lost but for the first few.
    Silence {
        keep: usize,
    },
}

struct Network {
    ends: [End; 2],
    /// To end 0, to end 1.
    wires: BTreeMap<ConnectionId, [Wire; 2]>,
    mute: Vec<ConnectionId>,
    next: ConnectionId,
    now: Duration,
    delay: Duration,
}

impl Network {
    fn open(&mut self) {
        let id = self.next;
        self.next += 1;
        let mut wires = [Wire::default(), Wire::default()];
        let (to_0, to_1) = wires.split_at_mut(1);
        self.ends[0].open(id, self.now, &mut to_1[0], self.delay);
        self.ends[1].open(id, self.now, &mut to_0[0], self.delay);
        self.wires.insert(id, wires);
    }

    fn close(&mut self, id: ConnectionId) {
        self.ends.iter_mut().for_each(|e| e.lose(id));
        self.wires.remove(&id);
        self.mute.retain(|l| *l != id);
    }

    fn happen(&mut self, event: &Event) {
        let Some(id) = self.wires.keys().find(|l| !self.mute.contains(l)).copied() else {
            return self.open();
        };
        match event {
            Event::Open => self.open(),
            Event::Reset => self.close(id),
            Event::Silence { keep } => {
                self.mute.push(id);
                for wire in self.wires.get_mut(&id).unwrap() {
                    let mut left = *keep;
                    for (_, bytes) in &mut wire.bytes {
                        bytes.truncate(left);
                        left -= bytes.len();
                    }
                }
            }
        }
    }

    fn step(&mut self) {
        self.now += STEP;
        let mut dead = Vec::new();
        for (id, wires) in &mut self.wires {
            for side in 0..2 {
                while wires[side].bytes.front().is_some_and(|(at, _)| *at <= self.now) {
                    let (_, bytes) = wires[side].bytes.pop_front().unwrap();
                    // In pieces, as TCP likes.
                    for piece in bytes.chunks(7) {
                        self.ends[side].hear(*id, self.now, piece);
                    }
                }
                match self.ends[side].speak(*id, self.now) {
                    None => dead.push(*id),
                    Some(said) if !said.is_empty() && !self.mute.contains(id) => {
                        wires[1 - side].bytes.push_back((self.now + self.delay, said));
                    }
                    Some(_) => {}
                }
            }
        }
        for id in dead {
            self.close(id);
        }
        if self.wires.is_empty() {
            self.open();
        }
    }
}

fn events() -> impl Strategy<Value = Vec<(u32, Event)>> {
    let event = prop_oneof![
        Just(Event::Open),
        Just(Event::Reset),
        (0usize..400).prop_map(|keep| Event::Silence { keep }),
    ];
    prop::collection::vec((0u32..300, event), 0..12)
}

fn messages() -> impl Strategy<Value = Vec<(u8, usize)>> {
    prop::collection::vec((0u8..4, 1usize..90), 0..150)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn nothing_is_lost_doubled_or_out_of_order(a in messages(), b in messages(), events in events(), delay in 0u64..80) {
        let mut network = Network {
            ends: [End::new(&a), End::new(&b)],
            wires: BTreeMap::new(),
            mute: Vec::new(),
            next: 0,
            now: Duration::ZERO,
            delay: Duration::from_millis(delay),
        };
        network.open();
        for (steps, event) in &events {
            (0..*steps).for_each(|_| network.step());
            network.happen(event);
        }
        // All that is silent is given up, and then it must go on.
        let end = network.now + SILENCE * (events.len() as u32 + 2) + Duration::from_secs(60);
        while !network.ends.iter().all(End::is_done) {
            prop_assert!(network.now < end, "it does not come to an end");
            network.step();
        }
        for (sent, end) in [(&a, &network.ends[1]), (&b, &network.ends[0])] {
            for queue in 0..3 {
                let want: Vec<u8> = sent
                    .iter()
                    .enumerate()
                    .filter(|(_, (q, _))| *q == queue)
                    .flat_map(|(i, (_, size))| vec![i as u8; *size])
                    .collect();
                prop_assert_eq!(end.streams.get(&queue).cloned().unwrap_or_default(), want);
            }
            let mut fragments = end.fragments.clone();
            fragments.sort_unstable();
            let want: Vec<u64> = (0..sent.len() as u64).filter(|i| sent[*i as usize].0 == 3).collect();
            prop_assert_eq!(fragments, want);
        }
    }
}
