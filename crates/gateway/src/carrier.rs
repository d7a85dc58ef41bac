// SPDX-License-Identifier: Apache-2.0
//! What carries a trunk: a connection to the other gateway, or pieces inside the coordinator's connections.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use isthmus_link::handshake::Ends;
use isthmus_link::meter::{Read, Sounding};
use isthmus_link::trunk::{Event, Trunk};
use isthmus_net::Trunkline;
use isthmus_wire::gateway::{FromGateway, MAX_RELAY, RELAY_WINDOW, Relay, WISH_BULK, is_stream};
use isthmus_wire::rate::Rate;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

use crate::Gateway;
use crate::traffic::Traffic;

/// Bytes that are read at once, and that go out at once as long as nothing is known of the link.
const BUNDLE: usize = 256 << 10;
/// With nothing to send for less of the time a connection counts as busy.
const IDLE: f64 = 0.1;
/// How often the other end is asked for a sign of life.
const PING: Duration = Duration::from_secs(2);
/// A carrier is given up after so many questions that were not answered. They are counted, since a gateway that had no
/// processor meanwhile (a busy machine, one that was suspended) has asked nothing.
const UNANSWERED: u32 = 5;

/// How long the other end may take to reach one of its processes, or to say that it cannot. Processes wait longer,
/// and can ask once more.
const ANSWER: Duration = Duration::from_secs(6);

/// Something for a process.
pub(crate) enum Piece {
    Data(Vec<u8>),
    End,
}

struct Stream {
    /// What for.
    wish: u8,
    pieces: mpsc::UnboundedSender<Piece>,
    taken: Option<mpsc::UnboundedReceiver<Piece>>,
    room: Rc<Notify>,
    gone: Rc<Notify>,
    answer: Option<oneshot::Sender<bool>>,
    /// Bytes in both directions, since they were asked for.
    moved: Cell<u64>,
}

pub(crate) struct Carrier {
    /// At the other end.
    pub(crate) area: u32,
    /// Begins a stream that the other gateway asks for.
    begin: Begin,
    /// We made the connection.
    pub(crate) dialled: bool,
    /// As long as it lasts.
    pub(crate) socket: RefCell<Option<OwnedFd>>,
    /// Bytes that go out at once.
    pub(crate) piece: Cell<usize>,
    /// Time with nothing to send, since it was looked at.
    idle: Cell<Duration>,
    idle_since: Cell<Option<Instant>>,
    looked: Cell<Instant>,
    /// A connection between the gateways.
    pub(crate) direct: bool,
    trunk: RefCell<Trunk>,
    streams: RefCell<HashMap<u32, Stream>>,
    /// There may be something to send.
    wake: Notify,
    pub(crate) dead: Cell<bool>,
    over: Notify,
    /// Of a relay: bytes that the other end has not taken.
    unanswered: Cell<u32>,
    round_trip: Cell<Option<Duration>>,
    /// The last one.
    pub(crate) last_trip: Cell<Duration>,
    traffic: Arc<Traffic>,
    /// Questions since something was heard that means something.
    vain: Cell<u32>,
    asked: RefCell<Option<(u64, Instant)>>,
    measured: Notify,
    /// What arrives is measured, as long as somebody sends for that.
    sounding: RefCell<Option<Sounding>>,
}

/// A stream that the other gateway asks for.
pub(crate) struct StreamRequest {
    pub(crate) number: u32,
    pub(crate) ends: Ends,
    pub(crate) wish: u8,
}

/// Begins one.
pub(crate) type Begin = fn(&Rc<Gateway>, &Rc<Carrier>, StreamRequest);

impl Carrier {
    pub(crate) fn new(area: u32, direct: bool, dialled: bool, traffic: Arc<Traffic>, begin: Begin) -> Rc<Self> {
        Rc::new(Self {
            area,
            begin,
            dialled,
            socket: RefCell::default(),
            piece: Cell::new(BUNDLE),
            idle: Cell::default(),
            idle_since: Cell::default(),
            looked: Cell::new(Instant::now()),
            direct,
            trunk: RefCell::new(Trunk::new(dialled)),
            streams: RefCell::default(),
            wake: Notify::new(),
            dead: Cell::new(false),
            over: Notify::new(),
            unanswered: Cell::new(0),
            round_trip: Cell::new(None),
            last_trip: Cell::new(Duration::ZERO),
            traffic,
            vain: Cell::default(),
            asked: RefCell::default(),
            measured: Notify::new(),
            sounding: RefCell::default(),
        })
    }

    /// Carries the trunk over a connection until that ends.
    pub(crate) async fn carry(self: &Rc<Self>, gateway: &Rc<Gateway>, stream: TcpStream) {
        // Without it nobody looks at the connection.
        if let Ok(socket) = stream.as_fd().try_clone_to_owned() {
            Trunkline::begin(&socket);
            *self.socket.borrow_mut() = Some(socket);
        }
        let (mut reader, mut writer) = stream.into_split();
        let reading = async {
            let mut buffer = vec![0; BUNDLE];
            while let Ok(n @ 1..) = reader.read(&mut buffer).await {
                let emptied = n < buffer.len();
                if !self.feed(gateway, &buffer[..n], emptied) {
                    return;
                }
            }
        };
        let writing = async {
            loop {
                let bytes = self.output(gateway, self.piece.get()).await;
                if writer.write_all(&bytes).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = reading => {}
            () = writing => {}
            () = self.live() => {}
            () = self.over.notified() => {}
        }
        self.close();
    }

    /// Carries the trunk inside the coordinator's connections, until the other gateway begins anew.
    pub(crate) async fn carry_relayed(self: &Rc<Self>, gateway: &Rc<Gateway>, epoch: u32) {
        let writing = async {
            loop {
                while self.unanswered.get() >= RELAY_WINDOW {
                    self.wake.notified().await;
                }
                let bytes = self.output(gateway, MAX_RELAY).await;
                for piece in bytes.chunks(MAX_RELAY) {
                    self.unanswered.set(self.unanswered.get() + piece.len() as u32);
                    gateway.tell(FromGateway::Relay(Relay {
                        area: self.area,
                        epoch,
                        bytes: piece.to_vec(),
                    }));
                }
            }
        };
        let pings = async {
            loop {
                self.ping();
                tokio::time::sleep(5 * PING).await;
            }
        };
        tokio::select! {
            () = writing => {}
            () = pings => {}
            () = self.over.notified() => {}
        }
        self.close();
    }

    /// The other end has taken so many bytes.
    pub(crate) fn credited(&self, bytes: u32) {
        self.unanswered.set(self.unanswered.get().saturating_sub(bytes));
        self.wake.notify_one();
    }

    /// Asks from time to time; ends when there is no answer.
    async fn live(&self) {
        self.vain.set(0);
        while self.vain.get() < UNANSWERED {
            self.vain.set(self.vain.get() + 1);
            self.ping();
            tokio::time::sleep(PING).await;
        }
    }

    fn ping(&self) {
        let now = Instant::now();
        let mut asked = self.asked.borrow_mut();
        let number = asked.map_or(1, |(n, _)| n + 1);
        *asked = Some((number, now));
        self.trunk.borrow_mut().ping(number);
        self.wake.notify_one();
    }

    /// The round trip, as soon as it is known.
    pub(crate) async fn round_trip(&self) -> Option<Duration> {
        loop {
            let measured = self.measured.notified();
            match self.round_trip.get() {
                Some(time) => return Some(time),
                None if self.dead.get() => return None,
                None => measured.await,
            }
        }
    }

    /// From now on what arrives is measured.
    pub(crate) async fn begin_sounding(&self) {
        let trip = self.round_trip().await.unwrap_or_default();
        *self.sounding.borrow_mut() = Some(Sounding::new(std::time::Instant::now(), trip));
    }

    /// How long that still takes.
    pub(crate) fn sounding_left(&self) -> Option<Duration> {
        self.sounding.borrow().as_ref()?.left(std::time::Instant::now())
    }

    /// What came of it.
    pub(crate) fn end_sounding(&self) -> Option<Rate> {
        self.sounding.borrow_mut().take()?.end()
    }

    /// What there is to send, as soon as there is something.
    async fn output(self: &Rc<Self>, gateway: &Rc<Gateway>, most: usize) -> Vec<u8> {
        loop {
            let wake = self.wake.notified();
            if self.trunk.borrow().has_output() {
                self.idles(false);
                // Others that are ready now add to the same bundle.
                tokio::task::yield_now().await;
                let mut events = Vec::new();
                let bytes = self.trunk.borrow_mut().output(most, &mut events);
                self.traffic.sends(bytes.len());
                events.into_iter().for_each(|event| self.event(gateway, event));
                return bytes;
            }
            self.idles(true);
            wake.await;
        }
    }

    /// There is nothing to send, or something again.
    fn idles(&self, idle: bool) {
        let now = Instant::now();
        if let Some(since) = self.idle_since.replace(idle.then_some(now)) {
            self.idle.set(self.idle.get() + (now - since));
        }
    }

    /// Whether there was something to send all the time since this was asked last.
    pub(crate) fn was_busy(&self) -> bool {
        self.idles(self.idle_since.get().is_some());
        let time = self.looked.replace(Instant::now()).elapsed();
        self.idle.take() < time.mul_f64(IDLE)
    }

    /// Streams that make way for others, and those that do not.
    pub(crate) fn classes(&self) -> (usize, usize) {
        let streams = self.streams.borrow();
        let bulk = streams.values().filter(|s| s.wish == WISH_BULK).count();
        let others = streams.values().filter(|s| s.wish != WISH_BULK && is_stream(s.wish));
        (bulk, others.count())
    }

    /// Takes what has come; `emptied`: that was all that there was. False: the other end broke the rules.
    pub(crate) fn feed(self: &Rc<Self>, gateway: &Rc<Gateway>, bytes: &[u8], emptied: bool) -> bool {
        self.traffic.receives(bytes.len());
        if let Some(sounding) = self.sounding.borrow_mut().as_mut() {
            let bytes = bytes.len() as u64;
            sounding.arrived(std::time::Instant::now(), Read { bytes, emptied });
        }
        let mut events = Vec::new();
        let fed = self.trunk.borrow_mut().input(bytes, &mut events);
        if fed == Ok(true) {
            self.vain.set(0);
        }
        events.into_iter().for_each(|event| self.event(gateway, event));
        self.wake.notify_one();
        fed.is_ok()
    }

    fn event(self: &Rc<Self>, gateway: &Rc<Gateway>, event: Event) {
        match event {
            Event::Asked { stream, from, to, wish } => {
                self.keep(stream, wish, None);
                let asked = StreamRequest {
                    number: stream,
                    ends: Ends::of(from, to),
                    wish,
                };
                (self.begin)(gateway, self, asked);
            }
            Event::Opened(stream) => self.answer(stream, true),
            Event::Refused(stream, _) => {
                self.answer(stream, false);
                self.forget(stream);
            }
            Event::Data(stream, bytes) => self.hand(stream, Piece::Data(bytes)),
            Event::Ended(stream) => self.hand(stream, Piece::End),
            Event::Reset(stream) => {
                self.answer(stream, true);
                self.lose(stream);
            }
            Event::Room(stream) => {
                if let Some(s) = self.streams.borrow().get(&stream) {
                    s.room.notify_one();
                }
            }
            Event::Wanted(thread) => gateway.wanted(self.area, thread),
            Event::Pong(number) => {
                if let Some((_, at)) = self.asked.borrow().filter(|(n, _)| *n == number) {
                    let last = at.elapsed();
                    self.last_trip.set(last);
                    self.round_trip
                        .set(Some(self.round_trip.get().map_or(last, |t| t.min(last))));
                    self.measured.notify_waiters();
                }
            }
        }
    }

    fn keep(&self, number: u32, wish: u8, answer: Option<oneshot::Sender<bool>>) {
        let (pieces, taken) = mpsc::unbounded_channel();
        let stream = Stream {
            wish,
            pieces,
            taken: Some(taken),
            room: Rc::default(),
            gone: Rc::default(),
            answer,
            moved: Cell::default(),
        };
        self.streams.borrow_mut().insert(number, stream);
        self.traffic.begins();
    }

    /// Asks for a stream and waits for the answer.
    pub(crate) async fn ask(&self, ends: Ends, wish: u8) -> Result<u32, ()> {
        let number = self.trunk.borrow_mut().open(ends.from.0, ends.to.0, wish).ok_or(())?;
        let (answer, answered) = oneshot::channel();
        self.keep(number, wish, Some(answer));
        self.wake.notify_one();
        match tokio::time::timeout(ANSWER, answered).await {
            Ok(Ok(true)) => Ok(number),
            Ok(_) => Err(()),
            Err(_) => {
                self.reset(number);
                Err(())
            }
        }
    }

    fn answer(&self, number: u32, good: bool) {
        let answer = self.streams.borrow_mut().get_mut(&number).and_then(|s| s.answer.take());
        if let Some(answer) = answer {
            let _ = answer.send(good);
        }
    }

    fn hand(&self, number: u32, piece: Piece) {
        if let Some(s) = self.streams.borrow().get(&number) {
            if let Piece::Data(bytes) = &piece {
                s.moved.set(s.moved.get() + bytes.len() as u64);
            }
            // Whoever is gone has reset the stream.
            let _ = s.pieces.send(piece);
        }
    }

    /// What arrives on a stream, and what tells that it is over.
    pub(crate) fn take(&self, number: u32) -> Option<(mpsc::UnboundedReceiver<Piece>, Rc<Notify>)> {
        let mut streams = self.streams.borrow_mut();
        let stream = streams.get_mut(&number)?;
        Some((stream.taken.take()?, stream.gone.clone()))
    }

    /// Sends all, when there is room.
    pub(crate) async fn send(&self, number: u32, mut bytes: &[u8]) {
        loop {
            let n = self.trunk.borrow_mut().send(number, bytes);
            self.wake.notify_one();
            bytes = &bytes[n..];
            let room = self.streams.borrow().get(&number).map(|s| {
                s.moved.set(s.moved.get() + n as u64);
                s.room.clone()
            });
            match room {
                Some(room) if !bytes.is_empty() => room.notified().await,
                _ => return,
            }
        }
    }

    pub(crate) fn consumed(&self, number: u32, bytes: usize) {
        self.trunk.borrow_mut().consumed(number, bytes);
        self.wake.notify_one();
    }

    pub(crate) fn end(&self, number: u32) {
        self.trunk.borrow_mut().end(number);
        self.wake.notify_one();
    }

    pub(crate) fn accept(&self, number: u32) {
        self.trunk.borrow_mut().accept(number);
        self.wake.notify_one();
    }

    pub(crate) fn refuse(&self, number: u32, why: &str) {
        self.trunk.borrow_mut().refuse(number, why);
        self.forget(number);
        self.wake.notify_one();
    }

    pub(crate) fn reset(&self, number: u32) {
        self.trunk.borrow_mut().reset(number);
        self.forget(number);
        self.wake.notify_one();
    }

    pub(crate) fn forget(&self, number: u32) {
        let stream = self.streams.borrow_mut().remove(&number);
        self.traffic.ends(usize::from(stream.is_some()));
    }

    /// Ends a stream; its channel begins a new one.
    pub(crate) fn lose(&self, number: u32) {
        let stream = self.streams.borrow_mut().remove(&number);
        if let Some(stream) = stream {
            self.traffic.ends(1);
            stream.gone.notify_one();
            stream.room.notify_one();
        }
    }

    /// Streams that it carries.
    pub(crate) fn load(&self) -> usize {
        self.streams.borrow().len()
    }

    /// Ends the streams of processes that are under way. Their channels begin new ones, which go over the best carrier
    /// that there is then.
    pub(crate) fn shed(&self) {
        self.moved().into_iter().for_each(|(number, _)| self.lose(number));
    }

    /// The streams of processes that are under way, and their bytes since this was asked last.
    pub(crate) fn moved(&self) -> Vec<(u32, u64)> {
        let streams = self.streams.borrow();
        let under_way = streams.iter().filter(|(_, s)| s.taken.is_none() && is_stream(s.wish));
        under_way.map(|(number, s)| (*number, s.moved.take())).collect()
    }

    /// The other gateway shall connect this thread.
    pub(crate) fn want(&self, thread: u8) {
        self.trunk.borrow_mut().want(thread);
        self.wake.notify_one();
    }

    /// Ends it and all its streams.
    pub(crate) fn close(&self) {
        self.dead.set(true);
        self.socket.take();
        self.over.notify_one();
        self.measured.notify_waiters();
        let streams: Vec<u32> = self.streams.borrow().keys().copied().collect();
        streams.into_iter().for_each(|number| self.lose(number));
    }
}
