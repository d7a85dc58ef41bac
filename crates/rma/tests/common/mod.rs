// SPDX-License-Identifier: Apache-2.0
//! Two processes with a window: engines with their worlds, which make it as programs do. One of them may lie.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::sync::Arc;

use isthmus_core::comm;
use isthmus_core::error::Error;
use isthmus_core::info::Info;
use isthmus_core::world::World;
use isthmus_datatype::describe::to_bytes;
use isthmus_datatype::raw::{OwnMemory, Promised};
use isthmus_datatype::{Basic, Datatype, Representation};
use isthmus_engine::{Engine, Policy, SendBuffer, Setup, Shared, with_port};
use isthmus_rma::{Flavor, LockKind, ProgramMemory, Window, Wish};
use isthmus_transport::memory::{Memory, Options, network};
use isthmus_transport::{Peer, Processes, Transport};
use isthmus_wire::frame::{Header, Kind, protocol};
use isthmus_wire::place::{self, Node, Place, PlaceTable, Subjob};
use isthmus_wire::rma::{Does, Operation, What};

const HOST: Peer = Peer::new(0);
const LIAR: Peer = Peer::new(1);
/// Bytes of each part.
pub(crate) const BYTES: usize = 1024;

/// Every process at a site of its own.
fn places(size: u32) -> Arc<PlaceTable> {
    let name = |rank: u32| ["a", "b", "c", "d", "e"][rank as usize].to_owned();
    let subjob = |rank: u32| Subjob {
        name: name(rank),
        lan: name(rank),
        first_rank: rank,
        count: 1,
        programs: vec![(0, 0)],
    };
    let node = |rank: u32| Node {
        host: name(rank),
        addresses: Vec::new(),
        subjob: rank,
        processes: 1,
        processors: 0,
    };
    let place = |rank: u32| Place {
        subjob: rank,
        node: rank,
        port: 0,
        slot: 0,
        representation: place::Representation(Representation::LOCAL.encode()),
        vendor: None,
    };
    Arc::new(PlaceTable {
        subjobs: (0..size).map(subjob).collect(),
        nodes: (0..size).map(node).collect(),
        places: (0..size).map(place).collect(),
    })
}

pub(crate) fn world(me: Peer, end: Memory, size: u32) -> &'static World {
    world_beside(me, end, size, (Representation::LOCAL, 0))
}

/// `others`: how this process believes that the others represent data, and their level.
fn world_beside(me: Peer, end: Memory, size: u32, (others, level): (Representation, u8)) -> &'static World {
    let mut representations = vec![others; size as usize];
    representations[me.index()] = Representation::LOCAL;
    if others == Representation::LOCAL {
        representations.clear();
    }
    let own: Box<dyn Transport> = Box::new(end);
    let engine = Engine::new(Setup {
        me,
        processes: Processes::of("job", size),
        transports: vec![own],
        routes: vec![0; size as usize],
        levels: vec![level; size as usize],
        representations,
    });
    let policy = Policy {
        threads: true,
        guests: false,
    };
    let shared = Shared::new(engine, policy);
    Box::leak(Box::new(World::new(me.number(), places(size), shared)))
}

pub(crate) fn window(world: &'static World, (flavor, bytes): (Flavor, usize)) -> Arc<Window> {
    let wish = Wish {
        size: bytes as u64,
        unit: 1,
        memory: None,
        location: None,
        hints: Info::default(),
    };
    let allocate = |bytes: usize, _: usize| Ok(OwnMemory::new(0, bytes as isize).memory());
    let programs = ProgramMemory {
        allocate: &allocate,
        // SAFETY: worlds of the tests have a node each, so nothing is mapped.
        mapped: unsafe { Promised::by_program() },
    };
    Window::create(world, &comm::of_world(world), flavor, Ok(wish), programs).expect("a window")
}

/// Questions that a process has asked.
pub(crate) fn questions(world: &World) -> u64 {
    let rows = world.engine().lock().core.tools().counters().rows;
    let waits = rows.iter().filter(|(name, ..)| name == "window-wait");
    waits.map(|(.., counted)| counted.messages).sum()
}

pub(crate) struct Stage {
    pub(crate) host: &'static World,
    pub(crate) liar: &'static World,
    pub(crate) windows: [Arc<Window>; 2],
    pub(crate) context: u32,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with(Flavor::Allocate, BYTES)
    }

    pub(crate) fn with(flavor: Flavor, bytes: usize) -> Self {
        Self::unlike(flavor, bytes, Representation::LOCAL)
    }

    /// Each believes that the other represents data like this.
    pub(crate) fn unlike(flavor: Flavor, bytes: usize, form: Representation) -> Self {
        Self::over(Options::default(), (flavor, bytes), form)
    }

    /// Over a network like this.
    pub(crate) fn over(options: Options, (flavor, bytes): (Flavor, usize), form: Representation) -> Self {
        let (mut ends, _) = network(2, options).expect("eventfd");
        let others = (form, u8::from(!options.far));
        let liar = world_beside(LIAR, ends.remove(1), 2, others);
        let host = world_beside(HOST, ends.remove(0), 2, others);
        let other = std::thread::spawn(move || window(liar, (flavor, bytes)));
        let windows = [window(host, (flavor, bytes)), other.join().expect("a window")];
        Self {
            host,
            liar,
            context: windows[0].context_number(),
            windows,
        }
    }

    pub(crate) fn progress(&self) {
        for _ in 0..20 {
            self.liar.engine().lock().progress();
            self.host.engine().lock().progress();
        }
    }

    pub(crate) fn say(&self, what: i32, (context, lower): (u32, u32), at: u64, payload: &[u8]) {
        let token = u64::from(context) << 32 | u64::from(lower);
        let mut header = Header::control(Kind::Protocol, token, at, 0);
        header.tag = what;
        self.send(header, payload);
    }

    pub(crate) fn send(&self, header: Header, payload: &[u8]) {
        let payload = SendBuffer::owned(payload.into());
        let _ = with_port(&mut self.liar.engine().lock(), protocol::RMA, |port| {
            port.send(HOST, header, payload, None)
        });
        self.progress();
    }

    pub(crate) fn operate(&self, operation: &Operation<'_>) {
        let bytes = operation.encode();
        let at = (self.context, bytes.len() as u32);
        self.say(What::Operate as i32, at, 0, &bytes);
    }

    /// Lets the host make progress while the liar does something to its window under a lock.
    pub(crate) fn locked<T: Send>(&self, act: impl FnOnce(&Window) -> T + Send) -> (T, Result<(), Error>) {
        let window = &self.windows[1];
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                window.lock(LockKind::Exclusive, 0, 0).expect("locked");
                let done = act(window);
                let ended = window.unlock(0);
                over.store(true, std::sync::atomic::Ordering::SeqCst);
                (done, ended)
            });
            while !over.load(std::sync::atomic::Ordering::SeqCst) {
                self.host.engine().lock().progress();
                std::thread::yield_now();
            }
            thread.join().expect("ended")
        })
    }

    /// Why the host has given the liar up.
    pub(crate) fn accused(&self) -> Option<String> {
        self.progress();
        let loss = with_port(&mut self.host.engine().lock(), protocol::RMA, |port| port.loss(LIAR));
        loss.map(|error| error.to_string())
    }
}

pub(crate) fn put<'a>(datatype: &'a [u8], data: &'a [u8]) -> Operation<'a> {
    Operation {
        does: Does::Put,
        op: 0,
        question: 0,
        first: 0,
        place: 8,
        count: 1,
        length: data.len() as u64,
        number: 0,
        datatype,
        data,
    }
}

pub(crate) fn long() -> Vec<u8> {
    to_bytes(&Datatype::of(Basic::Int64)).expect("short")
}
