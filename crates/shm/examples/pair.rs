// SPDX-License-Identifier: Apache-2.0
//! Two processes of one node: latency, message rate, bandwidth through the ring and by pulling.
//!
//! `cargo run --release -p isthmus-shm --example pair`; on a busy machine under `chrt -f 10` (it takes a second):
//! niceness does not help where the scheduler groups processes by session.

#![expect(clippy::print_stdout, reason = "a measurement for people")]
#![expect(clippy::unwrap_used, reason = "an example may stop where it stands")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use isthmus_datatype::raw::{ReadMemory, WriteMemory};
use isthmus_shm::ShmTransport;
use isthmus_transport::{Peer, Placement, SendError, Sink, Transport};
use isthmus_wire::frame::{Header, Kind};

/// Counts what arrives, and keeps what a rendezvous needs.
#[derive(Default)]
struct Arrivals {
    frames: u64,
    bytes: u64,
    handle: Vec<u8>,
    buffer: Vec<u8>,
}

impl Sink for Arrivals {
    fn frame(&mut self, _: Peer, header: &Header, payload: &[u8]) {
        self.frames += 1;
        match header.kind {
            Kind::Rts => self.handle = payload.to_vec(),
            _ => {
                let room = self.buffer.len() - payload.len();
                let at = if room == 0 { 0 } else { self.bytes as usize % room };
                self.buffer[at..at + payload.len()].copy_from_slice(payload);
                self.bytes += payload.len() as u64;
            }
        }
    }
    fn place(&mut self, _: Peer, _: &Header) -> Placement {
        Placement::Collect
    }
    fn placed(&mut self, _: Peer, _: &Header) {}
    fn received(&mut self, _: Peer, _: u64) {}
    fn sent(&mut self, _: Peer, _: u64) {}
    fn writable(&mut self, _: Peer) {}
    fn lost(&mut self, peer: Peer, reason: &str) {
        panic!("lost {peer}: {reason}");
    }
}

struct Side {
    shm: ShmTransport,
    other: Peer,
    arrivals: Arrivals,
}

impl Side {
    fn send(&mut self, header: &Header, payload: &[u8]) {
        loop {
            match self.shm.send(self.other, header, payload) {
                Ok(()) => return,
                Err(SendError::WouldBlock) => {
                    self.shm.poll(&mut self.arrivals);
                }
                Err(SendError::Lost(why)) => panic!("{why}"),
            }
        }
    }

    fn send_bytes(&mut self, payload: &[u8]) {
        self.send(&Header::new(Kind::Eager, 0, 0, 0, payload.len() as u64, 0), payload);
    }

    fn wait_frames(&mut self, frames: u64) {
        let goal = self.arrivals.frames + frames;
        while self.arrivals.frames < goal {
            if !self.shm.poll(&mut self.arrivals) {
                std::hint::spin_loop();
            }
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    match arguments.next() {
        Some(directory) => {
            // A measurement that is interrupted must not leave its other half polling for ever.
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL)).unwrap();
            run(Path::new(&directory), 1);
        }
        None => parent(),
    }
}

fn parent() {
    let directory = PathBuf::from(format!("/dev/shm/isthmus-pair-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg(&directory)
        .spawn()
        .unwrap();
    run(&directory, 0);
    assert!(child.wait().unwrap().success());
    std::fs::remove_dir_all(&directory).unwrap();
}

fn run(directory: &Path, slot: usize) {
    pin(slot);
    let shm = ShmTransport::join(
        &directory.join("segment"),
        directory,
        "pair",
        slot,
        2,
        vec![Peer::new(0), Peer::new(1)],
    )
    .unwrap();
    let other = Peer::new(1 - slot as u32);
    let mut side = Side {
        shm,
        other,
        arrivals: Arrivals {
            buffer: vec![0; 1 << 20],
            ..Arrivals::default()
        },
    };
    side.send_bytes(&[]);
    side.wait_frames(1);
    for size in [0, 8, 32, 33, 64, 256, 1024, 4096, 8192, 16384] {
        latency(&mut side, size);
    }
    for size in [8, 64, 1024, 8192] {
        rate(&mut side, size);
    }
    through_ring(&mut side);
    for size in [8 << 10, 16 << 10, 32 << 10, 64 << 10, 1 << 20, 4 << 20] {
        pulled(&mut side, size);
    }
    idle(&mut side);
    side.shm.close(&mut side.arrivals);
}

fn latency(side: &mut Side, size: usize) {
    let payload = vec![1_u8; size];
    // The best of many short runs: other work on the machine disturbs only some of them.
    let rounds = if size <= 1024 { 500 } else { 50 };
    let mut best = f64::INFINITY;
    for _ in 0..400 {
        let start = Instant::now();
        for _ in 0..rounds {
            if side.other == Peer::new(1) {
                side.send_bytes(&payload);
                side.wait_frames(1);
            } else {
                side.wait_frames(1);
                side.send_bytes(&payload);
            }
        }
        best = best.min(start.elapsed().as_secs_f64() / f64::from(rounds) / 2.0);
    }
    report(side, &format!("latency {size:>6} B  {:7.1} ns", best * 1e9));
}

fn rate(side: &mut Side, size: usize) {
    let payload = vec![1_u8; size];
    let frames = 1_000_000 / (size as u64 + 500);
    let mut best = f64::INFINITY;
    for _ in 0..300 {
        let start = Instant::now();
        if side.other == Peer::new(1) {
            for _ in 0..frames {
                side.send_bytes(&payload);
            }
            side.wait_frames(1);
        } else {
            side.wait_frames(frames);
            side.send_bytes(&[]);
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    let each = best / frames as f64;
    report(
        side,
        &format!(
            "stream  {size:>6} B  {:7.1} ns each, {:.2} GB/s",
            each * 1e9,
            size as f64 / each / 1e9
        ),
    );
}

fn through_ring(side: &mut Side) {
    for chunk in [4096, 8192, side.shm.limits(side.other).frame] {
        let message = vec![1_u8; 1 << 20];
        let mut best = f64::INFINITY;
        for _ in 0..200 {
            let start = Instant::now();
            if side.other == Peer::new(1) {
                for part in message.chunks(chunk) {
                    side.send_bytes(part);
                }
                side.wait_frames(1);
            } else {
                side.wait_frames(message.len().div_ceil(chunk) as u64);
                side.send_bytes(&[]);
            }
            best = best.min(start.elapsed().as_secs_f64());
        }
        report(
            side,
            &format!(
                "1 MiB in fragments of {chunk:>6} B  {:.2} GB/s",
                message.len() as f64 / best / 1e9
            ),
        );
    }
}

fn pulled(side: &mut Side, size: usize) {
    let message = vec![1_u8; size];
    let mut buffer = vec![0_u8; size];
    let mut best = f64::INFINITY;
    for _ in 0..200 {
        let start = Instant::now();
        pull_once(side, &message, &mut buffer);
        best = best.min(start.elapsed().as_secs_f64());
    }
    report(
        side,
        &format!(
            "pulled  {size:>8} B  {:8.2} us, {:.2} GB/s",
            best * 1e6,
            size as f64 / best / 1e9
        ),
    );
}

fn pull_once(side: &mut Side, message: &[u8], buffer: &mut [u8]) {
    let size = message.len();
    if side.other == Peer::new(1) {
        // SAFETY: the message lives until the answer has come.
        let memory = unsafe { ReadMemory::new(message.as_ptr(), 0, size as isize) };
        let handle = side.shm.handle(Peer::new(1), memory, size as u64);
        let mut header = Header::new(Kind::Rts, 0, 0, 0, size as u64, 1);
        header.flags = handle.len() as u8;
        side.send(&header, &handle);
        side.wait_frames(1);
    } else {
        side.wait_frames(1);
        let handle = std::mem::take(&mut side.arrivals.handle);
        // SAFETY: the buffer outlives the call.
        let memory = unsafe { WriteMemory::new(buffer.as_mut_ptr(), 0, size as isize) };
        assert_eq!(
            side.shm.pull(Peer::new(0), &handle, 0, memory, size as u64),
            Ok(true),
            "this node does not allow copies"
        );
        side.send(&Header::control(Kind::Pulled, 1, 0, size as u64), &[]);
    }
}

fn idle(side: &mut Side) {
    let rounds = 10_000_000;
    let start = Instant::now();
    for _ in 0..rounds {
        side.shm.poll(&mut side.arrivals);
    }
    report(
        side,
        &format!(
            "idle poll {:.2} ns",
            start.elapsed().as_secs_f64() / f64::from(rounds) * 1e9
        ),
    );
}

fn report(side: &Side, line: &str) {
    if side.other == Peer::new(1) {
        println!("{line}");
    }
}

fn pin(cpu: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    let _ = rustix::thread::sched_setaffinity(None, &set);
}
