// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::boot::{Counters, Gone};
use crate::links::Table;
use crate::place::{Node, Place, PlaceTable, Representation, Subjob};
use crate::question::{Answer, Ask, Question, Said};

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
            vendor: Some(0),
        }],
    }
}

fn section(first: u32, program: &str) -> Section {
    Section {
        first,
        program: program.into(),
        arguments: vec!["-x".into(), String::new()],
        environment: vec![("B".into(), "d".into())],
        directory: "run".into(),
        library: "/l".into(),
    }
}

#[test]
fn messages_to_an_agent_survive_the_wire() {
    let start = Start {
        job: "j".into(),
        subjob: 1,
        first: 3,
        count: 64,
        of: 128,
        sections: vec![section(0, "./a"), section(60, "./b")],
        environment: vec![("A".into(), "b=c".into())],
        directory: "/tmp".into(),
        directory_optional: true,
        below: "run".into(),
        input: Input::One(7),
        stdin: "/in".into(),
        stdout: String::new(),
        stderr: "/err".into(),
        silence: 9,
        reach: Reach::Wide,
        allocation: Some(Allocation {
            queue: "debug".into(),
            account: "p1".into(),
            limit: 3600,
            nodes: 2,
            exclusive: true,
            directives: vec!["--constraint=fast".into()],
            ..Allocation::new(Scheduler::Slurm)
        }),
        vendor: "mpiexec".into(),
        files: "/jobs/1".into(),
        shared: vec!["/scratch".into(), "~/data".into()],
    };
    let commit = Commit {
        name: "j.1".into(),
        title: "tank".into(),
        subjob: 1,
        secret: [7; 32],
        authority: vec![1],
        certificates: vec![vec![2, 3], vec![]],
        places: places(),
        links: Table::default(),
        paths: Default::default(),
    };
    for m in [
        ToAgent::Offer {
            hash: [3; 32],
            size: 1 << 40,
            name: "a".into(),
        },
        ToAgent::Chunk(vec![0, 255]),
        ToAgent::Start(Box::new(start)),
        ToAgent::Commit(Box::new(commit)),
        ToAgent::Input(vec![]),
        ToAgent::OutputCredit(5),
        ToAgent::Dismiss,
        ToAgent::Abort {
            code: -1,
            reason: "why".into(),
        },
        ToAgent::Gone(Gone {
            number: 7,
            goes_on: false,
            world: [0; 16],
            first: 2,
            count: 3,
            reason: "site 'b' cannot be reached".into(),
        }),
        ToAgent::Signal(15),
        ToAgent::End,
        ToAgent::Answer {
            index: 3,
            answer: Answer {
                number: 9,
                said: Ok(Said::Port("p".into())),
            },
        },
        ToAgent::Neighbour {
            number: 4,
            bytes: vec![0, 255],
        },
        ToAgent::Ping(9),
        ToAgent::Launch(vec![("n1".into(), 2), ("n2".into(), 1)]),
        ToAgent::LauncherEnded(LauncherEnd {
            exit: Exit::Signal(9),
            said: "no".into(),
        }),
        ToAgent::Hold(Hold {
            secret: [5; 32],
            seconds: 300,
        }),
        ToAgent::Resume(Resume {
            secret: [5; 32],
            launcher: 77,
            standings: 3,
            outputs: 1 << 33,
        }),
    ] {
        assert!(!matches!(m, ToAgent::Resume(_)) || m.encode().len() <= MAX_RESUME);
        assert_eq!(ToAgent::decode(&m.encode()[4..]), Ok(m));
    }
}

#[test]
fn messages_from_an_agent_survive_the_wire() {
    let hello = AgentHello {
        version: VERSION,
        host: "h".into(),
        architecture: "x86_64".into(),
        addresses: vec!["::1".into()],
        processors: 2,
    };
    let arrival = Arrival {
        index: 3,
        pid: 4,
        port: 5,
        representation: Representation([6; 8]),
        vendor: Some(8),
        signing_request: vec![7; 9],
    };
    for m in [
        FromAgent::Hello(hello),
        FromAgent::File {
            hash: [1; 32],
            state: FileState::Here("/p".into()),
        },
        FromAgent::File {
            hash: [1; 32],
            state: FileState::Wanted,
        },
        FromAgent::Started(vec![NodeProcesses {
            host: "h".into(),
            addresses: vec!["::1".into()],
            processors: 2,
            processes: 3,
        }]),
        FromAgent::Queued {
            scheduler: Scheduler::Lsf,
            id: "17".into(),
            why: "Resources".into(),
            start: 1_795_788_300,
        },
        FromAgent::Refused {
            reason: "no".into(),
            hint: "yes".into(),
        },
        FromAgent::Arrived(vec![arrival.clone(), arrival]),
        FromAgent::Output {
            index: 1,
            stream: Stream::Error,
            bytes: b"x\n".to_vec(),
        },
        FromAgent::InputCredit(8),
        FromAgent::Exited(vec![(0, Exit::Status(3)), (1, Exit::Signal(9))]),
        FromAgent::Finished {
            index: 1,
            counters: Counters::default(),
        },
        FromAgent::Aborted {
            index: 2,
            code: 7,
            reason: "r".into(),
        },
        FromAgent::Time(3, crate::time::Time::default()),
        FromAgent::Made(Made {
            directory: "/d".into(),
            place: Where::Own,
            node: String::new(),
            minutes: 60,
            files: 2,
            bytes: 3,
            some: vec![MadeFile {
                path: "p".into(),
                size: 3,
                number: 4,
            }],
        }),
        FromAgent::Suspended(true),
        FromAgent::Asked {
            index: 3,
            question: Question {
                number: 9,
                ask: Ask::Lookup {
                    scope: None,
                    name: "n".into(),
                },
            },
        },
        FromAgent::Neighbour {
            number: 4,
            bytes: Vec::new(),
        },
        FromAgent::NeighbourTook { number: 4, bytes: 9 },
        FromAgent::Beside(Scheduler::Pbs),
        FromAgent::Pong(1, 2),
        FromAgent::Gone,
    ] {
        assert_eq!(FromAgent::decode(&m.encode()[4..]), Ok(m));
    }
}

#[test]
fn every_truncation_is_refused() {
    let whole = ToAgent::Commit(Box::new(Commit {
        name: "j.1".into(),
        title: "tank".into(),
        subjob: 1,
        secret: [7; 32],
        authority: vec![1],
        certificates: vec![vec![2, 3]],
        places: places(),
        links: Table::default(),
        paths: Default::default(),
    }))
    .encode();
    for end in 4..whole.len() {
        assert!(ToAgent::decode(&whole[4..end]).is_err(), "{end} bytes were accepted");
    }
}

#[test]
fn a_node_says_who_it_is() {
    let hello = NodeHello {
        name: "n1".repeat(128),
        secret: [9; 32],
        node: 1,
        nodes: 2,
        slots: 4,
    };
    let whole = hello.encode();
    assert!(whole.len() <= MAX_NODE_HELLO);
    assert!(!format!("{hello:?}").contains("[9"), "secrets are not printed");
    assert_eq!(NodeHello::decode(&whole[4..]), Ok(hello));
    for end in 4..whole.len() {
        assert!(NodeHello::decode(&whole[4..end]).is_err());
    }
}
