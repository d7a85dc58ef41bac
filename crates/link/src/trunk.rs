// SPDX-License-Identifier: Apache-2.0
//! A trunk: many streams of bytes on one connection between two gateways. Frames: [`isthmus_wire::gateway`].
//!
//! * **Fair**: streams that have something to send take turns of [`QUANTUM`] bytes.
//! * **Classes**: streams that make way ([`WISH_BULK`]) have their turn when no other stream has anything to send, and
//!   every [`PATIENCE`]th turn, lest they wait for ever.
//! * **Bundled**: [`Trunk::output`] fills one buffer with frames of all streams, to be written with one call.
//! * **No stream blocks another**: a stream sends what its receiver has room for. The receiver gives room back when the
//!   bytes have left it, so memory is bounded by the windows: [`FIRST_WINDOW`] each, which grow up to
//!   [`LARGEST_WINDOW`] where bytes leave as fast as they come, all together up to [`WINDOWS`] above the first ones.

use std::collections::{BTreeMap, VecDeque};

use isthmus_wire::gateway::{HEADER_BYTES, MAX_PAYLOAD, WISH_BULK, is_stream};

/// What a stream may send before the receiver has said anything, bytes: ten round trips of 25 ms at 10 Mbit/s take 300
/// kB.
pub const FIRST_WINDOW: u32 = 256 << 10;
/// Largest window of a stream: 500 Mbit/s over 130 ms.
pub const LARGEST_WINDOW: u32 = 8 << 20;
/// Bytes by which all windows of a trunk together may have grown: eight of the largest, for a gateway's memory.
pub const WINDOWS: u64 = 64 << 20;
/// Bytes of a stream that wait to be sent: what it may send at first.
pub const QUEUE: usize = 256 << 10;
/// Bytes of one stream before the next has its turn: what a TLS record holds (RFC 8446, 5.1). Of a link of 100 Mbit/s
/// it is 1.3 ms, which a short message waits for each long one.
pub const QUANTUM: usize = 16 << 10;
/// Turns of others after which a stream that makes way has one: 6 % of the link, about what [`crate::pipe::LEAST`]
/// leaves such data without gateways.
pub const PATIENCE: u32 = 16;
/// Most streams at a time: a bound for what a gateway that breaks the rules can cost.
pub const MAX_STREAMS: usize = 1 << 16;
/// Bytes of frames without data that wait; a peer that causes more does not read what it asks for.
const MAX_CONTROL: usize = 4 << 20;
/// Longest reason of a refusal, bytes.
const MAX_REASON: usize = 1024;

const OPEN: u8 = 1;
const OPENED: u8 = 2;
const REFUSED: u8 = 3;
const DATA: u8 = 4;
const CREDIT: u8 = 5;
const END: u8 = 6;
const RESET: u8 = 7;
const PING: u8 = 8;
const PONG: u8 = 9;
const WANT: u8 = 10;

/// What the other end did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It wants a stream: answer with [`Trunk::accept`] or [`Trunk::refuse`].
    Asked {
        /// Number of the stream.
        stream: u32,
        /// Rank at its side.
        from: u32,
        /// Rank at ours.
        to: u32,
        /// What for.
        wish: u8,
    },
    /// It has accepted a stream of ours.
    Opened(u32),
    /// It has refused a stream of ours, for this reason.
    Refused(u32, String),
    /// Bytes; say [`Trunk::consumed`] when they have left.
    Data(u32, Vec<u8>),
    /// No more bytes will come on this stream.
    Ended(u32),
    /// The stream is over.
    Reset(u32),
    /// There is room again to send on this stream, after [`Trunk::send`] took less than it was given.
    Room(u32),
    /// The answer to [`Trunk::ping`].
    Pong(u64),
    /// It wants a connection for this thread of its gateway and cannot make it.
    Wanted(u8),
}

/// The other end does not keep to the protocol; the connection is of no use any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub &'static str);

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the other gateway broke the protocol: {}", self.0)
    }
}

impl std::error::Error for Violation {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// We have asked.
    Asking,
    /// We were asked.
    Asked,
    Open,
}

/// How much this end has to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    /// More may come.
    More,
    /// What is in the queue, and then the end.
    Rest,
    /// Nothing: the end was sent.
    Over,
}

#[derive(Debug)]
struct Stream {
    state: State,
    /// It makes way for others.
    bulk: bool,
    /// To be sent.
    queue: VecDeque<u8>,
    /// Somebody waits for room in the queue.
    refused: bool,
    /// What the other end has room for.
    room: u64,
    /// It has its place among those that wait for their turn.
    waiting: bool,
    sending: Sending,
    /// The other end sends no more.
    peer_ended: bool,
    /// Bytes that may be on their way to us or lie here.
    window: u32,
    /// What the other end may still send.
    allowed: u32,
    /// What has left and was not given back yet.
    owed: u32,
    /// What has left since the window grew.
    left: u32,
}

impl Stream {
    fn new(state: State, wish: u8) -> Self {
        Self {
            state,
            bulk: wish == WISH_BULK,
            queue: VecDeque::new(),
            refused: false,
            room: u64::from(FIRST_WINDOW),
            waiting: false,
            sending: Sending::More,
            peer_ended: false,
            window: FIRST_WINDOW,
            allowed: FIRST_WINDOW,
            owed: 0,
            left: 0,
        }
    }

    fn has_something(&self) -> bool {
        self.state == State::Open && (!self.queue.is_empty() && self.room > 0 || self.ends_now())
    }

    fn ends_now(&self) -> bool {
        self.sending == Sending::Rest && self.queue.is_empty()
    }
}

/// One end of a trunk.
#[derive(Debug)]
pub struct Trunk {
    /// Number of the next stream of ours: odd ones belong to the end that dialled.
    next: u32,
    streams: BTreeMap<u32, Stream>,
    waiting: VecDeque<u32>,
    /// The same, of those that make way.
    yielding: VecDeque<u32>,
    /// Turns since the last one of these.
    passed_over: u32,
    control: Vec<u8>,
    pong: Option<u64>,
    input: Vec<u8>,
    grown: u64,
}

impl Trunk {
    /// An end; `dialled`: this one made the connection.
    pub fn new(dialled: bool) -> Self {
        Self {
            next: if dialled { 1 } else { 2 },
            streams: BTreeMap::new(),
            waiting: VecDeque::new(),
            yielding: VecDeque::new(),
            passed_over: 0,
            control: Vec::new(),
            pong: None,
            input: Vec::new(),
            grown: 0,
        }
    }

    /// Asks for a stream; `None` when there are too many.
    pub fn open(&mut self, from: u32, to: u32, wish: u8) -> Option<u32> {
        if self.streams.len() >= MAX_STREAMS {
            return None;
        }
        let number = self.next;
        self.next = self.next.wrapping_add(2);
        self.streams.insert(number, Stream::new(State::Asking, wish));
        let payload = [&from.to_le_bytes()[..], &to.to_le_bytes(), &[wish]].concat();
        self.tell(OPEN, number, &payload);
        Some(number)
    }

    /// Accepts a stream that was asked for.
    pub fn accept(&mut self, stream: u32) {
        if let Some(s) = self.streams.get_mut(&stream).filter(|s| s.state == State::Asked) {
            s.state = State::Open;
            self.tell(OPENED, stream, &[]);
        }
    }

    /// Refuses a stream that was asked for.
    pub fn refuse(&mut self, stream: u32, why: &str) {
        if self.streams.get(&stream).is_some_and(|s| s.state == State::Asked) {
            self.remove(stream);
            let mut end = why.len().min(MAX_REASON);
            while !why.is_char_boundary(end) {
                end -= 1;
            }
            self.tell(REFUSED, stream, &why.as_bytes()[..end]);
        }
    }

    /// Queues bytes; gives how many there was room for. When that is less than all, [`Event::Room`] tells when to go
    /// on.
    pub fn send(&mut self, stream: u32, bytes: &[u8]) -> usize {
        let sends = |s: &&mut Stream| s.sending == Sending::More;
        let Some(s) = self.streams.get_mut(&stream).filter(sends) else {
            return bytes.len();
        };
        let n = bytes.len().min(QUEUE.saturating_sub(s.queue.len()));
        s.queue.extend(&bytes[..n]);
        s.refused = n < bytes.len();
        self.enqueue(stream);
        n
    }

    /// No more bytes will be sent.
    pub fn end(&mut self, stream: u32) {
        if let Some(s) = self.streams.get_mut(&stream).filter(|s| s.sending == Sending::More) {
            s.sending = Sending::Rest;
            self.enqueue(stream);
        }
    }

    /// The stream is over, whatever was still on its way.
    pub fn reset(&mut self, stream: u32) {
        if self.streams.contains_key(&stream) {
            self.remove(stream);
            self.tell(RESET, stream, &[]);
        }
    }

    /// Bytes that came with [`Event::Data`] have left.
    pub fn consumed(&mut self, stream: u32, bytes: usize) {
        let Some(s) = self.streams.get_mut(&stream) else {
            return;
        };
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        s.owed = s.owed.saturating_add(bytes).min(s.window);
        s.left = s.left.saturating_add(bytes);
        let grow = u64::from(s.window.min(LARGEST_WINDOW - s.window));
        // A whole window went through: the receiver is not what is slow.
        if s.left >= s.window && grow > 0 && self.grown + grow <= WINDOWS {
            self.grown += grow;
            s.window += grow as u32;
            s.owed += grow as u32;
            s.left = 0;
        }
        if s.owed < s.window / 4 || s.peer_ended {
            return;
        }
        let owed = std::mem::take(&mut s.owed);
        s.allowed += owed;
        self.tell(CREDIT, stream, &owed.to_le_bytes());
    }

    /// Asks for an answer.
    pub fn ping(&mut self, number: u64) {
        self.tell(PING, 0, &number.to_le_bytes());
    }

    /// Asks for a connection for this thread of our gateway, which we cannot make.
    pub fn want(&mut self, thread: u8) {
        self.tell(WANT, 0, &[thread]);
    }

    /// Whether [`Trunk::output`] would give anything.
    pub fn has_output(&self) -> bool {
        !self.control.is_empty() || self.pong.is_some() || !self.waiting.is_empty() || !self.yielding.is_empty()
    }

    /// Streams that are open or asked for.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// The next bytes for the connection, about `most` of them; events that come of it are appended.
    pub fn output(&mut self, most: usize, events: &mut Vec<Event>) -> Vec<u8> {
        if let Some(number) = self.pong.take() {
            self.tell(PONG, 0, &number.to_le_bytes());
        }
        let mut out = std::mem::take(&mut self.control);
        while out.len() < most {
            let Some(number) = self.next_turn() else { break };
            self.turn(number, &mut out, events);
        }
        out
    }

    /// Whose turn it is.
    fn next_turn(&mut self) -> Option<u32> {
        let late = self.passed_over >= PATIENCE && !self.yielding.is_empty();
        let next = if late { None } else { self.waiting.pop_front() };
        if next.is_some() {
            self.passed_over += 1;
            return next;
        }
        self.passed_over = 0;
        self.yielding.pop_front()
    }

    fn turn(&mut self, number: u32, out: &mut Vec<u8>, events: &mut Vec<Event>) {
        let Some(s) = self.streams.get_mut(&number) else {
            return;
        };
        s.waiting = false;
        let n = s
            .queue
            .len()
            .min(QUANTUM)
            .min(usize::try_from(s.room).unwrap_or(usize::MAX));
        if n > 0 {
            header(out, DATA, number, n);
            let (first, second) = s.queue.as_slices();
            let k = n.min(first.len());
            out.extend_from_slice(&first[..k]);
            out.extend_from_slice(&second[..n - k]);
            s.queue.drain(..n);
            s.room -= n as u64;
            if std::mem::take(&mut s.refused) {
                events.push(Event::Room(number));
            }
        }
        if s.ends_now() {
            s.sending = Sending::Over;
            header(out, END, number, 0);
        }
        let over = s.sending == Sending::Over && s.peer_ended;
        if over {
            self.remove(number);
        } else {
            self.enqueue(number);
        }
    }

    /// Takes bytes of the connection and tells what they mean. Gives whether a frame was complete: what only adds to
    /// one that never is tells nothing.
    pub fn input(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> Result<bool, Violation> {
        let mut held = std::mem::take(&mut self.input);
        held.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(head) = held.get(at..at + HEADER_BYTES) {
            let stream = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
            let length = u32::from_le_bytes([head[5], head[6], head[7], 0]) as usize;
            if length > MAX_PAYLOAD {
                return Err(Violation("a frame is too long"));
            }
            let Some(payload) = held.get(at + HEADER_BYTES..at + HEADER_BYTES + length) else {
                break;
            };
            self.frame(head[0], stream, payload, events)?;
            at += HEADER_BYTES + length;
        }
        held.drain(..at);
        self.input = held;
        if self.control.len() > MAX_CONTROL {
            return Err(Violation("it asks for more than it hears"));
        }
        Ok(at > 0)
    }

    fn frame(&mut self, kind: u8, stream: u32, payload: &[u8], events: &mut Vec<Event>) -> Result<(), Violation> {
        match kind {
            OPEN => return self.asked(stream, payload, events),
            PING => self.pong = Some(u64::from_le_bytes(fixed(payload)?)),
            PONG => events.push(Event::Pong(u64::from_le_bytes(fixed(payload)?))),
            WANT => events.push(Event::Wanted(fixed::<1>(payload)?[0])),
            OPENED..=RESET => {
                // What has been given up here may be heard of until the other end knows.
                if let Some(s) = self.streams.get_mut(&stream) {
                    let fitting = match kind {
                        OPENED | REFUSED => s.state == State::Asking,
                        RESET => true,
                        _ => s.state == State::Open,
                    };
                    if !fitting {
                        return Err(Violation("a frame for a stream that is not open"));
                    }
                    return self.of_stream(kind, stream, payload, events);
                }
            }
            _ => return Err(Violation("a frame of unknown kind")),
        }
        Ok(())
    }

    fn asked(&mut self, stream: u32, payload: &[u8], events: &mut Vec<Event>) -> Result<(), Violation> {
        let bytes: [u8; 9] = fixed(payload)?;
        let theirs = stream % 2 != self.next % 2;
        if !theirs || self.streams.contains_key(&stream) {
            return Err(Violation("a number of a stream that is not its to give"));
        }
        if self.streams.len() >= MAX_STREAMS {
            return Err(Violation("too many streams"));
        }
        self.streams.insert(stream, Stream::new(State::Asked, bytes[8]));
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        events.push(Event::Asked {
            stream,
            from: word(0),
            to: word(4),
            wish: bytes[8],
        });
        Ok(())
    }

    fn of_stream(&mut self, kind: u8, number: u32, payload: &[u8], events: &mut Vec<Event>) -> Result<(), Violation> {
        let Some(s) = self.streams.get_mut(&number) else {
            return Ok(());
        };
        match kind {
            OPENED => {
                s.state = State::Open;
                events.push(Event::Opened(number));
                self.enqueue(number);
            }
            REFUSED => {
                self.remove(number);
                events.push(Event::Refused(number, String::from_utf8_lossy(payload).into_owned()));
            }
            DATA => {
                let length = payload.len() as u32;
                if s.peer_ended || s.allowed < length {
                    return Err(Violation("more data than there is room for"));
                }
                s.allowed -= length;
                events.push(Event::Data(number, payload.to_vec()));
            }
            CREDIT => {
                s.room += u64::from(u32::from_le_bytes(fixed(payload)?));
                if s.room > u64::from(LARGEST_WINDOW) {
                    return Err(Violation("more credit than a window"));
                }
                self.enqueue(number);
            }
            END => {
                if std::mem::replace(&mut s.peer_ended, true) {
                    return Err(Violation("a stream ended twice"));
                }
                let over = s.sending == Sending::Over;
                events.push(Event::Ended(number));
                if over {
                    self.remove(number);
                }
            }
            _ => {
                self.remove(number);
                events.push(Event::Reset(number));
            }
        }
        Ok(())
    }

    fn enqueue(&mut self, number: u32) {
        if let Some(s) = self.streams.get_mut(&number) {
            if !s.waiting && s.has_something() {
                s.waiting = true;
                let queue = if s.bulk { &mut self.yielding } else { &mut self.waiting };
                queue.push_back(number);
            }
        }
    }

    fn remove(&mut self, number: u32) {
        if let Some(s) = self.streams.remove(&number) {
            self.grown -= u64::from(s.window - FIRST_WINDOW);
        }
    }

    fn tell(&mut self, kind: u8, stream: u32, payload: &[u8]) {
        header(&mut self.control, kind, stream, payload.len());
        self.control.extend_from_slice(payload);
    }
}

fn header(out: &mut Vec<u8>, kind: u8, stream: u32, length: usize) {
    out.push(kind);
    out.extend_from_slice(&stream.to_le_bytes());
    out.extend_from_slice(&(length as u32).to_le_bytes()[..3]);
}

fn fixed<const N: usize>(payload: &[u8]) -> Result<[u8; N], Violation> {
    payload.try_into().map_err(|_| Violation("a frame of the wrong length"))
}

/// Body of a fuzz target: bytes from the other end, in pieces.
pub fn fuzz_trunk(bytes: &[u8]) {
    let mut trunk = Trunk::new(true);
    let mut events = Vec::new();
    let _ = trunk.open(0, 1, 1);
    for piece in bytes.chunks(37) {
        if trunk.input(piece, &mut events).is_err() {
            return;
        }
        for event in events.split_off(0) {
            match event {
                Event::Asked { stream, wish, .. } if is_stream(wish) => trunk.accept(stream),
                Event::Asked { stream, .. } => trunk.refuse(stream, "no"),
                Event::Data(stream, bytes) => {
                    trunk.consumed(stream, bytes.len());
                    let _ = trunk.send(stream, &bytes);
                }
                Event::Ended(stream) => trunk.end(stream),
                _ => {}
            }
        }
        assert!(trunk.output(1 << 20, &mut events).len() <= (1 << 20) + MAX_CONTROL + QUANTUM);
    }
}

#[cfg(test)]
mod tests;
