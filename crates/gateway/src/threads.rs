// SPDX-License-Identifier: Apache-2.0
//! Threads of a gateway beside the first one, where that is saturated.
//!
//! The first thread alone talks with the coordinator and has the door, and gives every stream that begins to the thread
//! with the least to do. A thread has trunks of its own, on connections of its own: thread 1 here carries with thread 1
//! there. Streams that are under way move by being ended: their channels begin new ones.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use isthmus_link::handshake::Ends;
use isthmus_wire::gateway::{Area, FromGateway, MAX_THREADS, WISH_BULK, Ways};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::carrier::Carrier;
use crate::neighbour::Neighbour;
use crate::places::Whereabouts;
use crate::saturation::{Load, ROOM, Saturation, Step};
use crate::traffic::Traffic;
use crate::usage::{OwnTime, Spare, Usage};
use crate::{Gateway, door};

/// How often threads look at what they have done.
const LOOK: Duration = Duration::from_millis(500);
/// Streams with less than this share of a thread's bytes are not worth moving.
const HEAVY: f64 = 0.05;

/// What the first thread asks of another.
pub(crate) enum Work {
    /// This area is there; whether to dial it.
    Meet(Area, Arc<Traffic>, bool),
    /// The job.
    Places(Arc<Whereabouts>),
    /// A connection of the gateway of this area.
    Came(u32, std::net::TcpStream),
    /// A connection of a process.
    Carry(std::net::TcpStream, Ends, u8),
    /// Streams shall move.
    Spread,
}

/// Another thread, as the first one sees it.
pub(crate) struct Thread {
    work: mpsc::UnboundedSender<Work>,
    usage: Arc<Usage>,
    met: RefCell<BTreeMap<u32, Met>>,
}

/// An area that a thread has been told of.
struct Met {
    traffic: Arc<Traffic>,
    /// It keeps itself connected; else the other end does.
    dials: bool,
}

impl Thread {
    fn connections(&self, area: u32) -> usize {
        self.met.borrow().get(&area).map_or(0, |met| met.traffic.connections())
    }

    fn meet(&self, met: &mut BTreeMap<u32, Met>, area: &Area, dials: bool) {
        let traffic = Arc::<Traffic>::default();
        self.tell(Work::Meet(area.clone(), traffic.clone(), dials));
        met.insert(area.area, Met { traffic, dials });
    }

    fn tell(&self, work: Work) {
        // A thread that is gone has no connections either, and is not chosen.
        let _ = self.work.send(work);
    }
}

/// What the first thread knows of all.
pub(crate) struct Threads {
    others: RefCell<Vec<Thread>>,
    saturation: RefCell<Saturation>,
    own: Usage,
    /// Streams of this thread that are worth moving.
    heavy: RefCell<Vec<(Rc<Carrier>, u32)>>,
    failed: Cell<bool>,
}

impl Threads {
    /// `pinned`: how many the user wants; 0: as many as are found to be needed.
    pub(crate) fn new(pinned: u8) -> Self {
        let most = std::thread::available_parallelism().map_or(1, usize::from);
        let most = most.min(usize::from(MAX_THREADS));
        let pinned = (pinned > 0).then(|| usize::from(pinned.min(MAX_THREADS)));
        Self {
            others: RefCell::default(),
            saturation: RefCell::new(Saturation::new(pinned, most)),
            own: Usage::default(),
            heavy: RefCell::default(),
            failed: Cell::new(false),
        }
    }

    /// What the other threads carry to an area.
    pub(crate) fn traffic(&self, area: u32) -> Vec<Arc<Traffic>> {
        let others = self.others.borrow();
        let of_area = others
            .iter()
            .filter_map(|t| Some(t.met.borrow().get(&area)?.traffic.clone()));
        of_area.collect()
    }

    /// The gateway of this area is there, or has begun anew.
    pub(crate) fn meet(&self, area: &Area) {
        for thread in self.others.borrow().iter() {
            let mut met = thread.met.borrow_mut();
            if met.contains_key(&area.area) {
                thread.meet(&mut met, area, true);
            }
        }
    }

    pub(crate) fn places(&self, known: &Arc<Whereabouts>) {
        let others = self.others.borrow();
        others.iter().for_each(|t| t.tell(Work::Places(known.clone())));
    }
}

/// What another thread begins with.
struct Seed {
    number: u8,
    area: u32,
    prover: isthmus_net::Prover,
    control: mpsc::UnboundedSender<FromGateway>,
}

impl Gateway {
    /// Begins a thread, or, when the system gives us none, not.
    fn start_thread(&self) -> io::Result<()> {
        let mut others = self.threads.others.borrow_mut();
        let number = others.len() as u8 + 1;
        let (work, queue) = mpsc::unbounded_channel();
        let usage = Arc::new(Usage::default());
        let seed = Seed {
            number,
            area: self.area,
            prover: self.prover.clone(),
            control: self.control.clone(),
        };
        let own = usage.clone();
        std::thread::Builder::new()
            .name(format!("gateway {number}"))
            .spawn(move || {
                // Without a runtime the thread has no connections, and is never chosen.
                let _ = serve(seed, queue, &own);
            })?;
        if let Some(known) = self.places.known() {
            let _ = work.send(Work::Places(known));
        }
        others.push(Thread {
            work,
            usage,
            met: RefCell::default(),
        });
        Ok(())
    }

    /// That there is a thread of this number and it knows this area; false: there is none.
    fn engage(&self, number: u8, area: &Area, dial: bool) -> bool {
        let number = usize::from(number);
        if number >= self.threads.saturation.borrow().most() {
            return false;
        }
        while self.threads.others.borrow().len() < number {
            self.threads.saturation.borrow_mut().disturbed();
            if self.threads.failed.get() || self.start_thread().is_err() {
                // It will not be better the next time.
                self.threads.failed.set(true);
                return false;
            }
        }
        let others = self.threads.others.borrow();
        let thread = &others[number - 1];
        let mut met = thread.met.borrow_mut();
        // However often the other end asks, it begins anew once.
        let is_enough = |met: &Met| met.dials || !dial || met.traffic.connections() > 0;
        if !met.get(&area.area).is_some_and(is_enough) {
            thread.meet(&mut met, area, dial);
        }
        true
    }

    /// A connection that the gateway of this area made for this thread of ours.
    pub(crate) fn came(self: &Rc<Self>, area: u32, number: u8, stream: TcpStream) {
        let Some(neighbour) = self.neighbour(area) else { return };
        if number == 0 || !self.engage(number, neighbour.place(), false) {
            return neighbour.came(self, stream);
        }
        if let Ok(stream) = stream.into_std() {
            self.threads.others.borrow()[usize::from(number) - 1].tell(Work::Came(area, stream));
        }
    }

    /// The gateway of this area wants a connection for this thread and cannot make it.
    pub(crate) fn wanted(&self, area: u32, number: u8) {
        if let Some(neighbour) = self.neighbour(area).filter(|_| number > 0 && self.number == 0) {
            if neighbour.place().ways != Ways::Relay {
                self.engage(number, neighbour.place(), true);
            }
        }
    }

    /// The thread that a stream to this area should be on; `None`: this one.
    pub(crate) fn choose(&self, area: u32, wish: u8) -> Option<usize> {
        let neighbour = self.neighbour(area)?;
        // Classes are told apart on the connections of one thread.
        if wish == WISH_BULK || neighbour.makes_way() {
            return None;
        }
        let others = self.threads.others.borrow();
        let load = |usage: &Usage, streams| ((usage.get().0 * 10.0) as u32, streams);
        let own = neighbour
            .is_connected()
            .then(|| load(&self.threads.own, neighbour.streams()));
        let ready = others.iter().enumerate().filter(|(_, t)| t.connections(area) > 0);
        let (best, index) = ready
            .map(|(i, t)| (load(&t.usage, t.met.borrow()[&area].traffic.streams()), i))
            .min()?;
        own.is_none_or(|own| best < own).then_some(index)
    }

    /// Gives a connection of a process to a thread.
    pub(crate) fn hand_over(&self, thread: usize, stream: TcpStream, ends: Ends, wish: u8) {
        if let (Ok(stream), Some(thread)) = (stream.into_std(), self.threads.others.borrow().get(thread)) {
            thread.tell(Work::Carry(stream, ends, wish));
        }
    }

    /// Looks at what this thread does, and, on the first one, at whether that is too much.
    pub(crate) async fn look_after(self: Rc<Self>, usage: Option<&Usage>) {
        let (mut time, mut spare) = (OwnTime::new(), Spare::default());
        loop {
            tokio::time::sleep(LOOK).await;
            let heavy = self.heavy();
            usage.unwrap_or(&self.threads.own).set(time.busy(), heavy.len());
            *self.threads.heavy.borrow_mut() = heavy;
            if self.number == 0 {
                self.govern(&mut spare);
            }
        }
    }

    fn govern(&self, spare: &mut Spare) {
        let others = self.threads.others.borrow();
        let load = |usage: &Usage, ready| {
            let (busy, heavy) = usage.get();
            Load { busy, heavy, ready }
        };
        let mut loads = vec![load(&self.threads.own, true)];
        loads.extend(others.iter().map(|t| {
            let ready = t.met.borrow().values().any(|met| met.traffic.connections() > 0);
            load(&t.usage, ready)
        }));
        drop(others);
        // On a machine with many processors the question takes the kernel a while.
        let any_busy = loads.iter().any(|load| load.busy >= ROOM);
        let spare = any_busy.then(|| spare.processors()).flatten();
        let step = self.threads.saturation.borrow_mut().look(&loads, spare);
        match step {
            Step::Stay => {}
            Step::Spread(0) => self.spread(),
            Step::Spread(thread) => self.threads.others.borrow()[thread - 1].tell(Work::Spread),
            Step::Another => self.another(loads.len() as u8),
        }
    }

    /// One more thread, for all areas that have something to carry.
    fn another(&self, number: u8) {
        let busy: Vec<_> = self.neighbours.borrow().values().cloned().collect();
        let connected = busy
            .iter()
            .filter(|n| n.is_connected() && n.streams() > 0 && !n.makes_way());
        for neighbour in connected {
            let dial = neighbour.dials();
            if self.engage(number, neighbour.place(), dial) && !dial {
                neighbour.want(number);
            }
        }
    }

    /// Streams that are worth moving: what carries a good part of what passed since this was asked last.
    fn heavy(&self) -> Vec<(Rc<Carrier>, u32)> {
        let mut all = Vec::new();
        for neighbour in self.neighbours.borrow().values() {
            let (moved, movable) = (neighbour.moved(), !neighbour.makes_way());
            all.extend(
                moved
                    .into_iter()
                    .map(|(carrier, number, bytes)| (carrier, number, bytes, movable)),
            );
        }
        let sum: u64 = all.iter().map(|(_, _, bytes, _)| bytes).sum();
        let enough = (sum as f64 * HEAVY) as u64;
        all.retain(|(_, _, bytes, movable)| *movable && *bytes > enough);
        // In the same order at both ends, so that both end the same ones if they do it at once.
        all.sort_by_key(|(carrier, number, ..)| (carrier.area, *number));
        all.into_iter().map(|(carrier, number, ..)| (carrier, number)).collect()
    }

    /// Ends every second of the streams that are worth moving; what begins in their place is given to whoever has room.
    fn spread(&self) {
        let heavy = self.threads.heavy.take();
        for (carrier, number) in heavy.iter().skip(1).step_by(2) {
            carrier.lose(*number);
        }
    }

    fn work(self: &Rc<Self>, work: Work) {
        match work {
            Work::Meet(area, traffic, dial) => self.meet_on_thread(area, traffic, dial),
            Work::Places(known) => self.places.set(known),
            Work::Came(area, stream) => {
                if let (Some(neighbour), Ok(stream)) = (self.neighbour(area), TcpStream::from_std(stream)) {
                    neighbour.came(self, stream);
                }
            }
            Work::Carry(stream, ends, wish) => {
                if let Ok(stream) = TcpStream::from_std(stream) {
                    let gateway = self.clone();
                    tokio::task::spawn_local(async move { door::carry(&gateway, stream, ends, wish).await });
                }
            }
            Work::Spread => self.spread(),
        }
    }

    fn meet_on_thread(self: &Rc<Self>, area: Area, traffic: Arc<Traffic>, dial: bool) {
        let number = area.area;
        let neighbour = Rc::new(Neighbour::new(self, area, traffic));
        if let Some(old) = self.neighbours.borrow_mut().insert(number, neighbour.clone()) {
            old.leave();
        }
        neighbour.begin_on_thread(self, dial);
    }
}

/// Works until the first thread ends.
fn serve(seed: Seed, mut queue: mpsc::UnboundedReceiver<Work>, usage: &Usage) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let gateway = Rc::new(Gateway {
            number: seed.number,
            area: seed.area,
            streams: 1,
            prover: seed.prover,
            neighbours: RefCell::default(),
            met: tokio::sync::Notify::new(),
            places: crate::places::Places::default(),
            leads: crate::leads::Leads::default(),
            control: seed.control,
            threads: Threads::new(1),
        });
        let own = gateway.clone();
        let working = async {
            while let Some(work) = queue.recv().await {
                own.work(work);
            }
        };
        tokio::select! {
            () = working => {}
            () = gateway.look_after(Some(usage)) => {}
        }
    });
    Ok(())
}
