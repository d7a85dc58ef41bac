// SPDX-License-Identifier: Apache-2.0
//! Engines of a node over real shared memory: what is left of short ways when a process is lost, and machines of other
//! rooms.

mod common;

use std::path::Path;
use std::sync::Arc;

use common::store::{ADD, PUT, Store, at, flush, get, write};
use common::{content, memory, pattern, receiving, sending};
use isthmus_datatype::raw::OwnMemory;
use isthmus_engine::{
    Channel, Completion, Context, Direct, Engine, Members, Mode, Peer, Policy, Processes, Request, Setup, Shared,
    Short, Special,
};
use isthmus_schedule::Operation;
use isthmus_shm::ShmTransport;
use isthmus_transport::Transport;
use isthmus_wire::frame::protocol;
use tempfile::TempDir;

struct Node {
    processes: Vec<Shared>,
    /// Memory of the first two.
    slab: u32,
    _at: TempDir,
}

impl Node {
    fn new() -> Self {
        let shared = Path::new("/dev/shm");
        let base = if shared.is_dir() {
            shared.to_owned()
        } else {
            std::env::temp_dir()
        };
        let at = tempfile::Builder::new()
            .prefix("isthmus-engine-test-")
            .tempdir_in(base)
            .expect("a directory");
        let peers: Vec<Peer> = Peer::first(3).collect();
        let processes: Vec<Shared> = (0..3).map(|me| process(me, &at, &peers)).collect();
        let slab = processes[0].lock().slabs().take(2).expect("there is memory");
        for process in &processes[..2] {
            process.lock().slabs().open(slab);
        }
        Self {
            processes,
            slab,
            _at: at,
        }
    }

    /// Of the first `count` processes.
    fn channel(&self, rank: u32, count: u32) -> Channel {
        Channel {
            context: Context::new(0, 2 * count),
            rank,
            members: Members::Range {
                first: Peer::new(0),
                count,
            },
            slab: (count == 2).then_some(self.slab),
            node: None,
            special: Special::none(),
            notes: Some(Arc::default()),
        }
    }

    fn end(&self, of: usize, request: Request) -> Completion {
        for _ in 0..100_000 {
            for process in &self.processes {
                process.lock().progress();
            }
            if let Some(done) = self.processes[of].lock().core.take(request) {
                return done;
            }
        }
        panic!("a request of process {of} does not end");
    }

    /// Rank 2 is lost to the others.
    fn lose(&self) {
        for process in &self.processes[..2] {
            process.lock().core.accuse(Peer::new(2), "it is no more");
            process.lock().progress();
            let all = self.channel(0, 3).members;
            assert!(process.lock().core.lost_of(&all).is_some());
        }
    }

    /// The first two meet without a plan, if that is a short way.
    fn barrier(&self, sequence: u32) -> bool {
        let short = || Short {
            what: Operation::Barrier,
            root: 0,
            block: 0,
            give: None,
            take: None,
            reducer: None,
        };
        let begin = |rank: usize| {
            let channel = self.channel(rank as u32, 2);
            let operation = self.processes[rank].lock().core.operation("MPI_Barrier");
            let call = self.processes[rank].group(&channel, operation, sequence);
            call.start_short(&short())
        };
        let both = [begin(0), begin(1)];
        for (rank, begun) in both.iter().enumerate() {
            match begun {
                None => return false,
                Some(None) => {}
                Some(Some(request)) => assert_eq!(self.end(rank, *request).error, None),
            }
        }
        true
    }
}

fn process(me: u32, at: &TempDir, peers: &[Peer]) -> Shared {
    let segment = at.path().join("segment");
    let joined = ShmTransport::join(&segment, at.path(), "job", me as usize, peers.len(), peers.to_vec());
    let transport: Box<dyn Transport> = Box::new(joined.expect("shared memory"));
    let mut engine = Engine::new(Setup {
        me: Peer::new(me),
        processes: Processes::of("job", peers.len() as u32),
        transports: vec![transport],
        routes: vec![0; peers.len()],
        levels: vec![4; peers.len()],
        representations: vec![],
    });
    engine.register(protocol::TEST, Box::new(Store::new(LENGTH)));
    let policy = Policy {
        threads: false,
        guests: false,
    };
    Shared::new(engine, policy)
}

/// Bytes of a store.
const LENGTH: usize = 700_001;

#[test]
fn who_is_lost_takes_the_short_ways_of_its_own_communicators_only() {
    let node = Node::new();
    assert!(node.barrier(0));
    node.lose();
    assert!(node.barrier(1), "the lost one is not in it");
    // Messages: from a member that lives, from anybody where all live, and from where somebody is lost.
    let (source, target) = (memory(&pattern(1, 64)), OwnMemory::new(0, 64));
    for (count, from, short) in [
        (2, Some(0), true),
        (2, None, true),
        (3, Some(0), true),
        (3, None, false),
        (3, Some(2), false),
    ] {
        let (to, of) = (node.channel(0, count), node.channel(1, count));
        let sent = node.processes[0]
            .lock()
            .isend(&to, 1, 5, Mode::Standard, sending(&source, 64));
        let received = node.processes[1].receive_directly(&of, from, Some(5), target.memory(), 64);
        assert_eq!(matches!(received, Direct::Received(_)), short, "{count} {from:?}");
        if !short {
            let came = node.processes[1]
                .lock()
                .irecv(&of, Some(0), Some(5), receiving(&target, 64));
            assert_eq!(node.end(1, came).error, None);
        }
        assert_eq!(node.end(0, sent).error, None);
        let posted = from.and_then(|from| {
            let mut engine = node.processes[1].lock();
            engine.irecv_plainly(&of, from, Some(6), target.memory(), 64)
        });
        assert_eq!(posted.is_some(), short && from.is_some(), "{count} {from:?}");
        let Some(posted) = posted else { continue };
        let sent = node.processes[0]
            .lock()
            .isend(&to, 1, 6, Mode::Standard, sending(&source, 64));
        assert_eq!((node.end(0, sent).error, node.end(1, posted).error), (None, None));
        assert!(content(&target, 64) == pattern(1, 64));
    }
}

#[test]
fn machines_put_add_and_get_in_order() {
    let node = Node::new();
    let mut model = vec![0_u8; LENGTH];
    let to = Peer::new(1);
    for round in 0..30 {
        let length = [9, 300_000, 5000, LENGTH][round % 4];
        let place = (round * 7919) % (LENGTH - length + 1);
        let bytes = pattern(round, length);
        let what = if round % 3 == 0 { ADD } else { PUT };
        for (byte, new) in model[place..].iter_mut().zip(&bytes) {
            *byte = if what == PUT { *new } else { byte.wrapping_add(*new) };
        }
        let source = memory(&bytes);
        let put = write(
            &mut node.processes[0].lock(),
            to,
            what,
            place as u64,
            sending(&source, length as u64),
        );
        assert!(put.is_ok());
    }
    let request = flush(&mut node.processes[0].lock(), to);
    assert_eq!(node.end(0, request).error, None);
    let target = OwnMemory::new(0, LENGTH as isize);
    let request = get(&mut node.processes[2].lock(), to, 0, target.memory(), LENGTH as u64);
    assert_eq!(node.end(2, request).error, None);
    assert!(content(&target, LENGTH) == model);
    assert!(at(&mut node.processes[1].lock(), |store, _| content(&store.memory, LENGTH)) == model);
}
