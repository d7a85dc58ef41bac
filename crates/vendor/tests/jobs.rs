// SPDX-License-Identifier: Apache-2.0
//! The transport over every vendor MPI that is installed: this test binary starts itself again under the vendor's
//! mpiexec.

#![forbid(unsafe_code)]
#![expect(clippy::print_stderr, reason = "which peers were tried")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use isthmus_datatype::raw::OwnMemory;
use isthmus_transport::native::Collective;
use isthmus_transport::{Lease, Peer, Placement, SendError, Sink, Transport};
use isthmus_vendor::{Built, Vendor, VendorTransport, build};
use isthmus_wire::frame::{Header, Kind};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set for the processes of a vendor's job: the adaptor.
const ADAPTOR: &str = "ISTHMUS_TEST_ADAPTOR";
/// Set where receives for frames are posted ahead.
const AHEAD: &str = "ISTHMUS_TEST_AHEAD";

/// Compiler wrapper, launcher and its options of the peers that may be there.
fn installed() -> Vec<(String, String, Vec<&'static str>)> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers");
    let own = |name: &str, program: &str| top.join(name).join("bin").join(program).to_string_lossy().into_owned();
    let open = vec!["--allow-run-as-root", "--oversubscribe"];
    let all = vec![
        ("mpicc.mpich".into(), "mpiexec.mpich".into(), vec![]),
        ("mpicc.openmpi".into(), "mpiexec.openmpi".into(), open.clone()),
        (own("mpich-5.0.2", "mpicc"), own("mpich-5.0.2", "mpiexec"), vec![]),
        (own("mpich-5.0.2", "mpicc_abi"), own("mpich-5.0.2", "mpiexec"), vec![]),
        (own("openmpi-5.0.11", "mpicc"), own("openmpi-5.0.11", "mpiexec"), open),
    ];
    let works = |mpicc: &String| {
        Command::new(mpicc)
            .arg("-show")
            .output()
            .is_ok_and(|o| o.status.success())
    };
    all.into_iter()
        .filter(|(mpicc, ..)| {
            let there = works(mpicc);
            if !there {
                eprintln!("skipped: {mpicc} is not installed");
            }
            there
        })
        .collect()
}

#[test]
fn frames_and_long_data_over_each_vendor() {
    if std::env::var_os(ADAPTOR).is_some() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    for (mpicc, mpiexec, options) in installed() {
        let adaptor = build(&mpicc, directory.path()).unwrap_or_else(|error| panic!("{error}"));
        let again = build(&mpicc, directory.path()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            (adaptor.built, again.built, &adaptor.path),
            (Built::Now, Built::Before, &again.path)
        );
        for ahead in [true, false] {
            let program = std::env::current_exe().expect("this program");
            let mut command = Command::new("timeout");
            command.arg("60").arg(&mpiexec).args(&options).args(["-n", "3"]);
            command
                .arg(program)
                .args(["--exact", "a_process_of_a_vendors_job", "--nocapture"]);
            if ahead {
                command.env(AHEAD, "1");
            }
            let output = command.env(ADAPTOR, &adaptor.path).output().expect("mpiexec runs");
            let said = String::from_utf8_lossy(&output.stdout);
            eprintln!(
                "{mpicc}: {}",
                said.lines().find(|l| l.contains("all frames seen")).unwrap_or_default()
            );
            assert!(
                output.status.success() && said.matches("all frames seen").count() == 3,
                "{mpiexec}: {}\n{said}\n{}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
}

/// What one process has seen.
#[derive(Default)]
struct Seen {
    frames: Vec<Vec<(u64, Vec<u8>)>>,
    received: usize,
    sent: usize,
    lost: Vec<String>,
}

impl Sink for Seen {
    fn frame(&mut self, peer: Peer, header: &Header, payload: &[u8]) {
        self.frames[peer.index()].push((header.token, payload.to_vec()));
    }
    fn place(&mut self, _: Peer, _: &Header) -> Placement {
        Placement::Collect
    }
    fn placed(&mut self, _: Peer, _: &Header) {}
    fn received(&mut self, _: Peer, _: u64) {
        self.received += 1;
    }
    fn sent(&mut self, _: Peer, _: u64) {
        self.sent += 1;
    }
    fn writable(&mut self, _: Peer) {}
    fn lost(&mut self, peer: Peer, reason: &str) {
        self.lost.push(format!("{peer}: {reason}"));
    }
}

const FRAMES: u64 = 300;
const LONG: usize = 3 << 20;

fn content(from: u32, number: u64) -> Vec<u8> {
    let length = [0, 1, 100, 4096, 32 << 10][number as usize % 5];
    (0..length)
        .map(|i| (i as u64 * 7 + number + u64::from(from)) as u8)
        .collect()
}

fn send(transport: &mut VendorTransport, seen: &mut Seen, peer: Peer, header: &Header, payload: &[u8]) {
    for _ in 0..1_000_000 {
        match transport.send(peer, header, payload) {
            Ok(()) => return,
            Err(SendError::WouldBlock) => _ = transport.poll(seen),
            Err(SendError::Lost(reason)) => panic!("{reason}"),
        }
    }
    panic!("a frame to {peer} is refused for ever");
}

fn refused(act: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(act)).is_err()
}

/// Whatever becomes of a request, the vendor does not write to memory that is gone or that others have.
fn requests_keep_their_memory(vendor: &mut Vendor, (me, count): (u32, u32)) {
    const BYTES: u64 = 64;
    let (all, next, before) = (vendor.world(), (me + 1) % count, (me + count - 1) % count);
    let (given, taken) = (OwnMemory::with(&[7; 64]), OwnMemory::new(0, 64));
    for tag in 1..=2 {
        let started = vendor.start_receive(&all, &taken.memory(), BYTES, Some(before), tag);
        let mut request = started.expect("a receive");
        assert!(refused(|| taken.memory().write(0, &[1])));
        assert!(refused(|| taken.reading().with(63, 1, |_| ())));
        vendor.send(&all, &given.reading(), BYTES, next, tag).expect("a send");
        if tag == 2 {
            // Forgotten before it is complete, and then its memory is.
            drop(request);
            break;
        }
        while vendor.test(&mut request).expect("a request").is_none() {}
        assert_eq!(taken.content(), [7; 64]);
        assert!(taken.is_unshared() && vendor.test(&mut request).is_err());
        taken.memory().write(0, &[0; 64]);
    }
    assert!(!taken.is_unshared() && refused(|| taken.memory().write(0, &[1])));
    drop(taken);
    vendor.barrier(&all).expect("a barrier");
    assert!(refused(
        || _ = vendor.start_send(&all, &given.reading(), 65, next, 1, false)
    ));

    // Nobody writes more blocks than there is room for.
    let short = OwnMemory::new(0, count as isize * 8 - 1);
    let gather = Collective::Allgather {
        from: Some(given.reading()),
        into: short.memory(),
        bytes: 8,
    };
    assert!(refused(|| _ = vendor.collective(&all, &gather)));
}

/// Run under a vendor's mpiexec only.
/// Whoever calls a vendor while another thread does is stopped before it gets there.
fn one_thread_calls_at_a_time(vendor: &mut Vendor, me: u32) {
    let all = vendor.world();
    let mut stopped = false;
    for _ in 0..5 {
        let mut copy = vendor.share();
        if me > 0 {
            std::thread::sleep(std::time::Duration::from_millis(50));
            copy.barrier(&all).expect("a barrier");
            continue;
        }
        let waits = std::thread::spawn(move || copy.barrier(&copy.world()));
        while !waits.is_finished() {
            stopped |= refused(|| _ = vendor.largest_tag());
            std::thread::yield_now();
        }
        // It may have come when the other one was there, and not the other way round.
        let waited = waits.join();
        stopped |= waited.is_err();
        match waited {
            Ok(waited) => waited.expect("a barrier"),
            Err(_) => vendor.barrier(&all).expect("a barrier"),
        }
    }
    assert!(stopped || me > 0, "two threads were in there");
}

#[test]
fn a_process_of_a_vendors_job() {
    let Some(adaptor) = std::env::var_os(ADAPTOR).map(PathBuf::from) else {
        return;
    };
    let mut vendor = Vendor::open(&adaptor).unwrap_or_else(|error| panic!("{error}"));
    let name = vendor.version().unwrap_or_else(|error| panic!("{error}"));
    let (me, count) = vendor.begin(false).unwrap_or_else(|error| panic!("{error}"));
    // Peers are numbered otherwise than the vendor's ranks.
    let peer_of = |rank: u32| Peer::new(count - 1 - rank);
    let ahead = std::env::var_os(AHEAD).is_some();
    let peers = (0..count).map(peer_of).collect();
    requests_keep_their_memory(&mut vendor, (me, count));
    one_thread_calls_at_a_time(&mut vendor, me);
    let mut transport = VendorTransport::new(vendor, peers, ahead).unwrap_or_else(|e| panic!("{e}"));
    let me = peer_of(me);
    let mut seen = Seen {
        frames: vec![Vec::new(); count as usize],
        ..Seen::default()
    };
    let others: Vec<Peer> = Peer::first(count).filter(|&p| p != me).collect();
    let rooms: Vec<OwnMemory> = others.iter().map(|_| OwnMemory::new(0, LONG as isize)).collect();
    let long: Vec<u8> = (0..LONG).map(|i| (i / 3) as u8 ^ me.number() as u8).collect();
    let data = OwnMemory::with(&long);
    let leases: Vec<_> = rooms.iter().map(|room| Lease::new(room.memory())).collect();
    for (lease, &peer) in leases.iter().zip(&others) {
        assert!(transport.expect(peer, u64::from(peer.number()), lease.lent(), LONG as u64));
    }
    for number in 0..FRAMES {
        for &peer in &others {
            let payload = content(me.number(), number);
            let header = Header::new(Kind::Eager, 1, me.number(), 0, payload.len() as u64, number);
            send(&mut transport, &mut seen, peer, &header, &payload);
        }
    }
    let given = Lease::new(data.reading());
    for &peer in &others {
        transport
            .send_bulk(peer, u64::from(me.number()), given.lent(), LONG as u64, 0, 9)
            .expect("long data");
    }
    let complete = |seen: &Seen| {
        let all = others.iter().all(|&p| seen.frames[p.index()].len() as u64 == FRAMES);
        all && seen.received == others.len() && seen.sent == others.len()
    };
    for _ in 0..20_000_000u64 {
        transport.poll(&mut seen);
        if complete(&seen) {
            break;
        }
    }
    assert!(
        complete(&seen) && seen.lost.is_empty(),
        "{} received, {} sent, {:?}",
        seen.received,
        seen.sent,
        seen.lost
    );
    for (i, &peer) in others.iter().enumerate() {
        for (number, frame) in (0..).zip(&seen.frames[peer.index()]) {
            assert_eq!(
                frame,
                &(number, content(peer.number(), number)),
                "frame {number} of {peer}"
            );
        }
        let room = rooms[i].content();
        assert!(
            (0..LONG).all(|j| room[j] == (j / 3) as u8 ^ peer.number() as u8),
            "long data of {peer}"
        );
    }
    println!("all frames seen over {name}");
    while !transport.close(&mut seen) {}
    let all = transport.vendor().world();
    transport.vendor().barrier(&all).unwrap_or_else(|e| panic!("{e}"));
    transport.vendor().end().unwrap_or_else(|e| panic!("{e}"));
}
