// SPDX-License-Identifier: Apache-2.0
//! What the engine itself costs per message: a transport that only echoes. `cargo run --release --example overhead`.
#![expect(clippy::print_stdout, reason = "prints its measurement")]

use std::os::fd::BorrowedFd;
use std::time::Instant;

use isthmus_datatype::raw::OwnMemory;
use isthmus_engine::{
    Binding, Channel, Context, Engine, Members, Mode, Policy, ReceiveBuffer, SendBuffer, Setup, Shared, Special,
};
use isthmus_lock::{Lock, OneAtATime};
use isthmus_schedule::step::{Action, After, Buffer, Plan, Slice, Step};
use isthmus_transport::{Limits, Peer, Processes, SendError, Sink, Transport};
use isthmus_wire::frame::{Header, Kind};

/// Gives every frame back as if peer 1 had sent it.
struct Echo {
    full: bool,
    credit: Option<Header>,
    header: Header,
    payload: [u8; 64],
}

impl Transport for Echo {
    fn name(&self) -> &'static str {
        "echo"
    }
    fn limits(&self, _: Peer) -> Limits {
        Limits {
            frame: 4096,
            eager: 4096,
            pull: false,
            bulk: false,
            far: false,
        }
    }
    fn send(&mut self, _: Peer, header: &Header, payload: &[u8]) -> Result<(), SendError> {
        if header.kind == Kind::Credit {
            self.credit = Some(*header);
            return Ok(());
        }
        if self.full {
            return Err(SendError::WouldBlock);
        }
        self.header = *header;
        self.header.source = 1;
        self.payload[..payload.len()].copy_from_slice(payload);
        self.full = true;
        Ok(())
    }
    fn poll(&mut self, sink: &mut dyn Sink) -> bool {
        if let Some(credit) = self.credit.take() {
            sink.frame(Peer::new(1), &credit, &[]);
        }
        if !self.full {
            return false;
        }
        self.full = false;
        sink.frame(Peer::new(1), &self.header, &self.payload[..self.header.length as usize]);
        true
    }
    fn arm(&mut self) -> bool {
        !self.full
    }
    fn lose(&mut self, _: Peer, _: &str) {}
    fn disarm(&mut self) {}
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    fn close(&mut self, _: &mut dyn Sink) -> bool {
        true
    }
}

/// A message there and one back, as in a barrier of two.
struct Exchange(u8);

impl Plan for Exchange {
    fn scratch(&self) -> &[u64] {
        &[]
    }
    fn next_step(&mut self) -> Option<Step> {
        let data = Slice {
            buffer: Buffer::Recv,
            offset: 0,
            length: 0,
        };
        self.0 += 1;
        let action = match self.0 {
            1 => Action::Send { to: 1, data, slot: 0 },
            2 => Action::Receive { from: 1, data, slot: 0 },
            _ => return None,
        };
        Some(Step {
            action,
            after: After::NONE,
        })
    }
}

fn measure(what: &str, mut once: impl FnMut()) {
    if std::env::args().nth(1).is_some_and(|only| !what.contains(&only)) {
        return;
    }
    let times = std::env::args()
        .nth(2)
        .and_then(|n| n.parse().ok())
        .unwrap_or(2_000_000_u32);
    let mut best = f64::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        (0..times).for_each(|_| once());
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(times));
    }
    println!("{what}: {best:.1} ns");
}

fn main() {
    let header = Header::control(Kind::Ack, 0, 0, 0);
    let echo = Echo {
        full: false,
        credit: None,
        header,
        payload: [0; 64],
    };
    let setup = Setup {
        me: Peer::new(0),
        processes: Processes::of("job", 2),
        transports: vec![Box::new(echo)],
        routes: vec![0; 2],
        levels: vec![4; 2],
        representations: vec![],
    };
    // SAFETY: this program has one thread.
    let promise = unsafe { OneAtATime::promised() };
    let policy = Policy {
        threads: false,
        guests: false,
    };
    let shared = Shared::for_one_at_a_time(Engine::new(setup), policy, promise);
    let channel = Channel {
        context: Context::default(),
        rank: 0,
        members: Members::Range {
            first: Peer::new(0),
            count: 2,
        },
        slab: None,
        node: None,
        special: Special::none(),
        notes: None,
    };
    let memory = OwnMemory::new(0, 64);
    let send = || SendBuffer::contiguous(memory.reading(), 0, 8);
    let receive = || ReceiveBuffer::contiguous(memory.memory(), 8, 8);
    measure("send, receive (posted late), wait", || {
        assert!(matches!(
            shared.lock().send(&channel, 1, 7, Mode::Standard, send()),
            Ok(None)
        ));
        let request = shared.lock().irecv(&channel, Some(1), Some(7), receive());
        shared.wait(|engine| engine.core.take(request));
    });
    measure("blocking send, blocking receive", || {
        assert!(shared.send(&channel, 1, 7, Mode::Standard, send()).is_ok());
        shared.receive(&channel, Some(1), Some(7), receive());
    });
    measure("receive, send, wait", || {
        let request = shared.lock().irecv(&channel, Some(1), Some(7), receive());
        assert!(matches!(
            shared.lock().send(&channel, 1, 7, Mode::Standard, send()),
            Ok(None)
        ));
        shared.wait(|engine| engine.core.take(request));
    });
    measure("plan of one send and one receive, wait", || {
        let operation = isthmus_engine::Operation::POINT_TO_POINT;
        let request = shared
            .lock()
            .start_plan(&channel, operation, 1, Box::new(Exchange(0)), Binding::nothing(), None);
        shared.wait(|engine| engine.core.take(request));
    });
    measure("lock and unlock", || drop(shared.lock()));
    let (with, without) = (Lock::new(0_u64), Lock::for_one_at_a_time(0_u64, promise));
    measure("lock and unlock, a mutex alone", || {
        *std::hint::black_box(&with).lock() += 1
    });
    measure("lock and unlock, by promise", || {
        *std::hint::black_box(&without).lock() += 1
    });
}
