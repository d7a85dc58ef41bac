// SPDX-License-Identifier: Apache-2.0
//! Several engines in one thread over the in-memory transport.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod changing;
pub(crate) mod store;

use std::sync::Arc;

use isthmus_datatype::Representation;
use isthmus_datatype::raw::OwnMemory;
use isthmus_engine::{
    Channel, Completion, Context, Engine, Members, ReceiveBuffer, Request, SendBuffer, Setup, Special,
};
use isthmus_transport::memory::{Options, Switch, network};
use isthmus_transport::{Peer, Processes, Transport};

/// A small random number generator: tests are deterministic.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

pub(crate) struct World {
    pub(crate) engines: Vec<Engine>,
    pub(crate) switch: Switch,
    pub(crate) random: Random,
}

pub(crate) fn world(count: u32, options: Options) -> World {
    world_of(count, options, &[])
}

/// As [`world`], of processes that represent data so.
pub(crate) fn world_of(count: u32, options: Options, representations: &[Representation]) -> World {
    let (ends, switch) = network(count, options).expect("eventfd");
    let engine = |(me, end)| {
        Engine::new(Setup {
            me,
            processes: Processes::of("job", count),
            transports: vec![Box::new(end) as Box<dyn Transport>],
            routes: vec![0; count as usize],
            levels: vec![4; count as usize],
            representations: representations.to_vec(),
        })
    };
    World {
        engines: (0..).map(Peer::new).zip(ends).map(engine).collect(),
        switch,
        random: Random(options.seed),
    }
}

/// MPI_COMM_WORLD of `count` processes as `rank` sees it.
pub(crate) fn channel(context: u32, rank: u32, count: u32) -> Channel {
    Channel {
        context: Context::new(0, context),
        rank,
        members: Members::Range {
            first: Peer::new(0),
            count,
        },
        slab: None,
        node: None,
        special: Special::none(),
        notes: Some(Arc::default()),
    }
}

impl World {
    /// One round of progress everywhere, in random order.
    pub(crate) fn poll(&mut self) {
        let n = self.engines.len() as u64;
        let first = self.random.below(n);
        for i in 0..n {
            self.engines[((first + i) % n) as usize].progress();
        }
    }

    pub(crate) fn finish(&mut self, at: usize, request: Request) -> Completion {
        for _ in 0..100_000 {
            if let Some(completion) = self.engines[at].core.take(request) {
                return completion;
            }
            self.poll();
        }
        panic!("a request of process {at} does not complete");
    }

    pub(crate) fn close(&mut self) {
        for _ in 0..100_000 {
            self.poll();
            if self.engines.iter_mut().all(Engine::close) {
                return;
            }
        }
        panic!("the engines do not close");
    }
}

/// Memory with these bytes.
pub(crate) fn memory(bytes: &[u8]) -> OwnMemory {
    let scratch = OwnMemory::new(0, bytes.len() as isize);
    scratch.memory().write(0, bytes);
    scratch
}

pub(crate) fn content(scratch: &OwnMemory, length: usize) -> Vec<u8> {
    scratch.reading().with(0, length, <[u8]>::to_vec)
}

pub(crate) fn sending(scratch: &OwnMemory, length: u64) -> SendBuffer {
    SendBuffer::contiguous(scratch.reading(), 0, length)
}

pub(crate) fn receiving(scratch: &OwnMemory, length: u64) -> ReceiveBuffer {
    ReceiveBuffer::contiguous(scratch.memory(), 0, length)
}

pub(crate) fn pattern(seed: usize, length: usize) -> Vec<u8> {
    (0..length)
        .map(|i| (i.wrapping_mul(31) ^ (i >> 8) ^ seed.wrapping_mul(97)) as u8)
        .collect()
}

/// The longest frame and the longest message without an announcement of [`kinds`], bytes.
/// Interpreted, every byte counts.
pub(crate) const FRAME: usize = if cfg!(miri) { 512 } else { 4096 };
pub(crate) const EAGER: usize = FRAME / 4;

/// Networks of all kinds.
pub(crate) fn kinds() -> Vec<Options> {
    let plain = Options {
        frame: FRAME,
        eager: EAGER,
        ..Options::default()
    };
    let all = [
        plain,
        Options { pull: true, ..plain },
        Options {
            bulk: true,
            place: 512,
            ..plain
        },
        Options {
            seed: 1,
            queue: 2,
            ..plain
        },
        Options {
            seed: 2,
            queue: 4,
            pull: true,
            place: 100,
            ..plain
        },
        Options {
            seed: 3,
            queue: 3,
            bulk: true,
            place: 1,
            ..plain
        },
        Options {
            seed: 4,
            queue: 3,
            bulk: true,
            far: true,
            ..plain
        },
    ];
    // Interpreted, a few of them take minutes.
    all.into_iter().step_by(if cfg!(miri) { 3 } else { 1 }).collect()
}
