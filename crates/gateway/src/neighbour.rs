// SPDX-License-Identifier: Apache-2.0
//! Another local area and the ways to its gateway.

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use isthmus_link::handshake::Ends;
use isthmus_net::{Carrying, Prover, Trunkline};
use isthmus_wire::gateway::{
    self, Area, Carried, FromGateway, Settled, WISH_BULK, WISH_STREAM, Ways, area_number, thread_wish,
};
use isthmus_wire::place::Rank;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::carrier::Carrier;
use crate::traffic::Traffic;
use crate::{Gateway, dial, stream};

/// Without a connection after this time the coordinator's connections are used, until there is one. One lost packet is
/// not enough.
const RELAY_AFTER: Duration = Duration::from_millis(1500);
/// Pause between two attempts to connect, doubled each time up to the second.
const AGAIN: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(30));
/// A connection that has lasted for so long takes over what the coordinator's carry.
const LASTING: Duration = Duration::from_secs(1);
/// How often it is told what has passed, while something does.
const REPORT: Duration = Duration::from_secs(1);
/// Bytes of which pings between two looks are less.
const PINGS: u64 = 1024;
/// How long a stream waits for a carrier.
const PATIENCE: Duration = Duration::from_secs(8);

pub(crate) struct Neighbour {
    own_area: u32,
    area: Area,
    /// Of connections with its gateway.
    prover: Prover,
    carriers: RefCell<Vec<Rc<Carrier>>>,
    relay: RefCell<Option<Rc<Carrier>>>,
    settled: RefCell<Settled>,
    changed: Notify,
    traffic: Arc<Traffic>,
    /// It has begun anew and we are the old one, or it has lied.
    left: Cell<bool>,
    leaving: Notify,
}

impl Neighbour {
    pub(crate) fn new(gateway: &Gateway, area: Area, traffic: Arc<Traffic>) -> Self {
        let settled = Settled {
            area: area.area,
            ..Settled::default()
        };
        Self {
            own_area: gateway.area,
            prover: gateway.prover.with_secret(&area.secret),
            area,
            carriers: RefCell::default(),
            relay: RefCell::default(),
            settled: RefCell::new(settled),
            changed: Notify::new(),
            traffic,
            left: Cell::new(false),
            leaving: Notify::new(),
        }
    }

    /// Begins to find ways.
    pub(crate) fn begin(self: &Rc<Self>, gateway: &Rc<Gateway>) {
        let (own, us) = (self.clone(), gateway.clone());
        tokio::task::spawn_local(async move {
            tokio::select! {
                () = async { tokio::join!(own.keep_connected(&us), own.report(&us), own.watch()); } => {}
                () = own.leaving.notified() => {}
            }
        });
        let (own, us) = (self.clone(), gateway.clone());
        tokio::task::spawn_local(async move {
            if own.area.ways != Ways::Relay {
                tokio::time::sleep(RELAY_AFTER).await;
            }
            if own.best(WISH_STREAM).is_none() && !own.left.get() && own.area.ways != Ways::Trunk {
                own.relay(&us);
            }
        });
    }

    /// As [`Neighbour::begin`], on another thread than the first: connections between gateways only, and it is not told
    /// what is settled.
    pub(crate) fn begin_on_thread(self: &Rc<Self>, gateway: &Rc<Gateway>, dial: bool) {
        let (own, us) = (self.clone(), gateway.clone());
        tokio::task::spawn_local(async move {
            let connected = async {
                if dial {
                    own.keep_connected(&us).await;
                }
            };
            tokio::select! {
                () = async { tokio::join!(connected, own.watch()); } => {}
                () = own.leaving.notified() => {}
            }
        });
    }

    /// Where its gateway is.
    pub(crate) fn place(&self) -> &Area {
        &self.area
    }

    /// Whether this thread has connections to it.
    pub(crate) fn is_connected(&self) -> bool {
        self.traffic.connections() > 0
    }

    /// Streams on this thread.
    pub(crate) fn streams(&self) -> usize {
        self.traffic.streams()
    }

    /// Whether a connection that we made has been proven to work.
    pub(crate) fn dials(&self) -> bool {
        !self.settled.borrow().outward.is_empty()
    }

    /// Whether some streams make way for others.
    pub(crate) fn makes_way(&self) -> bool {
        self.carriers.borrow().iter().any(|c| c.classes().0 > 0)
    }

    /// The other gateway shall connect this thread of ours.
    pub(crate) fn want(&self, thread: u8) {
        if let Some(carrier) = self.best(WISH_STREAM) {
            carrier.want(thread);
        }
    }

    /// Streams of processes between gateways, and their bytes since this was asked last.
    pub(crate) fn moved(&self) -> Vec<(Rc<Carrier>, u32, u64)> {
        let carriers = self.carriers.borrow();
        let of = |c: &Rc<Carrier>| {
            c.moved()
                .into_iter()
                .map(|(n, bytes)| (c.clone(), n, bytes))
                .collect::<Vec<_>>()
        };
        carriers.iter().flat_map(of).collect()
    }

    /// Tells from time to time what has passed. Pings alone are no news; what streams that were over before the next
    /// look have carried is.
    async fn report(&self, gateway: &Gateway) {
        let (mut told, mut looked) = (Carried::default(), 0);
        loop {
            tokio::time::sleep(REPORT).await;
            let now = self.carried(gateway);
            let sum = now.sent.saturating_add(now.received);
            let passed = sum.saturating_sub(std::mem::replace(&mut looked, sum));
            let streams = now.streams > 0 || told.streams > 0;
            if passed >= PINGS || (streams && (now.sent, now.received) != (told.sent, told.received)) {
                told = now.clone();
                gateway.tell(FromGateway::Carried(now));
            }
        }
    }

    /// Keeps an eye on the connections.
    async fn watch(&self) {
        let (began, mut line, mut last) = (Instant::now(), Trunkline::default(), 0);
        loop {
            let (sent, _) = self.traffic.bytes();
            // Pings alone are no reason to look often.
            let quiet = sent.saturating_sub(std::mem::replace(&mut last, sent)) < PINGS;
            let again = self.look(began.elapsed(), &mut line);
            let until = Instant::now() + if quiet { REPORT } else { again };
            while !quiet && Instant::now() < until {
                let Some(soon) = self.glimpse(&mut line) else { break };
                tokio::time::sleep(soon).await;
            }
            tokio::time::sleep_until(until).await;
        }
    }

    /// Looks at round trips where some streams make way; how soon to do it again.
    fn glimpse(&self, line: &mut Trunkline) -> Option<Duration> {
        let carriers = self.carriers.borrow();
        let any_bulk = carriers.iter().any(|c| c.classes().0 > 0);
        let sockets: Vec<_> = carriers.iter().map(|c| c.socket.borrow()).collect();
        let all: Vec<_> = sockets.iter().filter_map(|s| s.as_ref()).collect();
        any_bulk.then(|| line.glimpse(&all))
    }

    fn look(&self, now: Duration, line: &mut Trunkline) -> Duration {
        let carriers = self.carriers.borrow();
        let sockets: Vec<_> = carriers.iter().map(|c| c.socket.borrow()).collect();
        let both = carriers.iter().zip(&sockets);
        let all: Vec<Carrying<'_>> = both
            .filter_map(|(carrier, socket)| {
                let (bulk, others) = carrier.classes();
                Some(Carrying {
                    socket: socket.as_ref()?,
                    busy: carrier.was_busy(),
                    bulk: bulk > 0,
                    bulk_only: bulk > 0 && others == 0,
                })
            })
            .collect();
        let looked = line.look(now, &all);
        carriers.iter().for_each(|c| c.piece.set(looked.piece));
        looked.again
    }

    /// By all threads.
    fn carried(&self, gateway: &Gateway) -> Carried {
        let carriers = self.carriers.borrow();
        let direct: Vec<_> = carriers.iter().filter(|c| !c.dead.get()).cloned().collect();
        let live: Vec<_> = direct.into_iter().chain(self.relay.borrow().clone()).collect();
        let trip = live.iter().map(|c| c.last_trip.get()).find(|t| !t.is_zero());
        let mut all = gateway.threads.traffic(self.area.area);
        all.push(self.traffic.clone());
        let streams: usize = all.iter().map(|t| t.streams()).sum();
        let connections: usize = all.iter().map(|t| t.connections()).sum();
        Carried {
            area: self.area.area,
            sent: all.iter().map(|t| t.bytes().0).sum(),
            received: all.iter().map(|t| t.bytes().1).sum(),
            streams: u32::try_from(streams).unwrap_or(u32::MAX),
            connections: u32::try_from(connections).unwrap_or(u32::MAX),
            round_trip: trip.unwrap_or_default().as_nanos().try_into().unwrap_or(u64::MAX),
        }
    }

    /// Connections with its gateway.
    pub(crate) fn prover(&self) -> &Prover {
        &self.prover
    }

    /// Its gateway asked for what it may not have: nothing is carried to it or from it any more, until it begins anew.
    pub(crate) fn distrust(&self, gateway: &Gateway, from: Rank) {
        let (area, own) = (self.area.area, self.own_area);
        self.leave();
        self.note(gateway, |s| {
            (s.carrier, s.inward) = (gateway::Carrier::None, false);
            s.outward.clear();
            s.why = format!(
                "the gateway of local area {area} asked that of area {own} for a connection in the name of rank {from}, which is not in its \
                 area; it was given up. It has a bug, or somebody has changed it"
            );
        });
    }

    /// The gateway there is gone.
    pub(crate) fn leave(&self) {
        self.left.set(true);
        self.leaving.notify_one();
        let carriers = self.carriers.take().into_iter().chain(self.relay.take());
        carriers.for_each(|c| c.close());
        self.changed.notify_waiters();
    }

    async fn keep_connected(self: &Rc<Self>, gateway: &Rc<Gateway>) {
        let addresses = self.addresses();
        if self.area.ways == Ways::Relay || addresses.is_empty() {
            return;
        }
        let mut pause = AGAIN.0;
        loop {
            match self.connect(gateway, &addresses).await {
                Ok((address, stream)) => {
                    pause = AGAIN.0;
                    self.note(gateway, |s| s.outward = address.to_string());
                    let more = usize::from(gateway.streams.max(1)) - 1;
                    for _ in 0..more {
                        if let Ok((_, stream)) = self.connect(gateway, &[address]).await {
                            self.adopt(gateway, stream, true);
                        }
                    }
                    let carrier = self.adopt(gateway, stream, true);
                    while !carrier.dead.get() {
                        self.changed.notified().await;
                    }
                    self.note(gateway, |s| s.outward.clear());
                }
                Err(why) => {
                    self.note(gateway, |s| s.why.clone_from(&why));
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(AGAIN.1);
                }
            }
        }
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        let parse = |text: &String| Some(SocketAddr::new(text.parse::<IpAddr>().ok()?, self.area.port));
        let known = self.area.addresses.iter().filter_map(parse);
        if self.area.port == 0 {
            Vec::new()
        } else {
            known.collect()
        }
    }

    async fn connect(
        &self,
        gateway: &Rc<Gateway>,
        addresses: &[SocketAddr],
    ) -> Result<(SocketAddr, TcpStream), String> {
        let ends = Ends::of(area_number(gateway.area), area_number(self.area.area));
        let (prover, wish) = (self.prover.clone(), thread_wish(gateway.number));
        let prove = move |mut stream: TcpStream| {
            let prover = prover.clone();
            async move {
                dial::shake(&mut stream, &prover, ends, wish).await?;
                Ok(stream)
            }
        };
        dial::first(addresses, prove).await
    }

    /// The other gateway has dialled us and is proven.
    pub(crate) fn came(self: &Rc<Self>, gateway: &Rc<Gateway>, stream: TcpStream) {
        if self.area.ways != Ways::Relay && !self.left.get() {
            self.note(gateway, |s| s.inward = true);
            self.adopt(gateway, stream, false);
        }
    }

    fn adopt(self: &Rc<Self>, gateway: &Rc<Gateway>, stream: TcpStream, dialled: bool) -> Rc<Carrier> {
        let carrier = Carrier::new(self.area.area, true, dialled, self.traffic.clone(), stream::begin);
        self.carriers.borrow_mut().push(carrier.clone());
        self.changed.notify_waiters();
        let (own, us, c) = (self.clone(), gateway.clone(), carrier.clone());
        tokio::task::spawn_local(async move {
            own.traffic.connects(true);
            c.carry(&us, stream).await;
            own.traffic.connects(false);
            own.carriers.borrow_mut().retain(|other| !Rc::ptr_eq(other, &c));
            own.changed.notify_waiters();
            own.fall_back(&us);
        });
        self.tell_carrier(gateway, &carrier);
        self.move_to(&carrier);
        carrier
    }

    /// What went through the coordinator for want of this connection moves to it, once it has lasted for a while.
    fn move_to(self: &Rc<Self>, carrier: &Rc<Carrier>) {
        let (own, c) = (self.clone(), carrier.clone());
        tokio::task::spawn_local(async move {
            let trip = c.round_trip().await;
            tokio::time::sleep(LASTING).await;
            if let (Some(_), false, Some(relay)) = (trip, c.dead.get(), own.relay.borrow().clone()) {
                relay.shed();
            }
        });
    }

    /// The last connection is gone: until there is another one the coordinator's are used.
    fn fall_back(self: &Rc<Self>, gateway: &Rc<Gateway>) {
        if self.left.get() || self.best(WISH_STREAM).is_some() || gateway.number > 0 {
            return;
        }
        self.note(gateway, |s| (s.carrier, s.inward) = (gateway::Carrier::None, false));
        if self.area.ways == Ways::Any {
            self.relay(gateway);
        }
    }

    fn relay(self: &Rc<Self>, gateway: &Rc<Gateway>) -> Rc<Carrier> {
        if let Some(carrier) = self.relay.borrow().clone() {
            return carrier;
        }
        let carrier = Carrier::new(
            self.area.area,
            false,
            gateway.area < self.area.area,
            self.traffic.clone(),
            stream::begin,
        );
        *self.relay.borrow_mut() = Some(carrier.clone());
        self.changed.notify_waiters();
        let (us, c, epoch) = (gateway.clone(), carrier.clone(), self.area.epoch);
        tokio::task::spawn_local(async move { c.carry_relayed(&us, epoch).await });
        self.tell_carrier(gateway, &carrier);
        carrier
    }

    /// Tells the coordinator of a carrier when its round trip is known.
    fn tell_carrier(self: &Rc<Self>, gateway: &Rc<Gateway>, carrier: &Rc<Carrier>) {
        let (own, us, c) = (self.clone(), gateway.clone(), carrier.clone());
        tokio::task::spawn_local(async move {
            let Some(time) = c.round_trip().await else { return };
            let kind = if c.direct {
                gateway::Carrier::Direct
            } else {
                gateway::Carrier::Relay
            };
            let better = own.settled.borrow().carrier != gateway::Carrier::Direct || c.direct;
            if better && !c.dead.get() {
                own.note(&us, |s| {
                    s.carrier = kind;
                    s.round_trip = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
                });
            }
        });
    }

    /// Measures the rate to it, for a short time, and tells it.
    pub(crate) fn measure(self: &Rc<Self>, gateway: &Rc<Gateway>) {
        let (own, us) = (self.clone(), gateway.clone());
        tokio::task::spawn_local(async move {
            let Some(carrier) = own.carrier(WISH_STREAM).await else {
                return;
            };
            if let Some(rate) = stream::measure(&carrier).await {
                own.note(&us, |s| s.rate = Some(rate));
            }
        });
    }

    /// A piece of the trunk inside the coordinator's connections.
    pub(crate) fn relayed(self: &Rc<Self>, gateway: &Rc<Gateway>, epoch: u32, bytes: &[u8]) {
        if epoch != self.area.epoch || self.left.get() {
            return;
        }
        let carrier = self.relay(gateway);
        // How much more waits nobody here can see.
        if !carrier.feed(gateway, bytes, true) {
            carrier.close();
        }
        gateway.tell(FromGateway::Credit {
            area: self.area.area,
            epoch,
            bytes: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
        });
    }

    pub(crate) fn credited(&self, epoch: u32, bytes: u32) {
        if epoch == self.area.epoch {
            if let Some(carrier) = self.relay.borrow().as_ref() {
                carrier.credited(bytes);
            }
        }
    }

    /// What a new stream should use. Where some make way and there are several connections, those have the last one and
    /// the others the first.
    fn best(&self, wish: u8) -> Option<Rc<Carrier>> {
        let carriers = self.carriers.borrow();
        let live = || carriers.iter().filter(|c| !c.dead.get());
        let bulk = wish == WISH_BULK;
        // The same one at both ends: what the gateway of the area with the lower number made comes first.
        let for_bulk = |c: &Rc<Carrier>| c.dialled == (self.own_area > self.area.area);
        let of_class = || live().filter(|c| for_bulk(c) == bulk);
        let classes = bulk || live().any(|c| c.classes().0 > 0);
        let by_class = if classes {
            of_class().min_by_key(|c| c.load())
        } else {
            None
        };
        let direct = by_class.or_else(|| live().min_by_key(|c| c.load())).cloned();
        direct.or_else(|| self.relay.borrow().clone().filter(|c| !c.dead.get()))
    }

    /// A carrier for this wish, if there is one in time.
    pub(crate) async fn carrier(&self, wish: u8) -> Option<Rc<Carrier>> {
        let found = async {
            loop {
                let changed = self.changed.notified();
                match self.best(wish) {
                    _ if self.left.get() => return None,
                    Some(carrier) => return Some(carrier),
                    None => changed.await,
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.ok().flatten()
    }

    /// Changes what is known and tells it.
    fn note(&self, gateway: &Gateway, change: impl FnOnce(&mut Settled)) {
        let mut settled = self.settled.borrow_mut();
        change(&mut settled);
        // What the first thread finds is enough to know.
        if gateway.number == 0 {
            gateway.tell(FromGateway::Settled(settled.clone()));
        }
    }
}
