// SPDX-License-Identifier: Apache-2.0
//! The transport between real processes: this test binary starts itself again for each slot.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use isthmus_datatype::raw::OwnMemory;
use isthmus_shm::ShmTransport;
use isthmus_transport::{Peer, Placement, SendError, Sink, Transport, wait};
use isthmus_wire::frame::{Header, Kind};

/// Set for the processes that a test starts: directory, slot, processes.
const PLACE: &str = "ISTHMUS_TEST_SHM_PLACE";
const MESSAGES: usize = 2000;
const LONG: usize = 300_000;

/// Checks and counts what arrives; remembers offers of long messages.
struct Checker {
    next: Vec<usize>,
    offers: Vec<(Peer, u64, Vec<u8>)>,
    pulled: usize,
}

impl Sink for Checker {
    fn frame(&mut self, peer: Peer, header: &Header, payload: &[u8]) {
        match header.kind {
            Kind::Eager => {
                let next = &mut self.next[peer.index()];
                assert_eq!(header.tag as usize, *next, "from {peer}, in order");
                assert!(payload.iter().all(|&b| b == *next as u8 ^ peer.number() as u8), "whole");
                *next += 1;
            }
            Kind::Rts => self.offers.push((peer, header.length, payload.to_vec())),
            Kind::Pulled => self.pulled += 1,
            other => panic!("unexpected {other:?}"),
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
        panic!("{peer} lost: {reason}");
    }
}

struct Process {
    shm: ShmTransport,
    slot: usize,
    checker: Checker,
}

impl Process {
    fn join(place: &str) -> Self {
        let mut parts = place.split(' ');
        let directory = PathBuf::from(parts.next().expect("directory"));
        let slot = parts.next().expect("slot").parse().expect("slot");
        let processes: usize = parts.next().expect("processes").parse().expect("processes");
        let peers = Peer::first(processes as u32).collect();
        let shm = ShmTransport::join(
            &directory.join("segment"),
            &directory,
            "processes",
            slot,
            processes,
            peers,
        )
        .expect("join");
        Self {
            shm,
            slot,
            checker: Checker {
                next: vec![0; processes],
                offers: Vec::new(),
                pulled: 0,
            },
        }
    }

    fn others(&self) -> Vec<Peer> {
        Peer::first(self.checker.next.len() as u32)
            .filter(|&p| p.index() != self.slot)
            .collect()
    }

    fn poll(&mut self) {
        if !self.shm.poll(&mut self.checker) && self.shm.arm() {
            wait(
                &[self.shm.descriptor().expect("a doorbell")],
                Some(Duration::from_secs(60)),
            );
        }
        self.shm.disarm();
    }

    fn send(&mut self, to: Peer, header: &Header, payload: &[u8]) {
        loop {
            match self.shm.send(to, header, payload) {
                Ok(()) => return,
                Err(SendError::WouldBlock) => self.poll(),
                Err(SendError::Lost(why)) => panic!("{why}"),
            }
        }
    }

    fn until(&mut self, done: impl Fn(&Checker) -> bool) {
        while !done(&self.checker) {
            self.poll();
        }
    }
}

fn start(test: &str, directory: &Path, processes: usize) -> Vec<Child> {
    let program = std::env::current_exe().expect("own path");
    let one = |slot| {
        Command::new(&program)
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(PLACE, format!("{} {slot} {processes}", directory.display()))
            // Its summary is not a result of its own; what it has to say in a failure goes to standard error.
            .stdout(Stdio::null())
            .spawn()
            .expect("start")
    };
    (0..processes).map(one).collect()
}

fn directory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    };
    tempfile::Builder::new()
        .prefix("isthmus-shm-test-")
        .tempdir_in(base)
        .expect("a directory for the segment")
}

fn run_all(test: &str, processes: usize) {
    let at = directory();
    for mut child in start(test, at.path(), processes) {
        assert!(child.wait().expect("wait").success());
    }
    assert!(!at.path().join("segment").exists(), "the file must have lost its name");
}

#[test]
fn many_messages_between_all() {
    let Ok(place) = std::env::var(PLACE) else {
        return run_all("many_messages_between_all", 5);
    };
    let mut process = Process::join(&place);
    for number in 0..MESSAGES {
        for to in process.others() {
            let payload = vec![number as u8 ^ process.slot as u8; (number * 29) % 700];
            process.send(
                to,
                &Header::new(Kind::Eager, 0, 0, number as i32, payload.len() as u64, 0),
                &payload,
            );
        }
    }
    let own = process.slot;
    process.until(|c| c.next.iter().enumerate().all(|(slot, &n)| slot == own || n == MESSAGES));
    while !process.shm.close(&mut process.checker) {}
}

#[test]
fn long_messages_are_pulled_from_another_process() {
    let Ok(place) = std::env::var(PLACE) else {
        return run_all("long_messages_are_pulled_from_another_process", 3);
    };
    let mut process = Process::join(&place);
    let source = OwnMemory::new(0, LONG as isize);
    source
        .memory()
        .with_mut(0, LONG, |bytes| bytes.fill(process.slot as u8 + 1));
    for to in process.others() {
        let handle = process.shm.handle(to, source.reading(), LONG as u64);
        let mut header = Header::new(Kind::Rts, 0, 0, 0, LONG as u64, 1);
        header.flags = handle.len() as u8;
        process.send(to, &header, &handle);
    }
    let others = process.others().len();
    process.until(|c| c.offers.len() == others);
    for (peer, length, handle) in std::mem::take(&mut process.checker.offers) {
        let target = OwnMemory::new(0, LONG as isize);
        if process
            .shm
            .pull(peer, &handle, 0, target.memory(), length)
            .expect("the peer lives")
        {
            assert!(
                target.content().iter().all(|&b| b == peer.number() as u8 + 1),
                "pulled data differ"
            );
        }
        process.send(peer, &Header::control(Kind::Pulled, 1, 0, length), &[]);
    }
    process.until(|c| c.pulled == others);
}

/// A process that is killed while others send to it: they are refused, they do not hang.
#[test]
fn a_killed_process_stops_nobody() {
    let Ok(place) = std::env::var(PLACE) else {
        let at = directory();
        let mut children = start("a_killed_process_stops_nobody", at.path(), 2);
        assert!(
            children[0].wait().expect("wait").success(),
            "it must see that there is no room"
        );
        assert!(!children[1].wait().expect("wait").success(), "it was killed");
        return;
    };
    let mut process = Process::join(&place);
    if process.slot == 1 {
        // Says who it is, and waits for its end.
        let pid = std::process::id();
        process.send(Peer::new(0), &Header::new(Kind::Rts, 0, 0, 0, u64::from(pid), 0), &[]);
        std::thread::sleep(Duration::from_secs(600));
        return;
    }
    process.until(|c| !c.offers.is_empty());
    let pid = process.checker.offers[0].1 as i32;
    let pid = rustix::process::Pid::from_raw(pid).expect("a process id");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("killed");
    let header = Header::new(Kind::Eager, 0, 0, 0, 1000, 0);
    let mut taken = 0;
    while process.shm.send(Peer::new(1), &header, &[0; 1000]).is_ok() {
        taken += 1;
        assert!(taken < 1000, "a ring without a reader must be full at some time");
    }
    assert!(!process.shm.poll(&mut process.checker));
    assert!(process.shm.arm());
    process.shm.disarm();
}
