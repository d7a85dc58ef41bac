// SPDX-License-Identifier: Apache-2.0
//! The transport within one process: several slots, each with a mapping of its own.

use std::path::Path;
use std::time::Duration;

use isthmus_datatype::raw::OwnMemory;
use isthmus_shm::{Geometry, MAX_PROCESSES, ShmError, ShmTransport};
use isthmus_transport::slabs::{CellSize, Claim, Part, Round, SharedSlabs, Slab, Used};
use isthmus_transport::{Peer, Placement, SendError, Sink, Transport, conformance, wait};
use isthmus_wire::frame::{Header, Kind};
use tempfile::TempDir;

/// Keeps what arrives.
#[derive(Default)]
struct Seen {
    frames: Vec<(Peer, Header, Vec<u8>)>,
    writable: Vec<Peer>,
    lost: Vec<String>,
}

impl Sink for Seen {
    fn frame(&mut self, peer: Peer, header: &Header, payload: &[u8]) {
        self.frames.push((peer, *header, payload.to_vec()));
    }
    fn place(&mut self, _: Peer, _: &Header) -> Placement {
        Placement::Collect
    }
    fn placed(&mut self, _: Peer, _: &Header) {}
    fn received(&mut self, _: Peer, _: u64) {}
    fn sent(&mut self, _: Peer, _: u64) {}
    fn writable(&mut self, peer: Peer) {
        self.writable.push(peer);
    }
    fn lost(&mut self, peer: Peer, reason: &str) {
        self.lost.push(format!("{peer}: {reason}"));
    }
}

fn directory() -> TempDir {
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

fn join(at: &TempDir, slot: usize, peers: &[Peer]) -> Result<ShmTransport, ShmError> {
    ShmTransport::join(
        &at.path().join("segment"),
        at.path(),
        "job",
        slot,
        peers.len(),
        peers.to_vec(),
    )
}

fn node(at: &TempDir, peers: &[Peer]) -> Vec<ShmTransport> {
    (0..peers.len())
        .map(|slot| join(at, slot, peers).expect("join"))
        .collect()
}

fn eager(number: usize, length: usize) -> Header {
    Header::new(Kind::Eager, 1, 0, number as i32, length as u64, 0)
}

#[test]
fn conforms() {
    let mut directories = Vec::new();
    conformance::check(|| {
        let at = directory();
        let ends = <[_; 2]>::try_from(node(&at, &[Peer::new(0), Peer::new(1)])).unwrap_or_else(|_| panic!("two ends"));
        directories.push(at);
        ends.map(|end| Box::new(end) as Box<dyn Transport>)
    });
}

#[test]
fn everybody_to_everybody() {
    let at = directory();
    // Ranks in no particular order, more than one word of slots.
    let peers: Vec<Peer> = (0..70).map(|slot| Peer::new((slot * 37) % 70 + 1000)).collect();
    let mut ends = node(&at, &peers);
    for round in 0..3_usize {
        for (from, end) in ends.iter_mut().enumerate() {
            for (to, &peer) in peers.iter().enumerate() {
                let payload = vec![(from + to) as u8; (from * 7 + to) % 300];
                assert_eq!(end.send(peer, &eager(round, payload.len()), &payload), Ok(()));
            }
        }
        for (to, end) in ends.iter_mut().enumerate() {
            let mut seen = Seen::default();
            while end.poll(&mut seen) {}
            assert!(seen.lost.is_empty(), "{:?}", seen.lost);
            let mut senders: Vec<Peer> = seen.frames.iter().map(|f| f.0).collect();
            senders.sort_unstable();
            assert_eq!(
                senders,
                (1000..1070).map(Peer::new).collect::<Vec<_>>(),
                "round {round}: one frame from each"
            );
            for (peer, header, payload) in seen.frames {
                let from = peers.iter().position(|&p| p == peer).expect("a peer");
                assert_eq!(header.tag, round as i32);
                assert_eq!(payload, vec![(from + to) as u8; (from * 7 + to) % 300]);
            }
        }
    }
}

#[test]
fn one_busy_receiver_and_many_senders_in_threads() {
    const SENDERS: usize = 12;
    const FRAMES: usize = 3000;
    let at = directory();
    let peers: Vec<Peer> = Peer::first(SENDERS as u32 + 1).collect();
    let mut ends = node(&at, &peers);
    let mut receiver = ends.remove(0);
    std::thread::scope(|scope| {
        for mut end in ends {
            scope.spawn(move || {
                for number in 0..FRAMES {
                    send_sleeping(&mut end, Peer::new(0), number, (number * 13) % 2000);
                }
            });
        }
        let mut next = [0; SENDERS + 1];
        let mut total = 0;
        while total < SENDERS * FRAMES {
            let mut seen = Seen::default();
            poll_sleeping(&mut receiver, &mut seen);
            for (peer, header, payload) in seen.frames {
                assert_eq!(header.tag as usize, next[peer.index()], "in order");
                assert_eq!(payload, vec![header.tag as u8; payload.len()]);
                next[peer.index()] += 1;
                total += 1;
            }
        }
    });
}

/// Sends; sleeps while there is no room.
fn send_sleeping(end: &mut ShmTransport, to: Peer, number: usize, length: usize) {
    let payload = vec![number as u8; length];
    loop {
        match end.send(to, &eager(number, length), &payload) {
            Ok(()) => return,
            Err(SendError::WouldBlock) => poll_sleeping(end, &mut Seen::default()),
            Err(SendError::Lost(why)) => panic!("{why}"),
        }
    }
}

/// Polls; sleeps when nothing is there.
fn poll_sleeping(end: &mut ShmTransport, sink: &mut Seen) {
    if !end.poll(sink) && end.arm() {
        wait(&[end.descriptor().expect("a doorbell")], Some(Duration::from_secs(60)));
    }
    end.disarm();
}

#[test]
fn a_refused_sender_is_told_about_room() {
    let at = directory();
    let mut ends = node(&at, &[Peer::new(0), Peer::new(1)]);
    let mut seen = Seen::default();
    let mut taken = 0;
    while ends[0].send(Peer::new(1), &eager(taken, 4096), &[7; 4096]).is_ok() {
        taken += 1;
    }
    assert!(!ends[0].poll(&mut seen), "nothing has changed");
    assert!(ends[0].arm(), "it may sleep");
    let mut read = Seen::default();
    while ends[1].poll(&mut read) {}
    assert_eq!(read.frames.len(), taken);
    wait(
        &[ends[0].descriptor().expect("a doorbell")],
        Some(Duration::from_secs(60)),
    );
    ends[0].disarm();
    assert!(ends[0].poll(&mut seen));
    assert_eq!(seen.writable, [Peer::new(1)]);
    let limit = ends[0].limits(Peer::new(1)).frame;
    assert_eq!(
        ends[0].send(Peer::new(1), &eager(0, limit), &vec![7; limit]),
        Ok(()),
        "room for the longest frame"
    );
}

#[test]
fn a_drained_doorbell_stays_silent() {
    let at = directory();
    let mut ends = node(&at, &[Peer::new(0), Peer::new(1)]);
    let mut seen = Seen::default();
    for number in 0..20 {
        assert!(ends[1].arm());
        ends[0].send(Peer::new(1), &eager(number, 0), &[]).expect("sent");
        wait(
            &[ends[1].descriptor().expect("a doorbell")],
            Some(Duration::from_secs(60)),
        );
        ends[1].disarm();
        assert!(ends[1].poll(&mut seen));
    }
    assert!(ends[1].arm());
    let fd = ends[1].descriptor().expect("a doorbell");
    let mut polled = [rustix::event::PollFd::from_borrowed_fd(
        fd,
        rustix::event::PollFlags::IN,
    )];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    assert_eq!(
        rustix::event::poll(&mut polled, Some(&now)),
        Ok(0),
        "nothing came, so it must not be readable"
    );
}

#[test]
fn frames_wait_for_a_process_that_joins_later() {
    let at = directory();
    let mut first = join(&at, 0, &[Peer::new(5), Peer::new(6)]).expect("join");
    first.send(Peer::new(6), &eager(3, 2), b"hi").expect("sent");
    let mut second = join(&at, 1, &[Peer::new(5), Peer::new(6)]).expect("join");
    let mut seen = Seen::default();
    assert!(!second.arm(), "something has arrived already");
    assert!(second.poll(&mut seen));
    assert_eq!(seen.frames, [(Peer::new(5), eager(3, 2), b"hi".to_vec())]);
}

#[test]
fn the_file_loses_its_name_when_all_have_joined() {
    let at = directory();
    let names = || {
        let mut names: Vec<_> = std::fs::read_dir(at.path())
            .expect("list")
            .map(|e| e.expect("entry").file_name())
            .collect();
        names.sort();
        names
    };
    let _first = join(&at, 0, &[Peer::new(0), Peer::new(1)]).expect("join");
    assert_eq!(names(), ["bell.0", "segment"]);
    let _second = join(&at, 1, &[Peer::new(0), Peer::new(1)]).expect("join");
    assert_eq!(names(), ["bell.0", "bell.1"]);
}

#[test]
fn mistakes_are_named() {
    let at = directory();
    let path = at.path().join("segment");
    let _first = join(&at, 0, &[Peer::new(0), Peer::new(1), Peer::new(2)]).expect("join");
    let message = |result: Result<ShmTransport, ShmError>| match result {
        Ok(_) => panic!("joined"),
        Err(e) => e.to_string(),
    };
    assert!(message(join(&at, 0, &[Peer::new(0), Peer::new(1), Peer::new(2)])).contains("slot 0"));
    assert!(message(join(&at, 1, &[Peer::new(0), Peer::new(1)])).contains("bytes instead of"));
    assert!(message(join(&at, 3, &[Peer::new(0), Peer::new(1), Peer::new(2)])).contains("internal error"));
    let other = ShmTransport::join(
        &path,
        at.path(),
        "other",
        1,
        3,
        vec![Peer::new(0), Peer::new(1), Peer::new(2)],
    );
    assert!(message(other).contains("another job"));
    let nowhere = ShmTransport::join(
        &at.path().join("no/segment"),
        at.path(),
        "job",
        0,
        1,
        vec![Peer::new(0)],
    );
    assert!(message(nowhere).contains("No such file"));
}

#[test]
fn a_peer_of_another_node_is_an_error() {
    let at = directory();
    let mut ends = node(&at, &[Peer::new(4), Peer::new(5)]);
    assert!(
        matches!(ends[0].send(Peer::new(6), &eager(0, 0), &[]), Err(SendError::Lost(why)) if why.contains("rank 6"))
    );
    assert!(!ends[0].limits(Peer::new(6)).pull);
}

#[test]
fn a_bad_handle_is_the_peers_fault() {
    let at = directory();
    let mut ends = node(&at, &[Peer::new(0), Peer::new(1)]);
    let target = OwnMemory::new(0, 100);
    let source = OwnMemory::new(0, 100);
    let handle = ends[0].handle(Peer::new(1), source.reading(), 100);
    assert!(!handle.is_empty());
    for (bytes, offset) in [
        (&handle[..3], 0),
        (&handle[..], 1),
        (&[][..], 0),
        (&handle[..], u64::MAX),
    ] {
        assert!(matches!(
            ends[1].pull(Peer::new(0), bytes, offset, target.memory(), 100),
            Err(SendError::Lost(_))
        ));
    }
}

#[test]
fn a_missing_doorbell_loses_the_peer() {
    let at = directory();
    let mut ends = node(&at, &[Peer::new(0), Peer::new(1)]);
    assert!(ends[1].arm());
    std::fs::remove_file(at.path().join("bell.1")).expect("remove");
    ends[0]
        .send(Peer::new(1), &eager(0, 0), &[])
        .expect("it is in the ring");
    let mut seen = Seen::default();
    assert!(ends[0].poll(&mut seen));
    assert!(seen.lost[0].contains("bell.1"), "{:?}", seen.lost);
    assert!(matches!(
        ends[0].send(Peer::new(1), &eager(0, 0), &[]),
        Err(SendError::Lost(_))
    ));
}

#[test]
fn the_largest_node() {
    assert_eq!(Geometry::new(MAX_PROCESSES + 1), None);
    assert_eq!(Geometry::new(0), None);
    for processes in [1, 2, 64, 65, 256, 257, MAX_PROCESSES] {
        let geometry = Geometry::new(processes).expect("a geometry");
        assert!(geometry.frame_bytes() >= 4096);
        assert!(geometry.total_bytes() < 20 << 30);
    }
    let at = directory();
    let peers: Vec<Peer> = Peer::first(MAX_PROCESSES as u32).collect();
    let mut first = join(&at, 0, &peers).expect("join");
    let mut last = join(&at, MAX_PROCESSES - 1, &peers).expect("join");
    let mut seen = Seen::default();
    for number in 0..100 {
        last.send(Peer::new(0), &eager(number, 4096), &[1; 4096])
            .or_else(|_| {
                while first.poll(&mut seen) {}
                last.send(Peer::new(0), &eager(number, 4096), &[1; 4096])
            })
            .expect("room after polling");
    }
    while first.poll(&mut seen) {}
    assert_eq!(seen.frames.len(), 100);
}

#[test]
fn what_a_member_has_offered_is_fetched() {
    let at = directory();
    let mut ends = node(&at, &[Peer::new(0), Peer::new(1)]);
    let content: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
    let (source, target) = (OwnMemory::with(&content), OwnMemory::new(0, 60_000));
    let offer = ends[0]
        .slabs()
        .expect("shared memory")
        .offer(&source.reading(), 100_000);
    let slabs = ends[1].slabs().expect("shared memory");
    if !slabs.fetch(Peer::new(0), &offer, 0, target.memory(), 1) {
        // Only where no message is copied either.
        let pull = ends[1].pull(Peer::new(0), &[0; 24], 0, target.memory(), 0);
        assert!(!matches!(pull, Ok(true)));
        println!("skipped: the system does not let processes copy from each other");
        return;
    }
    assert!(slabs.fetch(Peer::new(0), &offer, 30_000, target.memory(), 60_000));
    assert_eq!(target.content(), content[30_000..90_000]);
    assert!(
        !slabs.fetch(Peer::new(0), &offer, 60_000, target.memory(), 60_000),
        "behind its end"
    );
}

/// All sizes of cells of which each member has its own.
const SIZES: [CellSize; 3] = [CellSize::Short, CellSize::Middle, CellSize::Long];

fn slabs(end: &mut ShmTransport) -> &mut dyn SharedSlabs {
    end.slabs().expect("shared memory")
}

/// Takes a slab for the first so many processes, holds so many rounds of each size in it, and gives it back. Nobody has
/// given anything before.
fn hold_rounds(ends: &mut [ShmTransport], rounds: u64) -> u32 {
    let members = ends.len() as u32;
    let number = slabs(&mut ends[0]).take_slab(members).expect("there is one");
    let slab = |me| Slab { number, members, me };
    ends.iter_mut().for_each(|end| slabs(end).open_slab(number));
    for (me, end) in (0..).zip(ends.iter_mut()) {
        let (here, slab) = (slabs(end), slab(me));
        assert_eq!(here.disagreements(&slab, 200), [], "nobody has noted anything");
        let claim = Claim {
            what: me as u8,
            root: 0,
            operator: 0,
            block: 8,
        };
        (0..rounds).for_each(|step| _ = here.note(&slab, step, claim));
    }
    for size in SIZES {
        for round in (0..rounds).map(|number| Round { size, number, stamp: 7 }) {
            for (me, end) in (0..).zip(ends.iter_mut()) {
                let (here, slab) = (slabs(end), slab(me));
                assert_eq!(here.have_arrived(&slab, round, me..me + 1), 0, "{round:?}");
                assert!((0..members).all(|member| !here.has_left(&slab, round, member)));
                here.give(&slab, round, me, 8).expect("memory").write(0, &[7; 8]);
                here.arrive(&slab, round, me..me + 1);
            }
            for (me, end) in (0..).zip(ends.iter_mut()) {
                slabs(end).pass(&slab(me), round);
            }
        }
    }
    let mut all = [rounds; CellSize::COUNT];
    all[CellSize::Word as usize] = 0;
    let used = Used {
        steps: rounds,
        rounds: all,
    };
    ends.iter_mut().for_each(|end| slabs(end).give_back_slab(number, used));
    number
}

#[test]
fn whoever_takes_a_slab_finds_nothing_of_those_who_had_it_before() {
    let at = directory();
    let peers: Vec<Peer> = (0..3).map(Peer::new).collect();
    let mut ends = node(&at, &peers);
    // Few rounds of many, all of them, none, in groups of one size and of another, whose cells lie elsewhere.
    for (members, rounds) in [(2, 3), (2, 8), (2, 0), (2, 8), (3, 1), (2, 2), (3, 8), (3, 8)] {
        assert_eq!(hold_rounds(&mut ends[..members], rounds), 1, "the first is free again");
    }
}

#[test]
fn slabs_run_out_and_come_back_when_all_members_have_given_them_back() {
    let at = directory();
    let mut ends = node(&at, &[Peer::new(0), Peer::new(1)]);
    let taken: Vec<u32> = std::iter::from_fn(|| slabs(&mut ends[0]).take_slab(2)).collect();
    assert_eq!(taken, (1..64).collect::<Vec<u32>>(), "slab 0 is everybody's");
    slabs(&mut ends[0]).give_back_slab(7, Used::default());
    assert_eq!(slabs(&mut ends[1]).take_slab(2), None, "its other member still has it");
    slabs(&mut ends[1]).give_back_slab(7, Used::default());
    assert_eq!(slabs(&mut ends[1]).take_slab(2), Some(7));
    assert_eq!(slabs(&mut ends[0]).take_slab(2), None);
}

#[test]
fn a_part_of_what_was_given_is_taken_when_it_is_there_and_as_long_as_it_must_be() {
    let at = directory();
    let mut ends = node(&at, &[Peer::new(0), Peer::new(1)]);
    let number = slabs(&mut ends[0]).take_slab(2).expect("there is one");
    let slab = |me| Slab { number, members: 2, me };
    ends.iter_mut().for_each(|end| slabs(end).open_slab(number));
    for size in [CellSize::Word, CellSize::Short, CellSize::Middle, CellSize::Long] {
        let (number, stamp) = (0, 3);
        let (round, result) = (Round { size, number, stamp }, OwnMemory::new(0, 8));
        let take = |end: &mut ShmTransport, bytes| {
            let part = Part {
                from: 2,
                length: 3,
                into: &mut result.memory(),
                at: 4,
            };
            slabs(end).take_at_once(&slab(1), round, 0, bytes, part)
        };
        assert_eq!(take(&mut ends[1], 6), None, "{size:?}");
        let giver = slabs(&mut ends[0]);
        giver
            .give(&slab(0), round, 0, 6)
            .expect("memory")
            .write(0, &[1, 2, 3, 4, 5, 6]);
        giver.arrive(&slab(0), round, 0..1);
        assert_eq!(take(&mut ends[1], 5), Some(6), "{size:?}");
        assert_eq!(result.content(), [0; 8], "nothing of what is longer is taken");
        assert_eq!(take(&mut ends[1], 6), Some(6), "{size:?}");
        assert_eq!(result.content(), [0, 0, 0, 0, 3, 4, 5, 0]);
    }
}

#[test]
fn what_a_member_gives_for_something_else_never_arrives() {
    let at = directory();
    let mut ends = node(&at, &[Peer::new(0), Peer::new(1)]);
    let number = slabs(&mut ends[0]).take_slab(2).expect("there is one");
    let slab = |me| Slab { number, members: 2, me };
    ends.iter_mut().for_each(|end| slabs(end).open_slab(number));
    let claim = |what, root, block| Claim {
        what,
        root,
        operator: 0,
        block,
    };
    // Step, claim; the first of them is the one that is waited for.
    let claims = [
        (1, claim(3, 0, 8)),
        (2, claim(3, 0, 8)),
        (257, claim(3, 0, 8)),
        (1, claim(4, 0, 8)),
        (1, claim(3, 1, 8)),
    ];
    for (size, number) in SIZES.into_iter().zip(0..) {
        let stamps = claims.map(|(step, claim)| slabs(&mut ends[0]).note(&slab(0), step, claim));
        let round = |stamp| Round { size, number, stamp };
        let expected = slabs(&mut ends[1]).note(&slab(1), 1, claim(3, 0, 1 << 20));
        let has_come =
            |ends: &mut [ShmTransport]| slabs(&mut ends[1]).have_arrived(&slab(1), round(expected), 0..1) == 1;
        for stamp in stamps.into_iter().rev() {
            assert!(!has_come(&mut ends), "{size:?}");
            let giver = slabs(&mut ends[0]);
            giver
                .give(&slab(0), round(stamp), 0, 8)
                .expect("memory")
                .write(0, &[1; 8]);
            giver.arrive(&slab(0), round(stamp), 0..1);
        }
        assert!(has_come(&mut ends), "another length is no other step: {size:?}");
    }
}
