// SPDX-License-Identifier: Apache-2.0
//! A member of the job that asks a process about files as nobody may. That process is an engine with its world; the
//! liar's frames, and those of an innocent member, are made here.

use std::sync::Arc;
use std::time::{Duration, Instant};

use isthmus_abi::constants as abi;
use isthmus_core::comm::{self, Whereabouts};
use isthmus_core::info::Info;
use isthmus_core::world::World;
use isthmus_datatype::Representation;
use isthmus_datatype::raw::OwnMemory;
use isthmus_engine::{Engine, EngineError, Policy, ReceiveBuffer, Setup, Shared, register_later};
use isthmus_io::{Calls, File, Scope};
use isthmus_transport::memory::{Memory, Options, network};
use isthmus_transport::{Peer, Placement, Processes, Sink, Transport};
use isthmus_wire::file::{Answer, Call, Open, Path, Question, What, encode_runs};
use isthmus_wire::frame::{Header, Kind, protocol};
use isthmus_wire::place::{self, Node, Place, PlaceTable, Subjob};

const SIZE: u32 = 3;
/// Who has the files.
const HOST: Peer = Peer::new(0);
const LIAR: Peer = Peer::new(1);
const INNOCENT: Peer = Peer::new(2);
/// Context of calls; tags.
const FILES: u32 = 12;
const QUESTIONS: i32 = 1;
const LEAVES: i32 = 15;
const PAYLOADS: i32 = 1 << 29;
const ANSWERS: i32 = 1 << 30;
/// What the innocent member's file has in it.
const CONTENT: &[u8] = b"what was there";

/// First context that a process owns.
fn first_of(rank: Peer) -> u32 {
    16 + rank.number() * ((((1 << 30) - 16) / SIZE) & !1)
}

/// Every process at a site of its own.
fn places(size: u32) -> Arc<PlaceTable> {
    let name = |rank: u32| ["a", "b", "c"][rank as usize].to_owned();
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

#[derive(Default)]
struct Seen(Vec<(Header, Vec<u8>)>);

impl Sink for Seen {
    fn frame(&mut self, _: Peer, header: &Header, payload: &[u8]) {
        self.0.push((*header, payload.to_vec()));
    }
    fn place(&mut self, _: Peer, _: &Header) -> Placement {
        Placement::Collect
    }
    fn placed(&mut self, _: Peer, _: &Header) {}
    fn received(&mut self, _: Peer, _: u64) {}
    fn sent(&mut self, _: Peer, _: u64) {}
    fn writable(&mut self, _: Peer) {}
    fn lost(&mut self, _: Peer, _: &str) {}
}

struct Stage {
    world: &'static World,
    ends: Vec<Memory>,
    seen: Vec<Seen>,
    directory: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        Self::of(SIZE, false)
    }

    /// `threads`: a thread of the test calls MPI.
    fn of(size: u32, threads: bool) -> Self {
        let (mut ends, _) = network(size, Options::default()).expect("eventfd");
        let own: Box<dyn Transport> = Box::new(ends.remove(HOST.index()));
        let mut engine = Engine::new(Setup {
            me: HOST,
            processes: Processes::of("job", size),
            transports: vec![own],
            routes: vec![0; size as usize],
            levels: vec![0; size as usize],
            representations: Vec::new(),
        });
        let calls = Calls::default();
        register_later(&mut engine, protocol::FILES, calls.machine());
        let policy = Policy { threads, guests: false };
        let world = Box::leak(Box::new(World::new(
            HOST.number(),
            places(size),
            Shared::new(engine, policy),
        )));
        calls.begin(world);
        // Once for all tests here: the calls of strangers are judged, not what they may reach.
        isthmus_io::allow(&[std::env::temp_dir()]);
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("file"), CONTENT).expect("a file");
        Self {
            world,
            ends,
            seen: vec![Seen::default(), Seen::default()],
            directory,
        }
    }

    fn progress(&mut self) {
        self.world.engine().lock().progress();
        for (end, seen) in self.ends.iter_mut().zip(&mut self.seen) {
            end.poll(seen);
        }
    }

    /// A frame goes to the host; that a liar's is not taken is no failure of the test.
    fn say(&mut self, from: Peer, header: &Header, payload: &[u8]) {
        let _ = self.ends[from.index() - 1].send(HOST, header, payload);
        self.progress();
    }

    fn message(&mut self, from: Peer, (context, rank): (u32, u32), tag: i32, bytes: &[u8]) {
        let header = Header::new(Kind::Eager, context, rank, tag, bytes.len() as u64, 0);
        self.say(from, &header, bytes);
    }

    fn knock(&mut self, from: Peer, number: u64, bytes: usize) {
        let mut knock = Header::control(Kind::Protocol, number, bytes as u64, 0);
        knock.flags = protocol::FILES;
        self.say(from, &knock, &[]);
    }

    fn call(&mut self, from: Peer, number: u64, call: &[u8]) {
        self.knock(from, number, call.len());
        self.message(from, (FILES, from.number()), number as i32, call);
    }

    /// Waits until this is so; the disk has threads of its own.
    fn until<T>(&mut self, what: &str, mut so: impl FnMut(&mut Self) -> Option<T>) -> T {
        let end = Instant::now() + Duration::from_secs(60);
        while Instant::now() < end {
            self.progress();
            if let Some(found) = so(self) {
                return found;
            }
            std::thread::yield_now();
        }
        panic!("not within a minute: {what}")
    }

    /// The answer with this tag.
    fn answer(&mut self, at: Peer, tag: i32) -> Answer {
        let bytes = self.until("an answer", |stage| {
            let seen = &mut stage.seen[at.index() - 1].0;
            let is_it = |header: &Header| header.kind == Kind::Eager && header.tag == tag;
            let found = seen.iter().position(|(header, _)| is_it(header))?;
            Some(seen.swap_remove(found).1)
        });
        Answer::decode(&bytes).expect("an answer")
    }

    fn opening(&self, context: u32, members: &[(u32, u32)]) -> Vec<u8> {
        self.creating("file", context, members)
    }

    fn creating(&self, name: &str, context: u32, members: &[(u32, u32)]) -> Vec<u8> {
        let path = self.directory.path().join(name);
        let open = Open {
            amode: abi::MPI_MODE_RDWR | abi::MPI_MODE_CREATE,
            permissions: 0o600,
            context,
            members: members.to_vec(),
            path: Path {
                below_home: false,
                bytes: path.as_os_str().as_encoded_bytes().to_vec(),
            },
        };
        Call::Open(open).encode()
    }

    /// The innocent member opens the file for itself and, behind it, the liar.
    fn open_for_both(&mut self) -> u32 {
        self.open_as(INNOCENT, &[(2, 1), (1, 1)])
    }

    /// `by` opens the file for these.
    fn open_as(&mut self, by: Peer, members: &[(u32, u32)]) -> u32 {
        let context = first_of(by);
        let opening = self.opening(context, members);
        self.call(by, 5, &opening);
        assert_eq!(self.answer(by, ANSWERS | 5), Answer::default());
        context | 1 << 31 | 1
    }

    fn ask(&mut self, from: Peer, at: (u32, u32), what: What, payload: u64) {
        self.ask_of(from, at, (what, u64::from(payload > 0)), payload);
    }

    fn ask_of(&mut self, from: Peer, at: (u32, u32), (what, number): (What, u64), payload: u64) {
        let question = Question {
            what,
            answer: 9,
            number,
            payload,
        };
        self.message(from, at, QUESTIONS, &question.encode());
    }

    /// Whether an answer has come.
    fn is_answered(&self, at: Peer) -> bool {
        let seen = &self.seen[at.index() - 1].0;
        seen.iter().any(|(header, _)| header.tag == ANSWERS | 9)
    }

    /// The service answers the innocent member.
    fn serves(&mut self, context: u32) {
        self.serves_as(context, 0);
    }

    /// Who is this rank among those for whom the file is open.
    fn serves_as(&mut self, context: u32, rank: u32) {
        self.ask(INNOCENT, (context, rank), What::Size, 0);
        let answer = self.answer(INNOCENT, ANSWERS | 9);
        assert_eq!((answer.class, answer.bytes), (0, CONTENT.len() as u64), "{answer:?}");
    }

    /// The host has lost the peer, for a reason with this word.
    fn loses(&mut self, liar: Peer, word: &str) {
        let memory = OwnMemory::new(0, 8);
        let channel = Whereabouts::in_world(self.world).files();
        let buffer = ReceiveBuffer::contiguous(memory.memory(), 0, 8);
        let engine = self.world.engine();
        let request = engine.lock().irecv(&channel, Some(liar.number()), Some(77), buffer);
        let done = self.until("it is lost", |stage| stage.world.engine().lock().core.take(request));
        match done.error {
            Some(EngineError::PeerLost { peer, reason, .. }) => {
                assert_eq!(peer, liar);
                assert!(reason.contains(word), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn nobody_makes_a_guest_take_messages_of_a_communicator_of_others() {
    let (mine, theirs) = (first_of(LIAR), first_of(INNOCENT));
    let claims: [(u32, &[(u32, u32)]); 9] = [
        (theirs, &[(1, 1)]),
        (theirs, &[(1, 2)]),
        (mine + 1, &[(1, 1)]),
        (2, &[(1, 1)]),
        (mine, &[(2, 1)]),
        (mine, &[(2, 1), (1, 1)]),
        (mine, &[(1, 1), (HOST.number(), 1)]),
        (mine, &[(1, 1), (2, u32::MAX)]),
        (mine, &[]),
    ];
    for (context, members) in claims {
        let mut stage = Stage::new();
        let opening = stage.creating("another", context, members);
        stage.call(LIAR, 3, &opening);
        stage.loses(LIAR, "may not make");
        assert!(
            !stage.directory.path().join("another").exists(),
            "nothing is made for it"
        );
        let context = stage.open_for_both();
        stage.serves(context);
    }
}

#[test]
fn calls_that_are_not_what_they_were_said_to_be_name_their_caller() {
    let lies: [fn(&mut Stage); 3] = [
        |stage| stage.call(LIAR, 3, b"nonsense"),
        |stage| {
            let opening = stage.opening(first_of(LIAR), &[(1, 1)]);
            stage.knock(LIAR, 3, 8);
            stage.message(LIAR, (FILES, LIAR.number()), 3, &opening);
        },
        |stage| (0..300).for_each(|number| stage.knock(LIAR, number, 0)),
    ];
    for lie in lies {
        let mut stage = Stage::new();
        lie(&mut stage);
        stage.loses(LIAR, "a call about");
        let context = stage.open_for_both();
        stage.serves(context);
    }
}

#[test]
fn one_wrong_question_ends_no_service_and_names_who_has_asked() {
    type Lie = fn(&mut Stage, (u32, u32));
    let lies: [(Lie, &str); 7] = [
        (
            |stage, at| stage.message(LIAR, at, QUESTIONS, &[1, 2, 3]),
            "invalid question",
        ),
        (
            |stage, at| stage.message(LIAR, at, QUESTIONS, &[0xff; 24]),
            "invalid question",
        ),
        (|stage, at| stage.message(LIAR, at, QUESTIONS, &[0; 100]), "too long"),
        (|stage, at| stage.ask(LIAR, at, What::Read, 1 << 40), "invalid question"),
        (
            |stage, at| {
                stage.ask(LIAR, at, What::Write, 17);
                stage.message(LIAR, at, PAYLOADS | 9, &[0; 18]);
            },
            "whose length",
        ),
        (
            |stage, at| {
                stage.ask(LIAR, at, What::Write, 17);
                stage.message(LIAR, at, PAYLOADS | 9, &[0; 16]);
            },
            "whose length",
        ),
        (|stage, at| stage.ask(LIAR, at, What::Stop, 0), "not its own"),
    ];
    for (lie, word) in lies {
        let mut stage = Stage::new();
        let context = stage.open_for_both();
        lie(&mut stage, (context, 1));
        stage.loses(LIAR, word);
        stage.serves(context);
    }
}

#[test]
fn what_never_comes_keeps_nobody_else_waiting() {
    let mut stage = Stage::new();
    let context = stage.open_for_both();
    // A payload that does not come, and questions that do not end.
    stage.ask(LIAR, (context, 1), What::Write, 17);
    for token in 1..4 {
        let header = Header::new(Kind::Rts, context, 1, QUESTIONS, 24, token);
        stage.say(LIAR, &header, &[]);
        stage.serves(context);
    }
    // The innocent one writes, reads and closes.
    let runs = encode_runs(&[(0, 4)]);
    stage.ask(INNOCENT, (context, 0), What::Write, 20);
    stage.message(INNOCENT, (context, 0), PAYLOADS | 9, &[&runs[..], b"That"].concat());
    assert_eq!(stage.answer(INNOCENT, ANSWERS | 9).bytes, 4);
    stage.ask(INNOCENT, (context, 0), What::Stop, 0);
    stage.message(LIAR, (context, 1), LEAVES, &[]);
    assert_eq!(stage.answer(INNOCENT, ANSWERS | 9), Answer::default());
    let content = std::fs::read(stage.directory.path().join("file")).expect("the file");
    assert_eq!(content, b"That was there");
}

#[test]
fn nobody_ends_a_service_for_the_others() {
    let mut stage = Stage::new();
    let context = stage.open_as(LIAR, &[(1, 2)]);
    stage.ask(LIAR, (context, 0), What::Stop, 0);
    for _ in 0..3 {
        stage.serves_as(context, 1);
    }
    assert!(!stage.is_answered(LIAR), "it is not closed yet");
    stage.message(INNOCENT, (context, 1), LEAVES, &[]);
    assert_eq!(stage.answer(LIAR, ANSWERS | 9), Answer::default());
    // Twice is once too often.
    let mut stage = Stage::new();
    let context = stage.open_as(LIAR, &[(1, 2)]);
    stage.ask(LIAR, (context, 0), What::Stop, 0);
    stage.ask(LIAR, (context, 0), What::Stop, 0);
    stage.loses(LIAR, "not its own");
    stage.serves_as(context, 1);
}

#[test]
fn a_file_is_served_when_who_has_opened_it_is_lost_and_closed_when_all_are() {
    let mut stage = Stage::new();
    let context = stage.open_as(LIAR, &[(1, 2)]);
    stage.message(LIAR, (context, 0), QUESTIONS, &[1, 2, 3]);
    stage.loses(LIAR, "invalid question");
    stage.serves_as(context, 1);
    stage.message(INNOCENT, (context, 1), LEAVES, &[]);
    // It makes room for another file of the same processes.
    stage.until("it is closed", |stage| {
        let files = std::fs::read_dir("/proc/self/fd").ok()?;
        let open = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
        let ours = stage.directory.path().join("file");
        (!open.into_iter().any(|file| file == ours)).then_some(())
    });
}

#[test]
fn a_member_that_is_lost_while_it_holds_the_lock_of_a_file_gives_it_back() {
    let mut stage = Stage::new();
    let context = stage.open_for_both();
    stage.ask_of(INNOCENT, (context, 0), (What::Atomic, 1), 0);
    assert_eq!(stage.answer(INNOCENT, ANSWERS | 9), Answer::default());
    stage.ask_of(LIAR, (context, 1), (What::Lock, 1), 0);
    assert_eq!(stage.answer(LIAR, ANSWERS | 9), Answer::default());
    // The innocent one waits, and is not kept from what needs no lock.
    stage.ask_of(INNOCENT, (context, 0), (What::Lock, 1), 0);
    (0..100).for_each(|_| stage.progress());
    assert!(!stage.is_answered(INNOCENT), "the liar has the file for itself");
    stage.message(LIAR, (context, 1), QUESTIONS, &[1, 2, 3]);
    assert_eq!(stage.answer(INNOCENT, ANSWERS | 9), Answer::default());
}

/// A member that says whatever it hears, so that a file is opened with it which it may not have, and then asks the one
/// that has it open, past the calls of MPI.
#[test]
fn a_file_that_is_open_for_its_own_site_only_is_used_by_no_other_one() {
    let outside = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("outside-{}", std::process::id()));
    std::fs::write(&outside, CONTENT).expect("a file");
    let mut stage = Stage::of(2, true);
    let world = stage.world;
    let name = outside.as_os_str().as_encoded_bytes().to_vec();
    let opens = std::thread::spawn(move || {
        let given = Ok((&name[..], Info::default()));
        File::open(world, &comm::of_world(world), given, abi::MPI_MODE_RDWR, Scope::Job)
    });
    let mut context = 0;
    let end = Instant::now() + Duration::from_secs(60);
    while !opens.is_finished() {
        assert!(Instant::now() < end, "it is not opened within a minute");
        stage.ends[0].poll(&mut stage.seen[0]);
        for (header, payload) in std::mem::take(&mut stage.seen[0].0) {
            if header.kind == Kind::Eager {
                context = header.context;
                let mirrored = Header::new(Kind::Eager, context, 1, header.tag, payload.len() as u64, 0);
                stage.ends[0].send(HOST, &mirrored, &payload).expect("it is sent");
            }
        }
    }
    let (_file, service) = opens.join().expect("no panic").expect("it is opened");
    assert!(service.is_some(), "questions are answered");
    let runs = encode_runs(&[(0, 4)]);
    for (what, payload) in [
        (What::Size, Vec::new()),
        (What::Read, runs.clone()),
        (What::Write, [&runs[..], b"That"].concat()),
        (What::Lock, Vec::new()),
        (What::SetSize, Vec::new()),
        (What::Preallocate, Vec::new()),
        (What::Sync, Vec::new()),
        (What::Atomic, Vec::new()),
    ] {
        stage.ask(LIAR, (context, 1), what, payload.len() as u64);
        if !payload.is_empty() {
            stage.message(LIAR, (context, 1), PAYLOADS | 9, &payload);
        }
        let answer = stage.answer(LIAR, ANSWERS | 9);
        assert_eq!(answer.class, abi::MPI_ERR_ACCESS as u32, "{what:?}: {answer:?}");
        assert!(
            answer.text.contains("--share") && answer.data.is_empty(),
            "{what:?}: {answer:?}"
        );
    }
    assert_eq!(std::fs::read(&outside).expect("the file"), CONTENT);
    std::fs::remove_file(outside).expect("it is there");
}
