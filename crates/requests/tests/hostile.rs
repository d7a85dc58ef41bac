// SPDX-License-Identifier: Apache-2.0
//! A process that sends requests or answers that nobody may, and one that is lost. Both processes are engines with
//! their worlds; then one of them lies.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use isthmus_core::world::World;
use isthmus_datatype::Representation;
use isthmus_datatype::raw::{OwnMemory, ReadMemory};
use isthmus_engine::{Completion, Engine, Policy, Request, SendBuffer, Setup, Shared, register_later, with_port};
use isthmus_protocol::credit::WINDOW;
use isthmus_requests::{Call, Data, Reply, Requests, Target, To};
use isthmus_transport::memory::{Memory, Options, network};
use isthmus_transport::{Peer, Processes, Transport};
use isthmus_wire::frame::{Header, Kind, protocol};
use isthmus_wire::place::{self, Node, Place, PlaceTable, Subjob};
use isthmus_wire::requests::{Answer, MAX_BYTES, MAX_NAME, MAX_NAMES, What, token};
use isthmus_wire::rma::Failure;

const HOST: Peer = Peer::new(0);
const LIAR: Peer = Peer::new(1);

/// Tag, token, payload.
type Frame = (i32, u64, Vec<u8>);

/// Every process at a site of its own.
fn places(size: u32) -> Arc<PlaceTable> {
    let name = |rank: u32| ["a", "b"][rank as usize].to_owned();
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

fn world(me: Peer, end: Memory, requests: &Requests) -> &'static World {
    let own: Box<dyn Transport> = Box::new(end);
    let mut engine = Engine::new(Setup {
        me,
        processes: Processes::of("job", 2),
        transports: vec![own],
        routes: vec![0; 2],
        levels: vec![0; 2],
        representations: Vec::new(),
    });
    for (protocol, make) in requests.machines() {
        register_later(&mut engine, protocol, make);
    }
    let policy = Policy {
        threads: true,
        guests: false,
    };
    let shared = Shared::new(engine, policy);
    let world = Box::leak(Box::new(World::new(me.number(), places(2), shared)));
    requests.begin(world);
    world
}

struct Stage {
    host: &'static World,
    liar: &'static World,
    /// Of both.
    requests: [Requests; 2],
    /// How often the handler of the host was called.
    called: Arc<AtomicUsize>,
}

impl Stage {
    /// The host has a handler "work", which replies with its data.
    fn new() -> Self {
        let (mut ends, _) = network(2, Options::default()).expect("eventfd");
        let requests = [Requests::default(), Requests::default()];
        let liar = world(LIAR, ends.remove(1), &requests[1]);
        let host = world(HOST, ends.remove(0), &requests[0]);
        let called = Arc::new(AtomicUsize::new(0));
        let counted = called.clone();
        let work = move |call: &mut Call| {
            counted.fetch_add(1, Ordering::Relaxed);
            call.reply = Some(call.data.clone());
        };
        requests[0]
            .register("work", Some(Arc::new(work)), false)
            .expect("a name");
        Self {
            host,
            liar,
            requests,
            called,
        }
    }

    fn progress(&self) {
        for _ in 0..20 {
            self.liar.engine().lock().progress();
            self.host.engine().lock().progress();
        }
    }

    /// The host calls MPI: its handlers are called.
    fn serve(&self) {
        self.requests[0].serve(self.host, false).expect("no mistake");
        self.progress();
    }

    fn say(&self, number: u8, tag: i32, token: u64, payload: &[u8]) {
        let mut header = Header::control(Kind::Protocol, token, 0, 0);
        header.tag = tag;
        let payload = SendBuffer::owned(payload.into());
        let _ = with_port(&mut self.liar.engine().lock(), number, |port| {
            port.send(HOST, header, payload, None)
        });
        self.progress();
    }

    fn name(&self, number: u32, name: &[u8]) {
        let tag = What::Name.tag(number);
        self.say(protocol::REQUESTS, tag, token(0, name.len() as u32), name);
    }

    /// Why the host has given the liar up.
    fn accused(&self) -> Option<String> {
        self.progress();
        let loss = with_port(&mut self.host.engine().lock(), protocol::RMA, |port| port.loss(LIAR));
        loss.map(|error| error.to_string())
    }

    fn is_accused(&self, word: &str) {
        let accused = self.accused();
        assert!(
            accused.as_ref().is_some_and(|text| text.contains(word)),
            "{accused:?}, not: {word}"
        );
    }
}

/// A request of `from` to the other one, whose reply has room for eight bytes.
fn ask(from: (&Requests, &World), peer: Peer, name: &str, target: Option<Target>, reply: &OwnMemory) -> Request {
    let handler = from.0.register(name, None, false).expect("a name");
    let to = To {
        peer,
        rank: peer.number(),
        target,
        handler,
        waits: true,
    };
    let reply = Reply {
        memory: reply.memory(),
        room: 8,
    };
    let nothing = Data {
        memory: ReadMemory::EMPTY,
        bytes: 0,
    };
    from.0
        .ask(from.1, &to, &nothing, reply)
        .expect("no mistake")
        .expect("room")
}

fn ended(world: &World, request: Request) -> Option<Completion> {
    world.engine().lock().core.take(request)
}

#[test]
fn an_honest_process_is_served_once_and_in_order() {
    let stage = Stage::new();
    stage.name(1, b"work");
    for _ in 0..100 {
        stage.say(protocol::REQUESTS, What::Request.tag(1), token(0, 5), b"hello");
    }
    assert_eq!(stage.called.load(Ordering::Relaxed), 0, "nobody has called MPI");
    stage.serve();
    assert_eq!((stage.called.load(Ordering::Relaxed), stage.accused()), (100, None));
}

#[test]
fn requests_that_nobody_may_send_lose_their_sender_and_call_nothing() {
    let whole = |what: What, handler, question, bytes: &[u8]| {
        (what.tag(handler), token(question, bytes.len() as u32), bytes.to_vec())
    };
    let long = vec![b'a'; MAX_NAME + 1];
    let lies: Vec<(Frame, &str)> = vec![
        ((77, token(0, 0), vec![]), "unknown kind"),
        (whole(What::Request, 2, 0, b"x"), "has not named"),
        (whole(What::Request, 0, 0, b"x"), "has not named"),
        (whole(What::Request, MAX_NAMES as u32, 1, b"x"), "has not named"),
        (whole(What::Name, 3, 0, b"other"), "not the next one"),
        (whole(What::Name, 1, 0, b"again"), "not the next one"),
        (whole(What::Name, 2, 0, b""), "that is none"),
        (whole(What::Name, 2, 0, &long), "that is none"),
        (whole(What::Name, 2, 0, &[0xff, 0xfe]), "that is none"),
        (whole(What::Name, 2, 9, b"asks"), "that is none"),
        (whole(What::Flush, 1, 1, b""), "has not named"),
        (whole(What::Flush, 0, 0, b""), "that is none"),
        (whole(What::Flush, 0, 1, b"data"), "that is none"),
        (whole(What::Point, 1, 0, &[0; 23]), "global pointer that is none"),
        (whole(What::Point, 1, 0, &[9; 24]), "global pointer that is none"),
        ((What::Request.tag(1), token(0, 3), b"longer".to_vec()), "do not follow"),
        ((What::Request.tag(1), token(0, 7), vec![]), "do not follow"),
        (
            (What::Request.tag(1), token(0, MAX_BYTES as u32 + 1), vec![1; 8]),
            "do not follow",
        ),
    ];
    for ((tag, token, payload), word) in lies {
        let stage = Stage::new();
        stage.name(1, b"work");
        stage.say(protocol::REQUESTS, tag, token, &payload);
        stage.is_accused(word);
        stage.serve();
        assert_eq!(stage.called.load(Ordering::Relaxed), 0, "{word}");
    }
}

#[test]
fn pieces_of_two_requests_may_not_be_mixed() {
    let stage = Stage::new();
    stage.name(1, b"work");
    stage.say(protocol::REQUESTS, What::Request.tag(1), token(0, 8), b"four");
    stage.say(protocol::REQUESTS, What::Request.tag(1), token(1, 8), b"four");
    stage.is_accused("do not follow");
    let stage = Stage::new();
    stage.name(1, b"work");
    stage.say(protocol::REQUESTS, What::Request.tag(1), token(0, 8), b"four");
    stage.name(2, b"other");
    stage.is_accused("not the next one");
}

#[test]
fn who_tells_more_names_than_there_may_be_is_lost() {
    let stage = Stage::new();
    for number in 1..=MAX_NAMES as u32 {
        stage.name(number, b"work");
    }
    assert_eq!(stage.accused(), None);
    stage.say(
        protocol::REQUESTS,
        (MAX_NAMES as i32 + 1) << 8 | What::Name as i32,
        token(0, 1),
        b"x",
    );
    stage.is_accused("unknown kind");
}

#[test]
fn requests_that_wait_take_no_more_than_the_credit() {
    let stage = Stage::new();
    stage.name(1, b"work");
    let data = vec![7; 60_000];
    // The library of the liar keeps to its credit; what it has none for waits there.
    for _ in 0..300 {
        stage.say(
            protocol::REQUESTS,
            What::Request.tag(1),
            token(0, data.len() as u32),
            &data,
        );
    }
    stage.requests[0].serve(stage.host, false).expect("no mistake");
    let called = stage.called.load(Ordering::Relaxed) as u64;
    assert!(called > 100 && called * 60_000 <= WINDOW, "{called}");
    for _ in 0..10 {
        stage.serve();
    }
    assert_eq!((stage.called.load(Ordering::Relaxed), stage.accused()), (300, None));
}

#[test]
fn memory_that_is_not_registered_is_no_target() {
    let stage = Stage::new();
    let region = stage.requests[0].add_memory(1 << 20, 4096).expect("room");
    // Its library tells the name, and so knows that it has sent requests, whose failures come.
    let memory = OwnMemory::new(0, 8);
    ask((&stage.requests[1], stage.liar), HOST, "work", None, &memory);
    stage.progress();
    let point = |region: u32, address: u64, length: u64| {
        let target = Target {
            region,
            address,
            length,
        };
        let bytes = target.encode();
        stage.say(
            protocol::REQUESTS,
            What::Point.tag(1),
            token(0, bytes.len() as u32),
            &bytes,
        );
    };
    for (number, address, length) in [
        (region + 1, 1 << 20, 8),
        (0, 1 << 20, 8),
        (region, (1 << 20) - 1, 8),
        (region, (1 << 20) + 4090, 8),
        (region, 1 << 20, u64::MAX),
        (region, u64::MAX, u64::MAX),
    ] {
        point(number, address, length);
    }
    stage.serve();
    assert_eq!(stage.called.load(Ordering::Relaxed), 1);
    point(region, 1 << 20, 4096);
    stage.serve();
    assert_eq!((stage.called.load(Ordering::Relaxed), stage.accused()), (2, None));
}

#[test]
fn answers_to_nobody_lose_their_sender() {
    let failure = Failure {
        class: 16,
        text: "no".to_owned(),
    }
    .encode();
    let lies: Vec<Frame> = vec![
        (Answer::Reply as i32, token(1, 0), vec![]),
        (Answer::Reply as i32, token(0, 2), vec![1, 2]),
        (Answer::Failed as i32, token(5, failure.len() as u32), failure.clone()),
        (Answer::Failed as i32, token(0, failure.len() as u32), failure),
        (9, token(1, 0), vec![]),
    ];
    for (tag, token, payload) in lies {
        let stage = Stage::new();
        stage.say(protocol::ANSWERS, tag, token, &payload);
        stage.is_accused("nobody has sent");
    }
}

#[test]
fn replies_that_lie_write_nothing_beside_their_place() {
    // A reply that is longer than there is room is cut, and an error of the program.
    let stage = Stage::new();
    let memory = OwnMemory::new(0, 16);
    let request = ask((&stage.requests[0], stage.host), LIAR, "theirs", None, &memory);
    stage.say(protocol::ANSWERS, Answer::Reply as i32, token(1, 12), &[5; 12]);
    let error = ended(stage.host, request).and_then(|ended| ended.error);
    assert!(error.is_some_and(|error| error.to_string().contains("12 bytes, but only 8 fit")));
    assert_eq!(memory.content(), [[5; 8], [0; 8]].concat());
    for (whole, payload) in [(4, vec![5; 8]), (12, vec![]), (MAX_BYTES as u32 + 1, vec![5; 8])] {
        let stage = Stage::new();
        let memory = OwnMemory::new(0, 16);
        let request = ask((&stage.requests[0], stage.host), LIAR, "theirs", None, &memory);
        stage.say(protocol::ANSWERS, Answer::Reply as i32, token(1, whole), &payload);
        stage.is_accused("do not follow");
        // Whoever waits hears of the loss.
        assert!(ended(stage.host, request).is_some_and(|ended| ended.error.is_some()));
        assert_eq!(memory.content(), [0; 16]);
    }
}

#[test]
fn a_name_that_is_not_registered_fails_at_whoever_has_sent_the_request() {
    let stage = Stage::new();
    let memory = OwnMemory::new(0, 8);
    let request = ask((&stage.requests[1], stage.liar), HOST, "else", None, &memory);
    stage.progress();
    let error = ended(stage.liar, request).and_then(|ended| ended.error);
    let text = error.map(|error| error.to_string()).unwrap_or_default();
    assert!(
        text.contains("rank 0 in MPI_COMM_WORLD has no handler \"else\""),
        "{text}"
    );
}

#[test]
fn whoever_waits_for_a_process_that_is_lost_gets_an_error() {
    let stage = Stage::new();
    let memory = OwnMemory::new(0, 8);
    let request = ask((&stage.requests[1], stage.liar), HOST, "work", None, &memory);
    stage.progress();
    assert_eq!(ended(stage.liar, request), None, "the host has not called MPI");
    stage.liar.engine().lock().lose_peers([HOST], "killed");
    let error = ended(stage.liar, request).and_then(|ended| ended.error);
    assert!(error.is_some_and(|error| error.to_string().contains("killed")));
    assert!(stage.requests[1].flush(stage.liar, HOST, 0).is_err());
    // What had come is done, and answered to nobody.
    stage.serve();
    assert_eq!(stage.called.load(Ordering::Relaxed), 1);
}

#[test]
fn after_the_end_requests_fail() {
    let stage = Stage::new();
    let memory = OwnMemory::new(0, 8);
    let request = ask((&stage.requests[1], stage.liar), HOST, "work", None, &memory);
    stage.progress();
    stage.requests[0].close(stage.host);
    stage.progress();
    let error = ended(stage.liar, request).and_then(|ended| ended.error);
    assert!(error.is_some_and(|error| error.to_string().contains("has called MPI_Finalize")));
    assert_eq!(stage.called.load(Ordering::Relaxed), 0);
}
