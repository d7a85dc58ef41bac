// SPDX-License-Identifier: Apache-2.0
//! What processes, their agents and the coordinator say to each other.

use isthmus_topology::{LinkEstimates, Measured};
use isthmus_wire::agreeing::{Agree, Agreed, Members, What, Which};
use isthmus_wire::boot::{Counters, Gone, Hello, LevelCounters, LinkTraffic, Message, World};
use isthmus_wire::chosen::Chosen;
use isthmus_wire::codec::{Deframer, Writer};
use isthmus_wire::gateway::Paths;
use isthmus_wire::grid::{
    AgentHello, Allocation, Arrival, Commit, Exit, FileState, FromAgent, Hold, Made, MadeFile, Reach, Resume,
    Scheduler, Section, Start, Stream, ToAgent, VERSION, Where,
};
use isthmus_wire::guard::{self, Answer, Orders};
use isthmus_wire::joined::Group;
use isthmus_wire::letter::{Letter, Says, Share};
use isthmus_wire::place::{Node, Place, PlaceTable, Representation, Subjob};
use isthmus_wire::question::{self, Ask, Kind, Question, Refusal, Said, Scope};
use isthmus_wire::time::Time;
use isthmus_wire::waiting::{Item, Process, Waiting};
/// A message between a process and its agent.
pub(crate) fn boot(body: &[u8]) {
    if let Ok(message) = Message::decode(body) {
        if let Message::Traffic(links) = &message {
            let mut sum = LinkTraffic::default();
            links.iter().for_each(|link| sum.add(link));
            assert!(sum.counted_at().is_none_or(f64::is_finite));
        }
        assert_eq!(
            unframed(&message.encode()).map(|body| Message::decode(&body)),
            Some(Ok(message))
        );
    }
}

fn places() -> PlaceTable {
    PlaceTable {
        subjobs: vec![Subjob {
            name: "home".into(),
            lan: "home".into(),
            first_rank: 0,
            count: 1,
            programs: vec![(0, 0)],
        }],
        nodes: vec![Node {
            host: "h".into(),
            addresses: vec!["10.0.0.1".into()],
            subjob: 0,
            processes: 1,
            processors: 0,
        }],
        places: vec![Place {
            subjob: 0,
            node: 0,
            port: 9,
            slot: 0,
            representation: Representation([1; 8]),
            vendor: None,
        }],
    }
}

fn boot_messages() -> Vec<Message> {
    let hello = Hello {
        version: 1,
        token: [7; 16],
        index: 3,
        pid: 4711,
        port: 50_000,
        representation: Representation([1; 8]),
        vendor: None,
        signing_request: vec![0x30; 40],
    };
    let counters = Counters {
        rows: vec![(
            "MPI_Bcast".to_owned(),
            1,
            LevelCounters {
                messages: 2,
                bytes: 2048,
            },
        )],
        calls: vec![("MPI_Bcast".to_owned(), 1)],
        links: vec![Measured {
            between: (0, 1),
            latency: Some(20_000_000),
            rate: None,
        }],
        traffic: vec![link()],
        time: Time {
            processes: 1,
            elapsed: 9,
            going_on: 1,
            waits: vec![isthmus_wire::time::Wait::default()],
        },
        choices: vec![Chosen {
            ways: vec![isthmus_wire::chosen::Candidate::default()],
            ..Chosen::default()
        }],
        files: vec![isthmus_wire::usage::Usage {
            name: "\"x\"".to_owned(),
            opens: 4,
            ..Default::default()
        }],
    };
    let reason = "rank 3 called MPI_Abort".to_owned();
    vec![
        Message::Hello(hello),
        Message::World(Box::new(world())),
        Message::Finished(counters),
        Message::Traffic(vec![link(), link()]),
        Message::Gone(Gone {
            number: 1,
            goes_on: true,
            world: [2; 16],
            first: 3,
            count: 1,
            reason: reason.clone(),
        }),
        Message::Abort { code: 1, reason },
        Message::Dismissed,
        Message::Question(question()),
        Message::Question(Question {
            number: 8,
            ask: Ask::Agree(Box::new(agree())),
        }),
        Message::Question(met()),
        Message::Question(told()),
        Message::Question(brought()),
        Message::Answer(answer()),
        Message::Answer(question::Answer {
            number: 8,
            said: Ok(Said::Agreed(Box::new(Agreed {
                flag: 1,
                contexts: [16, 0, 0],
                news: true,
                lost: vec![(1, 1)],
            }))),
        }),
    ]
}

fn brought() -> Question {
    let ask = Ask::Brought(Box::new(letter()));
    Question { number: 10, ask }
}

fn letter() -> Letter {
    let agree = agree();
    Letter {
        which: agree.which,
        what: agree.what,
        worlds: agree.worlds,
        members: agree.members,
        owns: vec![[1; 16]],
        says: Says::Share(Share {
            flag: 1,
            contexts: [16, 0, 0],
            first: 0,
            lost: vec![(1, 1)],
            known: vec![(1, 1)],
        }),
    }
}

fn met() -> Question {
    let with = Group {
        job: "tank".into(),
        world: [1; 16],
        site: "lab".to_owned(),
        host: "n1".to_owned(),
        processes: 4,
    };
    Question {
        number: 9,
        ask: Ask::Met {
            meeting: [3; 16],
            with: vec![with],
        },
    }
}

fn told() -> Question {
    Question {
        number: 10,
        ask: Ask::Tell {
            world: [3; 16],
            what: Some(vec![0, 7]),
        },
    }
}

fn question() -> Question {
    Question {
        number: 7,
        ask: Ask::Publish {
            scope: Scope::Job,
            name: "ocean".to_owned(),
            port: "isthmus1:x".to_owned(),
        },
    }
}

fn agree() -> Agree {
    Agree {
        what: What::Members,
        which: Which {
            scope: [1; 16],
            context: 18,
            round: 2,
        },
        flag: 1,
        contexts: [16, 0, 0],
        worlds: vec![[1; 16]],
        members: vec![Members {
            world: 0,
            first: 0,
            count: 4,
        }],
        known: vec![(1, 1)],
    }
}

fn answer() -> question::Answer {
    question::Answer {
        number: 7,
        said: Err(Refusal::new(Kind::Unknown, "no")),
    }
}

fn link() -> LinkTraffic {
    LinkTraffic {
        from: "home".to_owned(),
        to: "lab".to_owned(),
        sent: u64::MAX,
        observed_us: 2_000_000,
        observers: 1,
        ..LinkTraffic::default()
    }
}

fn world() -> World {
    World {
        title: "tank".into(),
        job: "job".to_owned(),
        rank: 0,
        places: places(),
        links: LinkEstimates::default().to_wire(),
        shared_memory: "/dev/shm/memory".to_owned(),
        node_directory: "/dev/shm/bells".to_owned(),
        secret: [7; 32],
        certificate: vec![0x30; 9],
        authority: vec![0x30; 9],
        paths: Paths::default(),
        shared: vec!["/scratch/run".to_owned(), "/data/mesh.nc".to_owned()],
    }
}

pub(crate) fn boot_bodies() -> Vec<Vec<u8>> {
    boot_messages()
        .iter()
        .filter_map(|message| unframed(&message.encode()))
        .collect()
}

/// A stream of messages, arriving in pieces.
pub(crate) fn stream(bytes: &[u8]) {
    let (mut deframer, mut whole) = (Deframer::default(), Deframer::default());
    whole.feed(bytes);
    for piece in bytes.chunks(1 + bytes.len() / 7) {
        deframer.feed(piece);
        loop {
            let next = deframer.next_body();
            if matches!(next, Ok(None)) {
                break;
            }
            assert_eq!(
                next,
                whole.next_body(),
                "pieces and the whole must give the same messages"
            );
            if next.is_err() {
                return;
            }
        }
    }
}

pub(crate) fn boot_streams() -> Vec<Vec<u8>> {
    vec![boot_messages().iter().flat_map(Message::encode).collect()]
}

/// A message from the coordinator to an agent.
pub(crate) fn to_agent(body: &[u8]) {
    if let Ok(message) = ToAgent::decode(body) {
        assert_eq!(
            unframed(&message.encode()).map(|body| ToAgent::decode(&body)),
            Some(Ok(message))
        );
    }
}

pub(crate) fn waiting_processes() -> Vec<Vec<u8>> {
    let item = Item {
        peer: 3,
        name: "MPI_Bcast".to_owned(),
        members: vec![0, 3, 4],
        ..Item::default()
    };
    let process = Process {
        rank: 4,
        site: "home".to_owned(),
        pid: 77,
        waiting: Some(Waiting {
            call: "MPI_Recv".to_owned(),
            items: vec![item],
            ..Waiting::default()
        }),
        ..Process::default()
    };
    let mut writer = Writer::new(1);
    process.write(&mut writer);
    vec![writer.into_body()]
}

pub(crate) fn guard_answers() -> Vec<Vec<u8>> {
    let orders = Orders {
        token: [7; 16],
        index: 1,
        input: true,
        rendezvous: b"/tmp/r".to_vec(),
        program: b"/bin/app".to_vec(),
        name: "app".to_owned(),
        arguments: vec!["-n".to_owned()],
        environment: vec![("A".to_owned(), b"b".to_vec())],
        hidden: vec!["B".to_owned()],
        directory: b"/".to_vec(),
    };
    let answers = [Answer::Orders(Box::new(orders)), Answer::Refused("no".to_owned())];
    let mut all: Vec<Vec<u8>> = answers.iter().map(|answer| answer.encode()[4..].to_vec()).collect();
    all.push(guard::encode_ended(Exit::Signal(9)).to_vec());
    all
}

fn successions() -> Vec<ToAgent> {
    vec![
        ToAgent::Hold(Hold {
            secret: [7; 32],
            seconds: 300,
        }),
        ToAgent::Resume(Resume {
            secret: [7; 32],
            launcher: 1,
            standings: 2,
            outputs: 3,
        }),
    ]
}

fn section(first: u32, program: &str) -> Section {
    Section {
        first,
        program: program.to_owned(),
        arguments: vec!["-n".to_owned(), String::new()],
        environment: vec![("A".to_owned(), String::new())],
        directory: "below".to_owned(),
        library: "/lib".to_owned(),
    }
}

pub(crate) fn to_agent_bodies() -> Vec<Vec<u8>> {
    let start = Start {
        job: "job".to_owned(),
        subjob: 1,
        first: 3,
        count: 16,
        of: 20,
        sections: vec![section(0, "./app"), section(9, "./other")],
        environment: vec![("A".to_owned(), "b=c".to_owned())],
        directory: "/tmp".to_owned(),
        directory_optional: true,
        below: "run".into(),
        input: isthmus_wire::grid::Input::One(7),
        stdin: "/in".into(),
        stdout: String::new(),
        stderr: "/err".into(),
        silence: 9,
        reach: Reach::Wide,
        allocation: Some(Allocation {
            directives: vec!["--exclusive".to_owned()],
            ..Allocation::new(Scheduler::Slurm)
        }),
        vendor: "mpiexec".to_owned(),
        files: "/jobs/files".to_owned(),
        shared: vec!["/scratch/run".to_owned(), "~/data".to_owned()],
    };
    let commit = Commit {
        title: "tank".into(),
        name: "job".to_owned(),
        subjob: 1,
        secret: [7; 32],
        authority: vec![0x30; 9],
        certificates: vec![vec![0x30; 9], vec![]],
        places: places(),
        links: LinkEstimates::default().to_wire(),
        paths: Paths::default(),
    };
    let messages = [
        ToAgent::Offer {
            hash: [3; 32],
            size: 1 << 40,
            name: "app".to_owned(),
        },
        ToAgent::Start(Box::new(start)),
        ToAgent::Commit(Box::new(commit)),
        ToAgent::Abort {
            code: -1,
            reason: "a rank was killed".to_owned(),
        },
        ToAgent::Ping(9),
        ToAgent::Neighbour {
            number: 4,
            bytes: vec![7; 9],
        },
        ToAgent::Answer {
            index: 1,
            answer: answer(),
        },
        ToAgent::Launch(vec![("n1".to_owned(), 2)]),
    ];
    messages
        .iter()
        .chain(&successions())
        .filter_map(|message| unframed(&message.encode()))
        .collect()
}

/// A message from an agent to the coordinator.
pub(crate) fn from_agent(body: &[u8]) {
    if let Ok(message) = FromAgent::decode(body) {
        assert_eq!(
            unframed(&message.encode()).map(|body| FromAgent::decode(&body)),
            Some(Ok(message))
        );
    }
}

pub(crate) fn from_agent_bodies() -> Vec<Vec<u8>> {
    let hello = AgentHello {
        version: VERSION,
        host: "host".to_owned(),
        architecture: "x86_64".to_owned(),
        addresses: vec!["::1".to_owned()],
        processors: 2,
    };
    let representation = Representation([6; 8]);
    let arrival = Arrival {
        index: 3,
        pid: 4,
        port: 5,
        representation,
        vendor: None,
        signing_request: vec![0x30; 9],
    };
    let messages = [
        FromAgent::Hello(hello),
        FromAgent::File {
            hash: [1; 32],
            state: FileState::Here("/path".to_owned()),
        },
        FromAgent::Refused {
            reason: "no".to_owned(),
            hint: "yes".to_owned(),
        },
        FromAgent::Arrived(vec![arrival.clone(), arrival]),
        FromAgent::Output {
            index: 1,
            stream: Stream::Error,
            bytes: b"text\n".to_vec(),
        },
        FromAgent::Exited(vec![(0, Exit::Status(3)), (1, Exit::Signal(9))]),
        FromAgent::Neighbour {
            number: 4,
            bytes: vec![7; 9],
        },
        FromAgent::NeighbourTook { number: 4, bytes: 9 },
        FromAgent::Asked {
            index: 1,
            question: question(),
        },
        FromAgent::Made(Made {
            directory: "/home/me/run".to_owned(),
            place: Where::Own,
            node: String::new(),
            minutes: 60,
            files: 3,
            bytes: 700,
            some: vec![MadeFile {
                path: "a/b".to_owned(),
                size: 500,
                number: 17,
            }],
        }),
    ];
    messages
        .iter()
        .filter_map(|message| unframed(&message.encode()))
        .collect()
}

/// The body of the first message of a stream.
pub(crate) fn unframed(stream: &[u8]) -> Option<Vec<u8>> {
    let mut deframer = Deframer::default();
    deframer.feed(stream);
    deframer.next_body().ok().flatten()
}
